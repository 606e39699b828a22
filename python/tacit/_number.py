"""Numbers of fixed width whose values may be secret, and functions of them."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NoReturn,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

from . import _tacit
from .errors import OutOfRange, SecretBranch, UsageError

_HERE = str(Path(__file__).resolve())


def _place() -> str:
    """The line of the user's code that runs."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == _HERE:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return ""
    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line).strip()
    return f"{Path(name).name}, line {line}" + (f": {text}" if text else "")


@dataclass(frozen=True)
class Type:
    """The type of a number: how many bits, and whether it can be negative.

    Use it in annotations of a :func:`function`'s parameters, and call it to make a constant: ``u32(7)``.
    ``u32[10]`` is the type of a list of ten.
    """

    name: str
    width: int
    signed: bool

    @property
    def low(self) -> int:
        """The smallest value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The largest value."""
        return (1 << (self.width - self.signed)) - 1

    def __getitem__(self, length: int) -> Array:
        if not isinstance(length, int) or not 1 <= length <= 1 << 20:
            raise UsageError(f"{self.name}[…] takes a length from 1 on")
        return Array(self, length)

    def __call__(self, value: int | bool | Number) -> Number:
        """The number `value` in this type; :class:`OutOfRange` if it does not fit, as in every other operation."""
        if isinstance(value, Number):
            return value.to(self)
        return Number._constant(value, self)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Array:
    """The type of a list of `length` numbers of one type."""

    of: Type
    length: int

    def __repr__(self) -> str:
        return f"{self.of!r}[{self.length}]"


_BOOL = Type("bool", 1, False)
_U32 = Type("u32", 32, False)


def uint(width: int) -> Type:
    """The type of numbers from 0 to 2^width − 1, of 1 to 64 bits."""
    return _sized("u", width, False)


def int_(width: int) -> Type:
    """The type of numbers in two's complement, of 2 to 64 bits."""
    return _sized("i", width, True)


def _sized(letter: str, width: int, signed: bool) -> Type:
    if not isinstance(width, int) or not 1 + signed <= width <= 64:
        raise UsageError(f"numbers have {1 + signed} to 64 bits")
    return Type(f"{letter}{width}", width, signed)


class _Run:
    """One run of a function: in the clear where there is no tracer, else into a circuit."""

    def __init__(self, tracer: Any | None) -> None:
        self.tracer = tracer
        self.failures: list[Any] = []


# A function runs on one thread from its start to its end; runs never interleave there.
_runs: list[_Run] = []


def _run() -> _Run:
    return _runs[-1] if _runs else _CLEAR


_CLEAR = _Run(None)


