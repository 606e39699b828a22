"""Tables drawn from a seed: types, sizes and the values that readers and writers get wrong."""

import datetime
import decimal

#: Text that breaks parsers: separators, quotes, line ends, words for nothing, numbers that are none, other scripts.
TEXTS = [
    "", "x", "00123", "1e5", "NA", "null", "NaN", "true", "=1+1", "@x", "-1", " lead", "trail ", "\t", "a,b", "a;b",
    "a|b", "a\tb", 'say "hi"', '"', '""', "'", "it's", "\\", "\\N", "a\nb", "a\r\nb", "\r", "\n", "é", "e\u0301",
    "ß", "Ｗ", "日本語", "שלום", "👩‍👩‍👧", "\u00a0", "\u200b", "\ufeff", "#", "2024-01-31", "1,5", "{}", "[1]", "x" * 3000,
]  # fmt: skip
NAMES = [
    "plain",
    "Ünïcode",
    "with space",
    "a,b",
    'say "x"',
    "col:on",
    "semi;colon",
    "tab\tbed",
    "日本",
    "UPPER",
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "+05:30"]
EPOCH = datetime.datetime(1970, 1, 1)
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: The years that 64 bits of nanoseconds hold.
NANOS = (-(2**63) // 10**9 + 1, 2**63 // 10**9 - 1)
YEARS = (-62_135_596_800, 253_402_300_799)


def _integer(rng, low, high):
    edges = [low, low + 1, -1, 0, 1, high - 1, high, 2**53 + 1, 10**15]
    return rng.choice([edge for edge in edges if low <= edge <= high] + [rng.randint(low, high)] * 4)


def _real(rng):
    odd = [0.0, -0.0, 0.1, 1 / 3, 1e-7, 1e22, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"),
           123456789012345680.0, 2.0**53]  # fmt: skip
    return rng.choice([*odd, rng.uniform(-1e6, 1e6), float(rng.randint(-1000, 1000))])


def _decimal(rng, precision, scale):
    digits = rng.choice(
        [
            0,
            1,
            -1,
            10**precision - 1,
            1 - 10**precision,
            10 ** min(scale, precision - 1),
            rng.randrange(10**precision),
        ]
    )
    return decimal.Decimal(digits).scaleb(-scale, decimal.Context(prec=100))


def _day(rng):
    edges = [(1, 1, 1), (1582, 10, 4), (1582, 10, 15), (1899, 12, 31), (1900, 2, 28), (1900, 3, 1), (1969, 12, 31),
             (1970, 1, 1), (2000, 2, 29), (9999, 12, 31)]  # fmt: skip
    return rng.choice(
        [datetime.date(*edge) for edge in edges] + [datetime.date.fromordinal(rng.randint(1, 3_652_059))] * 5
    )


def _moment(rng, unit):
    """A count of units since 1970."""
    low, high = NANOS if unit == "ns" else YEARS
    seconds = rng.choice([low, high, -1, 0, 1, -2_208_988_800, rng.randint(low, high), rng.randint(0, 2**31)])
    return seconds * UNITS[unit] + rng.choice([0, 1, UNITS[unit] - 1, rng.randrange(UNITS[unit])]) * (
        unit != "s"
    )


def _text(rng):
    return "".join(rng.choice(TEXTS) for _ in range(rng.choice([1, 1, 1, 2, 3])))


def kinds():
    """Name to (Arrow type, how a value is drawn), of columns that every output can hold."""
    import pyarrow as pa

    found = {
        "text": (pa.string(), _text),
        "large_text": (pa.large_string(), _text),
        "category": (pa.dictionary(pa.int32(), pa.string()), lambda rng: rng.choice(["", "a", "b,c", 'd"', "é", "zz"])),
        "bool": (pa.bool_(), lambda rng: rng.random() < 0.5),
        "float": (pa.float64(), _real),
        "bytes": (pa.binary(), lambda rng: rng.choice([b"", b"\0\xff", b"text", rng.randbytes(5)])),
        "fixed_bytes": (pa.binary(3), lambda rng: rng.randbytes(3)),
        "day": (pa.date32(), _day),
        "day64": (pa.date64(), _day),
    }  # fmt: skip
    for bits in (8, 16, 32, 64):
        found[f"int{bits}"] = (
            getattr(pa, f"int{bits}")(),
            lambda rng, bits=bits: _integer(rng, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
        )
        found[f"uint{bits}"] = (
            getattr(pa, f"uint{bits}")(),
            lambda rng, bits=bits: _integer(rng, 0, 2**bits - 1),
        )
    for precision, scale in ((5, 2), (10, 2), (18, 18), (38, 0), (38, 10)):
        found[f"decimal{precision}_{scale}"] = (
            pa.decimal128(precision, scale),
            lambda rng, precision=precision, scale=scale: _decimal(rng, precision, scale),
        )
    for unit in UNITS:
        found[f"moment_{unit}"] = (pa.timestamp(unit), lambda rng, unit=unit: _moment(rng, unit))
        found[f"zoned_{unit}"] = (pa.timestamp(unit, "zone"), lambda rng, unit=unit: _moment(rng, unit))
    return found


def single_kind():
    """Types with fewer readers: reals of 32 and 16 bits, times of day, decimals of 256 bits."""
    import pyarrow as pa

    def single(rng):
        import numpy as np

        with np.errstate(over="ignore", under="ignore"):
            return float(np.float32(_real(rng)))

    return {
        "float32": (pa.float32(), single),
        "time_us": (pa.time64("us"), lambda rng: rng.choice([0, 1, 86_399_999_999, rng.randrange(86_400_000_000)])),
        "time_ms": (pa.time32("ms"), lambda rng: rng.choice([0, 86_399_999, rng.randrange(86_400_000)])),
    }  # fmt: skip


def nested_kinds():
    """Columns that have no cell in CSV and Excel."""
    import pyarrow as pa

    def some(rng, draw, most=4):
        return [None if rng.random() < 0.2 else draw(rng) for _ in range(rng.randrange(most))]

    return {
        "list_int": (pa.list_(pa.int64()), lambda rng: some(rng, lambda rng: _integer(rng, -(2**63), 2**63 - 1))),
        "list_text": (pa.list_(pa.string()), lambda rng: some(rng, _text)),
        "list_list": (pa.list_(pa.list_(pa.int32())), lambda rng: some(rng, lambda rng: some(rng, lambda rng: rng.randrange(9)))),
        "large_list": (pa.large_list(pa.float64()), lambda rng: some(rng, _real)),
        "struct": (
            pa.struct([("a", pa.int32()), ("day", pa.date32()), ("t", pa.string())]),
            lambda rng: {"a": rng.choice([None, rng.randrange(99)]), "day": rng.choice([None, _day(rng)]), "t": _text(rng)},
        ),
        "list_struct": (
            pa.list_(pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])),
            lambda rng: some(rng, lambda rng: {"x": rng.randrange(9), "y": some(rng, _text)}),
        ),
        "map": (pa.map_(pa.string(), pa.int32()), lambda rng: [(f"m{at}", rng.choice([None, at])) for at in range(rng.randrange(3))]),
    }  # fmt: skip


