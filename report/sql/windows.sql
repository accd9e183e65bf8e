/* What changed while the run went on, in windows of a second from the begin of the trace: the mean of each level over the time for which it is known,
   and output tokens a second (`timeline` of the report, which has 500 parts). The first 100,000 seconds. */
WITH waited AS (
  -- An HTTP request came before the application got it, and its answer was sent before the application was done with it.
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.waited_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS waited_ns,
    MAX(CASE WHEN flat_key = 'args.answered_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS answered_ns
  FROM args
  WHERE flat_key IN ('args.waited_us', 'args.answered_us') AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, CASE WHEN s.dur > 0 THEN COALESCE(s.ts - COALESCE(w.waited_ns, 0) + w.answered_ns, s.ts + s.dur) END AS end_ts,
    COALESCE(t.upid, pt.upid, ta.int_value) AS upid,
    CASE WHEN SUBSTR(s.name, 1, 5) = 'http.' THEN 'http' WHEN s.name = 'request' THEN 'span' ELSE REPLACE(s.name, 'request.', '') END AS kind
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN waited w ON w.arg_set_id = s.arg_set_id AND SUBSTR(s.name, 1, 5) = 'http.'
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name IN ('request', 'request.preprocess')))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.finished', 'request.token', 'token'))
), began AS (
  SELECT request_id, ts, end_ts, upid, kind, ROW_NUMBER() OVER (PARTITION BY request_id ORDER BY CASE WHEN kind = 'span' THEN 1 ELSE 0 END, ts, CASE WHEN end_ts IS NULL THEN 0 ELSE 1 END, end_ts DESC, upid) AS nth
  FROM moment
  WHERE kind IN ('http', 'span')
), request AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT m.request_id,
    COALESCE(CASE WHEN b.kind = 'span' AND MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) < b.ts THEN MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) ELSE b.ts END,
      MIN(CASE WHEN m.kind = 'queued' THEN m.ts END)) AS from_ts,
    CASE WHEN b.ts IS NULL THEN MAX(CASE WHEN m.kind = 'finished' THEN m.ts END) ELSE b.end_ts END AS to_ts
  FROM moment m
  LEFT JOIN began b ON b.request_id = m.request_id AND b.nth = 1
  GROUP BY m.request_id, b.kind, b.ts, b.end_ts
), last_end AS (
  SELECT COALESCE(MAX(to_ts), 0) AS ts
  FROM request
), noted AS (
  SELECT m.request_id, m.upid, MAX(CASE WHEN m.upid = b.upid THEN 1 ELSE 0 END) AS is_frontend, COUNT(*) AS n
  FROM moment m
  LEFT JOIN began b ON b.request_id = m.request_id AND b.nth = 1
  WHERE m.kind = 'token'
  GROUP BY m.request_id, m.upid
), counted AS (
  SELECT request_id, upid, ROW_NUMBER() OVER (PARTITION BY request_id ORDER BY is_frontend DESC, n DESC, upid DESC) AS nth
  FROM noted
), token AS (
  SELECT m.ts - m.ts % 1000000000 AS ts, COUNT(*) AS n
  FROM moment m
  JOIN counted c ON c.request_id = m.request_id AND c.upid = m.upid AND c.nth = 1
  WHERE m.kind = 'token'
  GROUP BY m.ts - m.ts % 1000000000
  UNION ALL
  -- Outputs that a frontend lists have a token each, or as many as it says.
  SELECT s.ts - s.ts % 1000000000, SUM(COALESCE(e.int_value, 1))
  FROM slice s
  JOIN args n ON n.arg_set_id = s.arg_set_id AND n.flat_key = 'args.request_numbers'
  LEFT JOIN args e ON e.arg_set_id = s.arg_set_id AND e.flat_key = 'args.output_tokens_each' AND e.key = REPLACE(n.key, 'request_numbers', 'output_tokens_each')
  WHERE SUBSTR(s.name, LENGTH(s.name) - 14) = 'process_outputs'
  GROUP BY s.ts - s.ts % 1000000000
), amount AS (
  -- Whole requests, and whole thousandths of the cache.
  SELECT ct.upid, CASE WHEN ct.name = 'requests running' THEN 'running' WHEN ct.name = 'requests waiting' THEN 'waiting' ELSE 'kv_used_percent' END AS series,
    c.ts, CAST(ROUND(CASE WHEN ct.name = 'kv_cache used_percent' THEN 1e1 * c.value ELSE c.value END) AS BIGINT) AS amount
  FROM counter c
  JOIN process_counter_track ct ON ct.id = c.track_id
  WHERE ct.name IN ('requests running', 'requests waiting', 'kv_cache used_percent') AND c.value >= 0
  UNION ALL
  SELECT ut.upid, 'kv_used_percent', u.ts, CAST(ROUND(1e3 * u.value / (u.value + f.value)) AS BIGINT)
  FROM counter u
  JOIN process_counter_track ut ON ut.id = u.track_id AND ut.name = 'kv_blocks used'
  JOIN process_counter_track ft ON ft.upid = ut.upid AND ft.name = 'kv_blocks free'
  JOIN counter f ON f.track_id = ft.id AND f.ts = u.ts
  WHERE u.value >= 0 AND u.value + f.value > 0
), device AS (
  SELECT upid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), busy AS (
  SELECT d.upid, s.ts, s.ts + s.dur AS end_ts,
    MAX(s.ts + s.dur) OVER (PARTITION BY d.upid ORDER BY s.ts, s.dur DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to_ts
  FROM slice s
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  JOIN device d ON d.upid = t.upid
  WHERE s.dur > 0
    AND (INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9'))
), change AS (
  -- By how much a level changes, and when.
  SELECT upid, series, ts, amount - COALESCE(LAG(amount) OVER (PARTITION BY upid, series ORDER BY ts, amount), 0) AS x FROM amount
  UNION ALL SELECT upid, 'busy_percent', ts, 100 FROM busy WHERE covered_to_ts IS NULL OR covered_to_ts < ts
  UNION ALL SELECT upid, 'busy_percent', covered_to_ts, -100 FROM busy WHERE covered_to_ts < ts
  UNION ALL SELECT upid, 'busy_percent', MAX(end_ts), -100 FROM busy GROUP BY upid
  UNION ALL
  SELECT NULL, 'under_way', CASE WHEN r.from_ts > l.ts THEN l.ts ELSE r.from_ts END, 1
  FROM request r CROSS JOIN last_end l WHERE r.from_ts IS NOT NULL AND (r.to_ts IS NULL OR r.from_ts < r.to_ts)
  UNION ALL
  SELECT NULL, 'under_way', CASE WHEN r.to_ts IS NULL THEN l.ts ELSE r.to_ts END, -1
  FROM request r CROSS JOIN last_end l WHERE r.from_ts IS NOT NULL AND (r.to_ts IS NULL OR r.from_ts < r.to_ts)
), known AS (
  SELECT upid, series, MIN(ts) AS from_ts, MAX(ts) AS to_ts
  FROM change
  GROUP BY upid, series
), digit AS (
  SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
), thousand AS (
  SELECT a.d + 10 * b.d + 100 * c.d AS n
  FROM digit a CROSS JOIN digit b CROSS JOIN digit c
), last_second AS (
  -- In groups: of all moments at once SQLite would look for the last one by its time, and read all args for each slice on the way.
  SELECT MAX(ts) AS ts
  FROM (SELECT MAX(to_ts) AS ts FROM known UNION ALL SELECT MAX(ts) FROM moment GROUP BY kind) moments
), second AS (
  SELECT CAST(1000000000 AS BIGINT) * (t.n + 1000 * (a.d + 10 * b.d)) AS ts
  FROM last_second l
  CROSS JOIN digit b
  CROSS JOIN digit a
  CROSS JOIN thousand t
  WHERE CAST(1000000000 AS BIGINT) * (t.n + 1000 * (a.d + 10 * b.d)) <= l.ts
), changed AS (
  SELECT upid, series, ts - ts % 1000000000 AS second_ts, SUM(x) AS x, SUM(x * (1000000000 - ts % 1000000000)) AS x_ns
  FROM change
  GROUP BY upid, series, ts - ts % 1000000000
), summed AS (
  -- What a level is when a second begins, for all of it, and each change for what is left of it.
  SELECT k.upid, k.series, s.ts, CASE WHEN k.from_ts > s.ts THEN k.from_ts ELSE s.ts END AS from_ts,
    CASE WHEN k.to_ts < s.ts + 1000000000 THEN k.to_ts ELSE s.ts + 1000000000 END AS to_ts,
    1000000000 * (SUM(COALESCE(c.x, 0)) OVER (PARTITION BY k.upid, k.series ORDER BY s.ts) - COALESCE(c.x, 0)) + COALESCE(c.x_ns, 0) AS x_ns,
    SUM(COALESCE(c.x, 0)) OVER (PARTITION BY k.upid, k.series ORDER BY s.ts) AS x_behind
  FROM known k
  JOIN second s ON s.ts >= k.from_ts - k.from_ts % 1000000000 AND s.ts < k.to_ts
  LEFT JOIN changed c ON c.series = k.series AND COALESCE(c.upid, -1) = COALESCE(k.upid, -1) AND c.second_ts = s.ts
), figure AS (
  -- Behind its last change nothing is known.
  SELECT upid, series, ts, CAST(x_ns - x_behind * (ts + 1000000000 - to_ts) AS DOUBLE) / (to_ts - from_ts) / CASE WHEN series = 'kv_used_percent' THEN 1e1 ELSE 1e0 END AS amount
  FROM summed
  WHERE to_ts > from_ts
  UNION ALL
  SELECT NULL, 'output_tokens_per_s', s.ts, COALESCE(CAST(t.n AS DOUBLE), 0e0)
  FROM second s
  LEFT JOIN (
    SELECT ts, SUM(n) AS n
    FROM token
    GROUP BY ts
  ) t ON t.ts = s.ts
  WHERE EXISTS (SELECT 1 FROM token)
)
SELECT f.series, p.pid, p.name, f.ts, f.amount
FROM figure f
LEFT JOIN process p ON p.upid = f.upid
ORDER BY f.series, p.upid, f.ts;
