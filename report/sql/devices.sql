/* How busy each device was from its first slice to its last, and each worker whose device is not recorded. */
SELECT process, worker, engine, is_worker, slices, wall_us, busy_us, idle_us, 100 * busy_us / NULLIF(wall_us, 0) AS busy_percent, communication_us,
  exposed_communication_us, longest_gap_us, longest_gap_at_ns, launches, launch_delay_mean_us, launch_delay_p99_us
FROM device
ORDER BY is_worker, upid;
