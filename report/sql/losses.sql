/* Events that recorders lost, by process and cause. */
SELECT p.pid, p.name, l.cause, SUM(l.events) AS events, COUNT(*) AS losses, MIN(l.ts) AS first_ts, MAX(l.ts + COALESCE(l.dur, 0)) AS last_ts
FROM loss l
LEFT JOIN process p ON p.upid = l.upid
GROUP BY p.upid, p.pid, p.name, l.cause
ORDER BY SUM(l.events) DESC, p.upid, l.cause;