class Number:
    """A number of a :class:`Type`, whose value may be secret.

    ``+ - * // % << >> & | ^ ~`` and comparisons work as for Python's integers (``//`` rounds down), with another
    number of the same type or a plain integer. What does not fit the type ends the whole function with
    :class:`OutOfRange`: in the clear at once, on secret values at the end, where nothing else is then learned.
    Both sides of a :func:`where` are always computed, and both must fit.

    A number has no truth value and cannot be an index: what a program does must not depend on a secret.
    """

    __slots__ = ("_run", "_value", "type")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, type_: Type, run: _Run) -> None:
        self._value = value
        self.type = type_
        self._run = run

    @staticmethod
    def _constant(value: int, type_: Type) -> Number:
        if not isinstance(value, int):
            raise UsageError(f"{type_!r} takes whole numbers, not {type(value).__name__}")
        value = int(value)
        if not type_.low <= value <= type_.high:
            raise OutOfRange(f"{value} does not fit {type_!r} ({type_.low} to {type_.high})")
        run = _run()
        if run.tracer is None:
            return Number(value, type_, run)
        return Number(run.tracer.constant(value, type_.width, type_.signed), type_, run)

    # What cannot be.

    def _branch(self, what: str) -> NoReturn:
        raise SecretBranch(f"{what} ({_place()})")

    def __bool__(self) -> bool:
        self._branch(
            "a branch depends on a secret value; use tacit.where(condition, then, otherwise), "
            "& | ~ for and/or/not, and tacit.min, tacit.max, tacit.sort"
        )

    def __index__(self) -> int:
        self._branch("a secret is no index and no count; compare with each index and use tacit.where")

    def __int__(self) -> int:
        self._branch("a secret has no value while a function runs; return it to learn it")

    def __float__(self) -> float:
        self._branch("a secret has no value while a function runs; numbers are whole here")

    def __truediv__(self, other: Any) -> NoReturn:
        self._branch("numbers are whole: use // for division")

    __rtruediv__ = __truediv__

    def __pow__(self, other: Any) -> NoReturn:
        self._branch("powers are not built in: multiply")

    def __repr__(self) -> str:
        value = self._value if self._run.tracer is None else "secret"
        return f"{self.type!r}({value})"

    # Two numbers.

    def _other(self, other: Any) -> Number | None:
        if isinstance(other, Number):
            if other.type != self.type:
                raise UsageError(
                    f"{self.type!r} and {other.type!r} do not mix: write x.to(tacit.{self.type!r}) ({_place()})"
                )
            return other
        if isinstance(other, int):
            return Number._constant(other, self.type)
        return None

    def _made(self, value: Any, type_: Type, failed: Any = None) -> Number:
        if failed is not None and failed.known() != 0:
            self._run.failures.append(failed)
        return Number(value, type_, self._run)

    def _checked(self, value: int) -> Number:
        if not self.type.low <= value <= self.type.high:
            raise OutOfRange(f"a result does not fit {self.type!r} ({_place()})")
        return Number(value, self.type, self._run)

    def _binary(self, op: str, other: Any, swapped: bool = False) -> Number:
        right = self._other(other)
        if right is None:
            # What an operator returns for operands that it does not know, as Python wants it.
            return NotImplemented  # type: ignore[no-any-return]
        left: Number = self
        if swapped:
            left, right = right, left
        if op in _ARITHMETIC and self.type == _BOOL:
            raise UsageError(f"conditions are not calculated with: say .to(tacit.u32) first ({_place()})")
        if self._run.tracer is None:
            a, b = left._value, right._value
            if op in ("floordiv", "mod") and b == 0:
                raise OutOfRange(f"division by zero ({_place()})")
            result = _CLEARLY[op](a, b)
            if isinstance(result, bool):
                return Number(int(result), _BOOL, self._run)
            if op == "mod":
                # The quotient that goes with it must fit too, as it must where both are computed.
                self._checked(a // b)
            return self._checked(result)
        result, failed = self._run.tracer.binary(op, left._value, right._value)
        return self._made(result, _BOOL if op in ("lt", "le", "eq") else self.type, failed)

    def __add__(self, other: Any) -> Number:
        return self._binary("add", other)

    def __sub__(self, other: Any) -> Number:
        return self._binary("sub", other)

    def __mul__(self, other: Any) -> Number:
        return self._binary("mul", other)

    def __floordiv__(self, other: Any) -> Number:
        return self._binary("floordiv", other)

    def __mod__(self, other: Any) -> Number:
        return self._binary("mod", other)

    def __and__(self, other: Any) -> Number:
        return self._binary("and", other)

    def __or__(self, other: Any) -> Number:
        return self._binary("or", other)

    def __xor__(self, other: Any) -> Number:
        return self._binary("xor", other)

    def __radd__(self, other: Any) -> Number:
        return self._binary("add", other, True)

    def __rsub__(self, other: Any) -> Number:
        return self._binary("sub", other, True)

    def __rmul__(self, other: Any) -> Number:
        return self._binary("mul", other, True)

    def __rfloordiv__(self, other: Any) -> Number:
        return self._binary("floordiv", other, True)

    def __rmod__(self, other: Any) -> Number:
        return self._binary("mod", other, True)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __divmod__(self, other: Any) -> tuple[Number, Number]:
        return self // other, self % other

    def __lt__(self, other: Any) -> Number:
        return self._binary("lt", other)

    def __le__(self, other: Any) -> Number:
        return self._binary("le", other)

    def __gt__(self, other: Any) -> Number:
        return self._binary("lt", other, True)

    def __ge__(self, other: Any) -> Number:
        return self._binary("le", other, True)

    def __eq__(self, other: object) -> Number:  # type: ignore[override]
        return self._binary("eq", other)

    def __ne__(self, other: object) -> Number:  # type: ignore[override]
        equal = self._binary("eq", other)
        return equal if equal is NotImplemented else ~equal

    # One number.

    def __neg__(self) -> Number:
        return Number._constant(0, self.type) - self

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        return where(self < 0, -self, self) if self.type.signed else self

    def __invert__(self) -> Number:
        """Of a condition its contrary; of a signed number −x − 1; an unsigned one has none."""
        if self.type.width > 1 and not self.type.signed:
            raise UsageError(f"~ of {self.type!r} would be negative: use x ^ {self.type.high} ({_place()})")
        if self._run.tracer is None:
            value = 1 - self._value if not self.type.signed else ~self._value
            return Number(value, self.type, self._run)
        return Number(self._run.tracer.invert(self._value), self.type, self._run)

    def _places(self, by: Any) -> int:
        if isinstance(by, Number):
            raise UsageError(f"shift by a plain integer, not by a secret ({_place()})")
        if not isinstance(by, int) or by < 0:
            raise UsageError(f"shift by a plain integer from 0 on ({_place()})")
        return by

    def __lshift__(self, by: int) -> Number:
        places = self._places(by)
        if self._run.tracer is None:
            return self._checked(self._value << min(places, 128))
        shifted = self._run.tracer.shift(self._value, places)
        # What fell out shows when it is shifted back.
        back = self._run.tracer.shift(shifted, -places)
        same, _ = self._run.tracer.binary("eq", back, self._value)
        return self._made(shifted, self.type, self._run.tracer.invert(same))

    def __rshift__(self, by: int) -> Number:
        places = self._places(by)
        if self._run.tracer is None:
            return self._checked(self._value >> places)
        return self._made(self._run.tracer.shift(self._value, -places), self.type)

    def to(self, type_: Type | type[_Of]) -> Number:
        """The same number in another type, which it must fit."""
        if not isinstance(type_, Type):
            raise UsageError(f"to takes a type of tacit, such as tacit.u64 ({_place()})")
        if self._run.tracer is None:
            if not type_.low <= self._value <= type_.high:
                raise OutOfRange(f"a number does not fit {type_!r} ({_place()})")
            return Number(self._value, type_, self._run)
        value, failed = self._run.tracer.convert(self._value, type_.width, type_.signed)
        return self._made(value, type_, failed)


if TYPE_CHECKING:
    # For type checkers each of them is a class of numbers, so that it may be an annotation; in truth they are of `Type`.
    class _Of(Number):
        name: ClassVar[str]
        width: ClassVar[int]
        signed: ClassVar[bool]
        low: ClassVar[int]
        high: ClassVar[int]

        def __init__(self, value: int | Number) -> None: ...
        def __class_getitem__(cls, length: int) -> Array: ...

    class bool_(_Of): ...

    class u8(_Of): ...

    class u16(_Of): ...

    class u32(_Of): ...

    class u64(_Of): ...

    class i8(_Of): ...

    class i16(_Of): ...

    class i32(_Of): ...

    class i64(_Of): ...

else:
    #: One bit; what comparisons give.
    bool_ = _BOOL
    u8, u16, u64 = (Type(f"u{n}", n, False) for n in (8, 16, 64))
    u32 = _U32
    i8, i16, i32, i64 = (Type(f"i{n}", n, True) for n in (8, 16, 32, 64))


_CLEARLY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "min": min,
    "max": max,
}

