"""Questions of two sides, held against DuckDB's answers on the joined tables in the clear."""

from __future__ import annotations

import datetime
import decimal
import random
import threading
from typing import Any

import duckdb
import polars
import pytest
from parties import free_address

import tacit

BOTH: dict[str, Any] = {"security": "semi-honest", "min_group": 0}


def both_sides(
    sql: str, ours: Any, theirs: Any, result: str = "me", **more: Any
) -> tuple[tacit.Answer | BaseException, tacit.Answer | BaseException]:
    """What each side's call gives, or raises; the first listens."""
    address, found = free_address(), {}
    other = {"me": "peer", "peer": "me", "both": "both"}[result]

    def call(name: str, table: Any, **settings: Any) -> None:
        try:
            found[name] = tacit.query(sql, table, timeout=60, wait=20, **{**BOTH, **more, **settings})
        except tacit.Error as error:
            found[name] = error

    first = threading.Thread(target=call, args=("ours", ours), kwargs={"listen": address, "result": result})
    first.start()
    call("theirs", theirs, connect=address, result=other)
    first.join()
    return found["ours"], found["theirs"]


def answer(sql: str, ours: Any, theirs: Any, **more: Any) -> tacit.Answer:
    got, other = both_sides(sql, ours, theirs, **more)
    assert isinstance(got, tacit.Answer), (sql, got)
    assert isinstance(other, tacit.Answer), (sql, other)
    assert other.rows is None
    return got


CLIP = "create macro clip(x, least, most) as case when x is null then null else least(greatest(x, least), most) end"
JOIN = "FROM ours a JOIN theirs b ON a.k = b.k"
# A side's columns: whole numbers, a decimal, a date, a text and a small number; each may be null.
NUMBERS = ("x", "y")
TEXTS = ["red", "green", "blue", "it's"]


