/* What was in the ten longest steps of workers: the names on their row with the most time of their own (`inside` of the report's `slow_steps`). */
WITH device AS (
  SELECT upid, pid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), call AS (
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
), slow AS (
  SELECT id AS step_id, upid, pid, process_name, ts AS step_ts, dur AS step_dur, track_id
  FROM step
  WHERE covered_to_ts IS NULL OR covered_to_ts < ts + dur
  ORDER BY dur DESC, ts, upid
  LIMIT 10
), inside AS (
  SELECT w.step_id, w.upid, w.pid, w.process_name, w.step_ts, w.step_dur, s.id, s.parent_id, s.category, s.name, s.dur
  FROM slow w
  JOIN slice s ON s.track_id = w.track_id AND s.ts >= w.step_ts AND s.ts + s.dur <= w.step_ts + w.step_dur
  WHERE s.dur > 0
), child AS (
  SELECT step_id, parent_id, SUM(dur) AS ns
  FROM inside
  GROUP BY step_id, parent_id
), part AS (
  SELECT i.step_id, i.upid, i.pid, i.process_name, i.step_ts, i.step_dur, i.category, i.name, COUNT(*) AS n, SUM(i.dur - COALESCE(c.ns, 0)) AS tsub_ns
  FROM inside i
  LEFT JOIN child c ON c.step_id = i.step_id AND c.parent_id = i.id
  GROUP BY i.step_id, i.upid, i.pid, i.process_name, i.step_ts, i.step_dur, i.category, i.name
), ordered AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY step_id ORDER BY tsub_ns DESC, name, COALESCE(category, '')) AS nth
  FROM part
)
SELECT pid, process_name AS process, step_ts AS ts, step_dur AS dur, name, n, tsub_ns
FROM ordered
WHERE nth <= 5
ORDER BY step_dur DESC, step_ts, upid, nth;