def column(rng, kind, rows, nulls, only=None):
    """One column; `nulls` is the share of cells that are none."""
    import pyarrow as pa

    type_, draw = kind
    if pa.types.is_timestamp(type_) and type_.tz:
        type_ = pa.timestamp(type_.unit, rng.choice(ZONES))
    values = []
    while len(values) < rows:
        value = None if rng.random() < nulls else draw(rng)
        if value is None or only is None or only(value):
            values.append(value)
    if pa.types.is_timestamp(type_) or pa.types.is_time(type_):
        whole = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(values, whole).cast(type_)
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode()
    return pa.array(values, type_)


def keys(rng, rows):
    """Keys, a few of them twice, a few none: (texts, texts that the peer has)."""
    shapes = ["K{}", 'k{}, "q"', "ключ {}", "é{}@x.org", "line\nend {}", "{}'s", "00{}", "日本{}"]
    ours = [rng.choice(shapes).format(at) for at in range(rows)]
    theirs = [key for key in ours if rng.random() < 0.5] + [f"other {at}" for at in range(3)]
    for at in range(rows):
        if rng.random() < 0.05:
            ours[at] = ours[rng.randrange(rows)]
        elif rng.random() < 0.03:
            ours[at] = None
    return ours, theirs


def table(rng, rows, names_of_kinds, only=None):
    """A table with a column `k` of keys at a drawn place, and the keys that the peer has."""
    import pyarrow as pa

    every = {**kinds(), **single_kind(), **nested_kinds()}
    ours, theirs = keys(rng, rows)
    columns = {}
    for at, name in enumerate(names_of_kinds):
        header = f"{name}{at}" if rng.random() < 0.7 else f"{rng.choice(NAMES)}{at}"
        nulls = rng.choice([0, 0.1, 0.5, 1 if rows and name != "category" else 0.1])
        columns[header] = column(rng, every[name], rows, nulls, (only or {}).get(name))
    items = list(columns.items())
    items.insert(rng.randint(0, len(items)), ("k", pa.array(ours, pa.string())))
    return pa.table(dict(items)), theirs
