/* In which order requests went through the phases of the engine, from its queue to their last token (`phases` of the report).
   Behind `preempted` comes what was before it: what is computed again counts there. */
WITH waited AS (
  -- An HTTP request came before the application got it, and its answer was sent before the application was done with it.
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.waited_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS waited_ns,
    MAX(CASE WHEN flat_key = 'args.answered_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS answered_ns
  FROM args
  WHERE flat_key IN ('args.waited_us', 'args.answered_us') AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, CASE WHEN s.dur > 0 THEN COALESCE(s.ts - COALESCE(w.waited_ns, 0) + w.answered_ns, s.ts + s.dur) END AS end_ts,
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
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name = 'request'))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.scheduled', 'scheduled', 'request.resumed', 'resumed',
      'request.first_token', 'request.token', 'token', 'request.preempted', 'preempted', 'request.finished'))
), began AS (
  SELECT request_id, ts, end_ts, upid, kind,
    ROW_NUMBER() OVER (PARTITION BY request_id, CASE WHEN kind = 'queued' THEN 1 ELSE 0 END
      ORDER BY CASE WHEN kind = 'span' THEN 1 ELSE 0 END, ts, CASE WHEN end_ts IS NULL THEN 0 ELSE 1 END, end_ts DESC, upid) AS nth
  FROM moment
  WHERE kind IN ('http', 'span', 'queued')
), of_process AS (
  SELECT request_id, upid,
    MIN(CASE WHEN kind IN ('first_token', 'token') THEN ts END) AS first_token_ts,
    MAX(CASE WHEN kind = 'token' THEN ts END) AS last_token_ts,
    MAX(CASE WHEN kind = 'finished' THEN ts END) AS finished_ts,
    MAX(CASE WHEN kind IN ('scheduled', 'resumed') THEN 1 ELSE 0 END) AS is_scheduled
  FROM moment
  GROUP BY request_id, upid
), request AS (
  SELECT o.request_id, e.ts AS queued_ts, MAX(o.is_scheduled) AS is_scheduled,
    COALESCE(MIN(CASE WHEN o.upid = e.upid THEN o.first_token_ts END), MIN(CASE WHEN o.upid = f.upid THEN o.first_token_ts END)) AS first_token_ts,
    COALESCE(MAX(o.last_token_ts), MAX(CASE WHEN o.upid = e.upid THEN o.finished_ts END)) AS last_token_ts
  FROM of_process o
  JOIN began e ON e.request_id = o.request_id AND e.nth = 1 AND e.kind = 'queued'
  LEFT JOIN began f ON f.request_id = o.request_id AND f.nth = 1 AND f.kind <> 'queued'
  GROUP BY o.request_id, e.ts, f.ts, f.end_ts
  HAVING CASE WHEN f.ts IS NULL THEN MAX(o.finished_ts) ELSE f.end_ts END IS NOT NULL
), change AS (
  -- At one time the change with the highest place counts. Moments of two clocks may seem to be before the queue.
  SELECT request_id, queued_ts AS ts, 0 AS place
  FROM request
  UNION ALL
  SELECT m.request_id, CASE WHEN m.ts < r.queued_ts THEN r.queued_ts ELSE m.ts END, CASE WHEN m.kind = 'preempted' THEN 1 ELSE 2 END
  FROM moment m
  JOIN request r ON r.request_id = m.request_id
  WHERE m.kind IN ('preempted', 'scheduled', 'resumed')
  UNION ALL
  SELECT request_id, CASE WHEN first_token_ts < queued_ts THEN queued_ts ELSE first_token_ts END, 3
  FROM request
  WHERE first_token_ts IS NOT NULL
), placed AS (
  SELECT request_id, ts, place, LAG(place) OVER (PARTITION BY request_id ORDER BY ts, place) AS place_before,
    LEAD(ts) OVER (PARTITION BY request_id ORDER BY ts, place) AS next_ts
  FROM change
), lasting AS (
  SELECT p.request_id, p.ts,
    CASE WHEN p.place = 0 THEN CASE WHEN r.is_scheduled = 1 THEN 'queue' ELSE 'queue + prefill' END
      WHEN p.place = 1 OR (p.place = 3 AND p.place_before = 1) THEN 'preempted'
      WHEN p.place = 3 OR r.first_token_ts <= p.ts THEN 'decode' ELSE 'prefill' END AS phase,
    CASE WHEN p.next_ts < r.last_token_ts THEN p.next_ts ELSE r.last_token_ts END - p.ts AS ns
  FROM placed p
  JOIN request r ON r.request_id = p.request_id
), changed AS (
  SELECT request_id, ts, phase, ns, CASE WHEN phase = LAG(phase) OVER (PARTITION BY request_id ORDER BY ts) THEN 0 ELSE 1 END AS is_new
  FROM lasting
  WHERE ns > 0
), numbered AS (
  SELECT request_id, phase, ns, SUM(is_new) OVER (PARTITION BY request_id ORDER BY ts) AS nth
  FROM changed
), part AS (
  SELECT request_id, nth, MAX(phase) AS phase, SUM(ns) AS ns
  FROM numbered
  GROUP BY request_id, nth
), of_request AS (
  SELECT request_id, SUM(ns) AS ns,
    MAX(CASE WHEN nth = 1 THEN phase END)
      || COALESCE(' → ' || MAX(CASE WHEN nth = 2 THEN phase END), '')
      || COALESCE(' → ' || MAX(CASE WHEN nth = 3 THEN phase END), '')
      || COALESCE(' → ' || MAX(CASE WHEN nth = 4 THEN phase END), '')
      || COALESCE(' → ' || MAX(CASE WHEN nth = 5 THEN phase END), '')
      || COALESCE(' → ' || MAX(CASE WHEN nth = 6 THEN phase END), '')
      || COALESCE(' → ' || MAX(CASE WHEN nth = 7 THEN phase END), '')
      || COALESCE(' → ' || MAX(CASE WHEN nth = 8 THEN phase END), '')
      || CASE WHEN MAX(nth) > 8 THEN ' → …' ELSE '' END AS sequence,
    SUM(CASE WHEN nth = 1 THEN ns END) AS ns_1, SUM(CASE WHEN nth = 2 THEN ns END) AS ns_2,
    SUM(CASE WHEN nth = 3 THEN ns END) AS ns_3, SUM(CASE WHEN nth = 4 THEN ns END) AS ns_4,
    SUM(CASE WHEN nth = 5 THEN ns END) AS ns_5, SUM(CASE WHEN nth = 6 THEN ns END) AS ns_6,
    SUM(CASE WHEN nth = 7 THEN ns END) AS ns_7, SUM(CASE WHEN nth = 8 THEN ns END) AS ns_8
  FROM part
  GROUP BY request_id
), counted AS (
  SELECT COUNT(*) AS n
  FROM of_request
)
SELECT o.sequence, COUNT(*) AS requests, CAST(COUNT(*) AS DOUBLE) / c.n AS share, SUM(o.ns) AS total_ns, CAST(SUM(o.ns) AS DOUBLE) / COUNT(*) AS mean_ns,
  CAST(SUM(o.ns_1) AS DOUBLE) / COUNT(*) AS mean_1_ns, CAST(SUM(o.ns_2) AS DOUBLE) / COUNT(*) AS mean_2_ns,
  CAST(SUM(o.ns_3) AS DOUBLE) / COUNT(*) AS mean_3_ns, CAST(SUM(o.ns_4) AS DOUBLE) / COUNT(*) AS mean_4_ns,
  CAST(SUM(o.ns_5) AS DOUBLE) / COUNT(*) AS mean_5_ns, CAST(SUM(o.ns_6) AS DOUBLE) / COUNT(*) AS mean_6_ns,
  CAST(SUM(o.ns_7) AS DOUBLE) / COUNT(*) AS mean_7_ns, CAST(SUM(o.ns_8) AS DOUBLE) / COUNT(*) AS mean_8_ns
FROM of_request o
CROSS JOIN counted c
GROUP BY o.sequence, c.n
ORDER BY requests DESC, total_ns DESC, o.sequence;
