/* The time of each name (`names` of the report): `ttot_ns` of its spans that lie in no other one of the name, `tsub_ns` without the spans in them.
   Perfetto stores an instant as a slice of 0 ns, so a name without any longer slice is left out. */
WITH inside AS (
  SELECT parent_id, SUM(dur) AS ns
  FROM slice
  WHERE dur > 0 AND parent_id IS NOT NULL
  GROUP BY parent_id
), span AS (
  SELECT s.category, s.name, s.dur, s.dur - COALESCE(i.ns, 0) AS self_ns,
    CASE WHEN p.name GLOB '*[NG]PU [0-9]*' OR p.name GLOB '* · *' THEN 'track'
      WHEN t.utid IS NULL OR t.name GLOB 'async [0-9]*' THEN 'async' ELSE 'thread' END AS row_kind,
    -- Spans of one row nest, so an earlier one that is still open has this one in it.
    s.ts >= COALESCE(MAX(s.ts + s.dur) OVER (PARTITION BY s.track_id, s.category, s.name ORDER BY s.ts, s.depth
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), s.ts) AS is_outermost
  FROM slice s
  LEFT JOIN inside i ON i.parent_id = s.id
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN process p ON p.upid = COALESCE(t.upid, pt.upid)
  WHERE s.dur >= 0
)
SELECT row_kind, category, name, COUNT(*) AS ncall, SUM(is_outermost) AS ncall_outermost,
  SUM(dur * is_outermost) AS ttot_ns, SUM(self_ns) AS tsub_ns,
  SUM(dur * is_outermost) * 1.0 / COUNT(*) AS tavg_ns, MAX(dur) AS max_ns
FROM span
GROUP BY row_kind, category, name
HAVING MAX(dur) > 0
ORDER BY tsub_ns DESC, ttot_ns DESC;
