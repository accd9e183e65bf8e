/* The common views of the other statements. Run this file before each of them. */

/* The beginning of the trace: in ns since 1970 if a recorder stored it, otherwise on the clock of the input. */
CREATE OR REPLACE VIEW origin AS
SELECT unix_ns, COALESCE(unix_ns, own_ns, 0) AS begin_ns
FROM (SELECT MIN(base_unix_ns) AS unix_ns FROM clock), (SELECT MIN(int_value) AS own_ns FROM metadata WHERE name = 'base_ns');

/* The work on batches: a `schedule` of an engine, a `step` of a worker, a `forward` of its model. */
CREATE OR REPLACE VIEW batch_work AS
WITH batch_args AS (
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
  SELECT named.id, track_id, work, ts, TRY(ts + dur) AS end_ts, COALESCE(thread.upid, track.upid) AS upid, batch_args.* EXCLUDE (arg_set_id, one, listed),
    COALESCE(end_ts <= MAX(end_ts) OVER (PARTITION BY track_id, work ORDER BY ts, dur DESC, named.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), FALSE) AS is_inside
  FROM named
  JOIN track ON track.id = track_id
  LEFT JOIN thread USING (utid)
  LEFT JOIN batch_args USING (arg_set_id)
  WHERE work IS NOT NULL
), numbered AS (
  SELECT *, SUM(1 - CAST(is_inside AS INTEGER)) OVER (PARTITION BY track_id, work ORDER BY ts, end_ts DESC, id ROWS UNBOUNDED PRECEDING) AS nth
  FROM span
), outermost AS (
  /* A call of the same kind inside another one is the same work, and may have more args. */
  SELECT track_id, work, ANY_VALUE(upid) AS upid, MIN(ts) AS ts, MAX(end_ts) AS end_ts, FIRST(prefill_requests ORDER BY ts, end_ts DESC, id) FILTER (prefill_requests IS NOT NULL) AS prefill_requests,
    FIRST(decode_requests ORDER BY ts, end_ts DESC, id) FILTER (decode_requests IS NOT NULL) AS decode_requests,
    FIRST(prefill_tokens ORDER BY ts, end_ts DESC, id) FILTER (prefill_tokens IS NOT NULL) AS prefill_tokens,
    FIRST(decode_tokens ORDER BY ts, end_ts DESC, id) FILTER (decode_tokens IS NOT NULL) AS decode_tokens,
    FIRST(tokens ORDER BY ts, end_ts DESC, id) FILTER (tokens IS NOT NULL) AS tokens,
    FIRST(requests ORDER BY ts, end_ts DESC, id) FILTER (requests IS NOT NULL) AS requests
  FROM numbered GROUP BY track_id, work, nth
)
SELECT *, COALESCE(LEN(requests), TRY(prefill_requests + decode_requests)) AS size, CASE
  WHEN decode_requests > 0 AND prefill_requests > 0 THEN 'Prefill,Decode' WHEN prefill_requests > 0 AND decode_requests = 0 THEN 'Prefill' WHEN decode_requests > 0 AND prefill_requests = 0 THEN 'Decode' END AS type
FROM outermost;

/* The usage of an engine's cache, each time that the engine counted it. */
CREATE OR REPLACE VIEW cache AS
SELECT upid, ts, MIN(counter.id) AS id,
  CAST(ROUND(ARG_MAX(value, counter.id) FILTER (track.name = 'kv_blocks used')) AS BIGINT) AS used_blocks,
  CAST(ROUND(ARG_MAX(value, counter.id) FILTER (track.name = 'kv_blocks free')) AS BIGINT) AS free_blocks,
  used_blocks + free_blocks AS total_blocks,
  COALESCE(CASE WHEN total_blocks = 0 THEN 0 ELSE used_blocks / total_blocks END, ARG_MAX(value, counter.id) FILTER (track.name = 'kv_cache used_percent') / 100) AS used
FROM counter
JOIN track ON track.id = track_id
WHERE track.name IN ('kv_blocks used', 'kv_blocks free', 'kv_cache used_percent') AND value BETWEEN 0 AND 4294967295
GROUP BY upid, ts, REGEXP_EXTRACT(track.name, '^[^ ]*')
HAVING used IS NOT NULL;
