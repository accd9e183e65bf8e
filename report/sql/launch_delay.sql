/* How long spans of devices were launched before they began, where `queue_us` tells (`launch_delay` of the report's `device`),
   and how many took less time than their launch took the host (`short_slices`). */
WITH device AS (
  SELECT upid, pid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), noted AS (
  SELECT arg_set_id,
    MAX(CASE WHEN flat_key = 'args.queue_us' AND COALESCE(real_value, int_value) <= 9e15 THEN ROUND(1e3 * COALESCE(real_value, int_value)) END) AS queue_ns,
    MAX(CASE WHEN flat_key = 'args.host_wall_us' THEN ROUND(1e3 * COALESCE(real_value, int_value)) END) AS launch_ns
  FROM args
  WHERE flat_key IN ('args.queue_us', 'args.host_wall_us')
  GROUP BY arg_set_id
), span AS (
  SELECT d.upid, d.pid, d.name, CAST(n.queue_ns AS BIGINT) AS ns, CASE WHEN s.dur < n.launch_ns THEN 1 ELSE 0 END AS is_short,
    CASE WHEN n.queue_ns >= 0 THEN 1 ELSE 0 END AS is_known
  FROM slice s
  JOIN noted n ON n.arg_set_id = s.arg_set_id
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN device d ON d.upid = t.upid
  WHERE s.dur > 0
    AND (INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9'))
), ranked AS (
  SELECT upid, pid, name, is_short, is_known, CASE WHEN is_known = 1 THEN ns END AS ns,
    ROW_NUMBER() OVER (PARTITION BY upid, is_known ORDER BY ns) - 1 AS place,
    COUNT(*) OVER (PARTITION BY upid, is_known) - 1 AS last_place
  FROM span
), figure AS (
  SELECT upid, pid, name, SUM(is_short) AS short_slices, SUM(is_known) AS n,
    CAST(SUM(ns) AS DOUBLE) / SUM(is_known) AS mean_ns, MIN(ns) AS min_ns, MAX(ns) AS max_ns,
    MAX(CASE WHEN 100 * place <= 50 * last_place THEN ns END) AS below_50, MIN(CASE WHEN 100 * place >= 50 * last_place THEN ns END) AS above_50,
    MAX(CASE WHEN 100 * place <= 90 * last_place THEN ns END) AS below_90, MIN(CASE WHEN 100 * place >= 90 * last_place THEN ns END) AS above_90,
    MAX(CASE WHEN 100 * place <= 99 * last_place THEN ns END) AS below_99, MIN(CASE WHEN 100 * place >= 99 * last_place THEN ns END) AS above_99
  FROM ranked
  GROUP BY upid, pid, name
)
SELECT pid, name, short_slices, n, mean_ns, min_ns,
  below_50 + (above_50 - below_50) * (50 * (n - 1) % 100 / 1e2) AS p50_ns,
  below_90 + (above_90 - below_90) * (90 * (n - 1) % 100 / 1e2) AS p90_ns,
  below_99 + (above_99 - below_99) * (99 * (n - 1) % 100 / 1e2) AS p99_ns,
  max_ns
FROM figure
WHERE n > 0
ORDER BY upid;
