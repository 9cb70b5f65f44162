-- trend_commit: the commit that has a run and begins with :commit; none where several do.
SELECT min(place_ms) AS place_ms, min(id) AS id FROM (SELECT place_ms, id FROM revision
  WHERE commit_id >= :commit AND commit_id < :commit || '~' AND first_ms IS NOT NULL LIMIT 2)
HAVING count(*) = 1
