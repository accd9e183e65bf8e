/* The names that hold most: their mean duration, times the most that there were at once (`--bottlenecks` of the report).
   One that begins as another ends is not beside it. Instants of a name that has spans count as spans of 0 ns, as in `names`. */
WITH device AS (
  SELECT upid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), span AS (
  SELECT s.category, s.name, s.ts, s.dur,
    CASE WHEN INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9') THEN 'track'
      WHEN t.utid IS NULL OR INSTR(t.name, ' (async)') > 0 OR SUBSTR(t.name, 1, 8) = 'samples ' OR (SUBSTR(t.name, 1, 6) = 'async ' AND SUBSTR(t.name, 7, 1) BETWEEN '0' AND '9') THEN 'async' ELSE 'thread' END AS row_kind
  FROM slice s
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN device d ON d.upid = COALESCE(t.upid, pt.upid)
  WHERE s.dur >= 0
), change AS (
  SELECT row_kind, category, name, ts, SUM(x) AS x, SUM(dur) AS dur, SUM(begins) AS begins
  FROM (
    SELECT row_kind, category, name, ts, 1 AS x, dur, 1 AS begins FROM span
    UNION ALL
    SELECT row_kind, category, name, ts + dur, -1, 0, 0 FROM span
  ) edge
  GROUP BY row_kind, category, name, ts
), leveled AS (
  SELECT row_kind, category, name, dur, begins, SUM(x) OVER (PARTITION BY row_kind, category, name ORDER BY ts) AS at_once
  FROM change
), figure AS (
  SELECT row_kind, category, name, SUM(begins) AS n, CAST(SUM(dur) AS DOUBLE) / SUM(begins) AS mean_ns, MAX(at_once) AS max_concurrency
  FROM leveled
  GROUP BY row_kind, category, name
  HAVING SUM(dur) > 0
)
SELECT row_kind, category, name, n, mean_ns, max_concurrency, mean_ns * max_concurrency AS score_ns
FROM figure
ORDER BY mean_ns * max_concurrency DESC, row_kind, COALESCE(category, ''), name;
