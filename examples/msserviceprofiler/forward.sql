/* forward.csv: a row for each time a model ran in a worker. Where no recorder looks into the steps of a process, its steps are those times. */
WITH origin AS (
  SELECT unix_ns, COALESCE(unix_ns, own_ns, 0) AS begin_ns
  FROM (SELECT MIN(base_unix_ns) AS unix_ns FROM clock), (SELECT MIN(int_value) AS own_ns FROM metadata WHERE name = 'base_ns')
), fact AS (
  SELECT arg_set_id,
    COALESCE(MAX(int_value) FILTER (key = 'args.prefill_requests'), MAX(int_value) FILTER (key = 'args.prefill')) AS prefill_requests,
    COALESCE(MAX(int_value) FILTER (key = 'args.decode_requests'), MAX(int_value) FILTER (key = 'args.decode')) AS decode_requests,
    MAX(int_value) FILTER (key = 'args.prefill_tokens') AS prefill_tokens,
    MAX(int_value) FILTER (key = 'args.decode_tokens') AS decode_tokens,
    MAX(int_value) FILTER (key = 'args.tokens') AS tokens,
    LIST({'rid': COALESCE(string_value, CAST(int_value AS VARCHAR))} ORDER BY CAST(NULLIF(REGEXP_EXTRACT(key, '\[(\d+)\]', 1), '') AS INTEGER))
      FILTER (flat_key = 'args.request_ids') AS listed,
    LIST({'rid': COALESCE(string_value, CAST(int_value AS VARCHAR))}) FILTER (flat_key = 'args.request_id') AS one,
    COALESCE(one, listed) AS requests
  FROM args GROUP BY arg_set_id
), named AS (
  SELECT *, LTRIM(REGEXP_EXTRACT(name, '[^.:]*$')) AS call, CASE
    WHEN call IN ('schedule', 'get_next_batch_to_run') THEN 'schedule'
    WHEN call IN ('execute_step', 'run_batch') OR call = 'execute_model' AND NOT REGEXP_MATCHES(name, '^executor[.:]') THEN 'step'
    WHEN name LIKE '%model_runner: forward' THEN 'forward' END AS work
  FROM slice WHERE dur >= 0
), span AS (
  SELECT named.id, track_id, work, ts, TRY(ts + dur) AS end_ts, COALESCE(thread.upid, track.upid) AS upid, fact.* EXCLUDE (arg_set_id, one, listed),
    COALESCE(end_ts <= MAX(end_ts) OVER (PARTITION BY track_id, work ORDER BY ts, dur DESC, named.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), FALSE) AS is_inside
  FROM named
  JOIN track ON track.id = track_id
  LEFT JOIN thread USING (utid)
  LEFT JOIN fact USING (arg_set_id)
  WHERE work IS NOT NULL
), numbered AS (
  SELECT *, SUM(1 - CAST(is_inside AS INTEGER)) OVER (PARTITION BY track_id, work ORDER BY ts, end_ts DESC, id ROWS UNBOUNDED PRECEDING) AS nth
  FROM span
), outermost AS (
  /* A call of the same kind inside another one is the same work, and may know more of it. */
  SELECT track_id, work, ANY_VALUE(upid) AS upid, MIN(ts) AS ts, MAX(end_ts) AS end_ts, FIRST(prefill_requests ORDER BY ts, end_ts DESC, id) FILTER (prefill_requests IS NOT NULL) AS prefill_requests,
    FIRST(decode_requests ORDER BY ts, end_ts DESC, id) FILTER (decode_requests IS NOT NULL) AS decode_requests,
    FIRST(prefill_tokens ORDER BY ts, end_ts DESC, id) FILTER (prefill_tokens IS NOT NULL) AS prefill_tokens,
    FIRST(decode_tokens ORDER BY ts, end_ts DESC, id) FILTER (decode_tokens IS NOT NULL) AS decode_tokens,
    FIRST(tokens ORDER BY ts, end_ts DESC, id) FILTER (tokens IS NOT NULL) AS tokens,
    FIRST(requests ORDER BY ts, end_ts DESC, id) FILTER (requests IS NOT NULL) AS requests
  FROM numbered GROUP BY track_id, work, nth
), sized AS (
  SELECT *, COALESCE(LEN(requests), TRY(prefill_requests + decode_requests)) AS size, CASE
    WHEN decode_requests > 0 AND prefill_requests > 0 THEN 'Prefill,Decode' WHEN prefill_requests > 0 AND decode_requests = 0 THEN 'Prefill' WHEN decode_requests > 0 AND prefill_requests = 0 THEN 'Decode' END AS type
  FROM outermost
), run AS (
  SELECT sized.upid, sized.ts, sized.end_ts,
    CASE WHEN step.end_ts >= sized.end_ts THEN COALESCE(LEN(sized.requests), LEN(step.requests), sized.size, step.size) ELSE sized.size END AS size,
    CASE WHEN step.end_ts >= sized.end_ts THEN COALESCE(sized.type, step.type) ELSE sized.type END AS type
  FROM sized
  ASOF LEFT JOIN (SELECT * FROM sized WHERE work = 'step') AS step ON step.track_id = sized.track_id AND step.ts <= sized.ts
  WHERE sized.work = 'forward' OR sized.work = 'step' AND NOT EXISTS (FROM sized AS forward WHERE forward.work = 'forward' AND forward.upid = sized.upid)
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
