/* The ten longest steps of workers (`slow_steps` of the report). A step that lies in another one of its process is the same step.
   `executor.execute_model` is a call of the engine and no step. */
WITH device AS (
  SELECT upid, pid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), call AS (
  -- The dot before each name stands for what is before its last part.
  SELECT id, ts, dur, track_id, name, '.' || REPLACE(REPLACE(name, ': ', '.'), ':', '.') AS dotted
  FROM slice
  WHERE dur > 0 AND (name LIKE '%execute%' OR name LIKE '%run%batch')
), step AS (
  SELECT c.id, t.upid, d.pid, d.name AS process_name, c.name, c.ts, c.dur, c.track_id,
    MAX(c.ts + c.dur) OVER (PARTITION BY t.upid ORDER BY c.ts, c.dur DESC, c.id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM call c
  JOIN thread_track tt ON tt.id = c.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN device d ON d.upid = t.upid
  WHERE (SUBSTR(c.dotted, LENGTH(c.dotted) - 13) = '.execute_model' OR SUBSTR(c.dotted, LENGTH(c.dotted) - 12) = '.execute_step'
      OR SUBSTR(c.dotted, LENGTH(c.dotted) - 9) = '.run_batch')
    AND c.dotted <> '.executor.execute_model'
    AND INSTR(COALESCE(t.name, ''), ' (async)') = 0 AND SUBSTR(COALESCE(t.name, ''), 1, 8) <> 'samples '
    AND NOT (SUBSTR(COALESCE(t.name, ''), 1, 6) = 'async ' AND SUBSTR(COALESCE(t.name, ''), 7, 1) BETWEEN '0' AND '9')
    AND NOT (INSTR(COALESCE(d.name, ''), ' · ') > 0
      OR (INSTR(COALESCE(d.kind, ''), 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9'))
)
SELECT pid, process_name AS process, name, ts, dur, track_id, id AS slice_id
FROM step
WHERE covered_to_ts IS NULL OR covered_to_ts < ts + dur
ORDER BY dur DESC, ts, upid
LIMIT 10;
