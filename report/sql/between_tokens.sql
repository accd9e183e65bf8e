/* The times between two tokens of a request, over all requests (`requests.itl` of the report). Where spans `process_outputs` list the outputs of a step,
   they are the times between two outputs of a request, as vLLM counts them.
   If several processes noted tokens, the frontend's count, else those of the process with the most. */
WITH waited AS (
  -- An HTTP request came before the application got it.
  SELECT arg_set_id, MAX(CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT)) AS waited_ns
  FROM args
  WHERE flat_key = 'args.waited_us' AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, s.dur, s.name, COALESCE(t.upid, pt.upid, ta.int_value) AS upid
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN waited w ON w.arg_set_id = s.arg_set_id AND SUBSTR(s.name, 1, 5) = 'http.'
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name = 'request'))
    OR (s.dur = 0 AND s.name IN ('request.token', 'token'))
), arrival AS (
  SELECT request_id, upid,
    ROW_NUMBER() OVER (PARTITION BY request_id ORDER BY CASE WHEN name = 'request' THEN 1 ELSE 0 END, ts, CASE WHEN dur < 0 THEN 0 ELSE 1 END, dur DESC, upid) AS nth
  FROM moment
  WHERE dur <> 0
), noted AS (
  SELECT m.request_id, m.upid, MAX(CASE WHEN m.upid = a.upid THEN 1 ELSE 0 END) AS is_frontend, COUNT(*) AS n
  FROM moment m
  LEFT JOIN arrival a ON a.request_id = m.request_id AND a.nth = 1
  WHERE m.dur = 0
  GROUP BY m.request_id, m.upid
), counted AS (
  SELECT request_id, upid, ROW_NUMBER() OVER (PARTITION BY request_id ORDER BY is_frontend DESC, n DESC, upid DESC) AS nth
  FROM noted
), step AS (
  -- With the number of pauses in recording until then.
  SELECT t.upid, s.ts, s.arg_set_id, COUNT(p.arg_set_id) OVER (PARTITION BY t.upid ORDER BY s.ts) AS pauses
  FROM slice s
  LEFT JOIN args p ON p.arg_set_id = s.arg_set_id AND p.flat_key = 'args.after_pause' AND p.display_value = 'true'
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  WHERE SUBSTR(s.name, LENGTH(s.name) - 14) = 'process_outputs'
), output AS (
  -- A frontend gives each request a number. Its outputs have the engine's own times.
  SELECT s.upid, n.int_value AS number, COALESCE(e.int_value, s.ts) AS ts, s.ts AS at_ts, s.pauses
  FROM step s
  JOIN args n ON n.arg_set_id = s.arg_set_id AND n.flat_key = 'args.request_numbers'
  LEFT JOIN args e ON e.arg_set_id = s.arg_set_id AND e.flat_key = 'args.engine_ts_ns'
), between_outputs AS (
  SELECT ts - LAG(ts) OVER (PARTITION BY upid, number ORDER BY ts, at_ts) AS ns,
    pauses - LAG(pauses) OVER (PARTITION BY upid, number ORDER BY ts, at_ts) AS pauses
  FROM output
), gap AS (
  -- The outputs include every token: recorded tokens would count twice.
  SELECT m.ts - LAG(m.ts) OVER (PARTITION BY m.request_id ORDER BY m.ts) AS ns
  FROM moment m
  JOIN counted c ON c.request_id = m.request_id AND c.upid = m.upid AND c.nth = 1
  WHERE m.dur = 0 AND NOT EXISTS (SELECT 1 FROM output)
  UNION ALL
  SELECT ns
  FROM between_outputs
  WHERE pauses <= 0
), bucket AS (
  -- Ranks in two phases: those of whole seconds and of milliseconds in them, and then within each.
  SELECT ns - ns % 1000000 AS from_ns, ns - ns % 1000000000 AS block, COUNT(*) AS n
  FROM gap
  WHERE ns IS NOT NULL
  GROUP BY ns - ns % 1000000, ns - ns % 1000000000
), block AS (
  SELECT block, SUM(n) AS n
  FROM bucket
  GROUP BY block
), block_begin AS (
  SELECT b.block, COALESCE(SUM(CASE WHEN o.block < b.block THEN o.n END), 0) AS n, SUM(o.n) - 1 AS last_place
  FROM block b
  CROSS JOIN block o
  GROUP BY b.block
), rank_before AS (
  SELECT k.from_ns, b.n + SUM(k.n) OVER (PARTITION BY k.block ORDER BY k.from_ns) - k.n AS n, b.last_place
  FROM bucket k
  JOIN block_begin b ON b.block = k.block
), ranked AS (
  SELECT g.ns, b.last_place, b.n + ROW_NUMBER() OVER (PARTITION BY b.from_ns ORDER BY g.ns) - 1 AS place
  FROM gap g
  JOIN rank_before b ON b.from_ns = g.ns - g.ns % 1000000
), figure AS (
  SELECT COUNT(*) AS n, CAST(SUM(ns) AS DOUBLE) / COUNT(*) AS mean_ns, MIN(ns) AS min_ns, MAX(ns) AS max_ns,
    MAX(CASE WHEN 100 * place <= 50 * last_place THEN ns END) AS below_50, MIN(CASE WHEN 100 * place >= 50 * last_place THEN ns END) AS above_50,
    MAX(CASE WHEN 100 * place <= 90 * last_place THEN ns END) AS below_90, MIN(CASE WHEN 100 * place >= 90 * last_place THEN ns END) AS above_90,
    MAX(CASE WHEN 100 * place <= 99 * last_place THEN ns END) AS below_99, MIN(CASE WHEN 100 * place >= 99 * last_place THEN ns END) AS above_99
  FROM ranked
)
SELECT n, mean_ns, min_ns,
  -- Linear between the two ranks next to the percentile's place.
  below_50 + (above_50 - below_50) * (50 * (n - 1) % 100 / 1e2) AS p50_ns,
  below_90 + (above_90 - below_90) * (90 * (n - 1) % 100 / 1e2) AS p90_ns,
  below_99 + (above_99 - below_99) * (99 * (n - 1) % 100 / 1e2) AS p99_ns,
  max_ns
FROM figure;
