/* Where the time of answered requests goes, from arrival to end: the mean of each part (`request_parts` of the report).
   A part whose end is not in the trace is joined with the next one: `queue + prefill`. */
WITH moment AS MATERIALIZED (
  SELECT a.display_value AS request_id, s.ts, CASE WHEN s.dur > 0 THEN s.ts + s.dur END AS end_ts,
    COALESCE(t.upid, pt.upid, extract_arg(tr.source_arg_set_id, 'upid')) AS upid,
    CASE WHEN s.dur = 0 OR s.name = 'request.preprocess' THEN REPLACE(s.name, 'request.', '')
      WHEN s.name = 'request' THEN 'span' ELSE 'http' END AS kind,
    extract_arg(s.arg_set_id, 'args.reason') IN
      ('abort', 'aborted', 'cancelled', 'error', 'failed', 'timeout', 'ignored') AS is_failed
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  WHERE s.dur = 0 OR s.name GLOB 'http.*' OR s.name IN ('request', 'request.preprocess')
), first AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY request_id, kind = 'queued' ORDER BY kind = 'span', ts) AS nth
  FROM moment
  WHERE kind IN ('http', 'span', 'queued')
), request AS (
  SELECT f.request_id, f.ts AS arrival_ts, f.end_ts AS finished_ts, e.ts AS queued_ts,
    MIN(m.ts) FILTER (WHERE m.kind = 'preprocess') AS arrived_ts, MIN(m.end_ts) FILTER (WHERE m.kind = 'preprocess') AS ready_ts,
    MIN(m.ts) FILTER (WHERE m.kind = 'scheduled') AS scheduled_ts,
    COALESCE(MIN(m.ts) FILTER (WHERE m.kind IN ('first_token', 'token') AND m.upid = e.upid),
      MIN(m.ts) FILTER (WHERE m.kind IN ('first_token', 'token') AND m.upid = f.upid)) AS first_ts,
    COALESCE(MAX(m.ts) FILTER (WHERE m.kind = 'token'),
      MAX(m.ts) FILTER (WHERE m.kind = 'finished' AND m.upid = e.upid)) AS last_ts,
    MAX(m.ts) FILTER (WHERE m.kind = 'answered') AS answered_ts
  FROM first f
  JOIN moment m ON m.request_id = f.request_id
  LEFT JOIN first e ON e.request_id = f.request_id AND e.nth = 1 AND e.kind = 'queued'
  WHERE f.nth = 1 AND f.kind <> 'queued' AND f.end_ts IS NOT NULL
  GROUP BY f.request_id, f.ts, f.end_ts, e.ts
  HAVING MAX(COALESCE(m.is_failed, 0)) = 0
), part AS (
  SELECT -1 AS nth, 'HTTP' AS part, arrived_ts AS to_ts, * FROM request WHERE arrived_ts IS NOT NULL
  UNION ALL SELECT 0, 'preprocess', ready_ts, * FROM request WHERE arrived_ts IS NOT NULL
  UNION ALL SELECT 1, CASE WHEN arrived_ts IS NULL THEN 'frontend' ELSE 'IPC' END, queued_ts, * FROM request
  UNION ALL SELECT 2, 'queue', scheduled_ts, * FROM request
  UNION ALL SELECT 3, 'prefill', first_ts, * FROM request
  UNION ALL SELECT 4, 'decode', last_ts, * FROM request
  UNION ALL SELECT 5, 'return', answered_ts, * FROM request WHERE answered_ts IS NOT NULL
  UNION ALL SELECT 6, 'answer', finished_ts, * FROM request
), ended AS (
  SELECT request_id, nth, part, arrival_ts, COUNT(to_ts) OVER (PARTITION BY request_id ORDER BY nth DESC) AS ends_left,
    MAX(arrival_ts, COALESCE(MAX(MIN(to_ts, finished_ts)) OVER (PARTITION BY request_id ORDER BY nth), arrival_ts)) AS to_ts
  FROM part
), timed AS (
  SELECT *, to_ts - LAG(to_ts, 1, arrival_ts) OVER (PARTITION BY request_id ORDER BY nth) AS ns
  FROM ended
), named AS (
  SELECT MIN(nth) AS nth, GROUP_CONCAT(part, ' + ' ORDER BY nth) AS name, SUM(ns) AS ns
  FROM timed
  GROUP BY request_id, ends_left
)
SELECT name, SUM(ns) * 1.0 / (SELECT COUNT(*) FROM request) AS mean_ns
FROM named
GROUP BY name
ORDER BY MIN(nth), LENGTH(name);
