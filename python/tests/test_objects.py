"""Tables in a store that speaks S3 (moto stands for it), in and out, against DuckDB's join; and the store's faults."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars
import pytest
from parties import free_address, party
from stores import SECRET, Store, Way, intersect, is_listening, run, start, store, until, wait
from test_files import THEIRS, write

import tacit


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with store() as running:
        running.client().create_bucket(Bucket="bucket")
        yield running


def theirs(folder: Path) -> Path:
    path = folder / "theirs.csv"
    path.write_text("".join(f"{mail},{x}\n" for mail, x in THEIRS))
    return path


@pytest.mark.parametrize(
    "name",
    ["polars-csv", "pandas-csv.gz", "pandas-csv.zst", "polars-parquet", "duckdb-parquet", "polars-arrow"],
)
def test_objects_of_every_format_give_the_rows_of_a_join(server: Store, tmp_path: Path, name: str) -> None:
    form = name.split("-")[1]
    path, other = tmp_path / f"ours.{form}", theirs(tmp_path)
    write(name, path)
    server.put(f"in/{name}.{form}", path.read_bytes())
    server.put("in/theirs.csv", other.read_bytes())
    target = f"s3://bucket/out/{name}.{form}"
    first, said = intersect(
        ["--input", f"s3://bucket/in/{name}.{form}", "--key", "mail", "--output", target],
        ["--input", "s3://bucket/in/theirs.csv", "--key", "mail"],
        env=server.env(),
    )
    assert (first.code, said.code) == (0, 0), (first, said)
    assert json.loads(said.out)["output"] == target
    # The same run with files gives the same bytes.
    local = tmp_path / f"local.{form}"
    _, plain = intersect(
        ["--input", str(path), "--key", "mail", "--output", str(local)],
        ["--input", str(other), "--key", "mail"],
    )
    assert plain.code == 0, plain
    assert server.get(f"out/{name}.{form}") == local.read_bytes()
    if form == "parquet":
        joined = duckdb.sql(f"""
            select number from read_parquet('{path}')
            where lower(trim(mail)) in (select lower(trim(mail)) from read_csv('{other}', header = true))
        """).fetchall()
        (tmp_path / "got").write_bytes(server.get(f"out/{name}.{form}"))
        # A join has no order.
        found = duckdb.sql(f"select number from read_parquet('{tmp_path / 'got'}')").fetchall()
        assert sorted(found) == sorted(joined)


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_columns_are_given_out_of_an_object(server: Store, tmp_path: Path, form: str) -> None:
    path, other = tmp_path / f"given.{form}", theirs(tmp_path)
    table = polars.DataFrame({"mail": [mail for mail, _ in THEIRS[1:]], "n": [7, -20, 300]})
    {"csv": table.write_csv, "parquet": table.write_parquet, "arrow": table.write_ipc}[form](path)
    server.put(f"in/given.{form}", path.read_bytes())
    server.put("in/ours.csv", other.read_bytes())
    given = ["--input", f"s3://bucket/in/given.{form}", "--key", "mail", "--give", "n"]
    target = f"s3://bucket/out/given-{form}.csv"
    first, said = intersect(
        ["--input", "s3://bucket/in/ours.csv", "--key", "mail", "--reveal", "payload:n", "--output", target],
        [*given, "--reveal", "payload"],
        env=server.env(),
    )
    assert (first.code, said.code) == (0, 0), (first, said)
    assert server.get(f"out/given-{form}.csv").decode().splitlines() == [
        "mail,x,n",
        "BOB@example.com,1,7",
        "ann@example.com ,2,-20",
        "dora@example.com,3,300",
    ]
    sums = ["--reveal", "sum:n", "--security", "semi-honest"]
    _, said = intersect(
        ["--input", "s3://bucket/in/ours.csv", "--key", "mail", *sums], [*given, *sums], env=server.env()
    )
    assert json.loads(said.out)["sum"] == 287


def test_of_a_parquet_object_the_keys_columns_alone_are_read(server: Store, tmp_path: Path) -> None:
    rows = 40_000
    frame = polars.DataFrame(
        {
            "fat": [f"{number:>600}" for number in range(rows)],
            "mail": [f"user{number}" for number in range(rows)],
        }
    )
    path = tmp_path / "fat.parquet"
    frame.write_parquet(path, compression="uncompressed", row_group_size=10_000)
    server.put("fat.parquet", path.read_bytes())
    way = Way(server.port)
    said = run(
        "--json", "check", "--input", "s3://bucket/fat.parquet", "--key", "mail", env=server.env(way.port)
    )
    assert json.loads(said.out)["keys"] == rows, said
    assert way.passed["down"] < path.stat().st_size / 5, (way.passed, path.stat().st_size)


def test_memory_is_bounded_by_what_is_kept_of_an_object(server: Store, tmp_path: Path) -> None:
    """150 MB, of which some pieces alone are held at a time; and an output of many parts."""
    path = tmp_path / "large.csv"
    with path.open("w") as file:
        file.write("mail,text\n")
        file.writelines(f"user{number},{number:>2500}\n" for number in range(60_000))
    server.client().upload_file(str(path), "bucket", "large.csv")
    small = run("check", "--input", theirs(tmp_path), "--key", "mail")
    large = run("--json", "check", "--input", "s3://bucket/large.csv", "--key", "mail", env=server.env())
    assert json.loads(large.out)["keys"] == 60_000
    assert large.peak < small.peak + 70_000_000, (small.peak, large.peak)
    _, said = intersect(
        ["--input", "s3://bucket/large.csv", "--key", "mail", "--output", "s3://bucket/copy.csv"],
        ["--input", str(path), "--key", "mail"],
        env=server.env(),
    )
    assert said.code == 0, said
    assert said.peak < small.peak + 130_000_000, (small.peak, said.peak)
    assert server.get("copy.csv") == path.read_bytes()
    assert server.uploads() == 0


def test_an_object_is_replaced_only_where_that_is_said(server: Store, tmp_path: Path) -> None:
    other = theirs(tmp_path)
    server.put("mine.csv", b"mail\nann@example.com\n")
    server.put("there.csv", b"precious")
    ours = ["--input", "s3://bucket/mine.csv", "--key", "mail", "--output", "s3://bucket/there.csv"]
    words = ["psi", "--listen", free_address(), "--insecure-plaintext", "--result", "both", *ours]
    run(*words, env=server.env()).fails_with(3, "s3://bucket/there.csv", "not overwritten")
    run(*words[:-1], "s3://bucket/mine.csv", env=server.env()).fails_with(3, "--input", "--output")
    assert server.get("there.csv") == b"precious"
    _, said = intersect([*ours, "--overwrite"], ["--input", str(other), "--key", "mail"], env=server.env())
    assert said.code == 0, said
    assert server.get("there.csv") == b"mail\nann@example.com\n"
    # Somebody else makes it while the run goes on.
    address = free_address()
    common = ["--insecure-plaintext", "--key", "mail", "--result", "both"]
    target = ["--output", "s3://bucket/raced.csv"]
    listener = start("psi", "--listen", address, "--input", other, *target, *common, env=server.env())
    until(lambda: is_listening(int(address.split(":")[1])))
    server.put("raced.csv", b"theirs")
    run("psi", "--connect", address, "--input", "s3://bucket/mine.csv", *common, env=server.env())
    wait(listener).fails_with(3, "s3://bucket/raced.csv", "another process")
    assert server.get("raced.csv") == b"theirs"
    assert server.uploads() == 0


def test_a_run_that_fails_or_is_interrupted_leaves_no_object(server: Store, tmp_path: Path) -> None:
    other = theirs(tmp_path)
    words = [
        "psi",
        "--listen",
        (address := free_address()),
        "--insecure-plaintext",
        "--input",
        other,
        "--key",
        "mail",
    ]
    words += ["--result", "both", "--output", "s3://bucket/never.csv"]
    run(*words, "--connect-timeout", "1", env=server.env()).fails_with(4)
    assert "never.csv" not in server.names() and server.uploads() == 0
    listener = start(*words, env=server.env())
    until(lambda: is_listening(int(address.split(":")[1])))
    assert server.uploads() == 1
    listener.send_signal(signal.SIGINT)
    assert wait(listener).code == 130
    assert "never.csv" not in server.names() and server.uploads() == 0


def test_an_upload_that_is_cut_off_leaves_no_object(server: Store, tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_text("mail,text\n" + "".join(f"user{number},{number:>1000}\n" for number in range(20_000)))
    way = Way(server.port, up=9_000_000)
    _, said = intersect(
        ["--input", str(path), "--key", "mail", "--output", "s3://bucket/cut.csv"],
        ["--input", str(path), "--key", "mail"],
        env=server.env(way.port),
    )
    said.fails_with(3, "s3://bucket/cut.csv", "written")
    assert "cut.csv" not in server.names()


def test_faults_are_one_line_without_a_secret(server: Store, tmp_path: Path) -> None:
    def check(url: str, code: int, *words: str, key: str = "mail", **env: str) -> None:
        given = server.env(**env)
        run("--json", "-v", "check", "--input", url, "--key", key, env=given).fails_with(code, *words)

    server.put("mine.csv", b"mail\nann@example.com\n")
    check("s3://bucket/none.csv", 3, "s3://bucket/none.csv", "no such object")
    check("s3://nowhere/mine.csv", 3, "s3://nowhere/mine.csv", "no such bucket")
    check("s3://bucket/mine.csv", 3, "`email`", key="email")
    check("s3://bucket", 2, "s3://BUCKET/KEY")
    check(f"s3://AKIA:{SECRET}@bucket/mine.csv", 2, "s3://[redacted]", "environment")
    check("s3://bucket/mine.csv", 2, "plain HTTP", AWS_ENDPOINT_URL="http://192.0.2.1:9000")
    check("s3://bucket/mine.csv", 3, "cannot be reached", AWS_ENDPOINT_URL="http://127.0.0.1:1")
    out = ["--insecure-plaintext", "--input", theirs(tmp_path), "--key", "mail", "--result", "both"]
    run(
        "psi", "--listen", free_address(), *out, "--output", "s3://nowhere/x.csv", env=server.env()
    ).fails_with(3, "s3://nowhere/x.csv", "no such bucket")
    run("keygen", "--out", "s3://bucket/a.key", env=server.env()).fails_with(3, "regular file")
    write("polars-parquet", tmp_path / "p.parquet")
    whole = (tmp_path / "p.parquet").read_bytes()
    server.put("short.parquet", whole[: len(whole) // 2])
    check("s3://bucket/short.parquet", 3, "s3://bucket/short.parquet", "not a complete, valid Parquet file")
    # Keys of a profile in AWS's own files serve as well.
    credentials = tmp_path / "credentials"
    credentials.write_text(f"[other]\naws_access_key_id = AKIAX\naws_secret_access_key = {SECRET}\n")
    env = server.env(AWS_PROFILE="other", AWS_SHARED_CREDENTIALS_FILE=str(credentials), HOME=str(tmp_path))
    del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
    assert run("check", "--input", "s3://bucket/mine.csv", "--key", "mail", env=env).code == 0
    run(
        "check", "--input", "s3://bucket/mine.csv", "--key", "mail", env=env | {"AWS_PROFILE": "none"}
    ).fails_with(2, "AWS_PROFILE")


def test_who_may_not_read_or_write_hears_so() -> None:
    with store(INITIAL_NO_AUTH_ACTION_COUNT="1") as strict:
        strict.client().create_bucket(Bucket="bucket")
        run("check", "--input", "s3://bucket/x.csv", "--key", "mail", env=strict.env()).fails_with(
            3, "s3://bucket/x.csv", "access denied"
        )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_store_that_stops_in_the_middle_is_one_line(server: Store, tmp_path: Path, form: str) -> None:
    frame = polars.DataFrame({"mail": [f"user{number:>900}" for number in range(20_000)]})
    path = tmp_path / f"long.{form}"
    frame.write_csv(path) if form == "csv" else frame.write_parquet(path, compression="uncompressed")
    server.put(path.name, path.read_bytes())
    way = Way(server.port, down=9_000_000)
    said = run("check", "--input", f"s3://bucket/{path.name}", "--key", "mail", env=server.env(way.port))
    said.fails_with(3, f"s3://bucket/{path.name}", "cannot be reached or failed")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_object_that_changes_during_a_run_is_refused(server: Store, tmp_path: Path, form: str) -> None:
    def content(mail: str) -> bytes:
        # The second column is not read for the keys.
        fat = [f"{number:>2000}" for number in range(1000)]
        frame = polars.DataFrame({"mail": ["ann@example.com", mail, *fat[2:]], "fat": fat})
        path = tmp_path / f"moving.{form}"
        frame.write_csv(path) if form == "csv" else frame.write_parquet(path, compression="uncompressed")
        return path.read_bytes()

    server.put(f"moving.{form}", content("bob@example.com"))
    address, out = free_address(), tmp_path / f"out.{form}"
    common = ["--insecure-plaintext", "--key", "mail", "--result", "both"]
    ours = ["--input", f"s3://bucket/moving.{form}", "--output", out]
    listener = start("psi", "--listen", address, *ours, *common, env=server.env())
    until(lambda: is_listening(int(address.split(":")[1])))
    server.put(f"moving.{form}", content("bea@example.com"))
    run("psi", "--connect", address, "--input", theirs(tmp_path), *common)
    said = wait(listener)
    if form == "parquet" and said.code == 0:
        # Its pages were all here before it changed: what is written is the table that was compared.
        assert "bob@example.com" in polars.read_parquet(out)["mail"].to_list()
        return
    said.fails_with(3, f"s3://bucket/moving.{form}", "changed")
    assert not out.exists()


def test_python_takes_an_address_where_it_takes_a_path(
    server: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put("mine.csv", b"mail,x\nann@example.com,1\n")
    for name, value in server.env().items():
        monkeypatch.setenv(name, value)
    address, other = free_address(), str(theirs(tmp_path))
    with party(
        "tell(len(tacit.intersect(t, on='mail', connect=a, result='both')))", a=address, t=other
    ) as child:
        found = tacit.intersect("s3://bucket/mine.csv", on="mail", listen=address, result="both")
        assert child.end() == [1]
    assert polars.DataFrame(found)["x"].to_list() == ["1"]
