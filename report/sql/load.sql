/* How many requests ran and waited in each engine, and how much of its KV cache was used: mean and max, weighted by time.
   It is `load` of the report without `under_way`, which the report counts from its requests. */
WITH value AS (
  SELECT ct.upid, ct.name, c.ts, c.value
  FROM counter c
  JOIN process_counter_track ct ON ct.id = c.track_id
  WHERE ct.name IN ('requests running', 'requests waiting', 'kv_cache used_percent', 'kv_blocks used', 'kv_blocks free')
), level AS (
  SELECT upid, ts, 'running' AS level, value FROM value WHERE name = 'requests running'
  UNION ALL
  SELECT upid, ts, 'waiting', value FROM value WHERE name = 'requests waiting'
  UNION ALL
  SELECT upid, ts, 'kv_used_percent', ROUND(10 * value) / 10 FROM value WHERE name = 'kv_cache used_percent'
  UNION ALL
  SELECT u.upid, u.ts, 'kv_used_percent', ROUND(1000 * u.value / (u.value + f.value)) / 10
  FROM value u
  JOIN value f ON f.upid = u.upid AND f.ts = u.ts AND f.name = 'kv_blocks free'
  WHERE u.name = 'kv_blocks used' AND u.value + f.value > 0
), lasting AS (
  SELECT *, LEAD(ts) OVER (PARTITION BY upid, level ORDER BY ts, value) - ts AS ns
  FROM level
)
SELECT l.level, p.pid, p.name, SUM(l.ns) AS wall_ns,
  SUM(l.value * l.ns) / SUM(l.ns) AS mean,
  MAX(l.value) AS max
FROM lasting l
JOIN process p ON p.upid = l.upid
WHERE l.ns > 0
GROUP BY l.level, p.upid, p.pid, p.name
ORDER BY p.upid, l.level;
