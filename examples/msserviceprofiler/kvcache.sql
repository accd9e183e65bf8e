/* kvcache.csv: a row each time an engine counted the blocks of its cache. */
WITH origin AS (
  SELECT unix_ns, COALESCE(unix_ns, own_ns, 0) AS begin_ns
  FROM (SELECT MIN(base_unix_ns) AS unix_ns FROM clock), (SELECT MIN(int_value) AS own_ns FROM metadata WHERE name = 'base_ns')
), cache AS (
  SELECT upid, ts, MIN(counter.id) AS id,
    CAST(ROUND(ARG_MAX(value, counter.id) FILTER (track.name = 'kv_blocks used')) AS BIGINT) AS used_blocks,
    CAST(ROUND(ARG_MAX(value, counter.id) FILTER (track.name = 'kv_blocks free')) AS BIGINT) AS free_blocks,
    used_blocks + free_blocks AS total_blocks,
    COALESCE(CASE WHEN total_blocks = 0 THEN 0 ELSE used_blocks / total_blocks END, ARG_MAX(value, counter.id) FILTER (track.name = 'kv_cache used_percent') / 100) AS used
  FROM counter
  JOIN track ON track.id = track_id
  WHERE track.name IN ('kv_blocks used', 'kv_blocks free', 'kv_cache used_percent') AND value BETWEEN 0 AND 4294967295
  GROUP BY upid, ts, REGEXP_EXTRACT(track.name, '^[^ ]*')
  HAVING used IS NOT NULL
), taken AS (
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
