/* The times between two tokens of a request, over all requests (`requests.itl` of the report).
   If several processes noted tokens, the frontend's count, else those of the process with the most. */
WITH moment AS MATERIALIZED (
  SELECT a.display_value AS request_id, s.ts, s.dur, s.name,
    COALESCE(t.upid, pt.upid, extract_arg(tr.source_arg_set_id, 'upid')) AS upid
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  WHERE (s.dur <> 0 AND (s.name GLOB 'http.*' OR s.name = 'request'))
    OR (s.dur = 0 AND s.name IN ('request.token', 'token'))
), arrival AS (
  SELECT request_id, upid, ROW_NUMBER() OVER (PARTITION BY request_id ORDER BY name = 'request', ts) AS nth
  FROM moment
  WHERE dur <> 0
), noted AS (
  SELECT m.request_id, m.upid,
    ROW_NUMBER() OVER (PARTITION BY m.request_id ORDER BY m.upid = a.upid DESC, COUNT(*) DESC) AS nth
  FROM moment m
  LEFT JOIN arrival a ON a.request_id = m.request_id AND a.nth = 1
  WHERE m.dur = 0
  GROUP BY m.request_id, m.upid
), gap AS (
  SELECT m.ts - LAG(m.ts) OVER (PARTITION BY m.request_id ORDER BY m.ts) AS ns
  FROM moment m
  JOIN noted n ON n.request_id = m.request_id AND n.upid = m.upid AND n.nth = 1
  WHERE m.dur = 0
), ranked AS (
  SELECT ns, ROW_NUMBER() OVER (ORDER BY ns) - 1 AS place, COUNT(*) OVER () - 1 AS last_place
  FROM gap
  WHERE ns IS NOT NULL
)
SELECT COUNT(*) AS n, AVG(ns) AS mean_ns, MIN(ns) AS min_ns,
  -- Linear between the two ranks next to the percentile's place.
  SUM(ns * MAX(0, 1 - ABS(place - 0.50 * last_place))) AS p50_ns,
  SUM(ns * MAX(0, 1 - ABS(place - 0.90 * last_place))) AS p90_ns,
  SUM(ns * MAX(0, 1 - ABS(place - 0.99 * last_place))) AS p99_ns,
  MAX(ns) AS max_ns
FROM ranked;
