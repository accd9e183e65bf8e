/* Each name: its number of calls, its time with and without inner slices, and percentiles of its durations. */
SELECT category, name, row_kind, ncall, ncall_outermost, ttot_us, tsub_us, tavg_us, p50_us, p90_us, p99_us, max_us
FROM name
ORDER BY tsub_us DESC, name, row_kind, category;
