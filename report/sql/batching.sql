/* What each engine put into its steps, by its counters `tokens` and `speculation` (`batching` of the report). A step takes from the output of the step
   before to its own; after a pause of 10 s that is not known. */
WITH step AS (
  SELECT pt.upid, p.ts, CAST(ROUND(p.value) AS BIGINT) AS prefill, CAST(ROUND(d.value) AS BIGINT) AS decode
  FROM process_counter_track pt
  JOIN counter p ON p.track_id = pt.id
  JOIN process_counter_track dt ON dt.upid = pt.upid AND dt.name = 'tokens decode'
  JOIN counter d ON d.track_id = dt.id AND d.ts = p.ts
  WHERE pt.name = 'tokens prefill' AND p.value BETWEEN 0 AND 4294967295 AND d.value BETWEEN 0 AND 4294967295
), timed AS (
  SELECT upid, prefill, decode, CASE WHEN prefill > 0 AND decode > 0 THEN 1 ELSE 0 END AS is_mixed,
    ts - LAG(ts) OVER (PARTITION BY upid ORDER BY ts, prefill, decode) AS ns
  FROM step
), speculated AS (
  SELECT dt.upid, SUM(CAST(ROUND(d.value) AS BIGINT)) AS drafted, SUM(CAST(ROUND(a.value) AS BIGINT)) AS accepted
  FROM process_counter_track dt
  JOIN counter d ON d.track_id = dt.id
  JOIN process_counter_track ct ON ct.upid = dt.upid AND ct.name = 'speculation accepted'
  JOIN counter a ON a.track_id = ct.id AND a.ts = d.ts
  WHERE dt.name = 'speculation drafted' AND d.value BETWEEN 0 AND 4294967295 AND a.value BETWEEN 0 AND 4294967295
  GROUP BY dt.upid
), known AS (
  SELECT upid, prefill, decode, is_mixed, CASE WHEN decode > 0 AND ns > 0 AND ns < 10000000000 THEN ns END AS ns
  FROM timed
), figure AS (
  SELECT upid, COUNT(*) AS steps, SUM(prefill) AS prefill_tokens, SUM(decode) AS decode_tokens, SUM(is_mixed) AS mixed_steps,
    SUM(CASE WHEN is_mixed = 0 AND ns IS NOT NULL THEN 1 ELSE 0 END) AS decode_steps,
    CAST(SUM(CASE WHEN is_mixed = 0 THEN ns END) AS DOUBLE) / NULLIF(COUNT(CASE WHEN is_mixed = 0 THEN ns END), 0) AS decode_step_ns,
    CAST(SUM(CASE WHEN is_mixed = 1 THEN ns END) AS DOUBLE) / NULLIF(COUNT(CASE WHEN is_mixed = 1 THEN ns END), 0) AS mixed_step_ns
  FROM known
  GROUP BY upid
)
SELECT p.pid, p.name, f.steps, f.prefill_tokens, f.decode_tokens, f.mixed_steps, f.decode_steps, f.decode_step_ns, f.mixed_step_ns,
  COALESCE(s.drafted, 0) AS drafted_tokens, COALESCE(s.accepted, 0) AS accepted_tokens
FROM figure f
JOIN process p ON p.upid = f.upid
LEFT JOIN speculated s ON s.upid = f.upid
ORDER BY f.upid;
