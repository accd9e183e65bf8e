/* The ten longest steps of workers. */
SELECT process, name, start_ns, dur_us, requests
FROM step
WHERE role = 'worker'
ORDER BY dur_us DESC, start_ns, upid
LIMIT 10;
