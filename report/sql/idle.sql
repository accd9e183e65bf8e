/* Why devices were idle (`idle` of the report): for each device the time of each cause. An idle nanosecond has the first cause that holds, in the order of
   docs/time.md. The process behind a device is the one whose name stands behind ` · ` in the device's, of several the last one before it.
   Its engine schedules, hands on or counts requests; of several it is the one that has the most of its requests. */
WITH owner AS (
  SELECT upid, pid, name,
    CASE WHEN INSTR(name, ' · ') > 0 OR (INSTR(REPLACE(name, 'GPU ', 'NPU '), 'NPU ') > 0
      AND SUBSTR(name, INSTR(REPLACE(name, 'GPU ', 'NPU '), 'NPU ') + 4, 1) BETWEEN '0' AND '9') THEN 1 ELSE 0 END AS is_device
  FROM process
), device AS (
  SELECT d.upid, d.pid, d.name, COALESCE(MAX(CASE WHEN w.upid < d.upid THEN w.upid END), MIN(w.upid), d.upid) AS worker
  FROM owner d
  LEFT JOIN owner w ON w.name = SUBSTR(d.name, INSTR(d.name, ' · ') + 3) AND w.is_device = 0 AND INSTR(d.name, ' · ') > 0
  WHERE d.is_device = 1
  GROUP BY d.upid, d.pid, d.name
), thread_row AS (
  -- Without rows of async work and of samples.
  SELECT tt.id AS track_id, t.upid, o.is_device
  FROM thread_track tt
  JOIN thread t ON t.utid = tt.utid
  JOIN owner o ON o.upid = t.upid
  WHERE o.is_device = 1 OR NOT (INSTR(COALESCE(t.name, ''), ' (async)') > 0 OR SUBSTR(COALESCE(t.name, ''), 1, 8) = 'samples '
    OR (SUBSTR(COALESCE(t.name, ''), 1, 6) = 'async ' AND SUBSTR(COALESCE(t.name, ''), 7, 1) BETWEEN '0' AND '9'))
), call (name, activity) AS (
  VALUES ('schedule', 'schedule'), ('get_next_batch_to_run', 'schedule'), ('queue_worker_step', 'dispatch'), ('wait_worker_output', 'dispatch'),
    ('update_from_output', 'output'), ('process_step_output', 'output'), ('process_batch_result', 'output'), ('process_outputs', 'output'),
    ('execute_model', 'step'), ('execute_step', 'step'), ('run_batch', 'step'),
    ('sample_tokens', 'sample'), ('sample', 'sample'), ('enqueue_output', 'sample'),
    ('start_load_kv', 'kv_transfer'), ('wait_for_layer_load', 'kv_transfer'), ('wait_for_save', 'kv_transfer')
), called AS (
  -- Names that end in a call, and what stands before that.
  SELECT n.name, c.name AS call, c.activity, RTRIM(SUBSTR(n.name, 1, CASE WHEN LENGTH(n.name) > LENGTH(c.name) THEN LENGTH(n.name) - LENGTH(c.name) ELSE 0 END)) AS owner
  FROM (SELECT DISTINCT name FROM slice WHERE dur > 0) n
  LEFT JOIN call c ON SUBSTR(n.name, CASE WHEN LENGTH(n.name) > LENGTH(c.name) THEN LENGTH(n.name) - LENGTH(c.name) + 1 ELSE 1 END) = c.name
), activity AS (
  -- A name may end in two calls, as `a.sample` and `resample` do: what is before the right one ends in a dot or colon.
  SELECT name, MAX(CASE WHEN (owner IN ('executor.', 'executor:') AND call = 'execute_model')
      OR ((owner = '' OR SUBSTR(owner, LENGTH(owner)) IN ('.', ':')) AND call = 'queue_worker_step') THEN 'step_handed'
      WHEN owner IN ('executor.', 'executor:') AND call = 'sample_tokens' THEN 'sample_handed'
      WHEN (owner = '' OR SUBSTR(owner, LENGTH(owner)) IN ('.', ':')) AND call IN ('sample_tokens', 'sample') THEN 'sample_begun' END) AS hand_over,
    COALESCE(MAX(CASE WHEN owner IN ('executor.', 'executor:') AND call IN ('execute_model', 'sample_tokens') THEN 'dispatch'
      WHEN owner = '' OR SUBSTR(owner, LENGTH(owner)) IN ('.', ':') THEN activity END),
    CASE WHEN INSTR(name, 'kv_transfer') > 0 THEN 'kv_transfer'
      WHEN name = 'gc' OR (SUBSTR(name, 1, 3) IN ('gc.', 'gc:') AND INSTR(REPLACE(SUBSTR(name, 4), ':', '.'), '.') = 0) THEN 'gc'
      WHEN SUBSTR(name, LENGTH(name) - 13) = '.batch_prefill' OR SUBSTR(name, LENGTH(name) - 12) = '.batch_decode' THEN 'batch' END) AS activity
  FROM called
  GROUP BY name
), span AS (
  SELECT r.upid, a.activity, a.hand_over, s.ts, s.ts + s.dur AS end_ts, s.arg_set_id
  FROM slice s
  JOIN activity a ON a.name = s.name
  JOIN thread_row r ON r.track_id = s.track_id
  WHERE s.dur > 0 AND a.activity IS NOT NULL AND r.is_device = 0
  UNION ALL
  -- Async work that an engine has given to its workers, on a row of the process or of a thread.
  SELECT COALESCE(pt.upid, t.upid), 'given', 'given', s.ts, s.ts + s.dur, NULL
  FROM slice s
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN thread_row r ON r.track_id = s.track_id
  WHERE s.name = 'batch' AND s.dur > 0 AND r.track_id IS NULL
), counted AS (
  SELECT ct.upid, ct.name, c.ts, MAX(c.value) AS requests
  FROM counter c
  JOIN process_counter_track ct ON ct.id = c.track_id
  WHERE ct.name IN ('requests running', 'requests waiting') AND c.value BETWEEN 0 AND 4294967295
  GROUP BY ct.upid, ct.name, c.ts
), scheduled AS (
  -- What a scheduler has, until it counts again.
  SELECT upid, CASE WHEN name = 'requests running' AND requests < 5e-1 THEN 'none_runs' WHEN name = 'requests running' THEN 'some_run'
    WHEN requests < 5e-1 THEN 'none_waits' ELSE 'some_wait' END AS activity,
    ts, COALESCE(LEAD(ts) OVER (PARTITION BY upid, name ORDER BY ts), 4611686018427387904) AS end_ts
  FROM counted
), engine AS (
  SELECT upid FROM span WHERE activity IN ('schedule', 'dispatch', 'given')
  UNION
  SELECT upid FROM counted WHERE name = 'requests running'
), told AS (
  SELECT DISTINCT s.upid, a.display_value AS request_id
  FROM span s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  WHERE s.activity IN ('schedule', 'step', 'batch')
), shared AS (
  SELECT a.upid, b.upid AS other, COUNT(*) AS requests
  FROM told a
  JOIN told b ON b.request_id = a.request_id
  GROUP BY a.upid, b.upid
), of_requests AS (
  SELECT s.upid, s.other AS engine, ROW_NUMBER() OVER (PARTITION BY s.upid ORDER BY s.requests DESC, s.other) AS nth
  FROM shared s
  JOIN engine e ON e.upid = s.other
), fed AS (
  SELECT w.upid, CASE WHEN w.upid = e.upid THEN w.upid WHEN n.engines = 1 THEN n.lowest ELSE o.engine END AS engine
  FROM (SELECT worker AS upid FROM device UNION SELECT upid FROM span WHERE activity = 'step') w
  CROSS JOIN (SELECT COUNT(*) AS engines, MIN(upid) AS lowest FROM engine) n
  LEFT JOIN engine e ON e.upid = w.upid
  LEFT JOIN of_requests o ON o.upid = w.upid AND o.nth = 1
), role AS (
  SELECT upid AS device, worker AS upid, 'worker' AS part FROM device
  UNION ALL
  SELECT d.upid, f.engine, 'engine' FROM device d JOIN fed f ON f.upid = d.worker WHERE f.engine IS NOT NULL
  UNION ALL
  -- Other workers that run the same steps: not those that are known to have other requests.
  SELECT d.upid, o.upid, 'other'
  FROM device d
  JOIN fed f ON f.upid = d.worker
  JOIN fed o ON o.engine = f.engine AND o.upid <> d.worker
  LEFT JOIN shared s ON s.upid = d.worker AND s.other = o.upid
  WHERE s.requests IS NOT NULL OR d.worker NOT IN (SELECT upid FROM told) OR o.upid NOT IN (SELECT upid FROM told)
), reached AS (
  SELECT upid, ts, end_ts, MAX(end_ts) OVER (PARTITION BY upid ORDER BY ts, end_ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS to_ts
  FROM span
  WHERE activity = 'step'
), numbered AS (
  SELECT upid, ts, end_ts, SUM(CASE WHEN to_ts > ts THEN 0 ELSE 1 END) OVER (PARTITION BY upid ORDER BY ts, end_ts DESC ROWS UNBOUNDED PRECEDING) AS nth
  FROM reached
), step AS (
  SELECT upid, MIN(ts) AS ts, MAX(end_ts) AS end_ts
  FROM numbered
  GROUP BY upid, nth
), noted AS (
  SELECT arg_set_id, MAX(CAST(ROUND(CASE WHEN COALESCE(real_value, int_value) > 9e15 THEN 9e18 ELSE 1e3 * COALESCE(real_value, int_value) END) AS BIGINT)) AS queue_ns
  FROM args
  WHERE flat_key = 'args.queue_us' AND COALESCE(real_value, int_value) >= 0
  GROUP BY arg_set_id
), covered AS (
  SELECT r.upid, s.ts, n.queue_ns, MAX(s.ts + s.dur) OVER (PARTITION BY r.upid ORDER BY s.ts, s.dur DESC, COALESCE(n.queue_ns, -1)
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS to_ts
  FROM slice s
  JOIN thread_row r ON r.track_id = s.track_id AND r.is_device = 1
  LEFT JOIN noted n ON n.arg_set_id = s.arg_set_id
  WHERE s.dur > 0
), gap AS (
  SELECT upid, to_ts AS ts, ts AS end_ts, CASE WHEN ts - queue_ns > to_ts THEN ts - queue_ns ELSE to_ts END AS launched_ts, COALESCE(queue_ns, 0) AS queue_ns
  FROM covered
  WHERE ts > to_ts
), waited AS (
  -- An HTTP request came before the application got it, and its answer was sent before the application was done with it.
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.waited_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS waited_ns,
    MAX(CASE WHEN flat_key = 'args.answered_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS answered_ns
  FROM args
  WHERE flat_key IN ('args.waited_us', 'args.answered_us') AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, CASE WHEN s.dur > 0 THEN COALESCE(s.ts - COALESCE(w.waited_ns, 0) + w.answered_ns, s.ts + s.dur) END AS end_ts,
    CASE WHEN SUBSTR(s.name, 1, 5) = 'http.' THEN 'http' WHEN s.name = 'request' THEN 'span' ELSE REPLACE(s.name, 'request.', '') END AS kind
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN waited w ON w.arg_set_id = s.arg_set_id AND SUBSTR(s.name, 1, 5) = 'http.'
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name IN ('request', 'request.preprocess')))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.finished'))
), began AS (
  SELECT request_id, ts, end_ts, kind, ROW_NUMBER() OVER (PARTITION BY request_id ORDER BY CASE WHEN kind = 'span' THEN 1 ELSE 0 END, ts, CASE WHEN end_ts IS NULL THEN 0 ELSE 1 END, end_ts DESC) AS nth
  FROM moment
  WHERE kind IN ('http', 'span')
), request AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT m.request_id, COALESCE(CASE WHEN b.kind = 'span' AND MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) < b.ts
      THEN MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) ELSE b.ts END, MIN(CASE WHEN m.kind = 'queued' THEN m.ts END)) AS ts,
    COALESCE(CASE WHEN b.ts IS NULL THEN MAX(CASE WHEN m.kind = 'finished' THEN m.ts END) ELSE b.end_ts END, 4611686018427387904) AS end_ts
  FROM moment m
  LEFT JOIN began b ON b.request_id = m.request_id AND b.nth = 1
  GROUP BY m.request_id, b.kind, b.ts, b.end_ts
), asked AS (
  -- How far the requests of a second reach that came up to each of them: of a busy server few are left, to be put together with those of other seconds.
  SELECT ts - ts % 1000000000 AS second, ts, end_ts,
    MAX(end_ts) OVER (PARTITION BY ts - ts % 1000000000 ORDER BY ts, end_ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS to_ts
  FROM request
  WHERE ts < end_ts
), under_way AS (
  SELECT second, ts, end_ts, SUM(CASE WHEN to_ts >= ts THEN 0 ELSE 1 END) OVER (PARTITION BY second ORDER BY ts, end_ts DESC ROWS UNBOUNDED PRECEDING) AS nth
  FROM asked
), acted AS (
  -- What processes do, and that they are there.
  SELECT upid, CASE WHEN activity = 'step' THEN 'other' ELSE activity END AS activity, ts, end_ts FROM span
  UNION ALL
  SELECT upid, 'step', ts, end_ts FROM step
  UNION ALL
  SELECT upid, activity, ts, end_ts FROM scheduled
  UNION ALL
  SELECT upid, 'there', 0, 4611686018427387904 FROM owner
), during AS (
  SELECT upid AS device, 'gap' AS what, ts, end_ts FROM gap
  UNION ALL
  SELECT upid, 'launched', launched_ts, end_ts FROM gap WHERE queue_ns > 0
  UNION ALL
  SELECT r.device, a.activity, a.ts, a.end_ts
  FROM acted a
  JOIN role r ON r.upid = a.upid
  WHERE (r.part = 'worker' AND a.activity IN ('gc', 'kv_transfer', 'sample', 'step')) OR (r.part = 'other' AND a.activity = 'other')
    OR (r.part = 'engine' AND a.activity IN ('gc', 'schedule', 'output', 'dispatch', 'given', 'none_runs', 'none_waits', 'some_wait', 'there'))
  UNION ALL
  SELECT d.upid, 'request', u.ts, u.end_ts
  FROM (SELECT MIN(ts) AS ts, MAX(end_ts) AS end_ts FROM under_way GROUP BY second, nth) u
  CROSS JOIN device d
), sign (x) AS (
  VALUES (1), (-1)
), edge AS (
  SELECT d.device, d.what, CASE WHEN s.x = 1 THEN d.ts ELSE d.end_ts END AS at_ts, s.x, d.end_ts AS until_ts
  FROM during d
  CROSS JOIN sign s
  UNION ALL
  SELECT d.upid, 'launch', s.ts, 0, NULL
  FROM slice s
  JOIN thread_row r ON r.track_id = s.track_id
  JOIN device d ON d.worker = r.upid
  WHERE s.dur > 0 AND r.is_device = 0 AND s.category IN ('kernel', 'graph', 'comm', 'model', 'memcpy')
  UNION ALL
  -- When work was given out, and when it began. If no call shows that, a batch is given out when it begins.
  SELECT r.device, h.what, h.ts, 0, NULL
  FROM (
    SELECT upid, CASE WHEN hand_over <> 'given' THEN hand_over WHEN COUNT(CASE WHEN hand_over = 'step_handed' THEN 1 END) OVER (PARTITION BY upid) = 0 THEN 'step_handed' END AS what, ts
    FROM span
    WHERE hand_over IS NOT NULL
  ) h
  JOIN role r ON r.upid = h.upid AND r.part = CASE WHEN h.what = 'sample_begun' THEN 'worker' ELSE 'engine' END
  JOIN device d ON d.upid = r.device
  WHERE h.what = 'sample_begun' OR r.upid <> d.worker
), change AS (
  SELECT device, at_ts AS ts, SUM(CASE WHEN what = 'gap' THEN x ELSE 0 END) AS gap, SUM(CASE WHEN what = 'launched' THEN x ELSE 0 END) AS launched,
    SUM(CASE WHEN what = 'gc' THEN x ELSE 0 END) AS gc, SUM(CASE WHEN what = 'kv_transfer' THEN x ELSE 0 END) AS kv_transfer,
    SUM(CASE WHEN what = 'sample' THEN x ELSE 0 END) AS sample, SUM(CASE WHEN what = 'step' THEN x ELSE 0 END) AS step,
    SUM(CASE WHEN what = 'request' THEN x ELSE 0 END) AS request, SUM(CASE WHEN what = 'schedule' THEN x ELSE 0 END) AS schedule,
    SUM(CASE WHEN what = 'output' THEN x ELSE 0 END) AS output, SUM(CASE WHEN what = 'other' THEN x ELSE 0 END) AS other,
    SUM(CASE WHEN what = 'dispatch' THEN x ELSE 0 END) AS dispatch, SUM(CASE WHEN what = 'given' THEN x ELSE 0 END) AS given,
    MAX(CASE WHEN what = 'step_handed' THEN at_ts END) AS step_handed_ts, MAX(CASE WHEN what = 'sample_handed' THEN at_ts END) AS sample_handed_ts,
    MAX(CASE WHEN what = 'sample_begun' OR (what = 'step' AND x = 1) THEN at_ts END) AS sample_ts, SUM(CASE WHEN what = 'none_runs' THEN x ELSE 0 END) AS none_runs,
    SUM(CASE WHEN what = 'none_waits' THEN x ELSE 0 END) AS none_waits, SUM(CASE WHEN what = 'some_wait' THEN x ELSE 0 END) AS some_wait,
    SUM(CASE WHEN what = 'there' THEN x ELSE 0 END) AS engines,
    MAX(CASE WHEN what = 'launch' THEN at_ts END) AS launch_ts, MAX(CASE WHEN what = 'step' AND x = 1 THEN at_ts END) AS step_ts,
    MAX(CASE WHEN what = 'step' AND x = 1 THEN until_ts END) AS step_end_ts
  FROM edge
  GROUP BY device, at_ts
), level AS (
  SELECT device, LEAD(ts) OVER (PARTITION BY device ORDER BY ts) - ts AS ns, SUM(gap) OVER (PARTITION BY device ORDER BY ts) AS gap,
    SUM(launched) OVER (PARTITION BY device ORDER BY ts) AS launched, SUM(gc) OVER (PARTITION BY device ORDER BY ts) AS gc,
    SUM(kv_transfer) OVER (PARTITION BY device ORDER BY ts) AS kv_transfer, SUM(sample) OVER (PARTITION BY device ORDER BY ts) AS sample,
    SUM(step) OVER (PARTITION BY device ORDER BY ts) AS step, SUM(request) OVER (PARTITION BY device ORDER BY ts) AS request,
    SUM(schedule) OVER (PARTITION BY device ORDER BY ts) AS schedule, SUM(output) OVER (PARTITION BY device ORDER BY ts) AS output,
    SUM(other) OVER (PARTITION BY device ORDER BY ts) AS other, SUM(dispatch) OVER (PARTITION BY device ORDER BY ts) AS dispatch,
    SUM(none_runs) OVER (PARTITION BY device ORDER BY ts) AS none_runs, SUM(none_waits) OVER (PARTITION BY device ORDER BY ts) AS none_waits,
    SUM(some_wait) OVER (PARTITION BY device ORDER BY ts) AS some_wait,
    SUM(engines) OVER (PARTITION BY device ORDER BY ts) AS engines,
    SUM(given) OVER (PARTITION BY device ORDER BY ts) AS given, MAX(step_handed_ts) OVER (PARTITION BY device ORDER BY ts) AS step_handed_ts,
    MAX(sample_handed_ts) OVER (PARTITION BY device ORDER BY ts) AS sample_handed_ts, MAX(sample_ts) OVER (PARTITION BY device ORDER BY ts) AS sample_ts,
    MAX(step_ts) OVER (PARTITION BY device ORDER BY ts) AS step_ts, MAX(step_end_ts) OVER (PARTITION BY device ORDER BY ts) AS step_end_ts,
    MAX(launch_ts) OVER (PARTITION BY device ORDER BY ts) AS launch_ts,
    MIN(launch_ts) OVER (PARTITION BY device ORDER BY ts DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS next_launch_ts
  FROM change
), idle AS (
  SELECT l.device, l.ns, CASE WHEN l.launched > 0 THEN 'launch_delay' WHEN l.gc > 0 THEN 'gc' WHEN l.kv_transfer > 0 THEN 'kv_transfer' WHEN l.sample > 0 THEN 'sampling'
    WHEN l.step > 0 AND l.launch_ts >= l.step_ts AND l.next_launch_ts < l.step_end_ts THEN 'launch_gap'
    WHEN l.step > 0 AND l.launch_ts >= l.step_ts THEN 'sampling' WHEN l.step > 0 THEN 'preparing'
    WHEN n.requests > 0 AND l.request = 0 THEN 'no_request' WHEN l.engines = 0 THEN 'unknown'
    WHEN (l.given > 0 OR l.dispatch > 0) AND (COALESCE(l.step_ts, -1) < l.step_handed_ts OR COALESCE(l.sample_ts, -1) < l.sample_handed_ts) THEN 'worker'
    WHEN l.schedule > 0 THEN 'scheduling' WHEN l.output > 0 THEN 'output'
    WHEN l.other > 0 THEN 'other_rank' WHEN l.dispatch > 0 THEN 'ipc' WHEN l.none_runs > 0 AND l.none_waits > 0 AND n.requests > 0 THEN 'frontend'
    WHEN l.none_runs > 0 AND l.none_waits > 0 THEN 'no_request' WHEN l.none_runs > 0 AND l.some_wait > 0 THEN 'not_schedulable' ELSE 'engine' END AS cause
  FROM level l
  CROSS JOIN (SELECT COUNT(ts) AS requests FROM request) n
  WHERE l.gap > 0 AND l.ns > 0
)
SELECT d.pid, d.name, i.cause, SUM(i.ns) AS ns
FROM idle i
JOIN device d ON d.upid = i.device
GROUP BY d.upid, d.pid, d.name, i.cause
ORDER BY d.upid, SUM(i.ns) DESC, i.cause;
