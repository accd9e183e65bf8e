/* When unusually many requests were under way, the ten longest times (`spikes` of the report). A spike begins where there are more than the p90 of
   `under_way`, and ends where there are no more than the p50. It counts in two phases, so that no engine has to sort all changes in one place:
   what is sorted there (`one`) are seconds, levels, and at most two changes of each second. */
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
), way AS (
  SELECT r.from_ts, r.to_ts, COALESCE(r.to_ts, l.ts) AS until_ts
  FROM request r
  CROSS JOIN last_end l
  WHERE r.from_ts < COALESCE(r.to_ts, l.ts)
), change AS (
  -- At one time ends come first.
  SELECT ts, kind, SUM(x) AS x
  FROM (
    SELECT from_ts AS ts, 1 AS kind, 1 AS x FROM way
    UNION ALL
    SELECT until_ts, 0, -1 FROM way
  ) edge
  GROUP BY ts, kind
), bucket AS (
  -- First phase: what changes in each second, and how many there are when it begins.
  SELECT ts - ts % 1000000000 AS second, 0 AS one, SUM(x) AS x, MIN(ts) AS first_ts
  FROM change
  GROUP BY ts - ts % 1000000000
), bucket_begin AS (
  SELECT second, SUM(x) OVER (PARTITION BY one ORDER BY second) - x AS n, LEAD(first_ts) OVER (PARTITION BY one ORDER BY second) AS next_ts
  FROM bucket
), level AS (
  -- Second phase: each second by itself.
  SELECT c.ts, c.kind, b.second, b.n + SUM(c.x) OVER (PARTITION BY b.second ORDER BY c.ts, c.kind) AS n,
    COALESCE(LEAD(c.ts) OVER (PARTITION BY b.second ORDER BY c.ts, c.kind), b.next_ts) - c.ts AS ns
  FROM change c
  JOIN bucket_begin b ON b.second = c.ts - c.ts % 1000000000
), held AS (
  SELECT n, 0 AS one, SUM(ns) AS ns
  FROM level
  WHERE ns > 0
  GROUP BY n
), ranked AS (
  SELECT n, SUM(ns) OVER (PARTITION BY one ORDER BY n) AS to_ns, SUM(ns) OVER (PARTITION BY one) AS wall_ns
  FROM held
), usual AS (
  SELECT MIN(CASE WHEN to_ns >= 5e-1 * wall_ns THEN n END) AS p50, MIN(CASE WHEN to_ns >= 9e-1 * wall_ns THEN n END) AS p90
  FROM ranked
), told AS (
  -- What tells that there is a spike, or none; and what was told before it in its second.
  SELECT l.ts, l.kind, 0 AS one, CASE WHEN l.n > u.p90 THEN 1 ELSE 0 END AS is_spike,
    LAG(CASE WHEN l.n > u.p90 THEN 1 ELSE 0 END) OVER (PARTITION BY l.second ORDER BY l.ts, l.kind) AS was_spike
  FROM level l
  CROSS JOIN usual u
  WHERE l.n > u.p90 OR l.n <= u.p50
), turned AS (
  SELECT ts, kind, one, is_spike, LAG(is_spike) OVER (PARTITION BY one ORDER BY ts, kind) AS was_spike
  FROM told
  WHERE was_spike IS NULL OR was_spike <> is_spike
), turn AS (
  SELECT ts, is_spike, LEAD(ts) OVER (PARTITION BY one ORDER BY ts, kind) AS next_ts
  FROM turned
  WHERE is_spike <> COALESCE(was_spike, 0)
), last_change AS (
  SELECT MAX(ts) AS ts
  FROM change
), longest AS (
  SELECT t.ts, COALESCE(t.next_ts, l.ts) AS end_ts
  FROM turn t
  CROSS JOIN last_change l
  WHERE t.is_spike = 1
  ORDER BY COALESCE(t.next_ts, l.ts) - t.ts DESC, t.ts
  LIMIT 10
), peak AS (
  SELECT s.ts, s.end_ts, MAX(l.n) AS n
  FROM longest s
  JOIN level l ON l.ts >= s.ts AND l.ts <= s.end_ts
  GROUP BY s.ts, s.end_ts
)
SELECT p.ts, p.end_ts - p.ts AS dur, p.n AS peak, COUNT(*) AS requests
FROM peak p
JOIN way w ON w.from_ts < p.end_ts AND (w.to_ts IS NULL OR w.to_ts > p.ts)
GROUP BY p.ts, p.end_ts, p.n
ORDER BY p.ts;
