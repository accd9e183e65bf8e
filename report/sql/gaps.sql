/* The ten longest times in which a device was idle, each with its main cause and the time due to it. */
WITH gap AS (
  SELECT upid, process, gap_start_ns, cause, SUM(dur_us) AS cause_us
  FROM idle
  GROUP BY upid, process, gap_start_ns, cause
), ranked AS (
  SELECT *, SUM(cause_us) OVER (PARTITION BY upid, gap_start_ns) AS gap_us, ROW_NUMBER() OVER (PARTITION BY upid, gap_start_ns ORDER BY cause_us DESC, cause) AS nth
  FROM gap
)
SELECT process, gap_start_ns, gap_us, cause, cause_us
FROM ranked WHERE nth = 1
ORDER BY gap_us DESC, gap_start_ns, upid
LIMIT 10;