_ARITHMETIC = frozenset(["add", "sub", "mul", "floordiv", "mod"])

Value: TypeAlias = Number | int


def _typed(values: Sequence[Value]) -> list[Number]:
    """All of `values` in the type of those that have one."""
    numbers = [value for value in values if isinstance(value, Number)]
    if not numbers:
        raise UsageError(f"at least one of these must be a number of a tacit type ({_place()})")
    made = []
    for value in values:
        other = numbers[0]._other(value)
        if other is None:
            raise UsageError(f"{type(value).__name__} is not a number here ({_place()})")
        made.append(other)
    return made


def where(condition: Number, then: Any, otherwise: Any) -> Any:
    """`then` where `condition` holds, else `otherwise`: numbers, or lists of them of one length."""
    if not isinstance(condition, Number) or condition.type != _BOOL:
        raise UsageError(f"where takes a condition, such as a < b, first ({_place()})")
    if isinstance(then, (list, tuple)) and isinstance(otherwise, (list, tuple)):
        if len(then) != len(otherwise):
            raise UsageError(f"where takes lists of one length ({_place()})")
        return [where(condition, a, b) for a, b in zip(then, otherwise)]
    if isinstance(then, int) and isinstance(otherwise, int):
        raise UsageError(
            f"where: say of what type {then} and {otherwise} are, such as tacit.u32({then}) ({_place()})"
        )
    a, b = _typed([then, otherwise])
    run = condition._run
    if run.tracer is None:
        return a if condition._value else b
    return Number(run.tracer.mux(condition._value, a._value, b._value), a.type, run)


