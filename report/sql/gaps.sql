/* The ten longest times in which nothing ran on each device. The first ten rows are `long_gaps` of the report, which also has their causes.
   A device is a process with a name like `NPU 0`, `GPU 0` or `<tracks> · <process>`. */
WITH device AS (
  SELECT upid, pid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), span AS (
  SELECT d.upid, d.pid, d.name, s.ts, s.ts + s.dur AS end_ts, s.name AS span_name, s.track_id
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN device d ON d.upid = t.upid
  WHERE s.dur > 0
    AND (INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9'))
), earlier AS (
  SELECT upid, pid, name, ts, span_name, track_id,
    MAX(end_ts) OVER (PARTITION BY upid ORDER BY ts, end_ts DESC, span_name
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM span
), gap AS (
  SELECT upid, pid, name, covered_to_ts AS from_ts, ts - covered_to_ts AS ns, span_name, track_id,
    ROW_NUMBER() OVER (PARTITION BY upid ORDER BY ts - covered_to_ts DESC, ts) AS nth
  FROM earlier
  WHERE ts > covered_to_ts
)
SELECT pid, name, from_ts AS ts, ns AS dur, span_name AS ended_by, track_id
FROM gap
WHERE nth <= 10
ORDER BY ns DESC, from_ts, upid;
