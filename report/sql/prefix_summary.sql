/* How many tokens of prompts an earlier prompt of the same engine had, what the prefix cache had of them, and how many tokens of a prompt no earlier one had
   (`prefixes` of the report, without the prefixes). Of prompts whose blocks are told. */
WITH digit AS (
  SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7
), place AS (
  SELECT 64 * a.d + 8 * b.d + c.d + 1 AS nth
  FROM digit a
  CROSS JOIN digit b
  CROSS JOIN digit c
), told AS (
  SELECT s.id, s.ts, COALESCE(t.upid, pt.upid, ta.int_value) AS upid,
    MAX(CASE WHEN a.flat_key = 'args.request_id' THEN a.display_value END) AS request_id,
    MAX(CASE WHEN a.flat_key = 'args.hashes' THEN a.string_value END) AS hashes,
    MAX(CASE WHEN a.flat_key = 'args.prompt_tokens' THEN a.int_value END) AS prompt_tokens,
    MAX(CASE WHEN a.flat_key = 'args.block_tokens' THEN a.int_value END) AS block_tokens,
    MAX(CASE WHEN a.flat_key = 'args.blocks' THEN a.int_value END) AS blocks
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.hashes', 'args.prompt_tokens', 'args.block_tokens', 'args.blocks')
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN track tr ON tr.id = s.track_id
  LEFT JOIN args ta ON ta.arg_set_id = tr.source_arg_set_id AND ta.flat_key = 'upid'
  WHERE s.dur = 0 AND s.name = 'request.prompt_blocks'
  GROUP BY s.id, s.ts, COALESCE(t.upid, pt.upid, ta.int_value)
), cached AS (
  SELECT i.display_value AS request_id, MAX(c.int_value) AS cached_tokens
  FROM slice s
  JOIN args c ON c.arg_set_id = s.arg_set_id AND c.flat_key = 'args.cached_tokens'
  JOIN args i ON i.arg_set_id = s.arg_set_id AND i.flat_key IN ('args.request_id', 'args.request_ids')
  WHERE (s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name IN ('request', 'request.preprocess')))
    OR (s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.scheduled', 'scheduled',
      'request.first_token', 'request.token', 'token', 'request.preempted', 'preempted', 'request.finished', 'request.answered'))
  GROUP BY i.display_value
), cut AS (
  SELECT t.id, t.ts, t.upid, t.request_id, p.nth, SUBSTR(t.hashes, 16 * p.nth - 15, 16) AS hash
  FROM told t
  JOIN place p ON 16 * p.nth <= LENGTH(t.hashes)
), block AS (
  SELECT id, ROW_NUMBER() OVER (PARTITION BY upid, hash ORDER BY ts, request_id, id) AS turn
  FROM cut
), counted AS (
  SELECT id, SUM(CASE WHEN turn > 1 THEN 1 ELSE 0 END) AS again, COUNT(*) AS known
  FROM block
  GROUP BY id
), prompt AS (
  SELECT 'unique' AS figure, t.prompt_tokens, c.cached_tokens, CASE WHEN c.cached_tokens IS NOT NULL THEN t.prompt_tokens END AS of_tokens,
    CASE WHEN n.again * t.block_tokens > t.prompt_tokens THEN t.prompt_tokens ELSE COALESCE(n.again, 0) * t.block_tokens END AS shared_tokens,
    CASE WHEN t.blocks > COALESCE(n.known, 0) THEN (t.blocks - COALESCE(n.known, 0)) * t.block_tokens ELSE 0 END AS untold_tokens
  FROM told t
  LEFT JOIN counted n ON n.id = t.id
  LEFT JOIN cached c ON c.request_id = t.request_id
), ranked AS (
  SELECT prompt_tokens, cached_tokens, of_tokens, shared_tokens, untold_tokens, prompt_tokens - shared_tokens AS tokens,
    ROW_NUMBER() OVER (PARTITION BY figure ORDER BY prompt_tokens - shared_tokens) - 1 AS place, COUNT(*) OVER (PARTITION BY figure) - 1 AS last_place
  FROM prompt
), summed AS (
  SELECT COUNT(*) AS n, SUM(prompt_tokens) AS prompt_tokens, SUM(shared_tokens) AS shared_tokens, COALESCE(SUM(cached_tokens), 0) AS cached_tokens,
    SUM(of_tokens) AS of_tokens, SUM(untold_tokens) AS untold_tokens, SUM(tokens) AS tokens, MAX(tokens) AS most,
    MAX(CASE WHEN 100 * place <= 50 * last_place THEN tokens END) AS below_50, MIN(CASE WHEN 100 * place >= 50 * last_place THEN tokens END) AS above_50,
    MAX(CASE WHEN 100 * place <= 90 * last_place THEN tokens END) AS below_90, MIN(CASE WHEN 100 * place >= 90 * last_place THEN tokens END) AS above_90,
    MAX(CASE WHEN 100 * place <= 95 * last_place THEN tokens END) AS below_95, MIN(CASE WHEN 100 * place >= 95 * last_place THEN tokens END) AS above_95,
    MAX(CASE WHEN 100 * place <= 99 * last_place THEN tokens END) AS below_99, MIN(CASE WHEN 100 * place >= 99 * last_place THEN tokens END) AS above_99
  FROM ranked
)
SELECT n, prompt_tokens, shared_tokens, CAST(shared_tokens AS DOUBLE) / NULLIF(prompt_tokens, 0) AS shared_share,
  cached_tokens, CAST(cached_tokens AS DOUBLE) / NULLIF(of_tokens, 0) AS cached_share, untold_tokens, CAST(tokens AS DOUBLE) / n AS unique_mean,
  -- Linear between the two ranks next to the percentile's place.
  below_50 + (above_50 - below_50) * (50 * (n - 1) % 100 / 1e2) AS unique_p50,
  below_90 + (above_90 - below_90) * (90 * (n - 1) % 100 / 1e2) AS unique_p90,
  below_95 + (above_95 - below_95) * (95 * (n - 1) % 100 / 1e2) AS unique_p95,
  below_99 + (above_99 - below_99) * (99 * (n - 1) % 100 / 1e2) AS unique_p99,
  most AS unique_max
FROM summed
WHERE n > 0;
