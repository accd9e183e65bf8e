/* Each process: how many events of each kind Perfetto has of it, and the wall time of the whole trace (`recorded` of the report).
   The report's `events` also count arrows and metadata. They count the values of one counter event as one. */
WITH event AS (
  SELECT COALESCE(t.upid, pt.upid, extract_arg(tr.source_arg_set_id, 'upid')) AS upid,
    s.dur > 0 AS is_span, s.dur = 0 AS is_instant, s.dur < 0 AS is_unfinished, 0 AS is_value
  FROM slice s
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  UNION ALL
  SELECT ct.upid, 0, 0, 0, 1
  FROM counter c
  JOIN process_counter_track ct ON ct.id = c.track_id
)
SELECT p.pid, p.name,
  SUM(e.is_span) AS slices,
  SUM(e.is_instant) AS instants,
  SUM(e.is_unfinished) AS unfinished,
  SUM(e.is_value) AS counter_values,
  (SELECT end_ts - start_ts FROM trace_bounds) AS wall_ns
FROM event e
JOIN process p ON p.upid = e.upid
GROUP BY p.upid, p.pid, p.name
ORDER BY p.upid;
