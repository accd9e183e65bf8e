/* The prefixes that several prompts of an engine share, the hundred that save most (`prefixes` of the report): nodes of a radix tree of the hashes of their blocks.
   A hash stands for a prompt up to its block's end. So the blocks that as many prompts have, one behind the other, are a node. */
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
    MAX(CASE WHEN a.flat_key = 'args.block_tokens' THEN a.int_value END) AS block_tokens
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.hashes', 'args.prompt_tokens', 'args.block_tokens')
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
  SELECT id, upid, nth, hash, COUNT(*) OVER (PARTITION BY upid, hash) AS requests,
    ROW_NUMBER() OVER (PARTITION BY upid, hash ORDER BY ts, request_id, id) AS turn
  FROM cut
), run AS (
  SELECT id, requests, MIN(nth) AS first_nth, MAX(nth) AS last_nth
  FROM block
  WHERE requests > 1
  GROUP BY id, requests
), of_prompt AS (
  SELECT b.upid, b.hash, r.requests, (r.first_nth - 1) * t.block_tokens AS from_tokens, r.last_nth * t.block_tokens AS tokens,
    CASE WHEN b.turn > 1 THEN c.cached_tokens END AS cached_tokens
  FROM run r
  JOIN block b ON b.id = r.id AND b.nth = r.last_nth
  JOIN told t ON t.id = r.id
  LEFT JOIN cached c ON c.request_id = t.request_id
), node AS (
  SELECT upid, hash, MAX(requests) AS requests, MAX(tokens) AS tokens, MAX(tokens - from_tokens) AS own_tokens,
    SUM(CASE WHEN cached_tokens < from_tokens THEN 0 WHEN cached_tokens > tokens THEN tokens - from_tokens ELSE cached_tokens - from_tokens END) AS hit_tokens
  FROM of_prompt
  GROUP BY upid, hash
), whole AS (
  SELECT SUM(prompt_tokens) AS prompt_tokens
  FROM told
)
SELECT p.name AS engine, p.pid, n.hash AS prefix, n.requests, n.tokens, n.own_tokens, (n.requests - 1) * n.own_tokens AS saved_tokens,
  CAST((n.requests - 1) * n.own_tokens AS DOUBLE) / w.prompt_tokens AS saved_share, n.hit_tokens
FROM node n
CROSS JOIN whole w
JOIN process p ON p.upid = n.upid
ORDER BY saved_tokens DESC, n.tokens DESC, n.hash, p.pid
LIMIT 100;
