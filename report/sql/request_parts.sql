/* Parts of the time of the mean answered request. A part whose end is not in the trace is joined with the next one. */
WITH answered AS (SELECT * FROM request WHERE status = 'ok' AND e2e_us IS NOT NULL)
SELECT COUNT(*) AS n, AVG(e2e_us) AS e2e_us, SUM(part_socket_us) / COUNT(*) AS socket_us, SUM(part_http_us) / COUNT(*) AS http_us,
  SUM(part_preprocess_us) / COUNT(*) AS preprocess_us, SUM(part_ipc_us) / COUNT(*) AS ipc_us, SUM(part_frontend_us) / COUNT(*) AS frontend_us,
  SUM(part_queue_us) / COUNT(*) AS queue_us, SUM(part_prefill_us) / COUNT(*) AS prefill_us, SUM(part_decode_us) / COUNT(*) AS decode_us,
  SUM(part_return_us) / COUNT(*) AS return_us, SUM(part_answer_us) / COUNT(*) AS answer_us
FROM answered;
