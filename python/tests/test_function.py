"""Functions in Python: in the clear, in a circuit, and between two parties they are the same."""

from __future__ import annotations

import itertools
import operator
import random
from pathlib import Path

import pandas
import polars
import pyarrow
import pytest
from parties import free_address, party

import tacit

SEED = 20260

SIGNED, UNSIGNED = [tacit.i8, tacit.i16, tacit.int_(5)], [tacit.u8, tacit.u16, tacit.uint(5)]
OPERATIONS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    min,
    max,
]


def outcome(call):
    """A value, or that there is none."""
    try:
        return call()
    except (ZeroDivisionError, tacit.OutOfRange):
        return None


def by_circuit(function: tacit.Function, *values: int):
    """The result by gates: the first parameter is the garbler's."""
    circuit, shape = function.circuit([function.parameters[0].name])
    outputs = circuit.run(str(values[0]), ",".join(map(str, values[1:])))
    return outcome(lambda: function._result(shape, outputs))


def interesting(kind: tacit.Type, rng: random.Random) -> list[int]:
    edges = [kind.low, kind.low + 1, -1, 0, 1, 2, 7, kind.high - 1, kind.high]
    return sorted({value for value in edges if kind.low <= value <= kind.high}) + [
        rng.randint(kind.low, kind.high) for _ in range(6)
    ]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", SIGNED + UNSIGNED, ids=repr)
def test_every_operation_is_pythons_or_fails_alike(kind: tacit.Type, operation) -> None:
    rng = random.Random(SEED)
    ours = {min: tacit.min, max: tacit.max}.get(operation, operation)

    def body(a, b):
        return ours(a, b)

    body.__annotations__ = {"a": kind, "b": kind}
    function = tacit.function(body)
    for a, b in itertools.product(interesting(kind, rng), repeat=2):
        plain = outcome(lambda: operation(a, b))
        if plain is not None and not isinstance(plain, bool) and not kind.low <= plain <= kind.high:
            plain = None
        if operation is operator.mod and plain is not None and not kind.low <= a // b <= kind.high:
            plain = None
        assert outcome(lambda: function(a, b)) == plain, (a, b)
        assert by_circuit(function, a, b) == plain, (a, b)


@pytest.mark.parametrize("kind", [tacit.i8, tacit.u8, tacit.int_(5)], ids=repr)
def test_shifts_signs_and_conversions_fail_alike(kind: tacit.Type) -> None:
    rng = random.Random(SEED)
    bodies = {
        "up": (lambda a, b: (a << 2) + b * 0, lambda a: a << 2),
        "far": (lambda a, b: (a << 70) + b * 0, lambda a: a << 70),
        "down": (lambda a, b: (a >> 1) + b * 0, lambda a: a >> 1),
        "gone": (lambda a, b: (a >> 70) + b * 0, lambda a: a >> 70),
        "minus": (lambda a, b: -a + b * 0, lambda a: -a),
        "size": (lambda a, b: abs(a) + b * 0, abs),
    }
    for body, plain in bodies.values():

        def traced(a, b, body=body):
            return body(a, b)

        traced = _typed(traced, kind)
        for a in interesting(kind, rng):
            value = plain(a)
            expected = value if kind.low <= value <= kind.high else None
            assert outcome(lambda: traced(a, 0)) == expected
            assert by_circuit(traced, a, 0) == expected
    for other in [tacit.i8, tacit.u8, tacit.i16, tacit.u16, tacit.uint(3), tacit.int_(3), tacit.bool]:

        def convert(a, b, other=other):
            return a.to(other), b

        convert = _typed(convert, kind)
        for a in interesting(kind, rng):
            fits = other.low <= a <= other.high
            value = bool(a) if other == tacit.bool else a
            assert outcome(lambda: convert(a, 0)) == ((value, 0) if fits else None)
            assert by_circuit(convert, a, 0) == ((value, 0) if fits else None)


def _typed(body, kind: tacit.Type) -> tacit.Function:
    """A function of two numbers of `kind`, whatever else `body` has by default."""

    def two(a, b):
        return body(a, b)

    two.__annotations__ = {"a": kind, "b": kind}
    return tacit.function(two)


