/* For how long so many spans of its threads were at work at once in each process, those that lie in no other one. */
WITH span AS (
  SELECT t.upid, s.ts, s.ts + s.dur AS end_ts,
    MAX(s.ts + s.dur) OVER (PARTITION BY s.track_id ORDER BY s.ts, s.dur DESC, s.id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  WHERE s.dur > 0
), outermost AS (
  -- By time and not by depth: what lies in a span without an end lies in none that counts.
  SELECT upid, ts, end_ts
  FROM span
  WHERE covered_to_ts IS NULL OR covered_to_ts < end_ts
), change AS (
  SELECT upid, ts, SUM(x) AS x
  FROM (
    SELECT upid, ts, 1 AS x FROM outermost
    UNION ALL
    SELECT upid, end_ts, -1 FROM outermost
  ) edge
  GROUP BY upid, ts
), lasting AS (
  SELECT upid, SUM(x) OVER (PARTITION BY upid ORDER BY ts) AS n, LEAD(ts) OVER (PARTITION BY upid ORDER BY ts) - ts AS ns
  FROM change
)
SELECT p.pid, p.name, l.n AS spans, SUM(l.ns) AS ns
FROM lasting l
JOIN process p ON p.upid = l.upid
WHERE l.ns > 0
GROUP BY p.upid, p.pid, p.name, l.n
ORDER BY p.upid, l.n;
