/* How busy each device was, from its first span to the end of its last. Spans that overlap count once (`device` of the report).
   A device is a process with a name like `NPU 0`, `GPU 0` or `<tracks> · <process>`. */
WITH span AS (
  SELECT t.upid, s.ts, s.ts + s.dur AS end_ts
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN process p ON p.upid = t.upid
  WHERE s.dur > 0 AND (p.name GLOB '*[NG]PU [0-9]*' OR p.name GLOB '* · *')
), after AS (
  SELECT *, MAX(end_ts) OVER (PARTITION BY upid ORDER BY ts, end_ts DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM span
)
SELECT p.pid, p.name, COUNT(*) AS slices,
  MIN(a.ts) AS from_ns,
  MAX(a.end_ts) - MIN(a.ts) AS wall_ns,
  SUM(MAX(0, a.end_ts - MAX(a.ts, COALESCE(a.covered_to_ts, a.ts)))) AS busy_ns,
  COALESCE(MAX(0, MAX(a.ts - a.covered_to_ts)), 0) AS longest_gap_ns
FROM after a
JOIN process p ON p.upid = a.upid
GROUP BY p.upid, p.pid, p.name
ORDER BY p.upid;
