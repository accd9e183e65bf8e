/* How many requests ran and waited in each engine, and how much of its KV cache was used: mean and percentiles, weighted by time.
   It is `load` of the report; `under_way` has a statement of its own. */
WITH noted AS (
  SELECT ct.upid, ct.name, c.ts, c.value
  FROM counter c
  JOIN process_counter_track ct ON ct.id = c.track_id
  WHERE ct.name IN ('requests running', 'requests waiting', 'kv_cache used_percent', 'kv_blocks used', 'kv_blocks free') AND c.value >= 0
), leveled AS (
  -- Whole requests, and whole thousandths of the cache.
  SELECT upid, ts, CASE WHEN name = 'requests running' THEN 'running' WHEN name = 'requests waiting' THEN 'waiting' ELSE 'kv_used_percent' END AS level,
    CAST(ROUND(CASE WHEN name = 'kv_cache used_percent' THEN 1e1 * value ELSE value END) AS BIGINT) AS amount
  FROM noted
  WHERE name IN ('requests running', 'requests waiting', 'kv_cache used_percent')
  UNION ALL
  SELECT u.upid, u.ts, 'kv_used_percent', CAST(ROUND(1e3 * u.value / (u.value + f.value)) AS BIGINT)
  FROM noted u
  JOIN noted f ON f.upid = u.upid AND f.ts = u.ts AND f.name = 'kv_blocks free'
  WHERE u.name = 'kv_blocks used' AND u.value + f.value > 0
), lasting AS (
  SELECT upid, level, amount, LEAD(ts) OVER (PARTITION BY upid, level ORDER BY ts, amount) - ts AS ns
  FROM leveled
), held AS (
  SELECT upid, level, amount, SUM(ns) AS ns
  FROM lasting
  WHERE ns > 0
  GROUP BY upid, level, amount
), ranked AS (
  SELECT upid, level, amount, ns, CASE WHEN level = 'kv_used_percent' THEN 1e-1 ELSE 1e0 END AS unit,
    SUM(ns) OVER (PARTITION BY upid, level ORDER BY amount) AS to_ns, SUM(ns) OVER (PARTITION BY upid, level) AS wall_ns
  FROM held
)
SELECT r.level, p.pid, p.name, SUM(r.ns) AS wall_ns,
  r.unit * SUM(r.amount * r.ns) / SUM(r.ns) AS mean,
  r.unit * MIN(CASE WHEN r.to_ns >= 5e-1 * r.wall_ns THEN r.amount END) AS p50,
  r.unit * MIN(CASE WHEN r.to_ns >= 9e-1 * r.wall_ns THEN r.amount END) AS p90,
  r.unit * MIN(CASE WHEN r.to_ns >= 99e-2 * r.wall_ns THEN r.amount END) AS p99,
  r.unit * MAX(r.amount) AS max
FROM ranked r
JOIN process p ON p.upid = r.upid
GROUP BY r.level, r.unit, p.upid, p.pid, p.name
ORDER BY p.upid, r.level;
