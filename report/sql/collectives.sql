/* Each collective, the nth of its name on every device: which device began it last, and how long after the last but one.
   If all devices have one engine, `device_last` and `device_late_ns` are that device's `last` and `late_ns` in the report's `rank`. */
WITH device AS (
  SELECT upid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), span AS (
  SELECT s.id, t.upid, d.name AS device, s.name, s.ts, s.dur, s.track_id,
    ROW_NUMBER() OVER (PARTITION BY t.upid, s.name ORDER BY s.ts, s.dur DESC) AS nth,
    COUNT(*) OVER (PARTITION BY t.upid, s.name) AS n
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN device d ON d.upid = t.upid
  WHERE s.dur > 0
    AND (INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9'))
    AND (LOWER(s.name) LIKE '%hcom%' OR LOWER(s.name) LIKE '%hccl%' OR LOWER(s.name) LIKE '%nccl%'
      OR LOWER(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(s.name, '_', ''), '-', ''), ' ', ''), '.', ''), ':', ''), '/', ''), '(', ''), ')', ''))
        IN ('allreduce', 'allgather', 'alltoall', 'reducescatter', 'broadcast'))
), ranked AS (
  SELECT id, upid, device, name, ts, dur, track_id, nth,
    ts - LAG(ts) OVER (PARTITION BY name, nth ORDER BY ts, upid) AS late_ns,
    ROW_NUMBER() OVER (PARTITION BY name, nth ORDER BY ts DESC, upid DESC) AS from_last,
    COUNT(*) OVER (PARTITION BY name, nth) AS devices,
    MIN(n) OVER (PARTITION BY name, nth) AS least_n, MAX(n) OVER (PARTITION BY name, nth) AS most_n
  FROM span
)
SELECT name, nth, devices, device AS last_device, late_ns, ts, dur, track_id, id AS slice_id,
  SUM(CASE WHEN late_ns > 0 THEN 1 ELSE 0 END) OVER (PARTITION BY upid) AS device_last,
  SUM(late_ns) OVER (PARTITION BY upid) AS device_late_ns
FROM ranked
WHERE from_last = 1 AND devices > 1 AND least_n = most_n
ORDER BY late_ns DESC, ts, name;
