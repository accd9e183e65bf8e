/* Each request: its moments in ns, and the times between them (`request` of the report).
   The frontend is the process in which the request arrived, the engine is the one that queued it. */
WITH waited AS (
  -- An HTTP request came before the application got it, and its answer was sent before the application was done with it.
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.waited_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS waited_ns,
    MAX(CASE WHEN flat_key = 'args.answered_us' THEN CAST(ROUND(1e3 * COALESCE(real_value, int_value)) AS BIGINT) END) AS answered_ns
  FROM args
  WHERE flat_key IN ('args.waited_us', 'args.answered_us') AND COALESCE(real_value, int_value) BETWEEN 0 AND 9e15
  GROUP BY arg_set_id
), moment AS (
  SELECT a.display_value AS request_id, s.arg_set_id, s.ts - COALESCE(w.waited_ns, 0) AS ts, COALESCE(w.waited_ns, 0) AS waited_ns, CASE WHEN s.dur > 0 THEN COALESCE(s.ts - COALESCE(w.waited_ns, 0) + w.answered_ns, s.ts + s.dur) END AS end_ts,
    COALESCE(t.upid, pt.upid, ta.int_value) AS upid,
    CASE WHEN s.dur <> 0 AND SUBSTR(s.name, 1, 5) = 'http.' THEN 'http' WHEN s.name = 'request' THEN 'span' ELSE REPLACE(s.name, 'request.', '') END AS kind
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  LEFT JOIN waited w ON w.arg_set_id = s.arg_set_id AND SUBSTR(s.name, 1, 5) = 'http.'
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name IN ('request', 'request.preprocess')))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.scheduled', 'scheduled',
      'request.first_token', 'request.token', 'token', 'http.first_chunk', 'request.preempted', 'preempted', 'request.finished', 'request.answered'))
), noted AS (
  SELECT arg_set_id, MAX(CASE WHEN flat_key = 'args.reason' THEN string_value END) AS reason,
    MAX(CASE WHEN flat_key = 'args.prompt_tokens' THEN int_value END) AS prompt_tokens,
    MAX(CASE WHEN flat_key = 'args.cached_tokens' THEN int_value END) AS cached_tokens,
    MAX(CASE WHEN flat_key = 'args.output_tokens' THEN int_value END) AS output_tokens
  FROM args
  WHERE flat_key IN ('args.reason', 'args.prompt_tokens', 'args.cached_tokens', 'args.output_tokens')
  GROUP BY arg_set_id
), preempted AS (
  SELECT request_id, upid, MIN(ts) AS ts
  FROM moment
  WHERE kind = 'preempted'
  GROUP BY request_id, upid
), began AS (
  SELECT request_id, ts, waited_ns, end_ts, upid, kind,
    ROW_NUMBER() OVER (PARTITION BY request_id, CASE WHEN kind = 'queued' THEN 1 ELSE 0 END
      ORDER BY CASE WHEN kind = 'span' THEN 1 ELSE 0 END, ts, CASE WHEN end_ts IS NULL THEN 0 ELSE 1 END, end_ts DESC, upid) AS nth
  FROM moment
  WHERE kind IN ('http', 'span', 'queued')
), of_process AS (
  SELECT m.request_id, m.upid,
    MIN(CASE WHEN m.kind = 'preprocess' THEN m.ts END) AS read_ts,
    MIN(CASE WHEN m.kind = 'preprocess' THEN m.end_ts END) AS preprocessed_ts,
    MIN(CASE WHEN m.kind = 'scheduled' THEN m.ts END) AS scheduled_ts,
    MIN(CASE WHEN m.kind IN ('first_token', 'token') THEN m.ts END) AS first_token_ts,
    MIN(CASE WHEN m.kind = 'http.first_chunk' THEN m.ts END) AS first_chunk_ts,
    MAX(CASE WHEN m.kind = 'token' THEN m.ts END) AS last_token_ts,
    MAX(CASE WHEN m.kind = 'answered' THEN m.ts END) AS answered_ts,
    MAX(CASE WHEN m.kind = 'finished' THEN m.ts END) AS finished_ts,
    SUM(CASE WHEN m.kind = 'token' THEN 1 ELSE 0 END) AS tokens,
    SUM(CASE WHEN m.kind = 'preempted' THEN 1 ELSE 0 END) AS preemptions,
    MAX(n.reason) AS reason,
    MAX(CASE WHEN n.reason IN ('abort', 'aborted', 'cancelled') THEN 1 ELSE 0 END) AS is_aborted,
    MAX(CASE WHEN n.reason IN ('error', 'failed', 'timeout', 'ignored') THEN 1 ELSE 0 END) AS is_failed,
    MAX(n.prompt_tokens) AS prompt_tokens, MAX(n.output_tokens) AS output_tokens,
    -- What a request had computed itself before it was preempted is no hit.
    MAX(CASE WHEN m.kind <> 'scheduled' OR p.ts IS NULL OR m.ts <= p.ts THEN n.cached_tokens END) AS cached_tokens
  FROM moment m
  LEFT JOIN noted n ON n.arg_set_id = m.arg_set_id
  LEFT JOIN preempted p ON p.request_id = m.request_id AND p.upid = m.upid
  GROUP BY m.request_id, m.upid
), joined AS (
  SELECT o.request_id, f.kind AS arrived_as, f.ts AS span_ts, f.waited_ns, f.end_ts AS span_end_ts, e.ts AS queued_ns,
    MIN(o.read_ts) AS read_ns, MIN(o.preprocessed_ts) AS preprocessed_ns, MIN(o.scheduled_ts) AS scheduled_ns,
    MIN(CASE WHEN o.upid = e.upid THEN o.first_token_ts END) AS engine_first_token_ns,
    MIN(CASE WHEN o.upid = f.upid THEN o.first_token_ts END) AS first_token_ns,
    MIN(CASE WHEN o.upid = f.upid AND f.kind = 'http' THEN o.first_chunk_ts END) AS first_chunk_ns,
    COALESCE(MAX(o.last_token_ts), MAX(CASE WHEN o.upid = e.upid THEN o.finished_ts END)) AS last_token_ns,
    MAX(o.answered_ts) AS answered_ns, MAX(o.finished_ts) AS ended_ts,
    COALESCE(MAX(o.output_tokens), CASE WHEN MAX(o.tokens) > 0 THEN MAX(o.tokens) END) AS output_tokens,
    MAX(o.prompt_tokens) AS prompt_tokens, MAX(o.cached_tokens) AS cached_tokens, SUM(o.preemptions) AS preemptions,
    MAX(o.reason) AS reason, MAX(o.is_aborted) AS is_aborted, MAX(o.is_failed) AS is_failed
  FROM of_process o
  LEFT JOIN began f ON f.request_id = o.request_id AND f.nth = 1 AND f.kind <> 'queued'
  LEFT JOIN began e ON e.request_id = o.request_id AND e.nth = 1 AND e.kind = 'queued'
  WHERE f.ts IS NOT NULL OR e.ts IS NOT NULL
  GROUP BY o.request_id, f.kind, f.ts, f.waited_ns, f.end_ts, e.ts
), request AS (
  -- Without HTTP, what comes before the request's own span is a part of it.
  SELECT request_id, is_aborted, is_failed, reason,
    CASE WHEN arrived_as = 'span' AND read_ns < span_ts THEN read_ns ELSE span_ts END AS arrival_ns, waited_ns,
    read_ns, preprocessed_ns, queued_ns, scheduled_ns, engine_first_token_ns, first_token_ns, first_chunk_ns,
    -- An answer in one piece leaves at its end. A chunk before the first token belongs to another prompt of the same HTTP request.
    CASE WHEN (first_token_ns IS NULL OR first_chunk_ns >= first_token_ns) AND (span_end_ts IS NULL OR first_chunk_ns < span_end_ts)
      THEN first_chunk_ns ELSE first_token_ns END AS ttft_end_ns,
    last_token_ns, answered_ns,
    CASE WHEN span_ts IS NULL THEN ended_ts ELSE span_end_ts END AS finished_ns,
    prompt_tokens, cached_tokens, output_tokens, preemptions
  FROM joined
), figure AS (
  SELECT request_id, is_aborted, is_failed, reason, arrival_ns, arrival_ns + waited_ns AS received_ns, read_ns, preprocessed_ns, queued_ns, scheduled_ns,
    engine_first_token_ns, first_token_ns, first_chunk_ns, last_token_ns, answered_ns, finished_ns, prompt_tokens, cached_tokens, output_tokens, preemptions,
    scheduled_ns - queued_ns AS queue_ns,
    COALESCE(engine_first_token_ns, first_token_ns) - scheduled_ns AS prefill_ns,
    last_token_ns - COALESCE(engine_first_token_ns, first_token_ns) AS decode_ns,
    engine_first_token_ns - queued_ns AS engine_ttft_ns,
    ttft_end_ns - arrival_ns AS ttft_ns, ttft_end_ns - arrival_ns - waited_ns AS application_ttft_ns,
    -- Whole ns: without the remainder the quotient is whole in each engine.
    CASE WHEN output_tokens > 1 THEN CAST((finished_ns - first_token_ns - (finished_ns - first_token_ns) % (output_tokens - 1)) / (output_tokens - 1) AS BIGINT) END AS tpot_ns,
    finished_ns - arrival_ns AS e2e_ns, finished_ns - arrival_ns - waited_ns AS application_e2e_ns
  FROM request
)
-- Moments of two clocks may seem to be in another order: then there is no time between them.
SELECT request_id,
  CASE WHEN is_aborted = 1 THEN 'aborted' WHEN is_failed = 1 THEN 'failed' WHEN finished_ns IS NULL THEN 'unfinished' ELSE 'ok' END AS status,
  reason, arrival_ns, received_ns, read_ns, preprocessed_ns, queued_ns, scheduled_ns, engine_first_token_ns, first_token_ns, first_chunk_ns, last_token_ns, answered_ns, finished_ns,
  prompt_tokens, cached_tokens, output_tokens, preemptions,
  CASE WHEN queue_ns >= 0 THEN queue_ns END AS queue_ns,
  CASE WHEN prefill_ns >= 0 THEN prefill_ns END AS prefill_ns,
  CASE WHEN decode_ns >= 0 THEN decode_ns END AS decode_ns,
  CASE WHEN engine_ttft_ns >= 0 THEN engine_ttft_ns END AS engine_ttft_ns,
  CASE WHEN ttft_ns >= 0 THEN ttft_ns END AS ttft_ns,
  CASE WHEN application_ttft_ns >= 0 THEN application_ttft_ns END AS application_ttft_ns,
  CASE WHEN finished_ns >= first_token_ns THEN tpot_ns END AS tpot_ns,
  CASE WHEN e2e_ns >= 0 THEN e2e_ns END AS e2e_ns,
  CASE WHEN application_e2e_ns >= 0 THEN application_e2e_ns END AS application_e2e_ns
FROM figure
ORDER BY COALESCE(arrival_ns, -1), request_id;
