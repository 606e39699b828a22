"""Tables out of a real PostgreSQL server, against files and against DuckDB's join; and the server's faults."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import pytest
from parties import free_address, party
from stores import (
    PASSWORD,
    Database,
    Way,
    database,
    environment,
    free_port,
    intersect,
    is_listening,
    run,
    start,
    until,
    wait,
)

import tacit

SETUP = """
create table people (
    mail text, note text, number bigint, price numeric(12, 2), wide numeric, day date, moment timestamp,
    at timestamptz, yes boolean, id uuid, share double precision, raw bytea, small smallint, list int[]
);
insert into people values
    ('ann@example.com', 'said "no, no"', 1, 1.50, 1.50, '2024-02-29', '2024-02-29 12:00:00.5',
     '2024-02-29 12:00:00+02', true, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 0.1, '\\x00ff', 7, '{1,2}'),
    (' Bob@Example.com', E'two\\nlines\\tand \\\\N', -7, 2.00, 2.000, null, null, null, false, null, 1e300, '', -1, null),
    ('', 'no key', 3, 0.05, 0.05, '1970-01-01', '1970-01-01', '1970-01-01 00:00+00', null, null, null, null, 0, '{}'),
    (null, 'no key either', null, null, null, '1969-12-31', null, null, null, null, 'NaN', null, null, null),
    ('cleo@example.com', 'Zoë; 東京', 9007199254740993, 123456789.10, 12345678901234567890123456789.1,
     '0001-01-01', '1969-12-31 23:59:59.999999', null, true, null, -0.0, null, null, null),
    ('ann@example.com', '', 6, -1.20, -1.20, '9999-12-31', null, null, false, null, null, null, null, null);
create table other (mail text, x int);
insert into other values ('BOB@example.com', 1), ('ann@example.com ', 2), ('dora@example.com', 3);
create sequence numbers;
create role reader login password 'reader''s own';
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Database]:
    with database() as running:
        running.do(SETUP)
        yield running


def select(server: Database, what: str = "*", where: str = "") -> str:
    return server.url(f"select {what} from people {where} order by number desc nulls first")


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "arrow"])
def test_a_query_gives_the_rows_of_a_join(server: Database, tmp_path: Path, form: str) -> None:
    target = tmp_path / f"out.{form}"
    _, said = intersect(
        ["--input", select(server), "--key", "mail", "--output", str(target)],
        ["--input", server.url("table other;"), "--key", "mail"],
    )
    assert said.code == 0, said
    assert json.loads(said.out)["output_rows"] == 3
    # DuckDB's join of what the server itself writes.
    files = [tmp_path / "ours.csv", tmp_path / "theirs.csv"]
    queries = ["select mail, number from people order by number desc nulls first", "table other"]
    for file, query in zip(files, queries, strict=True):
        file.write_text(server.do(f"copy ({query}) to stdout (format csv, header);"))
    ours, theirs = (f"read_csv('{file}', header = true, all_varchar = true)" for file in files)
    joined = [
        number
        for (number,) in duckdb.sql(f"""
            select number from (select *, row_number() over () as place from {ours})
            where lower(trim(mail)) in (select lower(trim(mail)) from {theirs}) order by place
        """).fetchall()
    ]
    assert joined == ["6", "1", "-7"]
    if form.startswith("csv"):
        found = polars.read_csv(target, infer_schema=False)
        assert found["number"].to_list() == joined
        assert found["price"].to_list() == ["-1.20", "1.50", "2.00"]
        assert found["day"].to_list()[1] == "2024-02-29"
        assert found["at"].to_list()[1] == "2024-02-29T10:00:00Z"
        assert found["id"].to_list()[1] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        assert found["note"].to_list() == ["", 'said "no, no"', "two\nlines\tand \\N"]
        assert found["list"].to_list() == [None, "{1,2}", None]
        return
    found = polars.read_parquet(target) if form == "parquet" else polars.read_ipc(target)
    assert [str(number) for number in found["number"]] == joined
    row = found.row(1, named=True)
    assert row["price"] == decimal.Decimal("1.50")
    assert row["wide"] == "1.50"
    assert row["day"] == datetime.date(2024, 2, 29)
    assert row["moment"] == datetime.datetime(2024, 2, 29, 12, 0, 0, 500_000)
    assert row["at"] == datetime.datetime(2024, 2, 29, 10, 0, tzinfo=datetime.UTC)
    assert (row["yes"], row["share"], row["raw"], row["small"]) == (True, 0.1, b"\x00\xff", 7)
    assert found.row(2, named=True)["day"] is None


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("number", ["1", "-7", "3", "9007199254740993", "6"]),
        ("small", ["7", "-1", "0"]),
        ("price", ["1.5", "2", "0.05", "123456789.1", "-1.2"]),
        ("wide", ["1.5", "2", "0.05", "12345678901234567890123456789.1", "-1.2"]),
        ("day:date", ["2024-02-29", "1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31"]),
        ("day", ["2024-02-29", "1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31"]),
        ("moment:date", ["1970-01-01"]),
        ("yes", ["true", "false"]),
        ("id:uuid", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        ("note", ['said "no, no"', "two\nlines\tand \\N", "no key", "no key either", "Zoë; 東京"]),
    ],
)
def test_keys_of_every_type_are_the_text_that_csv_has(
    server: Database, tmp_path: Path, column: str, cells: list[str]
) -> None:
    name, _, kind = column.partition(":")
    file = tmp_path / "cells.csv"
    polars.DataFrame({name: cells}).write_csv(file)
    key = f"{name}:{kind}" if kind else name
    said = run("--json", "check", "--input", select(server), "--key", key, "--against", file)
    found = json.loads(said.out)
    assert found["matches"] == len(cells) == found["keys"], said


