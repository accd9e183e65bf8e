/* The figures of all requests (`requests` of the report, but for `itl`, which is `between_tokens.sql`): a row for each. A figure is of those requests that have it. */
WITH waited AS (
  -- An HTTP request came before the application got it, and its answer was sent before the application was done with it.
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.waited_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS waited_ns,
    MAX(CASE WHEN flat_key = 'args.answered_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS answered_ns
  FROM args
  WHERE flat_key IN ('args.waited_us', 'args.answered_us') AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.arg_set_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, COALESCE(w.waited_ns, 0) AS waited_ns, CASE WHEN s.dur > 0 THEN COALESCE(s.ts - COALESCE(w.waited_ns, 0) + w.answered_ns, s.ts + s.dur) END AS end_ts,
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
  SELECT request_id, ts, waited_ns, end_ts, upid, kind,
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
  SELECT o.request_id, f.kind AS arrived_as, f.ts AS span_ts, f.waited_ns, f.end_ts AS span_end_ts, e.ts AS queued_ns,
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
  GROUP BY o.request_id, f.kind, f.ts, f.waited_ns, f.end_ts, e.ts
), request AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT CASE WHEN arrived_as = 'span' AND read_ns < span_ts THEN read_ns ELSE span_ts END AS arrival_ns, waited_ns,
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
  UNION ALL SELECT 'application_ttft', 8, ttft_end_ns - arrival_ns - waited_ns FROM request
  UNION ALL SELECT 'application_e2e', 9, finished_ns - arrival_ns - waited_ns FROM request
), ranked AS (
  SELECT metric, place_of_metric, ns, ROW_NUMBER() OVER (PARTITION BY metric ORDER BY ns) - 1 AS place, COUNT(*) OVER (PARTITION BY metric) - 1 AS last_place
  FROM figure
  -- Moments of two clocks may seem to be in another order: then there is no time between them.
  WHERE ns >= 0
), quantile AS (
  SELECT metric, place_of_metric, COUNT(*) AS n, CAST(SUM(ns) AS DOUBLE) / COUNT(*) AS mean_ns, MIN(ns) AS min_ns, MAX(ns) AS max_ns,
    MAX(CASE WHEN 100 * place <= 50 * last_place THEN ns END) AS below_50, MIN(CASE WHEN 100 * place >= 50 * last_place THEN ns END) AS above_50,
    MAX(CASE WHEN 100 * place <= 90 * last_place THEN ns END) AS below_90, MIN(CASE WHEN 100 * place >= 90 * last_place THEN ns END) AS above_90,
    MAX(CASE WHEN 100 * place <= 95 * last_place THEN ns END) AS below_95, MIN(CASE WHEN 100 * place >= 95 * last_place THEN ns END) AS above_95,
    MAX(CASE WHEN 100 * place <= 99 * last_place THEN ns END) AS below_99, MIN(CASE WHEN 100 * place >= 99 * last_place THEN ns END) AS above_99
  FROM ranked
  GROUP BY metric, place_of_metric
)
SELECT metric, n, mean_ns, min_ns,
  -- Linear between the two ranks next to the percentile's place.
  below_50 + (above_50 - below_50) * (50 * (n - 1) % 100 / 1e2) AS p50_ns,
  below_90 + (above_90 - below_90) * (90 * (n - 1) % 100 / 1e2) AS p90_ns,
  below_95 + (above_95 - below_95) * (95 * (n - 1) % 100 / 1e2) AS p95_ns,
  below_99 + (above_99 - below_99) * (99 * (n - 1) % 100 / 1e2) AS p99_ns,
  max_ns
FROM quantile
ORDER BY place_of_metric;
