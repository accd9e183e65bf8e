/* Ids that several requests used, one after the other. The other statements count them as one request, the report tells them apart. */
WITH span AS (
  SELECT a.display_value AS request_id, s.name, s.ts, CASE WHEN s.dur > 0 THEN s.ts + s.dur ELSE s.ts END AS end_ts
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  WHERE s.dur <> 0 AND (SUBSTR(s.name, 1, 5) = 'http.' OR s.name = 'request')
), placed AS (
  SELECT request_id, name, ts, MAX(end_ts) OVER (PARTITION BY request_id, name ORDER BY ts, end_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ts
  FROM span
), moment AS (
  SELECT a.display_value AS request_id, t.upid, REPLACE(s.name, 'request.', '') AS kind, s.ts
  FROM slice s
  JOIN args a ON a.arg_set_id = s.arg_set_id AND a.flat_key IN ('args.request_id', 'args.request_ids')
  JOIN thread_track tt ON tt.id = s.track_id
  JOIN thread t ON t.utid = tt.utid
  WHERE s.dur = 0 AND s.name IN ('request.queued', 'queued', 'request.finished')
), followed AS (
  SELECT request_id, upid, kind, LAG(kind) OVER (PARTITION BY request_id, upid ORDER BY ts, kind DESC) AS kind_before
  FROM moment
), used AS (
  -- By the spans of one name, and by the queue of each engine.
  SELECT request_id, COUNT(*) AS requests
  FROM placed
  WHERE before_ts IS NULL OR ts >= before_ts
  GROUP BY request_id, name
  UNION ALL
  SELECT request_id, 1 + COUNT(*)
  FROM followed
  WHERE kind = 'queued' AND kind_before = 'finished'
  GROUP BY request_id, upid
)
SELECT request_id, MAX(requests) AS requests
FROM used
WHERE requests > 1
GROUP BY request_id
ORDER BY request_id;