def test_floats_and_bytes_are_no_key(server: Database) -> None:
    for name in ("share", "raw"):
        run("check", "--input", select(server), "--key", name).fails_with(
            3, "127.0.0.1", name, "cannot be a key"
        )


def test_faults_are_one_line_without_password_and_cells(server: Database, tmp_path: Path) -> None:
    def check(url: str, code: int, *words: str, key: str = "mail", env: dict[str, str] | None = None) -> None:
        for more in ([], ["-v", "--json"]):
            said = run(*more, "check", "--input", url, "--key", key, env=env)
            said.fails_with(code, *words)
            assert "ann@" not in said.out + said.err and "no key" not in said.err, said

    here = f"postgresql://owner@127.0.0.1:{server.port}/postgres"
    query = "#table people"
    wrong = here.replace("owner@", "owner:hunter2wrong@") + query
    check(wrong, 3, here, "password authentication failed", "28P01")
    check(here + query, 3, "password", env=environment(HOME=str(tmp_path)))
    check(server.url("table persons"), 3, here, "persons", "does not exist")
    check(server.url("select email from people"), 3, "email", "does not exist", "42703")
    check(server.url("table people"), 3, "`email`", "did you mean `mail`", key="email")
    check(server.url("selec mail"), 3, "syntax error")
    check(server.url("select * from people; drop table people"), 3, "multiple commands")
    check(server.url("select mail from people) to program 'touch /tmp/x' --"), 3, "syntax error")
    for writes in (
        "delete from people returning mail",
        "insert into people (mail) values ('x') returning mail",
        "select mail, nextval('numbers') from people",
        "with gone as (delete from people returning mail) select * from gone",
        "select mail from people for update",
    ):
        check(server.url(writes), 3, here)
    check(server.url("delete from people"), 2, "returns no columns")
    check(server.url("commit"), 2, "returns no columns")
    check(server.url("set transaction read write"), 2, "returns no columns")
    check(server.url("select mail from people where number = $1"), 2, "parameters")
    check(server.url("select mail::int as mail from people"), 3, "SQLSTATE 22P02", "not shown")
    check(server.url("select 'infinity'::date as mail"), 3, "row 1", "infinite")
    # Where an address does not belong.
    run("psi", server.url("table people"), "--key", "mail").fails_with(2, "[redacted]@127.0.0.1")
    run("--json", "check", "--key", server.url("table people")).fails_with(2)
    check(server.url(""), 2, "no query")
    check(here, 2, "after a #")
    check(here + "?sslcert=x" + query, 2, "sslcert")
    check(f"postgresql://owner@127.0.0.1:{free_port()}/postgres{query}", 3, "cannot be reached")
    check("postgresql://owner@192.0.2.1/x?sslmode=disable" + query, 2, "always use TLS")
    check(server.url("table people").replace("/postgres#", "/nowhere#"), 3, "nowhere", "does not exist")
    check(server.url("table people").replace("owner:", "reader:"), 3, "password authentication failed")
    reader = server.url("table people").replace("owner:hunter2%25Zw", "reader:reader's own")
    check(reader, 3, "permission denied")
    assert server.do("select count(*) from people;").strip() == "6"
    assert not Path("/tmp/x").exists()


