/* Sums and counts of the histograms in vLLM's `/metrics`, in seconds, from the events that its plugin records with vLLM's own timestamps. */
SELECT 'time_to_first_token' AS metric, SUM(first_token_ns - read_ns) / 1e9 AS sum_s, COUNT(first_token_ns - read_ns) AS n FROM request
UNION ALL SELECT 'e2e_request_latency', SUM(answered_ns - read_ns) / 1e9, COUNT(answered_ns - read_ns) FROM request
UNION ALL SELECT 'request_queue_time', SUM(scheduled_ns - queued_ns) / 1e9, COUNT(scheduled_ns - queued_ns) FROM request WHERE answered_ns IS NOT NULL
UNION ALL SELECT 'request_prefill_time', SUM(engine_first_token_ns - scheduled_ns) / 1e9, COUNT(engine_first_token_ns - scheduled_ns) FROM request WHERE answered_ns IS NOT NULL
UNION ALL SELECT 'request_decode_time', SUM(last_token_ns - engine_first_token_ns) / 1e9, COUNT(last_token_ns - engine_first_token_ns) FROM request WHERE answered_ns IS NOT NULL
UNION ALL SELECT 'request_inference_time', SUM(last_token_ns - scheduled_ns) / 1e9, COUNT(last_token_ns - scheduled_ns) FROM request WHERE answered_ns IS NOT NULL ORDER BY metric;
