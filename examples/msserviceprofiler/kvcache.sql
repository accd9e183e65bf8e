/* kvcache.csv: a row for each time that an engine counted the blocks of its cache. */
WITH taken AS (
  SELECT *, LAG(free_blocks) OVER (PARTITION BY upid ORDER BY ts, id) - free_blocks AS taken FROM cache
)
SELECT
  NULL AS rid,
  'KVCacheStatus' AS name,
  CASE WHEN unix_ns IS NOT NULL THEN STRFTIME(MAKE_TIMESTAMP((begin_ns + ts) // 1000), '%Y-%m-%d %H:%M:%S.%f') ELSE CAST((begin_ns + ts) / 1e6 AS VARCHAR) END AS start_time,
  total_blocks,
  used_blocks,
  free_blocks,
  taken AS blocks_allocated,
  -taken AS blocks_freed,
  NULL AS device_kvcache_left,
  used AS kvcache_usage_rate
FROM taken
CROSS JOIN origin
ORDER BY ts, upid, id;
