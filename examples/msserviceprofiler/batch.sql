/* batch.csv: a row for each batch that an engine scheduled and for each step that a worker ran. */
WITH last_cache AS (
  SELECT * EXCLUDE id FROM cache QUALIFY ROW_NUMBER() OVER (PARTITION BY upid, ts ORDER BY id DESC) = 1
), counted AS (
  SELECT *, work = 'schedule' AS is_engine FROM batch_work
  WHERE work = 'step' OR work = 'schedule' AND COALESCE(size, 1) > 0 AND COALESCE(tokens, 1) > 0
), batch AS (
  SELECT counted.*, last_cache.* EXCLUDE (upid, ts), previous.free_blocks - last_cache.free_blocks AS taken
  FROM counted
  ASOF LEFT JOIN last_cache ON is_engine AND last_cache.upid = counted.upid AND last_cache.ts <= counted.end_ts
  ASOF LEFT JOIN last_cache AS previous ON is_engine AND previous.upid = counted.upid AND previous.ts < counted.ts
)
SELECT
  CASE WHEN is_engine THEN 'batchFrameworkProcessing' ELSE 'modelExec' END AS name,
  TO_JSON(requests) AS res_list,
  CASE WHEN unix_ns IS NOT NULL THEN STRFTIME(MAKE_TIMESTAMP((begin_ns + ts) // 1000), '%Y-%m-%d %H:%M:%S.%f') END AS start_datetime,
  CASE WHEN unix_ns IS NOT NULL THEN STRFTIME(MAKE_TIMESTAMP((begin_ns + end_ts) // 1000), '%Y-%m-%d %H:%M:%S.%f') END AS end_datetime,
  (end_ts - ts) / 1e6 AS "during_time(ms)",
  type AS batch_type,
  pid AS prof_id,
  size AS batch_size,
  prefill_requests AS prefill_batch_size,
  decode_requests AS decode_batch_size,
  total_blocks,
  used_blocks,
  free_blocks,
  taken AS blocks_allocated,
  -taken AS blocks_freed,
  used AS kvcache_usage_rate,
  prefill_tokens AS prefill_scheduled_tokens,
  decode_tokens AS decode_scheduled_tokens,
  TRY(prefill_tokens + decode_tokens) AS total_scheduled_tokens,
  NULL AS dp_rank,
  (begin_ns + ts) / 1e6 AS "start_time(ms)",
  (begin_ns + end_ts) / 1e6 AS "end_time(ms)",
  NULL AS accepted_ratio,
  NULL AS accepted_ratio_per_pos
FROM batch
LEFT JOIN (SELECT upid, pid FROM process) USING (upid)
CROSS JOIN origin
ORDER BY ts, upid, work;