def test_columns_are_given_out_of_a_query_with_their_types(server: Database, tmp_path: Path) -> None:
    given = ["number", "price", "wide", "day", "moment", "at", "yes", "note", "raw", "list", "id"]
    target = tmp_path / "both.parquet"
    first, said = intersect(
        ["--input", server.url("table other"), "--key", "mail", "--output", str(target)]
        + ["--reveal", "payload:" + ",".join(given)],
        ["--input", select(server), "--key", "mail", "--reveal", "payload", "--give", ",".join(given)]
        + ["--duplicates", "first", "--allow-line-ends"],
    )
    assert (first.code, said.code) == (0, 0), (first, said)
    found = polars.read_parquet(target)
    assert found["x"].to_list() == [1, 2]
    bob, ann = (found.row(row, named=True) for row in range(2))
    assert (bob["number"], bob["price"], bob["wide"], bob["yes"]) == ("-7", "2.00", "2.000", "false")
    assert (bob["day"], bob["moment"], bob["at"], bob["id"], bob["raw"], bob["list"]) == (None,) * 4 + (
        "",
        None,
    )
    assert bob["note"] == "two\nlines\tand \\N"
    # Of Ann's two rows the first by the query's order.
    assert (ann["number"], ann["price"], ann["day"], ann["yes"], ann["note"]) == (
        "6", "-1.20", "9999-12-31", "false", "")  # fmt: skip
    # Numbers of any type that has them; a decimal of any precision is one where it is whole.
    columns = "number + 10 as number, (number + 10) * 1.00 as wide, (number + 10)::numeric(12, 2) as price"
    numbers = server.url(f"select mail, {columns} from people where number < 7")
    for column in ("number", "wide", "price"):
        both = ["--key", "mail", "--reveal", f"sum:{column}", "--security", "semi-honest"]
        first, said = intersect(
            ["--input", server.url("table other"), *both],
            ["--input", numbers, "--give", column, *both],
        )
        assert (first.code, said.code) == (0, 0), (first, said)
        assert json.loads(said.out)["sum"] == 11 + 16 + 3
    refused = ["--key", "mail", "--security", "semi-honest", "--connect-timeout", "1", "--result", "peer"]
    for column, word in (("day", "convert it to whole numbers"), ("share", "a whole number is expected")):
        said = run("psi", "--connect", "127.0.0.1:1", "--insecure-plaintext", "--input", select(server), *refused,
                   "--give", column, "--reveal", f"sum:{column}")  # fmt: skip
        said.fails_with(3, word)
        assert "0.1" not in said.err.replace("127.0.0.1", ""), said


def test_a_comment_at_the_end_and_values_are_queries(server: Database) -> None:
    for query in ("values ('a'), ('b') -- two", "with x as (select 1) select 'a' /* ; */ ;\n"):
        said = run(
            "--json",
            "check",
            "--input",
            server.url(query),
            "--key",
            "column1" if "values" in query else "?column?",
        )
        assert json.loads(said.out)["rows"] == (2 if "values" in query else 1), said


