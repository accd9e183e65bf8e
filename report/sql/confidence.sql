/* How little the means of `request_summary` may say (`confidence` of the report): where the mean of all such requests lies with 90, 95 and 99 %,
   by Student's t and the deviation of a sample. A mean of one request says nothing of that. */
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
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.scheduled', 'scheduled',
      'request.first_token', 'request.token', 'token', 'http.first_chunk', 'request.finished'))
), noted AS (
  SELECT arg_set_id, MAX(int_value) AS output_tokens
  FROM args
  WHERE flat_key = 'args.output_tokens'
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
    MIN(CASE WHEN m.kind = 'scheduled' THEN m.ts END) AS scheduled_ts,
    MIN(CASE WHEN m.kind IN ('first_token', 'token') THEN m.ts END) AS first_token_ts,
    MIN(CASE WHEN m.kind = 'http.first_chunk' THEN m.ts END) AS first_chunk_ts,
    MAX(CASE WHEN m.kind = 'token' THEN m.ts END) AS last_token_ts,
    MAX(CASE WHEN m.kind = 'finished' THEN m.ts END) AS finished_ts,
    SUM(CASE WHEN m.kind = 'token' THEN 1 ELSE 0 END) AS tokens,
    MAX(n.output_tokens) AS output_tokens
  FROM moment m
  LEFT JOIN noted n ON n.arg_set_id = m.arg_set_id
  GROUP BY m.request_id, m.upid
), joined AS (
  SELECT o.request_id, f.kind AS arrived_as, f.ts AS span_ts, f.end_ts AS span_end_ts, e.ts AS queued_ns,
    MIN(o.read_ts) AS read_ns, MIN(o.scheduled_ts) AS scheduled_ns,
    MIN(CASE WHEN o.upid = e.upid THEN o.first_token_ts END) AS engine_first_token_ns,
    MIN(CASE WHEN o.upid = f.upid THEN o.first_token_ts END) AS first_token_ns,
    MIN(CASE WHEN o.upid = f.upid AND f.kind = 'http' THEN o.first_chunk_ts END) AS first_chunk_ns,
    COALESCE(MAX(o.last_token_ts), MAX(CASE WHEN o.upid = e.upid THEN o.finished_ts END)) AS last_token_ns,
    COALESCE(MAX(o.output_tokens), CASE WHEN MAX(o.tokens) > 0 THEN MAX(o.tokens) END) AS output_tokens
  FROM of_process o
  LEFT JOIN began f ON f.request_id = o.request_id AND f.nth = 1 AND f.kind <> 'queued'
  LEFT JOIN began e ON e.request_id = o.request_id AND e.nth = 1 AND e.kind = 'queued'
  WHERE f.ts IS NOT NULL OR e.ts IS NOT NULL
  GROUP BY o.request_id, f.kind, f.ts, f.end_ts, e.ts
), request AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT CASE WHEN arrived_as = 'span' AND read_ns < span_ts THEN read_ns ELSE span_ts END AS arrival_ns,
    queued_ns, scheduled_ns, engine_first_token_ns, first_token_ns,
    -- An answer in one piece leaves at its end. A chunk before the first token belongs to another prompt of the same HTTP request.
    CASE WHEN (first_token_ns IS NULL OR first_chunk_ns >= first_token_ns) AND (span_end_ts IS NULL OR first_chunk_ns < span_end_ts)
      THEN first_chunk_ns ELSE first_token_ns END AS ttft_end_ns,
    last_token_ns, span_end_ts AS finished_ns, output_tokens
  FROM joined
), figure AS (
  SELECT 'queue' AS metric, 1 AS place_of_metric, scheduled_ns - queued_ns AS ns FROM request
  UNION ALL SELECT 'prefill', 2, COALESCE(engine_first_token_ns, first_token_ns) - scheduled_ns FROM request
  UNION ALL SELECT 'decode', 3, last_token_ns - COALESCE(engine_first_token_ns, first_token_ns) FROM request
  UNION ALL SELECT 'engine_ttft', 4, engine_first_token_ns - queued_ns FROM request
  UNION ALL SELECT 'ttft', 5, ttft_end_ns - arrival_ns FROM request
  UNION ALL SELECT 'tpot', 6, CAST((finished_ns - first_token_ns - (finished_ns - first_token_ns) % NULLIF(output_tokens - 1, 0)) / NULLIF(output_tokens - 1, 0) AS BIGINT)
    FROM request WHERE output_tokens > 1 AND finished_ns >= first_token_ns
  UNION ALL SELECT 'e2e', 7, finished_ns - arrival_ns FROM request
), counted AS (
  SELECT metric, place_of_metric, ns, COUNT(*) OVER (PARTITION BY metric) AS n, SUM(ns) OVER (PARTITION BY metric) AS total_ns
  FROM figure
  -- Moments of two clocks may seem to be in another order: then there is no time between them.
  WHERE ns >= 0
), off AS (
  SELECT metric, place_of_metric, n, CAST(total_ns AS DOUBLE) / n AS mean_ns, ns - CAST(total_ns AS DOUBLE) / n AS off_ns
  FROM counted
), scattered AS (
  SELECT metric, place_of_metric, n, mean_ns, n - 1 AS freedom, SQRT(SUM(off_ns * off_ns) / NULLIF(n - 1, 0) / n) AS error_ns
  FROM off
  GROUP BY metric, place_of_metric, n, mean_ns
), student (freedom, t90, t95, t99) AS (
  -- Quantiles of Student's t, within which 90, 95 and 99 % lie on both sides. Beyond the table they come from those of the normal distribution, in row 0.
  VALUES (0, 1.644853626951e0, 1.95996398454e0, 2.575829303549e0),
    (1, 6.314e0, 12.706e0, 63.657e0), (2, 2.92e0, 4.303e0, 9.925e0), (3, 2.353e0, 3.182e0, 5.841e0), (4, 2.132e0, 2.776e0, 4.604e0),
    (5, 2.015e0, 2.571e0, 4.032e0), (6, 1.943e0, 2.447e0, 3.707e0), (7, 1.895e0, 2.365e0, 3.499e0), (8, 1.86e0, 2.306e0, 3.355e0),
    (9, 1.833e0, 2.262e0, 3.25e0), (10, 1.812e0, 2.228e0, 3.169e0), (11, 1.796e0, 2.201e0, 3.106e0), (12, 1.782e0, 2.179e0, 3.055e0),
    (13, 1.771e0, 2.16e0, 3.012e0), (14, 1.761e0, 2.145e0, 2.977e0), (15, 1.753e0, 2.131e0, 2.947e0), (16, 1.746e0, 2.12e0, 2.921e0),
    (17, 1.74e0, 2.11e0, 2.898e0), (18, 1.734e0, 2.101e0, 2.878e0), (19, 1.729e0, 2.093e0, 2.861e0), (20, 1.725e0, 2.086e0, 2.845e0),
    (21, 1.721e0, 2.08e0, 2.831e0), (22, 1.717e0, 2.074e0, 2.819e0), (23, 1.714e0, 2.069e0, 2.807e0), (24, 1.711e0, 2.064e0, 2.797e0),
    (25, 1.708e0, 2.06e0, 2.787e0), (26, 1.706e0, 2.056e0, 2.779e0), (27, 1.703e0, 2.052e0, 2.771e0), (28, 1.701e0, 2.048e0, 2.763e0)
), width AS (
  SELECT s.metric, s.place_of_metric, s.n, s.mean_ns, s.error_ns, t.freedom, NULLIF(s.freedom, 0) AS v, t.t90, t.t95, t.t99
  FROM scattered s
  JOIN student t ON t.freedom = CASE WHEN s.freedom > 28 THEN 0 ELSE s.freedom END
), error AS (
  -- Abramowitz and Stegun, 26.7.5.
  SELECT metric, place_of_metric, n, mean_ns,
    error_ns * CASE WHEN freedom > 0 THEN t90 ELSE t90 + (t90 * (t90 * t90 + 1) / 4e0 + (t90 * ((5 * t90 * t90 + 16) * t90 * t90 + 3) / 96e0
      + t90 * (((3 * t90 * t90 + 19) * t90 * t90 + 17) * t90 * t90 - 15) / 384e0 / v) / v) / v END AS p90_ns,
    error_ns * CASE WHEN freedom > 0 THEN t95 ELSE t95 + (t95 * (t95 * t95 + 1) / 4e0 + (t95 * ((5 * t95 * t95 + 16) * t95 * t95 + 3) / 96e0
      + t95 * (((3 * t95 * t95 + 19) * t95 * t95 + 17) * t95 * t95 - 15) / 384e0 / v) / v) / v END AS p95_ns,
    error_ns * CASE WHEN freedom > 0 THEN t99 ELSE t99 + (t99 * (t99 * t99 + 1) / 4e0 + (t99 * ((5 * t99 * t99 + 16) * t99 * t99 + 3) / 96e0
      + t99 * (((3 * t99 * t99 + 19) * t99 * t99 + 17) * t99 * t99 - 15) / 384e0 / v) / v) / v END AS p99_ns
  FROM width
)
SELECT metric, n, mean_ns, mean_ns - p90_ns AS p90_from_ns, mean_ns + p90_ns AS p90_to_ns,
  mean_ns - p95_ns AS p95_from_ns, mean_ns + p95_ns AS p95_to_ns, mean_ns - p99_ns AS p99_from_ns, mean_ns + p99_ns AS p99_to_ns
FROM error
ORDER BY place_of_metric;
