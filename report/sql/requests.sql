/* Each request: its moments in ns, and the times between them (`request` of the report).
   The frontend is the process in which the request arrived, the engine is the one that queued it. */
WITH moment AS MATERIALIZED (
  SELECT a.display_value AS request_id, s.ts, CASE WHEN s.dur > 0 THEN s.ts + s.dur END AS end_ts,
    COALESCE(t.upid, pt.upid, extract_arg(tr.source_arg_set_id, 'upid')) AS upid,
    CASE WHEN s.name GLOB 'http.*' THEN 'http' WHEN s.name = 'request' THEN 'span'
      ELSE REPLACE(s.name, 'request.', '') END AS kind
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  WHERE (s.dur <> 0 AND (s.name GLOB 'http.*' OR s.name = 'request'))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.scheduled', 'scheduled',
      'request.first_token', 'request.token', 'token', 'request.finished'))
), first AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY request_id, kind = 'queued' ORDER BY kind = 'span', ts) AS nth
  FROM moment
  WHERE kind IN ('http', 'span', 'queued')
), request AS (
  SELECT m.request_id, f.ts AS arrival_ns, e.ts AS queued_ns,
    MIN(m.ts) FILTER (WHERE m.kind = 'scheduled') AS scheduled_ns,
    MIN(m.ts) FILTER (WHERE m.kind GLOB '*token' AND m.upid = e.upid) AS engine_first_token_ns,
    MIN(m.ts) FILTER (WHERE m.kind GLOB '*token' AND m.upid = f.upid) AS first_token_ns,
    COALESCE(MAX(m.ts) FILTER (WHERE m.kind = 'token'),
      MAX(m.ts) FILTER (WHERE m.kind = 'finished' AND m.upid = e.upid)) AS last_token_ns,
    CASE WHEN f.ts IS NULL THEN MAX(m.ts) FILTER (WHERE m.kind = 'finished') ELSE f.end_ts END AS finished_ns
  FROM moment m
  LEFT JOIN first f ON f.request_id = m.request_id AND f.nth = 1 AND f.kind <> 'queued'
  LEFT JOIN first e ON e.request_id = m.request_id AND e.nth = 1 AND e.kind = 'queued'
  WHERE f.ts IS NOT NULL OR e.ts IS NOT NULL
  GROUP BY m.request_id, f.ts, f.end_ts, e.ts
)
SELECT *, first_token_ns - arrival_ns AS ttft_ns, finished_ns - arrival_ns AS e2e_ns,
  engine_first_token_ns - queued_ns AS engine_ttft_ns
FROM request
ORDER BY arrival_ns, request_id;