def test_credentials_come_from_the_environment_and_the_usual_files(server: Database, tmp_path: Path) -> None:
    place = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "owner", "PGDATABASE": "postgres"}
    passwords, services = tmp_path / ".pgpass", tmp_path / "services"
    home = {"HOME": str(tmp_path)}

    def rows(url: str, **more: str) -> int:
        said = run("--json", "check", "--input", url, "--key", "mail", env=environment(**more))
        assert said.code == 0, said
        return int(json.loads(said.out)["rows"])

    assert rows("postgresql://#table people", PGPASSWORD=PASSWORD, **place) == 6
    passwords.write_text(f"*:{server.port}:postgres:owner:{PASSWORD}\n")
    passwords.chmod(0o600)
    assert rows("postgresql://#table people", **home, **place) == 6
    assert rows(server.url("table other", password=False), **home) == 3
    services.write_text(f"[crm]\nhost=127.0.0.1\nport={server.port}\nuser=owner\ndbname=postgres\n")
    assert rows("postgresql://?service=crm#table other", PGSERVICEFILE=str(services), **home) == 3
    # By the server's socket, which is on this machine.
    socket = server.url("table other", more=f"?host={server.folder}").replace("@127.0.0.1:", "@:")
    assert rows(socket.replace(f"@:{server.port}", "@") + "", PGPORT=str(server.port)) == 3
    passwords.chmod(0o644)
    run(
        "check", "--input", "postgresql://#table people", "--key", "mail", env=environment(**home, **place)
    ).fails_with(2, "chmod 600")


def slow(server: Database) -> str:
    """A query that gives rows and then takes a minute."""
    return server.url(
        "select 'user' || g as mail, case when g = 60000 then pg_sleep(60)::text end from generate_series(1, 100000) g"
    )


def backend(server: Database) -> str:
    sql = "select pid from pg_stat_activity where query like 'COPY%' and application_name = 'tacit';"
    return server.do(sql).strip()


@pytest.mark.parametrize("how", ["backend", "connection", "terminated", "server"])
def test_a_database_that_goes_away_is_one_line_and_leaves_nothing(how: str, tmp_path: Path) -> None:
    with database() as server:
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        way = Way(server.port)
        url = slow(server).replace(f":{server.port}/", f":{way.port}/")
        out = tmp_path / "out.csv"
        words = ["psi", "--listen", free_address(), "--insecure-plaintext", "--input", url, "--key", "mail"]
        process = start(*words, "--output", out, "--result", "both", env=environment(TMPDIR=str(temporary)))
        until(lambda: backend(server) != "")
        # Some rows are there already.
        until(lambda: way.passed["down"] > 500_000)
        if how == "connection":
            way.cut()
        elif how == "terminated":
            server.do(f"select pg_terminate_backend({backend(server)});")
        elif how == "backend":
            os.kill(int(backend(server)), signal.SIGKILL)
        else:
            pid = int(backend(server))
            assert server.process
            server.process.kill()
            # Some notice by themselves that their server is gone.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        said = wait(process)
        said.fails_with(3, f"postgresql://owner@127.0.0.1:{way.port}/postgres")
        assert "user5" not in said.err
        assert not out.exists() and not list(temporary.iterdir()) and not list(tmp_path.glob(".tacit*"))


def test_what_changes_during_a_run_does_not_change_what_was_read(server: Database, tmp_path: Path) -> None:
    server.do("create table moving as select 'user' || g as mail from generate_series(1, 1000) g;")
    address, out = free_address(), tmp_path / "out.csv"
    port = int(address.split(":")[1])
    common = ["--insecure-plaintext", "--json", "--key", "mail", "--result", "both"]
    listener = start(
        "psi",
        "--listen",
        address,
        "--input",
        server.url("table moving order by mail"),
        "--output",
        out,
        *common,
    )
    until(lambda: is_listening(port))
    server.do("update moving set mail = 'x' || mail;")
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("mail\nuser7\nxuser8\nuser1000\n")
    second = run("psi", "--connect", address, "--input", theirs, *common)
    first = wait(listener)
    assert (first.code, second.code) == (0, 0), (first, second)
    assert out.read_text() == "mail\nuser1000\nuser7\n"


