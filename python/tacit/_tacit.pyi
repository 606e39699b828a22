from collections.abc import Callable
from os import PathLike
from typing import Any, TypeAlias

__version__: str

Path: TypeAlias = str | PathLike[str]
Told: TypeAlias = Callable[..., None] | None

class Peer:
    def __init__(
        self,
        *,
        listen: str | None = None,
        connect: str | None = None,
        via: str | None = None,
        identity: Path | None = None,
        peer: Path | None = None,
        security: str = "malicious",
        threads: int | None = None,
        post_quantum: bool = False,
        base_ot: str | None = None,
        timeout: float | None = None,
        wait: float | None = None,
        link: str | None = None,
        proxy: str | None = None,
    ) -> None: ...

class Keys:
    def __init__(
        self,
        table: Any,
        on: list[str],
        *,
        types: list[str] | None = None,
        further: list[int] = ...,
        nfc: bool = True,
        trim: bool = True,
        case_fold: bool = True,
        nulls: list[str] = ...,
        digest: bytes | None = None,
        decimal_comma: bool = False,
    ) -> None: ...
    rows: int
    distinct: int
    without_key: int
    duplicates: int
    has_variants: bool
    identifiers: list[tuple[str, int, int]]
    refused: list[tuple[str, str, str, int]]
    hints: list[str]

