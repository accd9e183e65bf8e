/* How the times of answered requests grow with the number of requests at once: points, and the line of least squares through them (`sizing` of the report).
   The number of a request is the mean of how many were under way while it was, rounded. Requests with about the same number are a point, if they are 20 at least.
   It sums in two phases, so that no engine has to sort all changes in one place. Each step is named once or twice, for Spark works out a step wherever it is named. */
WITH waited AS (
  -- An HTTP request came before the application got it, and its answer was sent before the application was done with it.
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.waited_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS waited_ns,
    MAX(CASE WHEN flat_key = 'args.answered_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS answered_ns
  FROM args
  WHERE flat_key IN ('args.waited_us', 'args.answered_us') AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.arg_set_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, CASE WHEN s.dur > 0 THEN COALESCE(s.ts - COALESCE(w.waited_ns, 0) + w.answered_ns, s.ts + s.dur) END AS end_ts,
    COALESCE(t.upid, pt.upid, ta.int_value) AS upid,
    CASE WHEN s.dur <> 0 AND SUBSTR(s.name, 1, 5) = 'http.' THEN 'http' WHEN s.name = 'request' THEN 'span' ELSE REPLACE(s.name, 'request.', '') END AS kind
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN waited w ON w.arg_set_id = s.arg_set_id AND SUBSTR(s.name, 1, 5) = 'http.'
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name IN ('request', 'request.preprocess')))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.first_token', 'request.token', 'token', 'http.first_chunk', 'request.finished'))
), noted AS (
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.output_tokens' THEN int_value END) AS output_tokens,
    MAX(CASE WHEN string_value IN ('abort', 'aborted', 'cancelled', 'error', 'failed', 'timeout', 'ignored') THEN 1 ELSE 0 END) AS is_failed
  FROM args
  WHERE flat_key IN ('args.output_tokens', 'args.reason')
  GROUP BY arg_set_id
), began AS (
  SELECT request_id, ts, end_ts, upid, kind,
    ROW_NUMBER() OVER (PARTITION BY request_id, CASE WHEN kind = 'queued' THEN 1 ELSE 0 END
      ORDER BY CASE WHEN kind = 'span' THEN 1 ELSE 0 END, ts, CASE WHEN end_ts IS NULL THEN 0 ELSE 1 END, end_ts DESC, upid) AS nth
  FROM moment
  WHERE kind IN ('http', 'span', 'queued')
), of_process AS (
  SELECT m.request_id, m.upid,
    MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) AS read_ts,
    MIN(CASE WHEN m.kind IN ('first_token', 'token') THEN m.ts END) AS first_token_ts,
    MIN(CASE WHEN m.kind = 'http.first_chunk' THEN m.ts END) AS first_chunk_ts,
    MAX(CASE WHEN m.kind = 'finished' THEN m.ts END) AS finished_ts,
    SUM(CASE WHEN m.kind = 'token' THEN 1 ELSE 0 END) AS tokens,
    MAX(n.output_tokens) AS output_tokens, MAX(n.is_failed) AS is_failed
  FROM moment m
  LEFT JOIN noted n ON n.arg_set_id = m.arg_set_id
  GROUP BY m.request_id, m.upid
), joined AS (
  SELECT o.request_id, f.kind AS arrived_as, f.ts AS span_ts, f.end_ts AS span_end_ts, e.ts AS queued_ts, MIN(o.read_ts) AS read_ts,
    MIN(CASE WHEN o.upid = e.upid THEN o.first_token_ts END) AS engine_first_token_ts,
    MIN(CASE WHEN o.upid = f.upid THEN o.first_token_ts END) AS first_token_ts,
    MIN(CASE WHEN o.upid = f.upid AND f.kind = 'http' THEN o.first_chunk_ts END) AS first_chunk_ts, MAX(o.finished_ts) AS ended_ts,
    COALESCE(MAX(o.output_tokens), CASE WHEN MAX(o.tokens) > 0 THEN MAX(o.tokens) END) AS output_tokens, COALESCE(MAX(o.is_failed), 0) AS is_failed
  FROM of_process o
  LEFT JOIN began f ON f.request_id = o.request_id AND f.nth = 1 AND f.kind <> 'queued'
  LEFT JOIN began e ON e.request_id = o.request_id AND e.nth = 1 AND e.kind = 'queued'
  WHERE f.ts IS NOT NULL OR e.ts IS NOT NULL
  GROUP BY o.request_id, f.kind, f.ts, f.end_ts, e.ts
), arrived AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT request_id, queued_ts, engine_first_token_ts, first_token_ts, output_tokens, is_failed,
    -- An answer in one piece leaves at its end. A chunk before the first token belongs to another prompt of the same HTTP request.
    CASE WHEN (first_token_ts IS NULL OR first_chunk_ts >= first_token_ts) AND (span_end_ts IS NULL OR first_chunk_ts < span_end_ts)
      THEN first_chunk_ts ELSE first_token_ts END AS ttft_end_ts,
    CASE WHEN arrived_as = 'span' AND read_ts < span_ts THEN read_ts ELSE span_ts END AS arrival_ts,
    CASE WHEN span_ts IS NULL THEN ended_ts ELSE span_end_ts END AS to_ts
  FROM joined
), request AS (
  SELECT request_id, queued_ts, engine_first_token_ts, first_token_ts, ttft_end_ts, output_tokens, is_failed, arrival_ts, COALESCE(arrival_ts, queued_ts) AS from_ts, to_ts
  FROM arrived
  WHERE to_ts IS NULL OR COALESCE(arrival_ts, queued_ts) < to_ts
), edge AS (
  SELECT r.request_id, CASE WHEN c.x > 0 THEN r.from_ts ELSE r.to_ts END AS ts, c.x
  FROM request r
  CROSS JOIN (SELECT 1 AS x UNION ALL SELECT -1) c
  WHERE c.x > 0 OR r.to_ts IS NOT NULL
), bucket AS (
  -- First phase: what changes in each second, and in each thousand of them; what there is when a second begins.
  SELECT ts - ts % 1000000000 AS second, ts - ts % 1000000000000 AS block, SUM(x) AS x, SUM(x * ts) AS x_ns
  FROM edge
  GROUP BY ts - ts % 1000000000, ts - ts % 1000000000000
), block AS (
  SELECT block, SUM(x) AS x, SUM(x_ns) AS x_ns
  FROM bucket
  GROUP BY block
), block_begin AS (
  SELECT b.block, SUM(CASE WHEN o.block < b.block THEN o.x ELSE 0 END) AS x, SUM(CASE WHEN o.block < b.block THEN o.x_ns ELSE 0 END) AS x_ns
  FROM block b
  CROSS JOIN block o
  GROUP BY b.block
), bucket_begin AS (
  SELECT k.second, b.x + SUM(k.x) OVER (PARTITION BY k.block ORDER BY k.second) - k.x AS x,
    b.x_ns + SUM(k.x_ns) OVER (PARTITION BY k.block ORDER BY k.second) - k.x_ns AS x_ns
  FROM bucket k
  JOIN block_begin b ON b.block = k.block
), summed AS (
  -- Second phase, each second by itself: the number summed over the time up to each change.
  SELECT e.request_id, e.x, (b.x + SUM(e.x) OVER (PARTITION BY b.second ORDER BY e.ts)) * e.ts - (b.x_ns + SUM(e.x * e.ts) OVER (PARTITION BY b.second ORDER BY e.ts)) AS level_ns
  FROM edge e
  JOIN bucket_begin b ON b.second = e.ts - e.ts % 1000000000
), of_request AS (
  SELECT request_id, -SUM(x * level_ns) AS level_ns
  FROM summed
  GROUP BY request_id
), level AS (
  -- Rounded: without the remainder the quotient is whole in each engine.
  SELECT r.request_id, CAST((2 * o.level_ns + r.to_ts - r.from_ts - (2 * o.level_ns + r.to_ts - r.from_ts) % (2 * (r.to_ts - r.from_ts))) / (2 * (r.to_ts - r.from_ts)) AS BIGINT) AS level,
    r.engine_first_token_ts - r.queued_ts AS engine_ttft_ns, r.ttft_end_ts - r.arrival_ts AS ttft_ns, r.to_ts - r.arrival_ts AS e2e_ns,
    CASE WHEN r.output_tokens > 1 AND r.to_ts >= r.first_token_ts THEN CAST((r.to_ts - r.first_token_ts - (r.to_ts - r.first_token_ts) % (r.output_tokens - 1)) / (r.output_tokens - 1) AS BIGINT) END AS tpot_ns
  FROM request r
  JOIN of_request o ON o.request_id = r.request_id
  WHERE r.to_ts IS NOT NULL AND r.is_failed = 0
), metric AS (
  SELECT 'engine_ttft' AS metric, 1 AS place_of_metric
  UNION ALL SELECT 'ttft', 2
  UNION ALL SELECT 'tpot', 3
  UNION ALL SELECT 'e2e', 4
), figure AS (
  SELECT m.metric, m.place_of_metric, l.level,
    CASE WHEN m.place_of_metric = 1 THEN l.engine_ttft_ns WHEN m.place_of_metric = 2 THEN l.ttft_ns WHEN m.place_of_metric = 3 THEN l.tpot_ns ELSE l.e2e_ns END AS ns
  FROM level l
  CROSS JOIN metric m
), extent AS (
  SELECT metric, place_of_metric, level, ns, MIN(level) OVER (PARTITION BY metric) AS least, MAX(level) OVER (PARTITION BY metric) AS most
  FROM figure
  -- Moments of two clocks may seem to be in another order: then there is no time between them.
  WHERE ns >= 0
), parted AS (
  -- 20 parts of one width.
  SELECT metric, place_of_metric, level, ns, 20 * (level - least) - 20 * (level - least) % (most - least + 1) AS part
  FROM extent
), ranked AS (
  SELECT metric, place_of_metric, part, level, ns, ROW_NUMBER() OVER (PARTITION BY metric, part ORDER BY ns) - 1 AS place,
    COUNT(*) OVER (PARTITION BY metric, part) - 1 AS last_place
  FROM parted
), bounds AS (
  SELECT metric, place_of_metric, part, COUNT(*) AS requests, CAST(SUM(level) AS DOUBLE) / COUNT(*) AS concurrency,
    MAX(CASE WHEN 100 * place <= 95 * last_place THEN ns END) AS below_95, MIN(CASE WHEN 100 * place >= 95 * last_place THEN ns END) AS above_95
  FROM ranked
  GROUP BY metric, place_of_metric, part
  HAVING COUNT(*) >= 20
), point AS (
  -- Linear between the two ranks next to the percentile's place.
  SELECT metric, place_of_metric, requests, concurrency, below_95 + (above_95 - below_95) * (95 * (requests - 1) % 100 / 1e2) AS p95_ns
  FROM bounds
), centred AS (
  SELECT metric, place_of_metric, requests, concurrency, p95_ns, SUM(concurrency) OVER (PARTITION BY metric) / COUNT(*) OVER (PARTITION BY metric) AS x,
    SUM(p95_ns) OVER (PARTITION BY metric) / COUNT(*) OVER (PARTITION BY metric) AS y
  FROM point
), scattered AS (
  SELECT metric, place_of_metric, requests, concurrency, p95_ns, x, y, SUM((concurrency - x) * (concurrency - x)) OVER (PARTITION BY metric) AS xx,
    SUM((concurrency - x) * (p95_ns - y)) OVER (PARTITION BY metric) AS xy, SUM((p95_ns - y) * (p95_ns - y)) OVER (PARTITION BY metric) AS yy
  FROM centred
)
SELECT metric, concurrency, requests, p95_ns, xy / NULLIF(xx, 0e0) AS slope_ns, y - xy / NULLIF(xx, 0e0) * x AS intercept_ns,
  CASE WHEN xx > 0 THEN CASE WHEN yy > 0 THEN xy * xy / (xx * yy) ELSE 0e0 END END AS r_squared
FROM scattered
ORDER BY place_of_metric, concurrency;
