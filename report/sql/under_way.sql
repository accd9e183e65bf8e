/* How many requests were between arrival and end: mean and percentiles, weighted by time (`under_way` in `load` of the report).
   It counts in two phases, so that no engine has to sort all changes in one place. */
WITH waited AS (
  -- An HTTP request came before the application got it, and its answer was sent before the application was done with it.
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.waited_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS waited_ns,
    MAX(CASE WHEN flat_key = 'args.answered_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS answered_ns
  FROM args
  WHERE flat_key IN ('args.waited_us', 'args.answered_us') AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, CASE WHEN s.dur > 0 THEN COALESCE(s.ts - COALESCE(w.waited_ns, 0) + w.answered_ns, s.ts + s.dur) END AS end_ts,
    CASE WHEN SUBSTR(s.name, 1, 5) = 'http.' THEN 'http' WHEN s.name = 'request' THEN 'span' ELSE REPLACE(s.name, 'request.', '') END AS kind
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN waited w ON w.arg_set_id = s.arg_set_id AND SUBSTR(s.name, 1, 5) = 'http.'
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name IN ('request', 'request.preprocess')))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.finished'))
), began AS (
  SELECT request_id, ts, end_ts, kind, ROW_NUMBER() OVER (PARTITION BY request_id ORDER BY CASE WHEN kind = 'span' THEN 1 ELSE 0 END, ts, CASE WHEN end_ts IS NULL THEN 0 ELSE 1 END, end_ts DESC) AS nth
  FROM moment
  WHERE kind IN ('http', 'span')
), request AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT m.request_id,
    COALESCE(CASE WHEN b.kind = 'span' AND MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) < b.ts THEN MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) ELSE b.ts END,
      MIN(CASE WHEN m.kind = 'queued' THEN m.ts END)) AS from_ts,
    CASE WHEN b.ts IS NULL THEN MAX(CASE WHEN m.kind = 'finished' THEN m.ts END) ELSE b.end_ts END AS to_ts
  FROM moment m
  LEFT JOIN began b ON b.request_id = m.request_id AND b.nth = 1
  GROUP BY m.request_id, b.kind, b.ts, b.end_ts
), last_end AS (
  SELECT COALESCE(MAX(to_ts), 0) AS ts
  FROM request
), change AS (
  SELECT ts, SUM(x) AS x
  FROM (
    SELECT CASE WHEN r.from_ts > l.ts THEN l.ts ELSE r.from_ts END AS ts, 1 AS x
    FROM request r CROSS JOIN last_end l WHERE r.from_ts IS NOT NULL AND (r.to_ts IS NULL OR r.from_ts < r.to_ts)
    UNION ALL
    SELECT CASE WHEN r.to_ts IS NULL THEN l.ts ELSE r.to_ts END, -1
    FROM request r CROSS JOIN last_end l WHERE r.from_ts IS NOT NULL AND (r.to_ts IS NULL OR r.from_ts < r.to_ts)
  ) edge
  GROUP BY ts
), bucket AS (
  -- First phase: what changes in each second, and in each thousand of them; how many there are when a second begins.
  SELECT ts - ts % 1000000000 AS second, ts - ts % 1000000000000 AS block, SUM(x) AS x, MIN(ts) AS first_ts
  FROM change
  GROUP BY ts - ts % 1000000000, ts - ts % 1000000000000
), block AS (
  SELECT block, SUM(x) AS x, MIN(first_ts) AS first_ts
  FROM bucket
  GROUP BY block
), block_begin AS (
  SELECT b.block, COALESCE(SUM(CASE WHEN o.block < b.block THEN o.x END), 0) AS n, MIN(CASE WHEN o.block > b.block THEN o.first_ts END) AS next_ts
  FROM block b
  CROSS JOIN block o
  GROUP BY b.block
), bucket_begin AS (
  SELECT k.second, b.n + SUM(k.x) OVER (PARTITION BY k.block ORDER BY k.second) - k.x AS n,
    COALESCE(LEAD(k.first_ts) OVER (PARTITION BY k.block ORDER BY k.second), b.next_ts) AS next_ts
  FROM bucket k
  JOIN block_begin b ON b.block = k.block
), lasting AS (
  -- Second phase: each second by itself.
  SELECT b.n + SUM(c.x) OVER (PARTITION BY b.second ORDER BY c.ts) AS n,
    COALESCE(LEAD(c.ts) OVER (PARTITION BY b.second ORDER BY c.ts), b.next_ts) - c.ts AS ns
  FROM change c
  JOIN bucket_begin b ON b.second = c.ts - c.ts % 1000000000
), held AS (
  SELECT n, SUM(ns) AS ns
  FROM lasting
  WHERE ns > 0
  GROUP BY n
), held_block AS (
  SELECT n - n % 1000 AS block, SUM(ns) AS ns
  FROM held
  GROUP BY n - n % 1000
), held_before AS (
  SELECT b.block, SUM(CASE WHEN o.block < b.block THEN o.ns ELSE 0 END) AS ns, SUM(o.ns) AS wall_ns
  FROM held_block b
  CROSS JOIN held_block o
  GROUP BY b.block
), ranked AS (
  SELECT h.n, h.ns, b.ns + SUM(h.ns) OVER (PARTITION BY b.block ORDER BY h.n) AS to_ns, b.wall_ns
  FROM held h
  JOIN held_before b ON b.block = h.n - h.n % 1000
)
SELECT SUM(ns) AS wall_ns, CAST(SUM(n * ns) AS DOUBLE) / SUM(ns) AS mean,
  MIN(CASE WHEN to_ns >= 5e-1 * wall_ns THEN n END) AS p50,
  MIN(CASE WHEN to_ns >= 9e-1 * wall_ns THEN n END) AS p90,
  MIN(CASE WHEN to_ns >= 99e-2 * wall_ns THEN n END) AS p99,
  MAX(n) AS max
FROM ranked;
