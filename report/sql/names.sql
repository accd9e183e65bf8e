/* The time of each name (`names` of the report): `ttot_ns` of its spans that lie in no other one of the name, `tsub_ns` without the spans in them.
   Perfetto stores an instant as a slice of 0 ns: those of a name that has spans count as spans of 0 ns, and a name without any longer slice is left out. */
WITH device AS (
  SELECT upid, name, REPLACE(name, 'GPU ', 'NPU ') AS kind
  FROM process
), inside AS (
  SELECT parent_id, SUM(dur) AS ns
  FROM slice
  WHERE dur > 0 AND parent_id IS NOT NULL
  GROUP BY parent_id
), span AS (
  SELECT s.category, s.name, s.dur, s.dur - COALESCE(i.ns, 0) AS self_ns,
    CASE WHEN INSTR(d.name, ' · ') > 0 OR (INSTR(d.kind, 'NPU ') > 0 AND SUBSTR(d.kind, INSTR(d.kind, 'NPU ') + 4, 1) BETWEEN '0' AND '9') THEN 'track'
      WHEN t.utid IS NULL OR INSTR(t.name, ' (async)') > 0 OR SUBSTR(t.name, 1, 8) = 'samples ' OR (SUBSTR(t.name, 1, 6) = 'async ' AND SUBSTR(t.name, 7, 1) BETWEEN '0' AND '9') THEN 'async' ELSE 'thread' END AS row_kind,
    -- Spans of one row nest, so an earlier one that is still open has this one in it.
    CASE WHEN s.ts < MAX(s.ts + s.dur) OVER (PARTITION BY s.track_id, s.category, s.name ORDER BY s.ts, s.depth
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) THEN 0 ELSE 1 END AS is_outermost
  FROM slice s
  LEFT JOIN inside i ON i.parent_id = s.id
  LEFT JOIN thread_track tt ON tt.id = s.track_id
  LEFT JOIN thread t ON t.utid = tt.utid
  LEFT JOIN process_track pt ON pt.id = s.track_id
  LEFT JOIN device d ON d.upid = COALESCE(t.upid, pt.upid)
  WHERE s.dur >= 0
), ranked AS (
  SELECT row_kind, category, name, dur, self_ns, is_outermost,
    ROW_NUMBER() OVER (PARTITION BY row_kind, category, name ORDER BY dur) - 1 AS place,
    COUNT(*) OVER (PARTITION BY row_kind, category, name) - 1 AS last_place
  FROM span
), figure AS (
  SELECT row_kind, category, name, COUNT(*) AS ncall, SUM(is_outermost) AS ncall_outermost,
    SUM(dur * is_outermost) AS ttot_ns, SUM(self_ns) AS tsub_ns, MIN(dur) AS min_ns, MAX(dur) AS max_ns,
    MAX(CASE WHEN 100 * place <= 50 * last_place THEN dur END) AS below_50, MIN(CASE WHEN 100 * place >= 50 * last_place THEN dur END) AS above_50,
    MAX(CASE WHEN 100 * place <= 90 * last_place THEN dur END) AS below_90, MIN(CASE WHEN 100 * place >= 90 * last_place THEN dur END) AS above_90,
    MAX(CASE WHEN 100 * place <= 99 * last_place THEN dur END) AS below_99, MIN(CASE WHEN 100 * place >= 99 * last_place THEN dur END) AS above_99
  FROM ranked
  GROUP BY row_kind, category, name
)
SELECT row_kind, category, name, ncall, ncall_outermost, ttot_ns, tsub_ns, CAST(ttot_ns AS DOUBLE) / ncall AS tavg_ns, min_ns,
  -- Linear between the two ranks next to the percentile's place.
  below_50 + (above_50 - below_50) * (50 * (ncall - 1) % 100 / 1e2) AS p50_ns,
  below_90 + (above_90 - below_90) * (90 * (ncall - 1) % 100 / 1e2) AS p90_ns,
  below_99 + (above_99 - below_99) * (99 * (ncall - 1) % 100 / 1e2) AS p99_ns,
  max_ns
FROM figure
WHERE max_ns > 0
ORDER BY tsub_ns DESC, ttot_ns DESC, row_kind, COALESCE(category, ''), name;