class Rows:
    column_names: list[str]
    digest: bytes | None
    @staticmethod
    def of_strings(values: list[str]) -> Rows: ...
    @staticmethod
    def of_files(
        paths: list[str],
        on: list[str],
        types: list[str] | None = None,
        *,
        delimiter: str = "auto",
        quote: str = '"',
        escape: str | None = None,
        header: bool = True,
        encoding: str | None = None,
        skip_lines: int = 0,
        max_row_mib: int | None = None,
        binary_as_text: bool = False,
        error_cells: str = "refuse",
        recorded: bool = False,
    ) -> Rows: ...
    @staticmethod
    def of_answer(table: Any) -> Rows: ...
    def strings(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Key:
    def __init__(
        self,
        on: list[str],
        *,
        types: list[str] | None = None,
        nfc: bool = True,
        trim: bool = True,
        case_fold: bool = True,
        nulls: list[str] = ...,
    ) -> None: ...
    def digests(self, batch: Any) -> Any: ...

class Plan:
    own: int
    peer: int
    buckets: int
    @staticmethod
    def open(
        gateway: str,
        token: str,
        job: str,
        key: Key,
        own: int,
        *,
        buckets: int,
        result: str = "me",
        reveal: str = "rows",
        give: list[tuple[str, int]] = ...,
        rows: int = 0,
        security: str = "malicious",
        base_ot: str | None = None,
        patience: float = 600.0,
        max_peer_keys: int | None = None,
        max_cell: int | None = None,
        memory: int | None = None,
    ) -> Plan: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Plan: ...
    def slots(self, digests: Any, todo: list[int]) -> Any: ...
    def run(self, gateway: str, number: int, rows: list[Any]) -> tuple[Any, list[Any], int] | None: ...
    def ran(self, gateway: str, common: int) -> dict[str, Any]: ...

def buckets_for(own: int, at_once: int) -> int: ...

class Wires:
    def known(self) -> int | None: ...

class Tracer:
    def __init__(self) -> None: ...
    def input(self, width: int, signed: bool) -> Wires: ...
    @staticmethod
    def constant(value: int, width: int, signed: bool) -> Wires: ...
    def binary(self, op: str, x: Wires, y: Wires) -> tuple[Wires, Wires]: ...
    def invert(self, x: Wires) -> Wires: ...
    def mux(self, choice: Wires, then: Wires, otherwise: Wires) -> Wires: ...
    def convert(self, x: Wires, width: int, signed: bool) -> tuple[Wires, Wires]: ...
    def shift(self, x: Wires, by: int) -> Wires: ...
    def sort(self, values: list[Wires]) -> list[Wires]: ...
    def finish(
        self,
        name: str,
        inputs: list[tuple[int, bool]],
        garbler: int,
        outputs: list[Wires],
        failures: list[Wires],
    ) -> Circuit: ...

class Offered:
    def terms(self) -> str: ...
    def words(self, keys: int) -> list[str]: ...
    def terms_hash(self) -> str: ...
    def admit(
        self,
        on: list[str],
        types: list[str] | None,
        further: list[int],
        give: list[str],
        *,
        unattended: bool,
        seen: bool = True,
        bounds: str | None = None,
        max_peer_keys: int | None = None,
        terms: str | None = None,
        max_cell: int | None = None,
    ) -> None: ...
    def admit_answer(
        self,
        *,
        unattended: bool,
        min_group: int | None = None,
        allow: list[tuple[str, str]] | None = None,
        result_to_owner: bool = False,
        max_peer_keys: int | None = None,
        terms: str | None = None,
    ) -> None: ...
    def answer_key(self) -> list[tuple[str, str]]: ...
    def answer(self, keys: Keys, *, first: bool = False, records: Path | None = None) -> dict[str, Any]: ...
    def decline(self) -> None: ...
    def run(
        self,
        keys: Keys,
        *,
        duplicates: str = "refuse",
        records: Path | None = None,
        max_cell: int | None = None,
        allow_line_ends: bool = False,
        rest: bool = False,
        all_rows: bool = False,
        matched_by: str | None = None,
    ) -> dict[str, Any]: ...

class Circuit:
    and_gates: int
    gates: int
    depth: int
    digest: str
    def run(self, garbler: str, evaluator: str) -> list[str]: ...

def keygen(path: Path, comment: str = "") -> tuple[str, str, str]: ...
def fingerprint(path: Path) -> str: ...
def table_columns(table: Any) -> list[str]: ...
def table_texts(table: Any, columns: list[str]) -> list[list[str]]: ...
def functions() -> list[tuple[str, int | None, str]]: ...
def intersect(
    peer: Peer,
    keys: Keys,
    *,
    result: str = "me",
    reveal: str = "rows",
    give: list[str] = ...,
    duplicates: str = "refuse",
    min_matches: int = 0,
    bounds: str | None = None,
    result_to_owner: bool = False,
    protocol: str = "auto",
    max_peer_keys: int | None = None,
    max_cell: int | None = None,
    allow_line_ends: bool = False,
    rest: bool = False,
    all_rows: bool = False,
    matched_by: str | None = None,
    progress: Told = None,
) -> dict[str, Any]: ...
def ask(
    peer: Peer,
    job: str,
    *,
    reveal: str | None = None,
    result: str | None = None,
    sql: str | None = None,
    question: tuple[str, list[tuple[str, str]]] | None = None,
    progress: Told = None,
) -> Offered: ...

class Question:
    def __init__(self, text: str, peer: Peer, side: str | None = None) -> None: ...
    @property
    def text(self) -> str: ...
    @property
    def key(self) -> list[tuple[str, str]]: ...

def link(
    peer: Peer,
    keys: Keys,
    *,
    id_column: str,
    max_peer_keys: int | None = None,
    progress: Told = None,
) -> dict[str, Any]: ...
def query(
    peer: Peer,
    keys: Keys,
    question: Question,
    *,
    result: str = "me",
    min_group: int | None = None,
    allow: list[tuple[str, str]] | None = None,
    result_to_owner: bool = False,
    first: bool = False,
    max_peer_keys: int | None = None,
    progress: Told = None,
) -> dict[str, Any]: ...
def keep(table: Any, path: Path) -> None: ...
def evaluate(
    peer: Peer,
    function: str | Circuit,
    role: str,
    rows: Any,
    *,
    columns: list[str] | None = None,
    output_to: str = "both",
    signed: bool = False,
    protocol: str = "auto",
    entry: str | None = None,
    garbler_inputs: int | None = None,
    constants: dict[str, str] = ...,
    bits: str = "usual",
    progress: Told = None,
) -> dict[str, Any]: ...
def ot(
    peer: Peer,
    role: str,
    count: int,
    *,
    kind: str = "rot",
    protocol: str | None = None,
    messages: tuple[str, int, Any] | None = None,
    choices: bytes | None = None,
    max_message: int | None = None,
    progress: Told = None,
) -> dict[str, Any]: ...
def vole(
    peer: Peer,
    role: str,
    count: int,
    *,
    field: str = "gf128",
    of: int | None = None,
    progress: Told = None,
) -> dict[str, Any]: ...
def triples(
    peer: Peer,
    count: int,
    *,
    kind: str,
    field: str | None = None,
    protocol: str | None = None,
    progress: Told = None,
) -> dict[str, Any]: ...
def nisc_keygen(
    count: int, key: Path, *, security: str = "malicious", identity: Path | None = None
) -> bytes: ...
def nisc_answer(
    public: bytes, key: Path, *, identity: Path | None = None, peer: Path | None = None
) -> bytes: ...
def nisc_ask(key: Path, choices: bytes, *, identity: Path | None = None) -> bytes: ...
def nisc_reply(
    key: Path,
    public: bytes,
    question: bytes,
    messages: tuple[str, int, Any],
    *,
    identity: Path | None = None,
    peer: Path | None = None,
) -> bytes: ...
def nisc_open(
    key: Path, choices: bytes, answer: bytes, question: bytes, reply: bytes, *, peer: Path | None = None
) -> Any: ...
def nisc_eval_ask(
    function: str | Circuit, rows: Any, key: Path, open: dict[str, Any], *, identity: Path | None = None
) -> bytes: ...
def nisc_eval_reply(
    function: str | Circuit,
    rows: Any,
    question: bytes,
    open: dict[str, Any],
    *,
    identity: Path | None = None,
    peer: Path | None = None,
) -> bytes: ...
def nisc_eval_open(
    function: str | Circuit,
    key: Path,
    reply: bytes,
    open: dict[str, Any],
    *,
    signed: bool = False,
    peer: Path | None = None,
) -> dict[str, Any]: ...
