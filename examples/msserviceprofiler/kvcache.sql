/* kvcache.csv: a row each time an engine counted the blocks of its cache. */
WITH moment AS (
  SELECT upid, pid, NULLIF(host, 'unknown') AS hostname, base_unix_ns IS NOT NULL AS is_wall, COALESCE(base_unix_ns, base_ns, 0) AS begin_ns
  FROM process
  LEFT JOIN (SELECT host, MIN(base_unix_ns) AS base_unix_ns FROM clock GROUP BY host) USING (host)
  LEFT JOIN (SELECT host, MIN(int_value) AS base_ns FROM metadata WHERE name = 'base_ns' GROUP BY host) USING (host)
), cache AS (
  SELECT upid, ts, MIN(counter.id) AS id,
    CAST(ROUND(MAX(value) FILTER (track.name = 'kv_blocks used')) AS BIGINT) AS used_blocks,
    CAST(ROUND(MAX(value) FILTER (track.name = 'kv_blocks free')) AS BIGINT) AS free_blocks,
    used_blocks + free_blocks AS total_blocks,
    COALESCE(used_blocks / NULLIF(total_blocks, 0), MAX(value) FILTER (track.name = 'kv_cache used_percent') / 100, 0) AS used
  FROM counter
  JOIN track ON track.id = track_id
  WHERE track.name IN ('kv_blocks used', 'kv_blocks free', 'kv_cache used_percent')
  GROUP BY upid, ts, REGEXP_EXTRACT(track.name, '^[^ ]*')
), taken AS (
  SELECT *, LAG(free_blocks) OVER (PARTITION BY upid ORDER BY ts, id) - free_blocks AS taken FROM cache
)
SELECT
  NULL AS rid,
  'KVCacheStatus' AS name,
  CASE WHEN is_wall THEN STRFTIME(MAKE_TIMESTAMP((begin_ns + ts) // 1000), '%Y-%m-%d %H:%M:%S.%f') ELSE CAST((begin_ns + ts) / 1e6 AS VARCHAR) END AS start_time,
  total_blocks,
  used_blocks,
  free_blocks,
  taken AS blocks_allocated,
  -taken AS blocks_freed,
  NULL AS device_kvcache_left,
  used AS kvcache_usage_rate
FROM taken
LEFT JOIN moment USING (upid)
ORDER BY ts, upid, id;
