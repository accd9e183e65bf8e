/* How many tokens of prompts an earlier prompt of the same engine had, what the prefix cache had of them, and how many tokens of a prompt no earlier one had
   (`prefixes` of the report, without the prefixes). Of scheduled prompts with hashes of their blocks, without the tokens of further blocks. */
WITH digit AS (
  SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7
), place AS (
  SELECT 64 * a.d + 8 * b.d + c.d + 1 AS nth
  FROM digit a
  CROSS JOIN digit b
  CROSS JOIN digit c
), noted AS (
  SELECT s.id, s.ts, COALESCE(t.upid, pt.upid, ta.int_value) AS upid,
    MAX(CASE WHEN a.flat_key = 'args.request_id' AND (a.value_type = 'string' OR a.int_value >= 0) THEN a.display_value END) AS request_id,
    MAX(CASE WHEN a.flat_key = 'args.request_ids' AND (a.value_type = 'string' OR a.int_value >= 0) THEN a.display_value END) AS listed_id,
    SUM(CASE WHEN a.flat_key = 'args.request_ids' AND (a.value_type = 'string' OR a.int_value >= 0) THEN 1 ELSE 0 END) AS listed_ids,
    MAX(CASE WHEN a.flat_key = 'args.hashes' THEN a.string_value END) AS hashes,
    MAX(CASE WHEN a.flat_key = 'args.prompt_tokens' AND a.int_value >= 0 THEN a.int_value END) AS prompt_tokens,
    MAX(CASE WHEN a.flat_key = 'args.block_tokens' AND a.int_value >= 0 THEN a.int_value END) AS block_tokens,
    MAX(CASE WHEN a.flat_key = 'args.blocks' AND a.int_value >= 0 THEN a.int_value END) AS blocks
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.value_type <> 'bool'
    AND a.flat_key IN ('args.request_id', 'args.request_ids', 'args.hashes', 'args.prompt_tokens', 'args.block_tokens', 'args.blocks')
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  WHERE s.dur = 0 AND s.name = 'request.prompt_blocks'
  GROUP BY s.id, s.ts, COALESCE(t.upid, pt.upid, ta.int_value)
), sized AS (
  SELECT id, ts, upid, COALESCE(request_id, CASE WHEN listed_ids = 1 THEN listed_id END) AS request_id, hashes, prompt_tokens, block_tokens, blocks,
    CASE WHEN LENGTH(hashes) > 8192 THEN 512 ELSE CAST((LENGTH(hashes) - LENGTH(hashes) % 16) / 16 AS BIGINT) END AS hashed_blocks
  FROM noted
  WHERE LENGTH(hashes) >= 16 AND LENGTH(hashes) < 16 * (blocks + 1) AND blocks * block_tokens <= prompt_tokens
), moment AS (
  SELECT i.display_value AS request_id, COALESCE(t.upid, pt.upid, ta.int_value) AS upid, s.arg_set_id, s.ts, REPLACE(s.name, 'request.', '') AS kind
  FROM slice s
  JOIN args i ON i.arg_set_id = s.arg_set_id AND i.flat_key IN ('args.request_id', 'args.request_ids') AND (i.value_type = 'string' OR (i.value_type = 'int' AND i.int_value >= 0))
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name IN ('request', 'request.preprocess')))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.scheduled', 'scheduled',
      'request.first_token', 'request.token', 'token', 'request.preempted', 'preempted', 'request.finished', 'request.answered'))
), engine AS (
  SELECT request_id, upid, MAX(CASE WHEN kind = 'scheduled' THEN 1 ELSE 0 END) AS is_scheduled, MIN(CASE WHEN kind = 'preempted' THEN ts END) AS preempted_ts
  FROM moment
  GROUP BY request_id, upid
), cached AS (
  -- What a request had computed itself before it was preempted is no hit.
  SELECT m.request_id, MAX(CASE WHEN m.kind <> 'scheduled' OR e.preempted_ts IS NULL OR m.ts <= e.preempted_ts THEN c.int_value END) AS cached_tokens
  FROM moment m
  JOIN args c ON c.arg_set_id = m.arg_set_id AND c.flat_key = 'args.cached_tokens'
  LEFT JOIN engine e ON e.request_id = m.request_id AND e.upid = m.upid
  GROUP BY m.request_id
), hashed AS (
  -- A prompt that was never scheduled was not computed.
  SELECT s.id, s.ts, s.upid, s.request_id, s.hashes, s.prompt_tokens, s.block_tokens, (s.blocks - s.hashed_blocks) * s.block_tokens AS tokens_without_hash,
    CASE WHEN c.cached_tokens > s.hashed_blocks * s.block_tokens THEN s.hashed_blocks * s.block_tokens ELSE c.cached_tokens END AS cached_tokens
  FROM sized s
  JOIN engine e ON e.request_id = s.request_id AND e.upid = s.upid AND e.is_scheduled = 1
  LEFT JOIN cached c ON c.request_id = s.request_id
), cut AS (
  SELECT h.id, h.ts, h.upid, h.request_id, p.nth, SUBSTR(h.hashes, 16 * p.nth - 15, 16) AS hash
  FROM hashed h
  JOIN place p ON 16 * p.nth <= LENGTH(h.hashes)
), block AS (
  SELECT id, ROW_NUMBER() OVER (PARTITION BY upid, hash ORDER BY ts, request_id, id) AS turn
  FROM cut
), counted AS (
  SELECT id, SUM(CASE WHEN turn > 1 THEN 1 ELSE 0 END) AS repeated_blocks
  FROM block
  GROUP BY id
), prompt AS (
  SELECT 'unique' AS figure, h.prompt_tokens, h.tokens_without_hash, h.cached_tokens, n.repeated_blocks * h.block_tokens AS shared_tokens,
    h.prompt_tokens - h.tokens_without_hash AS counted_tokens, h.prompt_tokens - h.tokens_without_hash - n.repeated_blocks * h.block_tokens AS tokens
  FROM hashed h
  JOIN counted n ON n.id = h.id
), ranked AS (
  SELECT prompt_tokens, tokens_without_hash, cached_tokens, shared_tokens, counted_tokens, tokens,
    ROW_NUMBER() OVER (PARTITION BY figure ORDER BY tokens) - 1 AS place, COUNT(*) OVER (PARTITION BY figure) - 1 AS last_place
  FROM prompt
), summed AS (
  SELECT COUNT(*) AS n, SUM(prompt_tokens) AS prompt_tokens, SUM(tokens_without_hash) AS tokens_without_hash, SUM(shared_tokens) AS shared_tokens,
    SUM(counted_tokens) AS counted_tokens, COALESCE(SUM(cached_tokens), 0) AS cached_tokens,
    SUM(CASE WHEN cached_tokens IS NOT NULL THEN counted_tokens END) AS of_tokens, SUM(tokens) AS tokens, MAX(tokens) AS most,
    MAX(CASE WHEN 100 * place <= 50 * last_place THEN tokens END) AS below_50, MIN(CASE WHEN 100 * place >= 50 * last_place THEN tokens END) AS above_50,
    MAX(CASE WHEN 100 * place <= 90 * last_place THEN tokens END) AS below_90, MIN(CASE WHEN 100 * place >= 90 * last_place THEN tokens END) AS above_90,
    MAX(CASE WHEN 100 * place <= 95 * last_place THEN tokens END) AS below_95, MIN(CASE WHEN 100 * place >= 95 * last_place THEN tokens END) AS above_95,
    MAX(CASE WHEN 100 * place <= 99 * last_place THEN tokens END) AS below_99, MIN(CASE WHEN 100 * place >= 99 * last_place THEN tokens END) AS above_99
  FROM ranked
)
SELECT (SELECT COUNT(*) FROM engine WHERE is_scheduled = 1) AS requests, n, prompt_tokens, tokens_without_hash,
  shared_tokens, COALESCE(CAST(shared_tokens AS DOUBLE) / NULLIF(counted_tokens, 0), 0e0) AS shared_share,
  cached_tokens, CAST(cached_tokens AS DOUBLE) / NULLIF(of_tokens, 0) AS cached_share, CAST(tokens AS DOUBLE) / n AS unique_mean,
  -- Linear between the two ranks next to the percentile's place.
  below_50 + (above_50 - below_50) * (50 * (n - 1) % 100 / 1e2) AS unique_p50,
  below_90 + (above_90 - below_90) * (90 * (n - 1) % 100 / 1e2) AS unique_p90,
  below_95 + (above_95 - below_95) * (95 * (n - 1) % 100 / 1e2) AS unique_p95,
  below_99 + (above_99 - below_99) * (99 * (n - 1) % 100 / 1e2) AS unique_p99,
  most AS unique_max
FROM summed
WHERE n > 0;
