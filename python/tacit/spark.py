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
    security: Literal["malicious", "semi-honest"] = "malicious",
    buckets: int | None = None,
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
        ``"rows"``. Columns of the peer's and numbers over all common keys are refused, with the reason.
    security:
        ``"malicious"`` (a peer that cheats is caught) or ``"semi-honest"``.
    buckets:
        At least so many buckets, a power of two; the larger of both sides' wishes counts. Some 250,000 keys each
        unless said, and enough of them to keep the cluster busy.
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
    key = _tacit.Key(columns, types=types, nfc=nfc, trim=trim, case_fold=case_fold)
    places = {name: f"{results.rstrip('/')}/{name}" for name in ("keys", "rows")}
    if _is_there(spark, places["rows"]):
        raise UsageError(f"results: there are rows in {places['rows']} already; name another folder")
    with _one_line():
        keyed = df.withColumn(
            _DIGEST, _digest_of(columns, types, nfc, trim, case_fold)(*[df[f"`{name}`"] for name in columns])
        )
        # Written, so that whatever runs again reads the same.
        keys = keyed.select(_DIGEST).where(keyed[_DIGEST].isNotNull()).distinct()
        keys.write.mode("overwrite").parquet(places["keys"], compression="none")
        keys = spark.read.parquet(places["keys"])
        own = keys.count()
        plan = _tacit.Plan.open(
            gateway,
            os.fspath(token),
            job,
            key,
            own,
            buckets=buckets if buckets is not None else _buckets(spark, own),
            result=result,
            reveal=reveal,
            security=security,
            base_ot=base_ot,
            patience=timeout,
        )
        _log.info("job %s: %d keys here, %d there, %d buckets", job, own, plan.peer, plan.buckets)
        matches = _rounds(spark, keys, plan, gateway, results.rstrip("/"))
        common = matches.count() if matches is not None else 0
        frame = None
        if result != "peer":
            rows = df.limit(0) if matches is None else keyed.join(matches, _DIGEST, "left_semi").drop(_DIGEST)
            rows.select(*[f"`{name}`" for name in df.columns]).write.parquet(places["rows"])
            frame = spark.read.parquet(places["rows"])
        return Run(frame=frame, **plan.ran(gateway, common))


def _rounds(
    spark: SparkSession, keys: DataFrame, plan: _tacit.Plan, gateway: str, results: str
) -> DataFrame | None:
    """Runs all buckets; the digests that matched. A task that gave up its slot for an earlier bucket comes again in
    the next round."""
    if plan.own == 0 or plan.peer == 0:
        return None
    todo = list(range(plan.buckets))
    written: list[str] = []
    while todo:
        name = f"{results}/round-{len(written)}"
        _round(spark, keys, plan, gateway, todo).write.mode("overwrite").parquet(name, compression="none")
        written.append(name)
        done = {row[0] for row in spark.read.parquet(name).where(f"{_DIGEST} is null").collect()}
        todo = [number for number in todo if number not in done]
    found = spark.read.parquet(*written)
    return found.where(f"{_DIGEST} is not null").select(_DIGEST)


def _round(
    spark: SparkSession, keys: DataFrame, plan: _tacit.Plan, gateway: str, todo: list[int]
) -> DataFrame:
    """One task a bucket of `todo`, in ascending order: rows `(bucket, digest)`, with a null digest for each bucket
    that is done."""
    from pyspark.sql import functions as f

    thrown = keys.select(_slot_of(bytes(plan.to_bytes()), todo)(keys[_DIGEST]).alias(_SLOT), keys[_DIGEST])
    # Each bucket has a row, even one without a key: its task must come, as the peer's does.
    marks = spark.range(len(todo)).select(
        f.col("id").cast("int").alias(_SLOT), f.lit(None).cast("binary").alias(_DIGEST)
    )
    rows = thrown.where(thrown[_SLOT].isNotNull()).union(marks)
    return rows.repartitionById(len(todo), f.col(_SLOT)).mapInArrow(
        _bucket(bytes(plan.to_bytes()), gateway, todo), f"bucket int, {_DIGEST} binary"
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
    columns: list[str], types: list[str] | None, nfc: bool, trim: bool, case_fold: bool
) -> Callable[..., Column]:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    def digest(*arrays: pa.Array) -> pa.Array:
        from tacit import _tacit

        key = _tacit.Key(columns, types=types, nfc=nfc, trim=trim, case_fold=case_fold)
        return pa.array(key.digests(pa.record_batch(list(arrays), names=columns)))

    return _of_columns(digest, "binary")


def _slot_of(plan: bytes, todo: list[int]) -> Callable[..., Column]:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

    def slot(digests: pa.Array) -> pa.Array:
        from tacit import _tacit

        return pa.array(_tacit.Plan.from_bytes(plan).slots(digests, todo))

    return _of_columns(slot, "int")


def _bucket(plan: bytes, gateway: str, todo: list[int]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def bucket(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.compute as pc  # type: ignore[import-untyped, unused-ignore]

        from tacit import _tacit
        from tacit.errors import Error

        slots: set[int] = set()
        digests = []
        for batch in batches:
            if batch.num_rows:
                ends = pc.min_max(batch.column(0)).as_py()
                slots.update((ends["min"], ends["max"]))
                digests.append(batch.column(1))
        if not slots:
            return
        if len(slots) > 1:
            raise Error("Spark gave one task several buckets; turn its merging of partitions off")
        number = todo[slots.pop()]
        matched = _tacit.Plan.from_bytes(plan).run(gateway, number, digests)
        if matched is None:
            return
        found = pa.array(matched)
        found = pa.concat_arrays([found.cast(pa.binary()), pa.nulls(1, pa.binary())])
        numbers = pa.array([number] * len(found), pa.int32())
        yield pa.record_batch([numbers, found], names=["bucket", _DIGEST])

    return bucket


def _buckets(spark: SparkSession, own: int) -> int:
    """Some for each task that the cluster runs at once, and none beyond some 250,000 keys."""
    from pyspark.errors import PySparkException

    try:
        at_once = spark.sparkContext.defaultParallelism
    except PySparkException:  # A session of Spark Connect, which does not say.
        at_once = 16
    return _tacit.buckets_for(own, at_once)


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
