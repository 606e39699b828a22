"""Which rows do two clusters share: an intersection on Apache Spark, through one gateway a party.

>>> from tacit import spark                                     # doctest: +SKIP
>>> shared = spark.intersect(                                   # doctest: +SKIP
...     customers, on="email", job="spring", gateway="gateway.internal:7701",
...     token="/etc/tacit/gateway.token", results="s3a://ours/spring",
... )

Scheduling, shuffling, spilling and retries are Spark's. Ours is what runs in a task: keys become digests, and each
bucket of them is intersected with the peer's by VOLE-PSI. Needs PySpark 4.1 or later on the driver, and pyarrow and
this package on every worker.
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from . import _tacit, errors
from .errors import Error, InputError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Run", "intersect", "run"]

_log = logging.getLogger("tacit")

#: The column that holds what stands for a row's key while a job runs.
_DIGEST = "_tacit_digest"
#: Spark's number for a function of Arrow arrays that gives one: without it Spark would ask the annotations, which a
#: worker cannot look up.
_SCALAR: Final = 250
#: The column that says that a row was found, while rows are put together.
_MARK = "_tacit_mark"
#: The place of a digest's bucket among those that are run.
_SLOT = "_tacit_slot"


@dataclass(frozen=True)
class Run:
    """What an intersection on Spark gave."""

    #: Our rows whose keys the peer has too, read from the results; ``None`` if only the peer gets a result.
    frame: DataFrame | None
    #: Our distinct keys.
    own_keys: int
    #: The peer's, as announced.
    peer_keys: int
    #: How many of ours the peer has too; ``None`` as above.
    matches: int | None
    #: How many buckets the keys were thrown into.
    buckets: int
    #: How often one was begun again, after a task or a way was lost.
    repeated: int
    #: What the other side learned of us, in words.
    peer_learned: str
    #: Keys that the peer had too and whose columns did not open, which an honest peer's do. They count as no
    #: matches, and the peer must not learn how many there are.
    unopened: int
    #: With ``rest=True`` our other rows: those whose key the peer does not have, and those without.
    rest: DataFrame | None = None
    #: With ``all_rows=True`` all of our rows, with a column ``matched`` and the peer's columns, null where there is no
    #: match.
    all_rows: DataFrame | None = None


def intersect(
    df: DataFrame, on: str | Sequence[str] | Mapping[str, str], **settings: Any
) -> DataFrame | None:
    """The rows of `df` whose keys the peer has too; ``None`` if only the peer gets a result.

    The parameters are those of :func:`run`. The frame reads what was written: an action on it, however often,
    runs nothing with the peer again.
    """
    return run(df, on, **settings).frame


def run(
    df: DataFrame,
    on: str | Sequence[str] | Mapping[str, str],
    *,
    job: str,
    gateway: str,
    token: str | os.PathLike[str],
    results: str,
    result: Literal["me", "peer", "both"] = "me",
    reveal: str = "rows",
    give: str | Sequence[str] = (),
    duplicates: Literal["refuse", "all"] = "refuse",
    security: Literal["malicious", "semi-honest"] = "malicious",
    buckets: int | None = None,
    null: str | Sequence[str] = (),
    rest: bool = False,
    all_rows: bool = False,
    max_peer_keys: int | None = None,
    max_cell: int | None = None,
    memory: int | None = None,
    nfc: bool = True,
    trim: bool = True,
    case_fold: bool = True,
    base_ot: str | None = None,
    timeout: float = 600.0,
) -> Run:
    """Intersects the keys of `df` with the peer's, who does the same on a cluster of its own.

    Parameters
    ----------
    on:
        The column, or the columns, that make the key; with types as in ``{"mail": "email", "tel": "phone:NL"}``.
    job:
        The run's name; the peer says the same. One that was begun goes on, one that has ended is not run again.
    gateway:
        Where our own gateway (``tacit gateway``) is found, by the driver and by every worker.
    token:
        The file ``token`` in the gateway's state folder, or a copy of it: on the driver alone.
    results:
        A folder that driver and workers can write, such as ``hdfs://…`` or ``s3a://…``: keys' digests, the
        digests that matched, and the matching rows are written there, once.
    result:
        Who gets the rows; the peer says the converse.
    reveal:
        ``"rows"``, or ``"payload:COL,…"``: these columns of the peer's rows behind one's own, as text and named
        ``peer_COL``, a row of ours once for each of the peer's. Who only gives says ``"payload"``. Numbers over
        all common keys are refused, with the reason.
    give:
        The columns that the peer may ask for. Of all rows with a key it learns the bytes of a column's longest
        cell, to the next multiple of eight, and the most rows of a key.
    duplicates:
        ``"all"`` gives all rows where several have one key; ``"refuse"`` makes an error of it.
    security:
        ``"malicious"`` (a peer that cheats is caught) or ``"semi-honest"``.
    buckets:
        At least so many buckets, a power of two; the larger of both sides' wishes counts. Some 250,000 keys each
        unless said, and enough of them to keep the cluster busy.
    null:
        Words for nothing, such as ``["NULL", "n/a"]``: a cell of the key, or one that we give, counts as empty if it
        is one of them.
    rest, all_rows:
        Writes our other rows, or all of them with a column ``matched``, beside the matching ones too.
    max_peer_keys:
        The most keys that the peer may announce; with more the job does not begin.
    max_cell, memory:
        The most bytes that the peer's columns may take for each of its keys (65,536 unless said, 1,048,576 at most),
        and for all that may match in a bucket.
    timeout:
        Seconds in which nothing may move before the job ends in an error.
    """
    spark = df.sparkSession
    types = list(on.values()) if isinstance(on, Mapping) else None
    columns = [on] if isinstance(on, str) else list(on)
    for name in columns:
        if name not in df.columns:
            raise UsageError(f"there is no column {name}; the frame has {', '.join(df.columns)}")
    if len(set(df.columns)) != len(df.columns) or _DIGEST in df.columns:
        raise UsageError(f"the frame's columns must have different names, and none of them {_DIGEST}")
    nulls = [null] if isinstance(null, str) else list(null)
    key = _tacit.Key(columns, types=types, nfc=nfc, trim=trim, case_fold=case_fold, nulls=nulls)
    give = [give] if isinstance(give, str) else list(give)
    if missing := [name for name in give if name not in df.columns]:
        raise UsageError(f"give: there is no column {', '.join(missing)} in the frame")
    if duplicates not in ("refuse", "all"):
        raise UsageError('duplicates is "refuse" or "all": a table on a cluster has no first row')
    asked = (
        [name for name in reveal.partition(":")[2].split(",") if name] if reveal.startswith("payload") else []
    )
    theirs = [f"peer_{name}" for name in asked]
    if all_rows and "matched" in df.columns:
        raise UsageError("all_rows: the frame has a column matched already: rename it")
    if taken := [name for name in theirs if name in df.columns]:
        raise UsageError(f"the frame has a column {', '.join(taken)}, where the peer's goes: rename it")
    places = {name: f"{results.rstrip('/')}/{name}" for name in ("keys", "rows", "rest", "all_rows")}
    for name in ("rows", "rest", "all_rows"):
        if _is_there(spark, places[name]):
            raise UsageError(f"results: there are rows in {places[name]} already; name another folder")
    with _one_line():
        keyed = df.withColumn(
            _DIGEST,
            _digest_of(columns, types, nfc, trim, case_fold, nulls)(*[df[f"`{name}`"] for name in columns]),
        )
        # Written, so that whatever runs again reads the same.
        cells = [
            _without(df[f"`{name}`"].cast("string"), nulls).alias(f"cell_{at}")
            for at, name in enumerate(give)
        ]
        keys = keyed.where(keyed[_DIGEST].isNotNull()).select(_DIGEST, *cells)
        keys = keys if cells else keys.distinct()
        keys = _written(keys, places["keys"], compression="none")
        own, most, widths = _measured(keys, len(cells))
        if most > 1 and duplicates == "refuse":
            raise InputError(
                'several rows have the same key, and columns are given: keep one row of each, or set duplicates="all"'
            )
        _log.info("job %s: %d keys are written", job, own)
        plan = _tacit.Plan.open(
            gateway,
            os.fspath(token),
            job,
            key,
            own,
            buckets=buckets if buckets is not None else _buckets(spark, own),
            result=result,
            reveal=reveal,
            give=list(zip(give, widths, strict=True)),
            rows=most,
            security=security,
            base_ot=base_ot,
            patience=timeout,
            max_peer_keys=max_peer_keys,
            max_cell=max_cell,
            memory=memory,
        )
        _log.info("job %s: %d keys here, %d there, %d buckets", job, own, plan.peer, plan.buckets)
        found, unopened = _rounds(spark, keys, plan, gateway, results.rstrip("/"), theirs)
        common = 0
        if found is not None:
            common = (found.select(_DIGEST).distinct() if theirs else found).count()
        _log.info("job %s: all buckets have ended", job)
        frame = None
        if result != "peer":
            if found is not None:
                rows = keyed.join(found, _DIGEST, "inner" if theirs else "left_semi").drop(_DIGEST)
            else:
                rows = df.limit(0)
                for name in theirs:
                    rows = rows.withColumn(name, df[f"`{columns[0]}`"].cast("string"))
            names = [f"`{name}`" for name in [*df.columns, *theirs]]
            frame = _written(rows.select(*names), places["rows"], mode="errorifexists")
            _log.info("job %s: the rows are written", job)
        others: DataFrame | None = None
        every: DataFrame | None = None
        if result != "peer" and rest:
            others = _written(_rest(keyed, found, df.columns), places["rest"], mode="errorifexists")
        if result != "peer" and all_rows:
            every = _all_rows(keyed, found, df.columns, theirs)
            every = _written(every, places["all_rows"], mode="errorifexists")
        return Run(frame=frame, unopened=unopened, rest=others, all_rows=every, **plan.ran(gateway, common))


def _rest(keyed: DataFrame, found: DataFrame | None, columns: list[str]) -> DataFrame:
    """The rows whose digest was not found, those without one among them."""
    rows = keyed if found is None else keyed.join(found, _DIGEST, "left_anti")
    return rows.select(*[f"`{name}`" for name in columns])


def _all_rows(keyed: DataFrame, found: DataFrame | None, columns: list[str], theirs: list[str]) -> DataFrame:
    """All rows, with whether each matches, and the peer's columns."""
    from pyspark.sql import functions as f

    names = [f"`{name}`" for name in columns]
    if found is None:
        nothing = [f.lit(None).cast("string").alias(name) for name in theirs]
        return keyed.select(*names, f.lit(False).alias("matched"), *nothing)
    marked = found.withColumn(_MARK, f.lit(True))
    rows = keyed.join(marked if theirs else marked.distinct(), _DIGEST, "left")
    matched = f.coalesce(f.col(_MARK), f.lit(False)).alias("matched")
    return rows.select(*names, matched, *[f"`{name}`" for name in theirs])