def _several(values: tuple[Any, ...]) -> list[Number]:
    if len(values) == 1 and not isinstance(values[0], (Number, int)):
        values = tuple(values[0])
    return _typed(values)


def _fold(op: str, values: list[Number]) -> Number:
    # A tree, so that as little as possible hangs on one another.
    while len(values) > 1:
        values = [
            values[i]._binary(op, values[i + 1]) if i + 1 < len(values) else values[i]
            for i in range(0, len(values), 2)
        ]
    return values[0]


def min_(*values: Any) -> Number:
    """The smallest of several numbers, or of a list."""
    return _fold("min", _several(values))


def max_(*values: Any) -> Number:
    """The largest of several numbers, or of a list."""
    return _fold("max", _several(values))


def sum_(values: Iterable[Value]) -> Number:
    """The sum of a list; of conditions, how many hold. Each step must fit the type, in the order of the list."""
    numbers = [number.to(_U32) if number.type == _BOOL else number for number in _typed(list(values))]
    total = numbers[0]
    for number in numbers[1:]:
        total = total + number
    return total


def sort(values: Iterable[Value]) -> list[Number]:
    """The values in ascending order."""
    numbers = _typed(list(values))
    run = numbers[0]._run
    if run.tracer is None:
        return sorted(numbers, key=lambda number: number._value)
    return [Number(value, numbers[0].type, run) for value in run.tracer.sort([n._value for n in numbers])]


@dataclass(frozen=True)
class _Parameter:
    name: str
    of: Type
    length: int | None

    def flat(self, value: Any) -> list[int]:
        """The plain integers of `value`, each checked against the type."""
        items = list(value) if self.length is not None else [value]
        if self.length is not None and len(items) != self.length:
            raise UsageError(f"{self.name} takes {self.length} numbers, not {len(items)}")
        for item in items:
            if isinstance(item, float) or not hasattr(item, "__index__"):
                raise UsageError(f"{self.name} takes whole numbers, not {type(item).__name__}")
            if not self.of.low <= int(item) <= self.of.high:
                raise OutOfRange(
                    f"{self.name}: a number does not fit {self.of!r} ({self.of.low} to {self.of.high})"
                )
        return [int(item) for item in items]

    @property
    def count(self) -> int:
        return 1 if self.length is None else self.length


def _parameter(name: str, annotation: Any) -> _Parameter:
    if get_origin(annotation) is Annotated:
        # What a type checker cannot read as a type: Annotated[list[tacit.Number], tacit.i32[10]].
        annotation = next((one for one in get_args(annotation)[1:] if isinstance(one, (Type, Array))), None)
    if annotation is bool:
        annotation = _BOOL
    if isinstance(annotation, Type):
        return _Parameter(name, annotation, None)
    if isinstance(annotation, Array):
        return _Parameter(name, annotation.of, annotation.length)
    raise UsageError(f"parameter {name} needs a type, such as {name}: tacit.u32 or {name}: tacit.i64[10]")


