/* Where the time of answered requests goes, from arrival to end: the mean of each part (`request_parts` of the report).
   A part whose end is not in the trace is joined with the next one: `queue + prefill`. */
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
    CASE WHEN SUBSTR(s.name, 1, 5) = 'http.' THEN 'http' WHEN s.name = 'request' THEN 'span' ELSE REPLACE(s.name, 'request.', '') END AS kind
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
      'request.first_token', 'request.token', 'token', 'request.finished', 'request.answered'))
), noted AS (
  SELECT arg_set_id, MAX(1) AS is_failed
  FROM args
  WHERE flat_key = 'args.reason' AND string_value IN ('abort', 'aborted', 'cancelled', 'error', 'failed', 'timeout', 'ignored')
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
    MIN(CASE WHEN m.kind = 'preprocess' THEN m.end_ts END) AS preprocessed_ts,
    MIN(CASE WHEN m.kind = 'scheduled' THEN m.ts END) AS scheduled_ts,
    MIN(CASE WHEN m.kind IN ('first_token', 'token') THEN m.ts END) AS first_token_ts,
    MAX(CASE WHEN m.kind = 'token' THEN m.ts END) AS last_token_ts,
    MAX(CASE WHEN m.kind = 'answered' THEN m.ts END) AS answered_ts,
    MAX(CASE WHEN m.kind = 'finished' THEN m.ts END) AS finished_ts,
    MAX(n.is_failed) AS is_failed
  FROM moment m
  LEFT JOIN noted n ON n.arg_set_id = m.arg_set_id
  GROUP BY m.request_id, m.upid
), joined AS (
  SELECT o.request_id, f.kind AS arrived_as, f.ts AS span_ts, f.waited_ns, f.end_ts AS finished_ts, e.ts AS queued_ts,
    MIN(o.read_ts) AS read_ts, MIN(o.preprocessed_ts) AS preprocessed_ts, MIN(o.scheduled_ts) AS scheduled_ts,
    COALESCE(MIN(CASE WHEN o.upid = e.upid THEN o.first_token_ts END), MIN(CASE WHEN o.upid = f.upid THEN o.first_token_ts END)) AS first_token_ts,
    COALESCE(MAX(o.last_token_ts), MAX(CASE WHEN o.upid = e.upid THEN o.finished_ts END)) AS last_token_ts,
    MAX(o.answered_ts) AS answered_ts
  FROM of_process o
  JOIN began f ON f.request_id = o.request_id AND f.nth = 1 AND f.kind <> 'queued'
  LEFT JOIN began e ON e.request_id = o.request_id AND e.nth = 1 AND e.kind = 'queued'
  WHERE f.end_ts IS NOT NULL
  GROUP BY o.request_id, f.kind, f.ts, f.waited_ns, f.end_ts, e.ts
  HAVING MAX(COALESCE(o.is_failed, 0)) = 0
), request AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT request_id, CASE WHEN arrived_as = 'span' AND read_ts < span_ts THEN read_ts ELSE span_ts END AS arrival_ts, waited_ns,
    read_ts, preprocessed_ts, queued_ts, scheduled_ts, first_token_ts, last_token_ts, answered_ts, finished_ts
  FROM joined
), part AS (
  SELECT request_id, arrival_ts, finished_ts, 1 AS nth, arrival_ts + waited_ns AS to_ts FROM request WHERE waited_ns > 0
  UNION ALL
  SELECT request_id, arrival_ts, finished_ts, 2, read_ts FROM request WHERE read_ts IS NOT NULL
  UNION ALL SELECT request_id, arrival_ts, finished_ts, 3, preprocessed_ts FROM request WHERE read_ts IS NOT NULL
  UNION ALL SELECT request_id, arrival_ts, finished_ts, CASE WHEN read_ts IS NULL THEN 5 ELSE 4 END, queued_ts FROM request
  UNION ALL SELECT request_id, arrival_ts, finished_ts, 6, scheduled_ts FROM request
  UNION ALL SELECT request_id, arrival_ts, finished_ts, 7, first_token_ts FROM request
  UNION ALL SELECT request_id, arrival_ts, finished_ts, 8, last_token_ts FROM request
  UNION ALL SELECT request_id, arrival_ts, finished_ts, 9, answered_ts FROM request WHERE answered_ts IS NOT NULL
  UNION ALL SELECT request_id, arrival_ts, finished_ts, 10, finished_ts AS to_ts FROM request
), ended AS (
  -- Moments of two clocks may seem to be in another order.
  SELECT request_id, nth, arrival_ts, COUNT(to_ts) OVER (PARTITION BY request_id ORDER BY nth DESC) AS ends_left,
    MAX(CASE WHEN to_ts > finished_ts THEN finished_ts WHEN to_ts < arrival_ts THEN arrival_ts ELSE to_ts END) OVER (PARTITION BY request_id ORDER BY nth) AS to_ts
  FROM part
), begun AS (
  SELECT request_id, nth, ends_left, arrival_ts, to_ts, LAG(to_ts) OVER (PARTITION BY request_id ORDER BY nth) AS from_ts
  FROM ended
), timed AS (
  SELECT request_id, nth, ends_left, CASE WHEN from_ts IS NOT NULL THEN to_ts - from_ts WHEN to_ts IS NOT NULL THEN to_ts - arrival_ts ELSE 0 END AS ns
  FROM begun
), named AS (
  SELECT MIN(nth) AS nth, SUM(ns) AS ns,
    MAX(CASE WHEN nth = 1 THEN 'socket + ' ELSE '' END) || MAX(CASE WHEN nth = 2 THEN 'HTTP + ' ELSE '' END)
      || MAX(CASE WHEN nth = 3 THEN 'preprocess + ' ELSE '' END) || MAX(CASE WHEN nth = 4 THEN 'IPC + ' ELSE '' END)
      || MAX(CASE WHEN nth = 5 THEN 'frontend + ' ELSE '' END) || MAX(CASE WHEN nth = 6 THEN 'queue + ' ELSE '' END)
      || MAX(CASE WHEN nth = 7 THEN 'prefill + ' ELSE '' END) || MAX(CASE WHEN nth = 8 THEN 'decode + ' ELSE '' END)
      || MAX(CASE WHEN nth = 9 THEN 'return + ' ELSE '' END) || MAX(CASE WHEN nth = 10 THEN 'answer + ' ELSE '' END) AS names
  FROM timed
  GROUP BY request_id, ends_left
)
SELECT SUBSTR(names, 1, LENGTH(names) - 3) AS name, CAST(SUM(ns) AS DOUBLE) / (SELECT COUNT(*) FROM request) AS mean_ns
FROM named
GROUP BY names
ORDER BY MIN(nth), LENGTH(names);
