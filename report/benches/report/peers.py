"""Answers three questions on a Chrome trace with another engine: peers.py duckdb|pandas TRACE.

Prints one JSON object: the number of names and their time in µs, the median E2E of the requests, and the time in which devices were busy.
"""

import json
import sys

NAMES = "SELECT name, count(*), sum(dur), quantile_cont(dur, 0.99) FROM event WHERE ph = 'X' GROUP BY name"
REQUESTS = "SELECT quantile_cont(dur, 0.5) FROM event WHERE ph = 'X' AND name LIKE 'http.%'"
# What a span adds to what those before it covered.
BUSY = """
    SELECT sum(greatest(0, ts + dur - greatest(ts, covered))) FROM (
      SELECT ts, dur, coalesce(max(ts + dur) OVER (PARTITION BY pid ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), ts) AS covered
      FROM event WHERE ph = 'X' AND pid >= 100)"""


def of_duckdb(path: str) -> dict[str, float]:
    import duckdb

    connection = duckdb.connect()
    connection.sql("SET threads = 2")
    columns = "{traceEvents: 'STRUCT(ph VARCHAR, pid BIGINT, tid BIGINT, ts DOUBLE, dur DOUBLE, name VARCHAR)[]'}"
    connection.sql(
        "CREATE TABLE event AS SELECT unnest(traceEvents, recursive := true) FROM "
        f"read_json('{path}', columns = {columns}, maximum_object_size = 2000000000)"
    )
    names = connection.sql(NAMES).fetchall()
    (median,), (busy,) = (connection.sql(question).fetchall()[0] for question in (REQUESTS, BUSY))
    return {"names": len(names), "total_us": sum(name[2] for name in names), "e2e_us": median, "busy_us": busy}


def of_pandas(path: str) -> dict[str, float]:
    import pandas

    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    keys = ["ph", "pid", "ts", "dur", "name"]
    frame = pandas.DataFrame({key: [event.get(key) for event in events] for key in keys})
    spans = frame[frame.ph == "X"].copy()
    names = spans.groupby("name").dur.agg(["count", "sum", lambda dur: dur.quantile(0.99)])
    median = spans[spans.name.str.startswith("http.")].dur.quantile(0.5)
    device = spans[spans.pid >= 100].sort_values(["pid", "ts"])
    end = device.ts + device.dur
    covered = end.groupby(device.pid).cummax().groupby(device.pid).shift().fillna(device.ts)
    busy = (end - covered.clip(lower=device.ts)).clip(lower=0).sum()
    return {"names": len(names), "total_us": names["sum"].sum(), "e2e_us": median, "busy_us": busy}


if __name__ == "__main__":
    engine, path = sys.argv[1:]
    print(json.dumps({"duckdb": of_duckdb, "pandas": of_pandas}[engine](path)))