class Function:
    """A function of both parties' numbers: call it for a run in the clear, :func:`tacit.evaluate` it for a secret one.

    Made by the decorator :func:`function`.
    """

    def __init__(self, body: Callable[..., Any]) -> None:
        self._body = body
        self.__doc__ = body.__doc__
        self.name: str = body.__name__
        try:
            hints = get_type_hints(body, include_extras=True)
        except (NameError, TypeError) as error:
            raise UsageError(f"{self.name}: an annotation cannot be read: {error}") from None
        self.parameters: list[_Parameter] = []
        for parameter in inspect.signature(body).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                raise UsageError(f"{self.name}: a function takes named parameters only, no *, no **")
            self.parameters.append(_parameter(parameter.name, hints.get(parameter.name)))
        if not self.parameters:
            raise UsageError(f"{self.name} has no parameters")
        self._circuits: dict[frozenset[str], tuple[Any, Any]] = {}

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{p.name}: {p.of!r}" + ("" if p.length is None else f"[{p.length}]") for p in self.parameters
        )
        return f"<tacit.function {self.name}({shown})>"

    def _call(self, run: _Run, values: list[list[Any]]) -> tuple[Any, list[Number]]:
        """What the body gives for these values, and the numbers in it."""
        arguments = []
        for parameter, items in zip(self.parameters, values):
            numbers = [Number(item, parameter.of, run) for item in items]
            arguments.append(numbers[0] if parameter.length is None else numbers)
        _runs.append(run)
        try:
            result = self._body(*arguments)
            numbers = list(_flatten(result, self.name))
        finally:
            _runs.pop()
        return result, numbers

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result for plain integers, computed in the clear with the same rules."""
        bound = inspect.signature(self._body).bind(*args, **kwargs)
        values = [parameter.flat(bound.arguments[parameter.name]) for parameter in self.parameters]
        result, numbers = self._call(_Run(None), values)
        plain = iter([number._value for number in numbers])
        return _rebuild(result, plain)

    def circuit(self, garbler: Iterable[str]) -> tuple[Any, Any]:
        """The circuit in which the parameters named are the garbler's, and the shape of its result."""
        owned = frozenset(garbler)
        if owned not in self._circuits:
            tracer = _tacit.Tracer()
            order = [p for p in self.parameters if p.name in owned] + [
                p for p in self.parameters if p.name not in owned
            ]
            inputs = [(p.of.width, p.of.signed) for p in order for _ in range(p.count)]
            wires = {p.name: [tracer.input(p.of.width, p.of.signed) for _ in range(p.count)] for p in order}
            run = _Run(tracer)
            shape, numbers = self._call(run, [wires[p.name] for p in self.parameters])
            mine = sum(p.count for p in order if p.name in owned)
            outputs = [number._value for number in numbers]
            circuit = tracer.finish(self.name, inputs, mine, outputs, run.failures)
            self._circuits[owned] = (circuit, shape)
        return self._circuits[owned]

    def stats(self, garbler: Iterable[str] | None = None) -> dict[str, int]:
        """The sizes of the circuit: AND gates are what costs."""
        names = [self.parameters[0].name] if garbler is None else list(garbler)
        circuit, _ = self.circuit(names)
        return {"and_gates": circuit.and_gates, "gates": circuit.gates, "depth": circuit.depth}

    def _text(self, inputs: dict[str, Any]) -> str:
        """Our inputs as the circuit takes them."""
        mine = [p for p in self.parameters if p.name in inputs]
        return ",".join(str(value) for p in mine for value in p.flat(inputs[p.name]))

    def _result(self, shape: Any, outputs: Sequence[str]) -> Any:
        *values, overflow = [int(value) for value in outputs]
        if overflow:
            raise OutOfRange(
                f"{self.name}: a number did not fit its type, or was divided by zero; neither side learned a result"
            )
        return _rebuild(shape, iter(values))


def _flatten(result: Any, name: str) -> Iterator[Number]:
    if isinstance(result, Number):
        yield result
    elif isinstance(result, (list, tuple)):
        for item in result:
            yield from _flatten(item, name)
    elif isinstance(result, dict):
        for item in result.values():
            yield from _flatten(item, name)
    else:
        raise UsageError(
            f"{name} returns {type(result).__name__}; a function returns numbers, or lists or dicts of them"
        )


def _rebuild(shape: Any, values: Iterator[int]) -> Any:
    if isinstance(shape, Number):
        value = next(values)
        return bool(value) if shape.type == _BOOL else value
    if isinstance(shape, dict):
        return {key: _rebuild(item, values) for key, item in shape.items()}
    made = [_rebuild(item, values) for item in shape]
    return tuple(made) if isinstance(shape, tuple) else made


def function(body: Callable[..., Any]) -> Function:
    """Makes a :class:`Function` of ordinary code over typed parameters.

    >>> import tacit
    >>> @tacit.function
    ... def gap(ours: tacit.u32, theirs: tacit.u32):
    ...     return tacit.where(ours > theirs, ours, theirs) - tacit.min(ours, theirs)
    >>> gap(30, 45)
    15
    >>> gap.stats()["and_gates"] > 0
    True
    """
    return Function(body)