def _without(cell: Column, nulls: list[str]) -> Column:
    """A column of text, with nothing in place of words for nothing."""
    from pyspark.sql import functions as f

    if not nulls:
        return cell
    # As the keys' cells: without white space at their ends, of Unicode's kinds.
    word = f.regexp_replace(cell, r"(?U)^\s+|\s+$", "")
    return f.when(word.isin(nulls), f.lit(None)).otherwise(cell)


def _measured(keys: DataFrame, cells: int) -> tuple[int, int, list[int]]:
    """How many keys there are, the most rows of one, and the bytes of each column's longest cell."""
    from pyspark.sql import functions as f

    if not cells:
        return keys.count(), 0, []
    names = [f"cell_{at}" for at in range(cells)]
    each = keys.groupBy(_DIGEST).agg(
        f.count("*").alias("rows"), *[f.max(f.octet_length(name)).alias(name) for name in names]
    )
    first = each.agg(f.count("*"), f.max("rows"), *[f.max(name) for name in names]).first()
    assert first is not None
    return first[0], first[1] or 0, [width or 0 for width in first[2:]]


def _rounds(
    spark: SparkSession, keys: DataFrame, plan: _tacit.Plan, gateway: str, results: str, theirs: list[str]
) -> tuple[DataFrame | None, int]:
    """Runs all buckets; the digests that matched with the peer's columns, and how many did not open. A task that
    gave up its slot for an earlier bucket comes again in the next round."""
    if plan.own == 0 or plan.peer == 0:
        return None, 0
    todo = list(range(plan.buckets))
    written: list[str] = []
    unopened = 0
    while todo:
        name = f"{results}/round-{len(written)}"
        ran = _written(_round(spark, keys, plan, gateway, todo, theirs), name, compression="none")
        written.append(name)
        _log.info("round %d ran %d buckets", len(written), len(todo))
        ended = ran.where(f"{_DIGEST} is null").select("bucket", "unopened").collect()
        done = {number for number, _ in ended}
        unopened += sum(count for _, count in ended)
        todo = [number for number in todo if number not in done]
    found = spark.read.schema(ran.schema).parquet(*written)
    return found.where(f"{_DIGEST} is not null").select(_DIGEST, *[f"`{name}`" for name in theirs]), unopened