@tacit.function
def statistics(ours: tacit.i16[4], theirs: tacit.i16[4], limit: tacit.i16):
    """Lists, sorting, sums, conditions and a dictionary as the result."""
    everything = ours + theirs
    ordered = tacit.sort(everything)
    above = [value > limit for value in everything]
    return {
        "median": (ordered[3] + ordered[4]) // 2,
        "total": tacit.sum(everything),
        "above": tacit.sum(above),
        "largest": tacit.max(everything),
        "capped": [tacit.where(value > limit, limit, value) for value in ours],
        "any": (ours[0] == theirs[0]) | ~(ours[1] < theirs[1]),
    }


def test_lists_and_shapes_come_back_as_they_were_written() -> None:
    rng = random.Random(SEED)
    for _ in range(20):
        ours, theirs = ([rng.randint(-4000, 4000) for _ in range(4)] for _ in range(2))
        limit = rng.randint(-1000, 1000)
        both = sorted(ours + theirs)
        expected = {
            "median": (both[3] + both[4]) // 2,
            "total": sum(both),
            "above": sum(value > limit for value in both),
            "largest": max(both),
            "capped": [min(value, limit) for value in ours],
            "any": ours[0] == theirs[0] or not ours[1] < theirs[1],
        }
        assert statistics(ours, theirs, limit) == expected
        circuit, shape = statistics.circuit(["ours"])
        text = ",".join(map(str, [*theirs, limit]))
        outputs = circuit.run(",".join(map(str, ours)), text)
        assert statistics._result(shape, outputs) == expected


