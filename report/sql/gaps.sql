/* The ten longest times in which nothing ran on each device. The first ten rows are `long_gaps` of the report, which also has their causes.
   A device is a process with a name like `NPU 0`, `GPU 0` or `<tracks> · <process>`. */
WITH span AS (
  SELECT t.upid, s.ts, s.ts + s.dur AS end_ts, s.name, s.track_id
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN process p ON p.upid = t.upid
  WHERE s.dur > 0 AND (p.name GLOB '*[NG]PU [0-9]*' OR p.name GLOB '* · *')
), after AS (
  SELECT *, MAX(end_ts) OVER (PARTITION BY upid ORDER BY ts, end_ts DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM span
), gap AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY upid ORDER BY ts - covered_to_ts DESC, ts) AS nth
  FROM after
  WHERE ts > covered_to_ts
)
SELECT p.pid, p.name, g.covered_to_ts AS ts, g.ts - g.covered_to_ts AS dur, g.name AS ended_by, g.track_id
FROM gap g
JOIN process p ON p.upid = g.upid
WHERE g.nth <= 10
ORDER BY dur DESC, ts, p.upid;