def _round(
    spark: SparkSession,
    keys: DataFrame,
    plan: _tacit.Plan,
    gateway: str,
    todo: list[int],
    theirs: list[str],
) -> DataFrame:
    """One task a bucket of `todo`, in ascending order: rows `(bucket, unopened, digest, theirs…)`, with a null digest
    for each bucket that is done."""
    from pyspark.sql import functions as f

    thrown = keys.select(_slot_of(bytes(plan.to_bytes()), todo)(keys[_DIGEST]).alias(_SLOT), *keys.columns)
    # Each bucket has a row, even one without a key: its task must come, as the peer's does.
    marks = spark.range(len(todo)).select(
        f.col("id").cast("int").alias(_SLOT),
        *[f.lit(None).cast(field.dataType).alias(field.name) for field in keys.schema.fields],
    )
    rows = thrown.where(thrown[_SLOT].isNotNull()).union(marks)
    return rows.repartitionById(len(todo), f.col(_SLOT)).mapInArrow(
        _bucket(bytes(plan.to_bytes()), gateway, todo, theirs),
        ", ".join(
            ["bucket int", "unopened bigint", f"{_DIGEST} binary", *[f"`{name}` string" for name in theirs]]
        ),
    )


# What runs in tasks. Closures hold plain values alone, so that Spark can ship them.