def table(chance: random.Random, keys: int) -> polars.DataFrame:
    def some(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    day = datetime.date(2026, 1, 1)
    ks = chance.sample(range(1000, 1000 + 2 * keys), keys)
    return polars.DataFrame(
        {
            "k": [f"k{k}" for k in ks],
            "x": [some(chance.randint(-60, 200)) for _ in ks],
            "y": [some(chance.randint(0, 15)) for _ in ks],
            "d": [some(decimal.Decimal(chance.randint(-999, 9999)) / 100) for _ in ks],
            "t": [some(day + datetime.timedelta(chance.randint(0, 90))) for _ in ks],
            "g": [some(chance.choice(TEXTS)) for _ in ks],
            "h": [some(chance.randint(0, 5)) for _ in ks],
        },
        schema_overrides={
            "x": polars.Int64,
            "y": polars.Int64,
            "d": polars.Decimal(18, 2),
            "t": polars.Date,
            "g": polars.String,
            "h": polars.Int64,
        },
    )


class Drawn:
    """A question out of the grammar."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        pick = chance.choice
        groups = [self.group(pick("ab")) for _ in range(pick([0, 1, 1, 2]))]
        named = [f"{text} AS g{at}" for at, (text, _) in enumerate(groups)]
        measures = [f"{self.measure()} AS m{at}" for at in range(pick([1, 2, 3]))]
        where = [condition for _, condition in groups if condition]
        where += [self.condition(pick(["a", "b", "ab"])) for _ in range(pick([0, 1, 2]))]
        having = [f"COUNT(*) >= {pick([1, 2, 3])}"] if pick([0, 1]) else []
        having += (
            [f"{self.measure(False)} {pick(['>', '<=', '<>'])} {pick([-3, 0, 2, 10])}"]
            if pick([0, 0, 1])
            else []
        )
        self.sql = f"SELECT {', '.join(named + measures)} {JOIN}"
        self.sql += f" WHERE {' AND '.join(where)}" if where else ""
        self.sql += f" GROUP BY {', '.join(text for text, _ in groups)}" if groups else ""
        self.sql += f" HAVING {' AND '.join(having)}" if having else ""

    def group(self, side: str) -> tuple[str, str]:
        kind = self.chance.choice(["text", "number", "case", "truth"])
        if kind == "text":
            return f"{side}.g", f"{side}.g IN ('red', 'it''s', 'blue')"
        if kind == "number":
            return f"{side}.h", f"{side}.h BETWEEN 1 AND 4"
        if kind == "truth":
            return f"({side}.x > 70)", ""
        return f"CASE WHEN {side}.h < 2 THEN 'low' WHEN {side}.y > 9 THEN 'high' END", ""

    def number(self, sides: str, depth: int = 2) -> str:
        """A number inside: of either side, or of both."""
        pick = self.chance.choice
        side = pick(sides)
        leaves = [
            f"CLIP({side}.x, {pick([-20, 0, 7])}, {pick([7, 50, 127])})",
            f"CLIP({side}.y, 0, 15)",
            f"CLIP({side}.x * 2 - {side}.y, -9, 99)",
            str(pick([0, 1, 3])),
        ]
        if depth == 0:
            return pick(leaves)
        left, right = self.number(sides, depth - 1), self.number(sides, depth - 1)
        return pick(
            [
                *leaves,
                f"({left} {pick('+-*')} {right})",
                f"COALESCE({left}, {right})",
                f"CASE WHEN {self.condition(sides, 0)} THEN {left} ELSE {right} END",
                f"CASE WHEN {left} >= {right} THEN {left} END",
            ]
        )

    def condition(self, sides: str, depth: int = 2) -> str:
        pick = self.chance.choice
        side = pick(sides)
        own = [
            f"{side}.x {pick(['<', '>=', '<>'])} {pick([0, 40, 100])}",
            f"{side}.g {pick(['=', '<>'])} 'green'",
            f"{side}.g LIKE '{pick(['%e%', 'b%', '___'])}'",
            f"{side}.\"t:date\" {pick(['<', '>'])} DATE '2026-02-10'",
            f'{side}."d:decimal2" BETWEEN -1.5 AND {pick([20, 50.25])}',
            f"{side}.h IN (1, 2, 5)",
            f"{side}.y IS {pick(['', 'NOT '])}NULL",
            f"{side}.x + {side}.y > 2 * {side}.h",
        ]
        if depth == 0:
            return pick(own)
        if len(sides) == 1:
            left, right = self.condition(sides, depth - 1), self.condition(sides, depth - 1)
            return pick([*own, f"({left} {pick(['AND', 'OR'])} {right})", f"NOT ({left})"])
        left, right = self.number(sides, 1), self.number(sides, 1)
        one, other = self.condition("a", 1), self.condition("b", 1)
        return pick(
            [
                f"{left} {pick(['=', '<', '<=', '<>'])} {right}",
                f"({one} OR {other})",
                f"NOT ({one} AND {other})",
                f"({left} > 3 OR {other})",
                f"{left} BETWEEN 2 AND 40",
            ]
        )

    def measure(self, or_date: bool = True) -> str:
        pick = self.chance.choice
        number = self.number(pick(["a", "b", "ab"]))
        side = pick("ab")
        dates = f"CLIP({side}.\"t:date\", DATE '2026-01-15', DATE '2026-03-01')"
        return pick(
            [
                "COUNT(*)",
                "COUNT(DISTINCT a.k)",
                f"COUNT({number})",
                f"SUM({number})",
                f"AVG({number})",
                f"MIN({number})",
                f"MAX({number})",
                f'SUM(CLIP({side}."d:decimal2", -5, 60.5))',
            ]
            if pick([0, 1, 1, 1]) or not or_date
            else [f"MIN({dates})", f"MAX({dates})"]
        )


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, float):
        return ours is not None and abs(float(ours) - theirs) <= 1e-4 * max(1, abs(theirs))
    return bool(ours == theirs)


def ordered(rows: Any) -> list[Any]:
    return sorted(rows, key=lambda row: [(cell is None, str(cell)) for cell in row])


def held_against_duckdb(seeds: range) -> tuple[int, int]:
    """How many generated questions were asked, and how many had an answer with a row."""
    asked = shown = 0
    for seed in seeds:
        chance = random.Random(seed)
        ours, theirs = table(chance, chance.choice([1, 7, 40])), table(chance, chance.choice([1, 12, 40]))
        sql = Drawn(chance).sql
        got, other = both_sides(sql, ours, theirs, result_to_owner=False)
        if not isinstance(got, tacit.Answer):
            # A side that gets what is made of its own columns, which both sides must allow.
            assert "result-to-owner" in str(got) or "result_to_owner" in str(got), (seed, sql, got, other)
            got, other = both_sides(sql, ours, theirs, result_to_owner=True)
        assert isinstance(got, tacit.Answer), (seed, sql, got)
        base = duckdb.connect()
        base.execute(CLIP)
        # A question has a column's type in its name.
        for name, rows in (("ours", ours), ("theirs", theirs)):
            base.register(name, rows.rename({"d": "d:decimal2", "t": "t:date"}))
        expected = base.execute(sql).fetchall()
        assert len(got.rows or ()) == len(expected), (seed, sql, got.rows, expected)
        for row, plain in zip(ordered(got.rows), ordered(expected), strict=True):
            assert all(same(*pair) for pair in zip(row, plain, strict=True)), (seed, sql, got.rows, expected)
        asked += 1
        shown += bool(expected)
    return asked, shown


def test_generated_questions_get_duckdbs_answers() -> None:
    asked, shown = held_against_duckdb(range(60))
    assert asked == 60 and shown > 20


SUMS = """(SELECT k, SUM(x) AS x, COUNT(*) AS y, MAX("d:decimal2") AS d, MIN("t:date") AS t,
    SUM(CASE WHEN g = 'red' OR h > 3 THEN y END) AS h FROM {table} WHERE x IS NULL OR x <> 7 GROUP BY k) {name}"""


def with_sums(chance: random.Random) -> tuple[str, str]:
    """A question one of whose tables is a subquery, and whose."""
    side, table = chance.choice([("a", "ours"), ("b", "theirs")])
    while f"{side}.g" in (sql := Drawn(chance).sql):
        pass
    for column in ("d:decimal2", "t:date"):
        sql = sql.replace(f'{side}."{column}"', f"{side}.{column[0]}")
    return sql.replace(f"{table} {side}", SUMS.format(table=table, name=side)), table


def test_rows_of_a_key_are_added_up_as_duckdb_does() -> None:
    shown = 0
    for seed in range(1000, 1030):
        chance = random.Random(seed)
        sql, summed = with_sums(chance)
        tables = {"ours": table(chance, 30), "theirs": table(chance, 30)}
        repeated = [tables[summed].sample(n, seed=seed + n) for n in (30, 20, 10)]
        tables[summed] = polars.concat([*repeated, table(chance, 20)]).sample(
            fraction=1.0, shuffle=True, seed=1
        )
        got, other = both_sides(sql, tables["ours"], tables["theirs"], result_to_owner=False)
        if not isinstance(got, tacit.Answer):
            assert "result" in str(got), (seed, sql, got, other)
            got, other = both_sides(sql, tables["ours"], tables["theirs"], result_to_owner=True)
        assert isinstance(got, tacit.Answer), (seed, sql, got)
        base = duckdb.connect()
        base.execute(CLIP)
        for name, rows in tables.items():
            base.register(name, rows.rename({"d": "d:decimal2", "t": "t:date"}))
        expected = base.execute(sql).fetchall()
        assert len(got.rows or ()) == len(expected), (seed, sql, got.rows, expected)
        for row, plain in zip(ordered(got.rows), ordered(expected), strict=True):
            assert all(same(*pair) for pair in zip(row, plain, strict=True)), (seed, sql, got.rows, expected)
        shown += bool(expected)
    assert shown > 10


def test_noise_is_there_and_the_same_on_both_sides() -> None:
    sql = "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.mail = b.mail WITH NOISE EPSILON "
    ours, theirs = both_sides(sql + "10", SHOP, CLUB, "both")
    assert isinstance(ours, tacit.Answer) and isinstance(theirs, tacit.Answer)
    assert ours.rows is not None and ours.rows == theirs.rows and abs(ours.rows[0][0] - 4) <= 4
    seen = set()
    for _ in range(4):
        ours, theirs = both_sides(sql + "0.001", SHOP, CLUB, "both")
        assert isinstance(ours, tacit.Answer) and isinstance(theirs, tacit.Answer)
        assert ours.rows is not None and ours.rows == theirs.rows
        seen.add(ours.rows[0][0])
    # Of scale 1,000.
    assert len(seen) > 1
    rounded, _ = both_sides(sql.replace("WITH NOISE EPSILON ", "ROUND TO 10"), SHOP, CLUB)
    assert isinstance(rounded, tacit.Answer) and rounded.rows == ((0,),)


CLUB = polars.DataFrame({"mail": [f"m{n}@x.org" for n in range(2, 9)], "segment": ["a", "b"] * 3 + ["b"]})
SHOP = polars.DataFrame({"mail": [f"m{n}@x.org" for n in range(6)], "cents": [100, 200, 300, 400, 500, 600]})
QUESTION = """SELECT b.segment, COUNT(*) AS n, SUM(CLIP(a.cents, 0, 450)) AS sum, AVG(CLIP(a.cents, 0, 450)) AS mean
    FROM ours a JOIN theirs b ON a.mail = b.mail WHERE b.segment IN ('a', 'b') GROUP BY b.segment"""


def test_an_answer_is_a_table_of_the_side_that_gets_it() -> None:
    other, got = both_sides(QUESTION, SHOP, CLUB, "peer")
    assert isinstance(got, tacit.Answer) and isinstance(other, tacit.Answer)
    assert got.columns == ("segment", "n", "sum", "mean")
    assert got.rows == (("a", 2, 750, decimal.Decimal(375)), ("b", 2, 850, decimal.Decimal(425)))
    assert next(iter(got)) == {"segment": "a", "n": 2, "sum": 750, "mean": 375}
    assert got.to_pandas()["sum"].tolist() == [750, 850]
    assert got.to_polars()["n"].to_list() == [2, 2]
    assert (got.peer_keys, other.peer_keys, len(got)) == (6, 7, 2)
    assert "6 distinct keys" in other.peer_learned and "`sum`" in other.peer_learned
    assert other.rows is None
    with pytest.raises(tacit.UsageError, match="only the peer"):
        len(other)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"security": "malicious"}, "semi-honest"),
        ({"min_group": 10}, "HAVING"),
        ({"allow": {"mail": "join"}}, "cents"),
        ({"allow": {"mail": "join", "cents": ["filter", "read"]}}, "allow"),
        ({"result": "me"}, "cents"),
        ({"result_to_owner": True}, "leave it out"),
        ({"duplicates": "all"}, "duplicates"),
        ({"side": "mine"}, "side"),
        ({"sql": "SELECT * FROM ours"}, "question"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_is_called(change: dict[str, Any], words: str) -> None:
    settings: dict[str, Any] = {"sql": QUESTION, "table": SHOP, "result": "peer", **BOTH, **change}
    with pytest.raises(tacit.UsageError, match=words):
        tacit.query(settings.pop("sql"), settings.pop("table"), listen="127.0.0.1:1", **settings)


def test_rows_that_do_not_serve_are_refused_without_their_cells() -> None:
    twice = SHOP.with_columns(mail=polars.lit("ann@x.org"))
    odd = SHOP.with_columns(cents=polars.lit("a lot"))
    for table, words in ((twice, "row 2: an earlier row"), (odd, "row 1: ")):
        with pytest.raises(tacit.InputError, match=words) as told:
            tacit.query(QUESTION, table, listen="127.0.0.1:1", result="peer", **BOTH)
        assert "a lot" not in str(told.value) and "ann@" not in str(told.value)
    first, _ = both_sides(QUESTION, twice, CLUB, "peer", duplicates="first")
    assert isinstance(first, tacit.Answer) and first.peer_keys == 7


def test_questions_that_differ_are_a_mismatch_on_both_sides() -> None:
    address, found = free_address(), []

    def call(sql: str, table: Any, **settings: Any) -> None:
        try:
            tacit.query(sql, table, timeout=60, wait=20, **BOTH, **settings)
        except tacit.Mismatch as error:
            found.append(str(error))

    other = threading.Thread(target=call, args=(QUESTION, SHOP), kwargs={"listen": address, "result": "peer"})
    other.start()
    call(QUESTION.replace("450", "451"), CLUB, connect=address)
    other.join()
    assert len(found) == 2 and all("450" in line and "451" in line for line in found)
