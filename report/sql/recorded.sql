/* Each process: how many events of each kind Perfetto has of it, and the wall time of the whole trace (`recorded` of the report).
   The report's `events` also count arrows and metadata. They count the values of one counter event as one. */
WITH event AS (
  SELECT COALESCE(t.upid, pt.upid, ta.int_value) AS upid, s.ts, CASE WHEN s.dur > 0 THEN s.ts + s.dur ELSE s.ts END AS end_ts,
    CASE WHEN s.dur > 0 THEN 1 ELSE 0 END AS is_span, CASE WHEN s.dur = 0 THEN 1 ELSE 0 END AS is_instant,
    CASE WHEN s.dur < 0 THEN 1 ELSE 0 END AS is_unfinished, 0 AS is_value
  FROM slice s
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  UNION ALL
  SELECT ct.upid, c.ts, c.ts AS end_ts, 0, 0, 0, 1
  FROM counter c
  JOIN process_counter_track ct ON ct.id = c.track_id
), of_process AS (
  SELECT upid, MIN(ts) AS first_ts, MAX(end_ts) AS last_ts,
    SUM(is_span) AS slices, SUM(is_instant) AS instants, SUM(is_unfinished) AS unfinished, SUM(is_value) AS counter_values
  FROM event
  GROUP BY upid
)
SELECT p.pid, p.name, e.slices, e.instants, e.unfinished, e.counter_values,
  (SELECT MAX(last_ts) - MIN(first_ts) FROM of_process) AS wall_ns
FROM of_process e
JOIN process p ON p.upid = e.upid
ORDER BY p.upid;