def test_a_run_goes_on_with_the_same_answer_and_with_no_other(server: Database, tmp_path: Path) -> None:
    server.do("create table kept as select 'user' || g as id, g as x from generate_series(1, 20000) g;")
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("id\n" + "".join(f"user{number}\n" for number in range(10_001, 30_001)))
    env = environment(HOME=str(tmp_path))
    for name in ("ann", "bob"):
        assert run("keygen", "--out", f"{name}.key", cwd=tmp_path).code == 0
    address = free_address()

    def side(who: str, url: str, limit: str = "20") -> list[str]:
        way, peer = ("--listen", "bob") if who == "ann" else ("--connect", "ann")
        return [
            *(
                "--json",
                "psi",
                way,
                address,
                "--identity",
                f"{who}.key",
                "--peer",
                f"{peer}.pub",
                "--input",
                url,
            ),
            *(
                "--key",
                "id",
                "--result",
                "both",
                "--output",
                f"{who}.csv",
                "--memory",
                "256MiB",
                "--buckets",
                "64",
            ),
            *("--resume", f"{who}.kept", "--connect-timeout", limit, "--timeout", "10"),
        ]

    url = server.url("select * from kept order by x")

    def kept() -> int:
        return sum(file.stat().st_size for file in (tmp_path / "ann.kept").glob("*"))

    first = start(*side("ann", url), cwd=tmp_path, env=env)
    second = start(*side("bob", str(theirs)), cwd=tmp_path, env=env)
    # Its plan is on the disk, and some buckets are.
    until(lambda: kept() > 0)
    settled = kept()
    until(lambda: kept() > settled)
    first.kill()
    first.wait()
    server.do("update kept set id = 'y' || id where x = 15000;")
    # In the time of its own patience the other side is still there.
    changed = run(*side("ann", url, "5"), cwd=tmp_path, env=env)
    assert changed.code == 3 and "ann.kept" in changed.err, changed
    server.do("update kept set id = 'user15000' where x = 15000;")
    again = run(*side("ann", url), cwd=tmp_path, env=env)
    assert again.code == 0, again
    wait(second)
    rows = [f"user{number},{number}" for number in range(10_001, 20_001)]
    assert (tmp_path / "ann.csv").read_text().splitlines() == ["id,x", *rows]


def test_memory_is_one_batch(server: Database) -> None:
    """120 MB of text through a process that holds none of it."""
    query = "select 'user' || g as mail, repeat(md5(g::text), 60) as text from generate_series(1, 60000) g"
    small = run("check", "--input", server.url("select 'a' as mail"), "--key", "mail")
    large = run("--json", "check", "--input", server.url(query), "--key", "mail")
    assert json.loads(large.out)["keys"] == 60_000
    assert large.peak < small.peak + 60_000_000, (small.peak, large.peak)


def test_a_service_reads_its_source_from_a_database_and_tells_no_password(
    server: Database, tmp_path: Path
) -> None:
    for name in ("ann", "bob"):
        assert run("keygen", "--out", f"{name}.key", cwd=tmp_path).code == 0
    address = free_address()
    peer = json.dumps(str(tmp_path / "bob.pub"))
    query = json.dumps(server.url("select mail from people where mail is not null"))
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'version = 1\nlisten = "{address}"\nidentity = "ann.key"\nstate = "state"\n'
        f'[peers.bob]\nkey = {peer}\n[sources.people]\ninput = {query}\nkey = ["mail:email"]\n'
        'rows_in_total = 1000\n[jobs.match]\nsource = "people"\nallow = ["bob"]\nreveal = ["rows"]\n'
        'result = ["peer"]\nmax_peer_keys = 1000\nruns_a_day = 9\n'
    )
    check = run("serve", "--policy", policy, "--check")
    assert check.code == 0 and f"owner@127.0.0.1:{server.port}/postgres" in check.out, check
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("m\nann@example.com\ncleo@example.com\nzed@example.com\n")
    service = start("serve", "--policy", policy)
    try:
        port = int(address.split(":")[1])
        until(lambda: is_listening(port))
        words = ["--json", "request", "match", "--connect", address, "--identity", tmp_path / "bob.key"]
        words += ["--peer", tmp_path / "ann.pub", "--input", theirs, "--key", "m:email", "--yes"]
        said = run(*words, "--output", tmp_path / "out.csv")
        assert said.code == 0, said
        assert json.loads(said.out)["matches"] == 2
        # The asker's own table may come from a database too; its record commits to what the query gave.
        words[words.index(theirs)] = server.url("select mail as m from other")
        assert run(*words).code == 0
    finally:
        service.send_signal(signal.SIGTERM)
        said = wait(service)
    assert said.code == 0, said
    written = [file for file in tmp_path.rglob("*") if file.is_file() and file != policy]
    assert any("state" in file.parts for file in written)
    for file in written:
        assert b"hunter2" not in file.read_bytes(), file
    record = next(iter((tmp_path / "bob.records").glob("*.jsonl")), None)
    assert record is not None or list((tmp_path / "bob.records").iterdir())


