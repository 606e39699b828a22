"""What a database answers to a query, by a driver of ADBC: ``adbc:DRIVER?uri=…#QUERY``."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from . import _tacit
from .errors import InputError, UsageError


def _parts(address: str) -> tuple[str, dict[str, str], str]:
    """Driver, options and query of an address."""
    server, sign, query = address.removeprefix("adbc:").partition("#")
    query = query.strip().rstrip("; \t\n")
    driver, _, rest = server.partition("?")
    if not sign or not query or not driver:
        raise UsageError(f"adbc:{driver}: an address is adbc:DRIVER?uri=…#QUERY")
    options = {}
    for option in filter(None, rest.split("&")):
        name, sign, value = option.partition("=")
        if not sign:
            raise UsageError(f"adbc:{driver}: an option is written NAME=VALUE")
        options[unquote(name)] = unquote(value)
    return driver, options, query


def _plain(error: Exception, options: dict[str, str]) -> str:
    """What a driver said before it saw a row, without what may be a secret."""
    words = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
    for value in options.values():
        secrets = [value]
        user, sign, _ = value.partition("://")[2].rpartition("@")
        if sign and ":" in user:
            secrets.append(user.partition(":")[2])
        for secret in filter(None, [*secrets, *map(unquote, secrets)]):
            words = words.replace(secret, "[redacted]")
    return words


def answer(address: str) -> Any:
    """What the database answers, as our own rows."""
    driver, options, query = _parts(address)
    try:
        import adbc_driver_manager as adbc  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError("adbc: addresses need the package adbc-driver-manager, and a driver") from None
    try:
        with (
            adbc.AdbcDatabase(driver=driver, **options) as database,
            adbc.AdbcConnection(database) as connection,
            adbc.AdbcStatement(connection) as statement,
        ):
            statement.set_sql_query(query)
            stream = None
            try:
                stream, _ = statement.execute_query()
                return _tacit.Rows.of_answer(stream)
            except Exception:
                # What is said of rows may hold data.
                if stream is None:
                    raise
                raise InputError(
                    f"adbc:{driver}: the query failed while rows came; the driver's words may contain data and are not shown"
                ) from None
    except adbc.Error as error:
        status = getattr(getattr(error, "status_code", None), "name", "")
        raise InputError(f"adbc:{driver}: the driver refuses: {_plain(error, options)} ({status})") from None
