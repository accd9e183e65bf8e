/* The sums and counts that vLLM's `/metrics` has, in seconds, from the moments that its plugin records at vLLM's own stamps.
   Requests without an end count for `time_to_first_token` alone, as there. */
WITH moment AS (
  SELECT extract_arg(s.arg_set_id, 'args.request_id') AS request_id, extract_arg(s.arg_set_id, 'args.output_steps') AS steps, s.name, s.ts,
    MAX(s.name = 'request.queued') OVER (PARTITION BY extract_arg(s.arg_set_id, 'args.request_id'), t.upid) AS is_engine
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  WHERE s.name IN ('request.preprocess', 'request.queued', 'request.scheduled', 'request.first_token', 'request.finished', 'request.answered')
), request AS (
  SELECT request_id, MAX(steps) AS steps,
    MIN(ts) FILTER (WHERE name = 'request.preprocess') AS arrival,
    MIN(ts) FILTER (WHERE name = 'request.queued') AS queued,
    MIN(ts) FILTER (WHERE name = 'request.scheduled') AS scheduled,
    MIN(ts) FILTER (WHERE name = 'request.first_token' AND is_engine) AS engine_first_token,
    MIN(ts) FILTER (WHERE name = 'request.first_token' AND NOT is_engine) AS first_token,
    MAX(ts) FILTER (WHERE name = 'request.finished' AND steps IS NOT NULL) AS last_token,
    MAX(ts) FILTER (WHERE name = 'request.answered') AS answered
  FROM moment
  GROUP BY request_id
), value AS (
  SELECT 'time_to_first_token' AS metric, first_token - arrival AS ns, 1 AS n FROM request
  UNION ALL SELECT 'e2e_request_latency', answered - arrival, 1 FROM request
  UNION ALL SELECT 'request_queue_time', scheduled - queued, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'request_prefill_time', engine_first_token - scheduled, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'request_decode_time', last_token - engine_first_token, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'request_inference_time', last_token - scheduled, 1 FROM request WHERE answered IS NOT NULL
  UNION ALL SELECT 'inter_token_latency', last_token - engine_first_token, steps - 1 FROM request WHERE steps > 0
)
SELECT metric, SUM(ns) / 1e9 AS sum_s, SUM(n) AS n
FROM value
WHERE ns IS NOT NULL
GROUP BY metric
ORDER BY metric;
