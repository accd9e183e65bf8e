/* Mean and percentiles of each time of the requests, interpolated linearly between the two nearest ranks. Each time covers the requests that have it, and E2E the answered ones. */
WITH figure AS (
  SELECT 'queue' AS metric, queue_us AS us FROM request UNION ALL SELECT 'prefill', prefill_us FROM request UNION ALL SELECT 'decode', decode_us FROM request
  UNION ALL SELECT 'engine_ttft', engine_ttft_us FROM request UNION ALL SELECT 'ttft', ttft_us FROM request UNION ALL SELECT 'tpot', tpot_us FROM request
  UNION ALL SELECT 'e2e', e2e_us FROM request WHERE status = 'ok'
  UNION ALL SELECT 'application_ttft', application_ttft_us FROM request
  UNION ALL SELECT 'application_e2e', application_e2e_us FROM request WHERE status = 'ok'
), ranked AS (
  SELECT metric, us, ROW_NUMBER() OVER (PARTITION BY metric ORDER BY us) - 1 AS place, COUNT(*) OVER (PARTITION BY metric) - 1 AS last_place
  FROM figure WHERE us IS NOT NULL
)
SELECT metric, COUNT(*) AS n, AVG(us) AS mean_us, MIN(us) AS min_us, SUM(us * GREATEST(0e0, 1e0 - ABS(place - 5e-1 * last_place))) AS p50_us,
  SUM(us * GREATEST(0e0, 1e0 - ABS(place - 9e-1 * last_place))) AS p90_us, SUM(us * GREATEST(0e0, 1e0 - ABS(place - 99e-2 * last_place))) AS p99_us, MAX(us) AS max_us
FROM ranked GROUP BY metric ORDER BY metric;
