/* Each collective, the nth of its name on every device: which device began it last, and how long after the last but one.
   If all devices have one engine, `device_last` and `device_late_ns` are that device's `last` and `late_ns` in the report's `rank`. */
WITH span AS (
  SELECT s.id, t.upid, s.name, s.ts, s.dur, s.track_id,
    ROW_NUMBER() OVER (PARTITION BY t.upid, s.name ORDER BY s.ts, s.dur DESC) AS nth,
    COUNT(*) OVER (PARTITION BY t.upid, s.name) AS n
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN process p ON p.upid = t.upid
  WHERE s.dur > 0 AND (p.name GLOB '*[NG]PU [0-9]*' OR p.name GLOB '* · *')
    AND (s.name LIKE '%hcom%' OR s.name LIKE '%hccl%' OR s.name LIKE '%nccl%'
      OR LOWER(REPLACE(REPLACE(REPLACE(s.name, '_', ''), '-', ''), ' ', ''))
        IN ('allreduce', 'allgather', 'alltoall', 'reducescatter', 'broadcast'))
), ranked AS (
  SELECT *, ts - LAG(ts) OVER (PARTITION BY name, nth ORDER BY ts, upid) AS late_ns,
    ROW_NUMBER() OVER (PARTITION BY name, nth ORDER BY ts DESC, upid DESC) AS from_last,
    COUNT(*) OVER (PARTITION BY name, nth) AS devices,
    MIN(n) OVER (PARTITION BY name, nth) = MAX(n) OVER (PARTITION BY name, nth) AS is_paired
  FROM span
)
SELECT r.name, r.nth, r.devices, p.name AS last_device, r.late_ns, r.ts, r.dur, r.track_id, r.id AS slice_id,
  SUM(r.late_ns > 0) OVER (PARTITION BY r.upid) AS device_last,
  SUM(r.late_ns) OVER (PARTITION BY r.upid) AS device_late_ns
FROM ranked r
JOIN process p ON p.upid = r.upid
WHERE r.from_last = 1 AND r.devices > 1 AND r.is_paired
ORDER BY r.late_ns DESC, r.ts;
