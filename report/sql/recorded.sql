/* Each process: its events, and how it ended if it did not exit normally. */
SELECT pid, name, host, events, open_spans, end_state, exit, last_ns, clock_uncertainty_ns
FROM process
ORDER BY upid;
