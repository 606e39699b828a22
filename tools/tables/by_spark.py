"""Run by a Python with PySpark: tables in one session, each as a folder of several part files.

by_spark.py PLAN FOLDER   a JSON list of {"target", "way", "seed"}; the answer is the keys of each target
"""

import datetime
import decimal
import json
import random
import sys

TEXTS = [
    "",
    "x",
    "00123",
    "NA",
    "null",
    "a,b",
    'say "hi"',
    "é",
    "日本語",
    "=1",
    " lead",
    "l1\nl2",
    "'",
    "{}",
    "-1",
]


def rows(rng, count, way):
    """Rows of a key and of what Spark has types for; the years before 1582 are days of another calendar to old readers."""
    found, is_text = [], way in ("csv", "json")
    for at in range(count):
        key = rng.choice([f"K{at}", f'k{at}, "q"', f"é{at}@x.org"])
        year = rng.choice([1, 1000, 1582, 1677, 1900, 1969, 2024, 2262, 2263, 9999])
        moment = datetime.datetime(
            year, rng.randint(1, 12), rng.randint(2, 28), rng.randrange(24), 30, 1, rng.randrange(10**6)
        )
        text = rng.choice(TEXTS)
        row = [key, rng.choice([-(2**63), 2**63 - 1, 0, rng.randrange(10**6)]), rng.choice([0.1, -0.0, 1e300, float("nan"), 2.5]),
               decimal.Decimal(rng.randrange(10**9)).scaleb(-2), moment.date(), moment, rng.random() < 0.5, text]  # fmt: skip
        if way == "csv":
            row[2] = rng.choice([0.1, -0.5, 2.5])
        row = [
            None if place in range(1, 8) and rng.random() < 0.2 else cell for place, cell in enumerate(row)
        ]
        found.append([*row, [1, None, 3], {"a": at}] if not is_text else row)
    return found


def write(spark, one):
    from pyspark.sql import types as t

    way = one["way"]
    is_text = way in ("csv", "json")
    rng = random.Random(one["seed"])
    fields = [t.StructField("k", t.StringType()), t.StructField("n", t.LongType()), t.StructField("f", t.DoubleType()),
              t.StructField("d", t.DecimalType(12, 2)), t.StructField("day", t.DateType()),
              t.StructField("at", t.TimestampType()), t.StructField("b", t.BooleanType()),
              t.StructField("text", t.StringType())]  # fmt: skip
    if not is_text:
        fields += [t.StructField("l", t.ArrayType(t.IntegerType())),
                   t.StructField("m", t.StructType([t.StructField("a", t.IntegerType())]))]  # fmt: skip
    drawn = rows(rng, rng.choice([1, 9, 60]), way)
    frame = spark.createDataFrame(drawn, t.StructType(fields), verifySchema=False).repartition(3, "k")
    kind = {"96 bits": "INT96", "micros": "TIMESTAMP_MICROS", "millis": "TIMESTAMP_MILLIS"}
    writer = frame.write
    if way in kind:
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind[way])
        # Snappy and zstd unpack libraries of their own, which not every machine lets them load.
        writer.option("compression", rng.choice(["gzip", "none"])).parquet(one["target"])
    elif way == "csv":
        writer.option("header", True).option("escape", '"').option("emptyValue", "").option(
            "compression", rng.choice(["none", "gzip"])
        ).csv(one["target"])
    else:
        writer.option("ignoreNullFields", False).json(one["target"])
    return [row[0] for row in drawn if rng.random() < 0.5]


def main():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC", "spark.sql.warehouse.dir": sys.argv[2], "spark.local.dir": sys.argv[2],
        "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "3", "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.adaptive.enabled": "false",
    }.items():  # fmt: skip
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    print(json.dumps({one["target"]: write(spark, one) for one in plan}))
    spark.stop()


if __name__ == "__main__":
    main()