def _of_columns(function: Callable[..., Any], returns: str) -> Callable[..., Column]:
    from pyspark.sql.pandas.functions import arrow_udf

    with warnings.catch_warnings():
        # Spark would rather have annotations.
        warnings.simplefilter("ignore", UserWarning)
        made: Callable[..., Column] = arrow_udf(function, returns, _SCALAR)
    return made


def _digest_of(
    columns: list[str],
    types: list[str] | None,
    nfc: bool,
    trim: bool,
    case_fold: bool,
    nulls: list[str],
) -> Callable[..., Column]:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    def digest(*arrays: pa.Array) -> pa.Array:
        from tacit import _tacit

        key = _tacit.Key(columns, types=types, nfc=nfc, trim=trim, case_fold=case_fold, nulls=nulls)
        return pa.array(key.digests(pa.record_batch(list(arrays), names=columns)))

    return _of_columns(digest, "binary")


def _slot_of(plan: bytes, todo: list[int]) -> Callable[..., Column]:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    def slot(digests: pa.Array) -> pa.Array:
        from tacit import _tacit

        return pa.array(_tacit.Plan.from_bytes(plan).slots(digests, todo))

    return _of_columns(slot, "int")


def _bucket(
    plan: bytes, gateway: str, todo: list[int], theirs: list[str]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def bucket(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]

        from tacit import _tacit
        from tacit.errors import Error

        slots: set[int] = set()
        rows = []
        for batch in batches:
            if batch.num_rows:
                ends = pc.min_max(batch.column(0)).as_py()
                slots.update((ends["min"], ends["max"]))
                # The mark of the bucket is no row.
                rows.append(batch.filter(pc.is_valid(batch.column(1))).select(range(1, batch.num_columns)))
        if not slots:
            return
        if len(slots) > 1:
            raise Error("Spark gave one task several buckets; turn its merging of partitions off")
        number = todo[slots.pop()]
        ran = _tacit.Plan.from_bytes(plan).run(gateway, number, rows)
        if ran is None:
            return
        matched, columns, unopened = ran
        # The last row says that the bucket is done.
        found = [
            pa.concat_arrays([column, pa.nulls(1, column.type)])
            for column in [
                pa.array(matched).cast(pa.binary()),
                *[pa.array(c).cast(pa.string()) for c in columns],
            ]
        ]
        found += [pa.nulls(len(found[0]), pa.string())] * (len(theirs) + 1 - len(found))
        numbers = pa.array([number] * len(found[0]), pa.int32())
        counts = pa.array([unopened] * len(found[0]), pa.int64())
        yield pa.record_batch([numbers, counts, *found], names=["bucket", "unopened", _DIGEST, *theirs])

    return bucket


def _buckets(spark: SparkSession, own: int) -> int:
    """Some for each task that the cluster runs at once, and none beyond some 250,000 keys."""
    from pyspark.errors import PySparkException

    try:
        at_once = spark.sparkContext.defaultParallelism
    except PySparkException:  # A session of Spark Connect, which does not say.
        at_once = 16
    return _tacit.buckets_for(own, at_once)


def _written(frame: DataFrame, path: str, mode: str = "overwrite", **options: str) -> DataFrame:
    """Writes a frame, and reads it; what its columns are need not be found out of the files."""
    frame.write.mode(mode).parquet(path, **options)
    return frame.sparkSession.read.schema(frame.schema).parquet(path)


def _is_there(spark: SparkSession, path: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        spark.read.parquet(path)
    except AnalysisException:
        return False
    return True


class _one_line:
    """Makes one of our errors of what Spark wraps around one that a task raised."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, Error):
            _raise(error)


#: Our errors' names as tracebacks of tasks show them.
_OURS = re.compile(r"tacit\.errors\.(\w+): (.+)")


def _raise(error: Exception) -> NoReturn:
    found = _OURS.search(str(error))
    if found is None:
        raise error
    kind = getattr(errors, found[1], Error)
    raise (kind if isinstance(kind, type) and issubclass(kind, Error) else InputError)(
        found[2].strip()
    ) from None
