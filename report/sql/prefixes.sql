/* The prefixes that several prompts of an engine share, the hundred that save most (`prefixes` of the report): nodes of a radix tree of the hashes of their blocks.
   A hash stands for a prompt up to its block's end. So the blocks that as many prompts have, one behind the other, are a node. */
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
  SELECT id, upid, nth, hash, COUNT(*) OVER (PARTITION BY upid, hash) AS requests,
    ROW_NUMBER() OVER (PARTITION BY upid, hash ORDER BY ts, request_id, id) AS turn
  FROM cut
), run AS (
  SELECT id, requests, MIN(nth) AS first_nth, MAX(nth) AS last_nth
  FROM block
  WHERE requests > 1
  GROUP BY id, requests
), of_prompt AS (
  SELECT b.upid, b.hash, r.requests, (r.first_nth - 1) * h.block_tokens AS from_tokens, r.last_nth * h.block_tokens AS tokens,
    CASE WHEN b.turn > 1 THEN h.cached_tokens END AS cached_tokens
  FROM run r
  JOIN block b ON b.id = r.id AND b.nth = r.last_nth
  JOIN hashed h ON h.id = r.id
), node AS (
  SELECT upid, hash, MAX(requests) AS requests, MAX(tokens) AS tokens, MAX(tokens - from_tokens) AS own_tokens,
    SUM(CASE WHEN cached_tokens < from_tokens THEN 0 WHEN cached_tokens > tokens THEN tokens - from_tokens ELSE cached_tokens - from_tokens END) AS hit_tokens
  FROM of_prompt
  GROUP BY upid, hash
), whole AS (
  SELECT SUM(prompt_tokens - tokens_without_hash) AS counted_tokens
  FROM hashed
)
SELECT p.name AS engine, p.pid, n.hash AS prefix, n.requests, n.tokens, n.own_tokens, (n.requests - 1) * n.own_tokens AS saved_tokens,
  COALESCE(CAST((n.requests - 1) * n.own_tokens AS DOUBLE) / NULLIF(w.counted_tokens, 0), 0e0) AS saved_share, n.hit_tokens
FROM node n
CROSS JOIN whole w
JOIN process p ON p.upid = n.upid
ORDER BY saved_tokens DESC, tokens DESC, prefix, pid, p.upid
LIMIT 100;
