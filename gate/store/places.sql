-- places.sql: gives their places to all commits whose place is not known, and to those behind them.
--
-- A place is the commit's own time, or one above the place of its first parent if that is later. So
-- it is the same in whatever order commits and runs come. Where a link is missing, time decides.
-- Hashes cannot make a ring, but a document may: it ends after 65536 steps, or has no first one and
-- stays without places.
UPDATE revision SET place_ms = m.place_ms FROM (
  WITH RECURSIVE moved(id, commit_id, place_ms, step) AS (
    SELECT v.id, v.commit_id, max(coalesce(v.time_ms, v.first_ms, 0),
      coalesce(p.place_ms + 1, 0)), 0
    FROM revision v LEFT JOIN revision p ON p.commit_id = v.parent
    WHERE v.place_ms = -1 AND coalesce(p.place_ms, 0) <> -1
    UNION ALL
    SELECT c.id, c.commit_id, max(coalesce(c.time_ms, c.first_ms, 0), m.place_ms + 1), m.step + 1
    FROM moved m CROSS JOIN revision c ON c.parent = m.commit_id AND c.parent <> ''
    WHERE m.step < 65536)
  SELECT id, place_ms, max(step) FROM moved GROUP BY id) m
WHERE m.id = revision.id RETURNING id, revision.place_ms