@pytest.mark.parametrize("security", ["malicious", "semi-honest"])
def test_two_parties_get_what_the_clear_run_gives(security: str) -> None:
    address = free_address()
    code = """
    @tacit.function
    def gap(ours: tacit.i32[2], theirs: tacit.i32, floor: tacit.i32):
        best = tacit.max(ours)
        return {"gap": best - theirs, "fits": best - theirs >= floor, "ratio": best // theirs}
    tell(tacit.evaluate(gap, {"theirs": -7, "floor": 5}, listen=address, security=security).result)
    """

    @tacit.function
    def gap(ours: tacit.i32[2], theirs: tacit.i32, floor: tacit.i32):
        best = tacit.max(ours)
        return {"gap": best - theirs, "fits": best - theirs >= floor, "ratio": best // theirs}

    with party(code, address=address, security=security) as peer:
        result = tacit.evaluate(gap, {"ours": [3, 20]}, connect=address, security=security).result
        assert peer.end() == [result]
    assert result == gap([3, 20], -7, 5) == {"gap": 27, "fits": True, "ratio": -3}


def test_what_does_not_fit_tells_nothing_but_that() -> None:
    address = free_address()
    code = """
    @tacit.function
    def add(ours: tacit.u8, theirs: tacit.u8):
        return ours + theirs
    try:
        tacit.evaluate(add, {"theirs": 200}, listen=address)
    except tacit.OutOfRange as error:
        tell(str(error))
    """

    @tacit.function
    def add(ours: tacit.u8, theirs: tacit.u8):
        return ours + theirs

    with party(code, address=address) as peer:
        with pytest.raises(tacit.OutOfRange, match="neither side learned"):
            tacit.evaluate(add, {"ours": 100}, connect=address)
        assert "neither side" in peer.end()[0]
    circuit, _ = add.circuit(["ours"])
    # Every output but the flag is zero, whatever the sum.
    assert circuit.run("100", "200") == circuit.run("255", "255") == ["0", "1"]
    with pytest.raises(tacit.OutOfRange, match=r"test_function\.py, line \d+: return ours \+ theirs"):
        add(100, 200)


def test_code_that_branches_on_a_secret_names_its_line() -> None:
    def branch(a: tacit.u8, b: tacit.u8):
        if a > b:
            return a
        return b

    def index(a: tacit.u8, b: tacit.u8):
        return [b, b][a]

    def count(a: tacit.u8, b: tacit.u8):
        return sum(b for _ in range(a))

    def ordered(a: tacit.u8, b: tacit.u8):
        return sorted([a, b])[0]

    def halved(a: tacit.u8, b: tacit.u8):
        return a / b

    lines = {
        branch: "if a > b:",
        index: "return [b, b][a]",
        count: "range(a)",
        ordered: "sorted",
        halved: "a / b",
    }
    for body, line in lines.items():
        function = tacit.function(body)
        for call in [lambda: function(1, 2), lambda: function.circuit(["a"])]:
            with pytest.raises(tacit.SecretBranch) as caught:
                call()
            assert "test_function.py, line" in str(caught.value) and line in str(caught.value)


def test_wrong_functions_and_inputs_are_named() -> None:
    def untyped(a, b):
        return a

    def starred(*a: tacit.u8):
        return a

    def mixed(a: tacit.u8, b: tacit.u16):
        return a + b

    def wordy(a: tacit.u8, b: tacit.u8):
        return "a"

    def conditions(a: tacit.u8, b: tacit.u8):
        return (a < b) + (b < a)

    with pytest.raises(tacit.UsageError, match="parameter a needs a type"):
        tacit.function(untyped)
    with pytest.raises(tacit.UsageError, match="named parameters only"):
        tacit.function(starred)
    for body, says in [
        (mixed, r"x\.to\(tacit\.u8\)"),
        (wordy, "returns str"),
        (conditions, r"\.to\(tacit\.u32\)"),
    ]:
        with pytest.raises(tacit.UsageError, match=says):
            tacit.function(body)(1, 2)
    function = tacit.function(mixed)
    session = tacit.Session(connect="127.0.0.1:9")
    for inputs, says in [
        ({"c": 1}, "no parameter c; it has a, b"),
        ({}, "each side gives some"),
        ({"a": 1, "b": 2}, "each side gives some"),
        (7, "by name"),
    ]:
        with pytest.raises(tacit.UsageError, match=says):
            session.evaluate(function, inputs)
    with pytest.raises(tacit.OutOfRange, match="does not fit u8"):
        function(256, 1)
    with pytest.raises(tacit.UsageError, match="whole numbers"):
        function(1.5, 1)
    with pytest.raises(tacit.UsageError, match="role"):
        session.evaluate("add32", 5)


def test_functions_by_name_are_there_too() -> None:
    assert "millionaires" in tacit.functions()
    address = free_address()
    code = "tell(tacit.evaluate('add16', 5, role='evaluator', listen=address).result)"
    with party(code, address=address) as peer:
        assert tacit.evaluate("add16", 7, role="garbler", connect=address).result == 12
        assert peer.end() == [12]
    code = (
        "tell(tacit.evaluate('signed-sub16', 9, role='evaluator', listen=address, output_to='peer').result)"
    )
    with party(code, address=address) as peer:
        call = dict(role="garbler", connect=address, output_to="me")
        assert tacit.evaluate("signed-sub16", 7, **call).rows[0][0] == -2
        assert peer.end() == [None]


@pytest.mark.parametrize("protocol", ["wmk17", "authenticated", "auto"])
def test_programs_and_malicious_protocols_can_be_named(protocol: str, tmp_path: Path) -> None:
    program = tmp_path / "share.garble.rs"
    program.write_text("pub fn main(mine: u8, yours: u8) -> u8 { (mine * 100u8) / (mine + yours) }\n")
    address = free_address()
    code = """
    done = tacit.evaluate(program, 2, role="evaluator", listen=address, protocol=protocol)
    tell([done.result, done.protocol])
    """
    with party(code, address=address, program=str(program), protocol=protocol) as peer:
        done = tacit.evaluate(str(program), 2, role="garbler", connect=address, protocol=protocol)
        assert peer.end() == [[50, done.protocol]]
    assert done.result == 50
    assert done.protocol in (["wmk17", "authenticated"] if protocol == "auto" else [protocol])


def test_a_program_that_overflows_and_a_protocol_that_does_not_fit_are_named(tmp_path: Path) -> None:
    program = tmp_path / "share.garble.rs"
    program.write_text("pub fn main(mine: u8, yours: u8) -> u8 { mine * yours }\n")
    address = free_address()
    code = """
    try:
        tacit.evaluate(program, 200, role="evaluator", listen=address)
    except tacit.OutOfRange as error:
        tell(str(error))
    """
    with party(code, address=address, program=str(program)) as peer:
        with pytest.raises(tacit.OutOfRange, match="overflow"):
            tacit.evaluate(str(program), 2, role="garbler", connect=address)
        assert "overflow" in str(peer.end()[0])
    with pytest.raises(tacit.UsageError, match="auto or one of"):
        tacit.evaluate(str(program), 2, role="garbler", connect=address, protocol="none")
    with pytest.raises(tacit.UsageError, match="semi-honest"):
        tacit.evaluate(str(program), 2, role="garbler", connect=address, protocol="yao")


SHOP = """
const ROWS: usize = SHOP::ROWS;
const DOUBLE: bool = SHOP::DOUBLE;
pub fn main(prices: [u32; ROWS], budget: u32) -> u32 {
    let mut total = 0u32;
    for price in prices { total = total + price; }
    if DOUBLE { budget - total - total } else { budget - total }
}
pub fn largest(ours: u16, more: u16, theirs: u16) -> u16 {
    let best = if ours > more { ours } else { more };
    if best > theirs { best } else { theirs }
}
pub fn twice(theirs: i16, rate: i16) -> i16 { theirs * rate }
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.garble.rs"
    path.write_text(SHOP)
    return str(path)


THEIRS = """
try:
    tell(tacit.evaluate(program, inputs, role="evaluator", listen=address, **given).result)
except tacit.Error as error:
    tell([type(error).__name__, str(error)])
"""


def test_a_programs_constants_come_from_outside(shop: str) -> None:
    constants = {"SHOP::ROWS": 3, "SHOP::DOUBLE": True}
    address = free_address()
    with party(THEIRS, program=shop, inputs=1000, address=address, given={"constants": constants}) as peer:
        call = dict(role="garbler", connect=address, constants=constants)
        assert tacit.evaluate(shop, "[100, 20, 3]", **call).result == 754
        assert peer.end() == [754]
    # Rows of a table read the same program, here with literals of the language.
    constants = {"SHOP::ROWS": "2usize", "SHOP::DOUBLE": "false"}
    address = free_address()
    theirs = """
    tell(tacit.evaluate(program, rows=[10, 5], role="evaluator", listen=address, constants=constants).result)
    """
    with party(theirs, program=shop, address=address, constants=constants) as peer:
        table = pyarrow.table({"a": [1, 2], "b": [3, 4]})
        call = dict(role="garbler", connect=address, constants=constants)
        assert tacit.evaluate(shop, rows=table, **call).result == [6, None]
        assert peer.end() == [[6, None]]


def test_other_constants_on_the_other_side_are_a_mismatch(shop: str) -> None:
    address = free_address()
    theirs = {"constants": {"SHOP::ROWS": 1, "SHOP::DOUBLE": False}}
    with party(THEIRS, program=shop, inputs=9, address=address, given=theirs) as peer:
        with pytest.raises(tacit.Mismatch) as caught:
            ours = {"SHOP::ROWS": 1, "SHOP::DOUBLE": True}
            tacit.evaluate(shop, "[4]", role="garbler", connect=address, constants=ours)
        assert "program" in [setting for setting, _, _ in caught.value.differences]
        [[kind, _]] = peer.end()
        assert kind == "Mismatch"


@pytest.mark.parametrize(
    ("entry", "garbler_inputs", "ours", "theirs", "result"),
    [
        ("largest", None, [7, 9], 8, 9),
        ("largest", 1, 7, [9, 12], 12),
        ("twice", 0, "", [-7, 3], -21),
        ("twice", 2, [-7, 4], "", -28),
    ],
)
def test_a_programs_functions_and_their_parameters_are_chosen(
    shop: str, entry: str, garbler_inputs: int | None, ours, theirs, result: int
) -> None:
    address = free_address()
    given = {
        "entry": entry,
        "garbler_inputs": garbler_inputs,
        "constants": {"SHOP::ROWS": 1, "SHOP::DOUBLE": False},
    }
    with party(THEIRS, program=shop, inputs=theirs, address=address, given=given) as peer:
        assert tacit.evaluate(shop, ours, role="garbler", connect=address, **given).result == result
        assert peer.end() == [result]


def test_what_a_program_does_not_take_is_said_in_a_line(shop: str, tmp_path: Path) -> None:
    circuit = tmp_path / "and.txt"
    circuit.write_text("1 3\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n")
    known = {"SHOP::ROWS": 1, "SHOP::DOUBLE": False}

    def refused(error: type[tacit.Error], says: str, function, inputs=1, **given) -> None:
        with pytest.raises(error, match=says) as caught:
            tacit.evaluate(function, inputs, connect="127.0.0.1:9", **given)
        assert isinstance(caught.value, ValueError) and "\n" not in str(caught.value)

    for given, says in [
        ({}, "the constant SHOP::DOUBLE has no value"),
        ({"constants": {**known, "SHOP::OTHER": 1}}, "no constant SHOP::OTHER"),
        ({"constants": {**known, "SHOP::ROWS": 1.5}}, "SHOP::ROWS"),
        ({"constants": {**known, "SHOP::DOUBLE": 1}}, "SHOP::DOUBLE: true or false"),
        ({"constants": known, "entry": "none"}, "no function none; public ones: largest, main, twice"),
        ({"constants": known, "garbler_inputs": 3}, "main has 2 parameters, and 3 are the garbler's"),
    ]:
        refused(tacit.InputError, says, shop, role="garbler", **given)
    refused(tacit.UsageError, "constants: .* by name", shop, role="garbler", constants=["SHOP::ROWS=1"])
    for count in (-1, "1", 1 << 70):
        refused(tacit.UsageError, "garbler_inputs: ", shop, role="garbler", garbler_inputs=count)
    for name in ("add16", "modexp96"):
        for open_ in ({"garbler_inputs": 1}, {"bits": "reversed"}):
            refused(tacit.UsageError, "is built in", name, role="garbler", **open_)
    refused(tacit.UsageError, "has 2 inputs", str(circuit), role="garbler", garbler_inputs=3)
    refused(tacit.UsageError, "bits is", str(circuit), role="garbler", bits="other")
    refused(tacit.UsageError, "for circuit files", shop, role="garbler", bits="reversed", constants=known)
    for given in ({"entry": "main"}, {"constants": known}):
        for name in ("add16", "modexp96", str(circuit)):
            refused(tacit.UsageError, r"for programs, .*\.garble\.rs", name, role="garbler", **given)
        refused(tacit.UsageError, r"for programs, .*\.garble\.rs", cheaper, {"ours": 1}, **given)
    refused(tacit.UsageError, "for programs and circuits' files", cheaper, {"ours": 1}, garbler_inputs=1)


def test_functions_too_large_to_hold_run_as_they_are_made() -> None:
    assert "modexp96" in tacit.functions() and "sort65536" in tacit.functions()
    base, exponent, modulus = 0x0123_4567_89AB_CDEF_0FED_CBA9, (1 << 95) + 12345, (1 << 96) - 17
    address = free_address()
    theirs = """
    given = dict(role="evaluator", listen=address, security="semi-honest", output_to="peer")
    tell(tacit.evaluate("modexp96", exponent, **given).result)
    """
    steps: list[tacit.Progress] = []
    with party(theirs, address=address, exponent=exponent) as peer:
        given = dict(role="garbler", connect=address, security="semi-honest", output_to="me")
        done = tacit.evaluate("modexp96", rows=[base], progress=steps.append, **given)
        assert peer.end() == [None]
    assert done.result == [pow(base, exponent, modulus)]
    assert done.protocol == "yao"
    assert [step.unit for step in steps if step.phase == "evaluating"][-1] == "AND gates"


def test_what_a_function_too_large_to_hold_cannot_do_is_refused() -> None:
    def refused(error: type[tacit.Error], says: str, inputs=None, function="modexp96", **given) -> None:
        with pytest.raises(error, match=says):
            tacit.evaluate(function, inputs, role="garbler", connect="127.0.0.1:9", **given)

    refused(tacit.UsageError, "rows: modexp96 .* one evaluation a run", rows=[1, 2])
    refused(tacit.UsageError, "rows: modexp96 .* one evaluation a run", rows=[])
    refused(tacit.UsageError, "threads: modexp96 .* one thread", 1, threads=2)
    refused(tacit.UsageError, "protocol: yao is only for semi-honest", 1, protocol="yao")
    refused(tacit.InputError, "96 bits", 1 << 96)
    refused(tacit.UsageError, "no function of that name", 1, function="modexp97")


OFFER = """
enum Plan { Basic, Paid(u8) }
struct Offer { price: u32, plan: Plan }
pub fn main(offer: Offer, budget: u32) -> u32 {
    match offer.plan {
        Plan::Basic => budget - offer.price,
        Plan::Paid(months) => budget - offer.price * months as u32,
    }
}
"""


@tacit.function
def cheaper(ours: tacit.u8, theirs: tacit.u8):
    return {"less": ours < theirs, "gap": theirs - ours}


def test_rows_of_a_table_or_a_list_are_evaluated_together(tmp_path: Path) -> None:
    program = tmp_path / "offer.garble.rs"
    program.write_text(OFFER)
    # A program, whose columns are found by the names of its parameters and their fields; a row that overflows.
    address = free_address()
    with party(
        """
        done = tacit.evaluate(program, rows=[300, 100, 5], role="evaluator", connect=address)
        tell(done.result)
        """,
        program=str(program),
        address=address,
    ) as child:
        offers = polars.DataFrame(
            {"id": ["a", "b", "c"], "price": [30, 25, 7], "plan": ["Basic", "Paid(4)", "Basic"]},
            schema_overrides={"price": polars.Int16},
        )
        done = tacit.evaluate(str(program), rows=offers, role="garbler", listen=address)
        assert done.result == done.rows == [270, 0, None]
        assert child.end() == [[270, 0, None]]
    # A function by name, on columns that are named; dates are days, decimals scaled.
    address = free_address()
    with party(
        """
        done = tacit.evaluate("add64", rows=[1, 2], role="evaluator", connect=address, protocol="wmk17")
        tell(done.result)
        """,
        address=address,
    ) as child:
        days = pandas.DataFrame({"day": ["2024-02-29", "1970-01-02"], "price": ["1.5", "0.25"]})
        table = pyarrow.Table.from_pandas(days)
        done = tacit.evaluate(
            "add64", rows=table, columns=["day:date"], role="garbler", listen=address, protocol="wmk17"
        )
        assert done.result == [19783, 3]
        assert child.end() == [[19783, 3]]
    # Rows side by side on shares: a function by name, and a program.
    for function, column in [("min32", [7, 200, 3]), (str(program), [300, 100, 5])]:
        address = free_address()
        with party(
            """
            given = dict(security="semi-honest", protocol="batch")
            done = tacit.evaluate(function, rows=column, role="evaluator", connect=address, **given)
            tell([done.result, done.protocol])
            """,
            function=function,
            column=column,
            address=address,
        ) as child:
            rows = [9, 20, 30] if function == "min32" else offers
            given = dict(security="semi-honest", protocol="batch")
            done = tacit.evaluate(function, rows=rows, role="garbler", listen=address, **given)
            expected = [7, 20, 3] if function == "min32" else [270, 0, None]
            assert (done.result, done.protocol) == (expected, "batch")
            assert child.end() == [[expected, "batch"]]
    # A function in Python.
    address = free_address()
    with party(
        """
        @tacit.function
        def cheaper(ours: tacit.u8, theirs: tacit.u8):
            return {"less": ours < theirs, "gap": theirs - ours}
        tell(tacit.evaluate(cheaper, rows=[{"theirs": 9}, {"theirs": 3}], connect=address).result)
        """,
        address=address,
    ) as child:
        frame = polars.DataFrame({"note": ["x", "y"], "ours": [4, 200]})
        done = tacit.evaluate(cheaper, rows=frame, listen=address)
        assert done.result == [{"less": True, "gap": 5}, None]
        assert child.end() == [[{"less": True, "gap": 5}, None]]


def test_what_is_wrong_with_rows_is_said_without_a_cell() -> None:
    def refused(error: type[tacit.Error], words: str, *args, **given) -> None:
        with pytest.raises(error, match=words) as raised:
            tacit.evaluate(*args, role="garbler", listen="127.0.0.1:1", **given)
        assert "70000" not in str(raised.value)

    table = pyarrow.table({"n": [1, None], "big": [1, 70000], "half": [1.0, 0.5]})
    refused(tacit.InputError, "row 2.*no value", "add16", rows=table, columns=["n"])
    refused(tacit.InputError, "row 2.*16 bits", "add16", rows=table, columns=["big"])
    refused(tacit.InputError, "row 2.*whole number", "add16", rows=table, columns=["half"])
    refused(tacit.UsageError, "no column m", "add16", rows=table, columns=["m"])
    refused(tacit.UsageError, "3 columns", "add16", rows=table)
    refused(tacit.UsageError, "columns", "add16", rows=[1], columns=["n"])
    refused(tacit.UsageError, "inputs", "add16")
    refused(tacit.UsageError, "inputs", "add16", 5, rows=[5])
