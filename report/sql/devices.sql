/* How busy each device was, from its first span to the end of its last. Spans that overlap count once (`device` of the report).
   Communication is exposed while nothing else ran. A device is a process with a name like `NPU 0`, `GPU 0` or `<tracks> · <process>`. */
WITH device AS (
  SELECT upid, pid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), span AS (
  SELECT d.upid, d.pid, d.name, s.ts, s.ts + s.dur AS end_ts,
    CASE WHEN LOWER(s.name) LIKE '%hcom%' OR LOWER(s.name) LIKE '%hccl%' OR LOWER(s.name) LIKE '%nccl%'
      OR LOWER(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(s.name, '_', ''), '-', ''), ' ', ''), '.', ''), ':', ''), '/', ''), '(', ''), ')', ''))
        IN ('allreduce', 'allgather', 'alltoall', 'reducescatter', 'broadcast') THEN 1 ELSE 0 END AS is_communication
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN device d ON d.upid = t.upid
  WHERE s.dur > 0
    AND (INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9'))
), earlier AS (
  -- Up to where earlier spans reach: any, and those that are communication or not, as this one is.
  SELECT upid, pid, name, ts, end_ts, is_communication,
    MAX(end_ts) OVER (PARTITION BY upid ORDER BY ts, end_ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS all_to_ts,
    MAX(end_ts) OVER (PARTITION BY upid, is_communication ORDER BY ts, end_ts DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS kind_to_ts
  FROM span
), added AS (
  SELECT upid, pid, name, ts, end_ts, is_communication,
    CASE WHEN all_to_ts IS NULL OR all_to_ts <= ts THEN end_ts - ts WHEN all_to_ts < end_ts THEN end_ts - all_to_ts ELSE 0 END AS busy_ns,
    CASE WHEN kind_to_ts IS NULL OR kind_to_ts <= ts THEN end_ts - ts WHEN kind_to_ts < end_ts THEN end_ts - kind_to_ts ELSE 0 END AS kind_ns,
    CASE WHEN all_to_ts < ts THEN ts - all_to_ts ELSE 0 END AS gap_ns
  FROM earlier
)
SELECT pid, name, COUNT(*) AS slices,
  MIN(ts) AS from_ns,
  MAX(end_ts) - MIN(ts) AS wall_ns,
  SUM(busy_ns) AS busy_ns,
  SUM(is_communication * kind_ns) AS communication_ns,
  SUM(busy_ns) - SUM((1 - is_communication) * kind_ns) AS exposed_communication_ns,
  MAX(gap_ns) AS longest_gap_ns
FROM added
GROUP BY upid, pid, name
ORDER BY upid;
