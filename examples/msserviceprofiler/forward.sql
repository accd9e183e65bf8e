/* forward.csv: a row for each run of a model in a worker. If the model's runs in a process are not recorded, its steps are used instead. */
WITH run AS (
  SELECT batch_work.upid, batch_work.ts, batch_work.end_ts,
    CASE WHEN step.end_ts >= batch_work.end_ts THEN COALESCE(LEN(batch_work.requests), LEN(step.requests), batch_work.size, step.size) ELSE batch_work.size END AS size,
    CASE WHEN step.end_ts >= batch_work.end_ts THEN COALESCE(batch_work.type, step.type) ELSE batch_work.type END AS type
  FROM batch_work
  ASOF LEFT JOIN (SELECT * FROM batch_work WHERE work = 'step') AS step ON step.track_id = batch_work.track_id AND step.ts <= batch_work.ts
  WHERE batch_work.work = 'forward' OR batch_work.work = 'step' AND NOT EXISTS (FROM batch_work AS forward WHERE forward.work = 'forward' AND forward.upid = batch_work.upid)
), placed AS (
  SELECT *, LEAD(ts) OVER (PARTITION BY upid ORDER BY ts, end_ts DESC) AS next_ts, ROW_NUMBER() OVER (PARTITION BY upid ORDER BY ts, end_ts DESC) AS nth,
    MIN(ts) OVER (PARTITION BY hostname) AS first_ts
  FROM run
  LEFT JOIN (SELECT upid, pid, NULLIF(host, 'unknown') AS hostname FROM process) USING (upid)
)
SELECT
  'forward' AS name,
  (ts - first_ts) / 1e6 AS "relative_start_time(ms)",
  CASE WHEN unix_ns IS NOT NULL THEN STRFTIME(MAKE_TIMESTAMP((begin_ns + ts) // 1000), '%Y-%m-%d %H:%M:%S.%f') END AS start_datetime,
  CASE WHEN unix_ns IS NOT NULL THEN STRFTIME(MAKE_TIMESTAMP((begin_ns + end_ts) // 1000), '%Y-%m-%d %H:%M:%S.%f') END AS end_datetime,
  (end_ts - ts) / 1e6 AS "during_time(ms)",
  CASE WHEN next_ts IS NOT NULL THEN GREATEST(next_ts - end_ts, 0) / 1e6 END AS "bubble_time(ms)",
  size AS batch_size,
  type AS batch_type,
  nth AS forward_iter,
  NULL AS dp_rank,
  pid AS prof_id,
  hostname,
  (begin_ns + ts) / 1e6 AS "start_time(ms)",
  (begin_ns + end_ts) / 1e6 AS "end_time(ms)"
FROM placed
CROSS JOIN origin
ORDER BY ts, upid;