def test_python_takes_an_address_where_it_takes_a_path(server: Database, tmp_path: Path) -> None:
    other = server.url("table other")
    with party(
        """
        tell(len(tacit.intersect(table, on="mail", connect=address, result="both")))
        """,
        address=(address := free_address()),
        table=other,
    ) as child:
        found = tacit.intersect(
            select(server, "mail, day"), on={"mail": "text"}, listen=address, result="both"
        )
        assert child.end() == [2]
    frame = polars.DataFrame(found)
    assert frame["day"].to_list() == [datetime.date(9999, 12, 31), datetime.date(2024, 2, 29), None]
    with pytest.raises(tacit.Error) as error:
        tacit.intersect(server.url("table persons"), on="mail", listen=free_address())
    assert "hunter2" not in str(error.value) and "persons" in str(error.value)


def certificates(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """An authority, and a certificate and key of a server of this name."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.UTC)

    def made(subject: str, of: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None, names: list[str]):  # type: ignore[no-untyped-def]
        key = ec.generate_private_key(ec.SECP256R1())
        own = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)])
        issuer, signer = of or (own, key)
        builder = (
            x509.CertificateBuilder()
            .subject_name(own)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=of is None, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False
            )
        return own, key, builder.sign(signer, hashes.SHA256())

    pem = serialization.Encoding.PEM
    authority = made("authority", None, [])
    _, key, leaf = made(name, authority[:2], [name])
    paths = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    paths[0].write_bytes(authority[2].public_bytes(pem))
    paths[1].write_bytes(leaf.public_bytes(pem))
    private = serialization.PrivateFormat.PKCS8
    paths[2].write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    return paths


def test_a_server_is_verified_by_its_certificate_and_name(tmp_path: Path) -> None:
    pytest.importorskip(
        "cryptography", reason="NOT RUN: cryptography, which makes the certificates, is not installed"
    )
    with tempfile.TemporaryDirectory(prefix="tacit-certificates-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        authority, certificate, key = certificates(folder, "db.example")
        other, *_ = certificates(tmp_path, "db.example")
        with database() as plain:
            plain.end()
            os.chown(key, plain.user.get("user", -1), plain.user.get("group", -1))
            key.chmod(0o600)
            plain.more = ["ssl=on", f"ssl_cert_file={certificate}", f"ssl_key_file={key}"]
            time.sleep(0.1)
            plain.begin()
            query = "select ssl::text as mail from pg_stat_ssl where pid = pg_backend_pid()"

            def asked(host: str, roots: Path, more: str = "") -> list[str | Path]:
                options = f"?hostaddr=127.0.0.1&port={plain.port}&sslrootcert={roots}{more}"
                url = plain.url(query, more=options).replace(f"127.0.0.1:{plain.port}/", f"{host}/")
                return ["--json", "check", "--show-keys", "1", "--input", url, "--key", "mail"]

            said = run(*asked("db.example", authority, "&sslmode=verify-full"))
            assert json.loads(said.out)["normal_forms"] == [["true"]], said
            run(*asked("db.example", other, "&sslmode=require")).fails_with(3, "certificate")
            run(*asked("other.example", authority, "&sslmode=require")).fails_with(3, "certificate")
            # On this machine, where nobody asked for it.
            said = run(*asked("db.example", authority))
            assert json.loads(said.out)["normal_forms"] == [["false"]], said
