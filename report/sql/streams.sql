/* How busy each stream of a device was, and how long its queue was, where `queue_us` tells when spans were launched (`streams` of the report).
   A launch finds those before it that have not begun. */
WITH device AS (
  SELECT upid, pid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), noted AS (
  SELECT arg_set_id, MAX(CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT)) AS queue_ns
  FROM args
  WHERE flat_key = 'args.queue_us' AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), span AS (
  SELECT d.upid, d.pid, d.name, t.utid, t.tid, t.name AS stream, s.ts, s.dur, s.ts + s.dur AS end_ts,
    CASE WHEN s.category = 'graph' THEN 1 ELSE 0 END AS is_replay, CASE WHEN n.queue_ns >= 0 THEN n.queue_ns END AS queue_ns
  FROM slice s
  LEFT JOIN noted n ON n.arg_set_id = s.arg_set_id
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN device d ON d.upid = t.upid
  WHERE s.dur > 0
    AND (INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9'))
), wall AS (
  SELECT upid, MAX(end_ts) - MIN(ts) AS ns
  FROM span
  GROUP BY upid
), earlier AS (
  SELECT upid, pid, name, utid, tid, stream, ts, end_ts, is_replay, queue_ns,
    MAX(end_ts) OVER (PARTITION BY utid ORDER BY ts, end_ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS to_ts
  FROM span
), launched AS (
  -- Spans in the order in which they began; the last launch of those up to each one.
  SELECT utid, ts, ROW_NUMBER() OVER (PARTITION BY utid ORDER BY ts, end_ts DESC, queue_ns) AS nth,
    MAX(ts - queue_ns) OVER (PARTITION BY utid ORDER BY ts, end_ts DESC, queue_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS launch_ts
  FROM span
  WHERE queue_ns IS NOT NULL
), counted AS (
  -- How many have begun when each of these launches comes.
  SELECT utid, nth, SUM(is_begin) OVER (PARTITION BY utid ORDER BY ts, is_begin DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS begun
  FROM (
    SELECT utid, ts, 1 AS is_begin, CAST(NULL AS BIGINT) AS nth FROM launched
    UNION ALL
    SELECT utid, launch_ts, 0, nth FROM launched
  ) edge
), queue AS (
  SELECT utid, MAX(CASE WHEN begun < nth THEN nth - begun ELSE 1 END) AS max_queue
  FROM counted
  WHERE nth IS NOT NULL
  GROUP BY utid
)
SELECT e.pid, e.name, e.tid, e.stream, COUNT(*) AS slices, SUM(e.is_replay) AS replays,
  SUM(CASE WHEN e.to_ts IS NULL OR e.to_ts <= e.ts THEN e.end_ts - e.ts WHEN e.to_ts < e.end_ts THEN e.end_ts - e.to_ts ELSE 0 END) AS busy_ns,
  CAST(SUM(e.queue_ns) AS DOUBLE) / w.ns AS mean_queue, q.max_queue
FROM earlier e
JOIN wall w ON w.upid = e.upid
LEFT JOIN queue q ON q.utid = e.utid
GROUP BY e.upid, e.pid, e.name, e.utid, e.tid, e.stream, w.ns, q.max_queue
ORDER BY e.upid, e.tid;
