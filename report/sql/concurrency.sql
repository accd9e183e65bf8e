/* For how long so many spans of its threads were at work at once in each process, those that lie in no other one. */
WITH change AS (
  SELECT upid, ts, SUM(x) AS x
  FROM (
    SELECT t.upid, s.ts, 1 AS x
    FROM slice s JOIN thread_track tt ON tt.id = s.track_id JOIN thread t ON t.utid = tt.utid WHERE s.depth = 0 AND s.dur > 0
    UNION ALL
    SELECT t.upid, s.ts + s.dur, -1
    FROM slice s JOIN thread_track tt ON tt.id = s.track_id JOIN thread t ON t.utid = tt.utid WHERE s.depth = 0 AND s.dur > 0
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
