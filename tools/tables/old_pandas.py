"""Run by a Python with pandas 1.5 and pyarrow 10: writes tables, which come as Arrow files, as that pandas does.

old_pandas.py PLAN        a JSON list of {"source", "target", "way"}; the answer is the list of targets that it wrote
"""

import json
import random
import sys


def write(frame, way, target):
    rng = random.Random(target)
    if way == "parquet":
        frame.to_parquet(target, engine="pyarrow", compression=rng.choice([None, "snappy", "gzip", "zstd"]))
    elif way == "spark":
        # Names as Spark wants them and timestamps of 96 bits.
        frame.to_parquet(target, engine="pyarrow", flavor="spark")
    elif way == "version 1":
        frame.to_parquet(
            target, engine="pyarrow", version="1.0", coerce_timestamps="ms", allow_truncated_timestamps=True
        )
    elif way == "fastparquet":
        frame.to_parquet(target, engine="fastparquet", compression=rng.choice([None, "SNAPPY", "GZIP"]))
    elif way == "feather":
        frame.to_feather(target, compression=rng.choice(["uncompressed", "lz4", "zstd"]))
    elif way == "csv":
        frame.to_csv(
            target, index=False, lineterminator=rng.choice(["\n", "\r\n"]), quoting=rng.choice([0, 1])
        )
    else:
        frame.to_excel(target, index=False, engine=rng.choice(["openpyxl", "xlsxwriter"]))


def main():
    from pyarrow import ipc

    written, errors = [], []
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    for one in plan:
        try:
            frame = ipc.open_file(one["source"]).read_all().to_pandas()
            write(frame, one["way"], one["target"])
            written.append(one["target"])
        except Exception as error:  # noqa: BLE001
            errors.append(f"{one['way']}: {type(error).__name__}: {str(error)[:100]}")
    print(json.dumps({"written": written, "errors": errors}))


if __name__ == "__main__":
    main()
