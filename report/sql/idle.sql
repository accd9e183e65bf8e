/* Why each device was idle: the time and the number of intervals of each cause. */
SELECT process, cause, SUM(dur_us) AS idle_us, COUNT(*) AS intervals
FROM idle
GROUP BY upid, process, cause
ORDER BY upid, SUM(dur_us) DESC, cause;
