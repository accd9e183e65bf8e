/* The ten longest steps of workers (`slow_steps` of the report). A step that lies in another one of its process is the same step.
   `executor.execute_model` is a call of the engine and no step. */
WITH step AS (
  SELECT s.id, t.upid, s.name, s.ts, s.dur, s.track_id,
    MAX(s.ts + s.dur) OVER (PARTITION BY t.upid ORDER BY s.ts, s.dur DESC, s.id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN process p ON p.upid = t.upid
  WHERE s.dur > 0
    AND (s.name IN ('execute_model', 'execute_step', 'run_batch')
      OR s.name GLOB '*[.:]execute_model' OR s.name GLOB '*[.:]execute_step' OR s.name GLOB '*[.:]run_batch'
      OR s.name GLOB '*: execute_model' OR s.name GLOB '*: execute_step' OR s.name GLOB '*: run_batch')
    AND s.name NOT IN ('executor.execute_model', 'executor:execute_model', 'executor: execute_model')
    AND COALESCE(t.name, '') NOT GLOB 'async [0-9]*'
    AND COALESCE(p.name, '') NOT GLOB '*[NG]PU [0-9]*' AND COALESCE(p.name, '') NOT GLOB '* · *'
)
SELECT p.pid, p.name AS process, s.name, s.ts, s.dur, s.track_id, s.id AS slice_id
FROM step s
JOIN process p ON p.upid = s.upid
WHERE s.covered_to_ts IS NULL OR s.covered_to_ts < s.ts + s.dur
ORDER BY s.dur DESC, s.ts, p.upid
LIMIT 10;
