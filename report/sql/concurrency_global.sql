/* For how long so many spans of threads were at work at once, those that lie in no other one, over all processes.
   It counts in two phases, so that no engine has to sort all changes in one place. */
WITH span AS (
  SELECT s.ts, s.ts + s.dur AS end_ts,
    MAX(s.ts + s.dur) OVER (PARTITION BY s.track_id ORDER BY s.ts, s.dur DESC, s.id
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  WHERE s.dur > 0
), outermost AS (
  -- By time and not by depth: what lies in a span without an end lies in none that counts.
  SELECT ts, end_ts
  FROM span
  WHERE covered_to_ts IS NULL OR covered_to_ts < end_ts
), change AS (
  SELECT ts, SUM(x) AS x
  FROM (
    SELECT ts, 1 AS x FROM outermost
    UNION ALL
    SELECT end_ts, -1 FROM outermost
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
)
SELECT n AS spans, SUM(ns) AS ns
FROM lasting
WHERE ns > 0
GROUP BY n
ORDER BY n;
