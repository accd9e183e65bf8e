/* The sums and counts that vLLM's `/metrics` has, in seconds, from the moments that its plugin records at vLLM's own stamps.
   Requests without an end count for `time_to_first_token` alone, as there. */
WITH noted AS (
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.request_id' THEN display_value END) AS request_id,
    MAX(CASE WHEN flat_key = 'args.output_steps' THEN int_value END) AS steps
  FROM args
  WHERE flat_key IN ('args.request_id', 'args.output_steps')
  GROUP BY arg_set_id
), moment AS (
  SELECT n.request_id, n.steps, s.name, s.ts,
    MAX(CASE WHEN s.name = 'request.queued' THEN 1 ELSE 0 END) OVER (PARTITION BY n.request_id, t.upid) AS is_engine
  FROM slice s
  JOIN noted n ON n.arg_set_id = s.arg_set_id
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  WHERE s.name IN ('request.preprocess', 'request.queued', 'request.scheduled', 'request.first_token', 'request.finished', 'request.answered')
), request AS (
  SELECT request_id,
    MIN(CASE WHEN name = 'request.preprocess' THEN ts END) AS arrival,
    MIN(CASE WHEN name = 'request.queued' THEN ts END) AS queued,
    MIN(CASE WHEN name = 'request.scheduled' THEN ts END) AS scheduled,
    MIN(CASE WHEN name = 'request.first_token' AND is_engine = 1 THEN ts END) AS engine_first_token,
    MIN(CASE WHEN name = 'request.first_token' AND is_engine = 0 THEN ts END) AS first_token,
    MAX(CASE WHEN name = 'request.finished' AND steps IS NOT NULL THEN ts END) AS last_token,
    MAX(CASE WHEN name = 'request.answered' THEN ts END) AS answered
  FROM moment
  GROUP BY request_id
), output AS (
  -- The outputs that a frontend lists for each step, by the number that it gave each request and the engine's own time.
  SELECT t.upid, n.int_value AS number, COALESCE(e.int_value, s.ts) AS ts
  FROM slice s
  JOIN args n ON n.arg_set_id = s.arg_set_id AND n.flat_key = 'args.request_numbers'
  LEFT JOIN args e ON e.arg_set_id = s.arg_set_id AND e.flat_key = 'args.engine_ts_ns'
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  WHERE SUBSTR(s.name, LENGTH(s.name) - 14) = 'process_outputs'
), figure AS (
  SELECT 'time_to_first_token' AS metric, first_token - arrival AS ns, 1 AS n FROM request
  UNION ALL SELECT 'e2e_request_latency', answered - arrival, 1 FROM request
  UNION ALL SELECT 'request_queue_time', scheduled - queued, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'request_prefill_time', engine_first_token - scheduled, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'request_decode_time', last_token - engine_first_token, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'request_inference_time', last_token - scheduled, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'inter_token_latency', ts - LAG(ts) OVER (PARTITION BY upid, number ORDER BY ts), 1 FROM output
)
SELECT metric, SUM(ns) / 1e9 AS sum_s, SUM(n) AS n
FROM figure
WHERE ns IS NOT NULL
GROUP BY metric
ORDER BY metric;
