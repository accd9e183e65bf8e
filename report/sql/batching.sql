/* Contents of each engine's steps, and the mean duration of decode steps without and with prompts in them. */
SELECT process, COUNT(*) AS steps, SUM(prefill_tokens) AS prefill_tokens, SUM(decode_tokens) AS decode_tokens,
  SUM(CASE WHEN prefill_tokens > 0 AND decode_tokens > 0 THEN 1 ELSE 0 END) AS mixed_steps,
  COUNT(CASE WHEN prefill_tokens = 0 AND decode_tokens > 0 THEN dur_us END) AS decode_steps,
  AVG(CASE WHEN prefill_tokens = 0 AND decode_tokens > 0 THEN dur_us END) AS decode_step_us,
  AVG(CASE WHEN prefill_tokens > 0 AND decode_tokens > 0 THEN dur_us END) AS mixed_step_us
FROM step
WHERE role = 'engine'
GROUP BY upid, process ORDER BY upid;
