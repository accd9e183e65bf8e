/* request.csv: a row for each request, in the order of arrival. */
WITH begun AS (
  SELECT *, COALESCE(arrival_ns, queued_ns) AS start_ns FROM request
)
SELECT
  request_id AS http_rid,
  CASE WHEN unix_ns IS NOT NULL THEN STRFTIME(MAKE_TIMESTAMP((begin_ns + start_ns) // 1000), '%Y-%m-%d %H:%M:%S.%f') END AS start_datetime,
  prompt_tokens AS recv_token_size,
  output_tokens AS reply_token_size,
  e2e_us / 1000 AS "execution_time(ms)",
  (queue_us + COALESCE(preempted_us, 0)) / 1000 AS "queue_wait_time(ms)",
  COALESCE(ttft_us, engine_ttft_us) / 1000 AS "first_token_latency(ms)",
  cached_tokens / NULLIF(prompt_tokens, 0) AS cache_hit_rate,
  (begin_ns + start_ns) / 1e6 AS "start_time(ms)"
FROM begun
CROSS JOIN origin
ORDER BY start_ns, request_id;
