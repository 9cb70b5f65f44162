-- alerts: limit 200 1000
-- :ids is a JSON array of those that a handler asks for; then nothing else is given. A group is of
-- alerts that begin in one range of commits, or in one run where no commit is known; a page of
-- groups ends with the one that reaches its limit.
WITH fit(id, at, run_id, before) AS (
  SELECT a.id, r.revision_id, iif(r.revision_id IS NULL, r.id, NULL),
    iif(r.revision_id IS NULL, NULL, b.revision_id)
  FROM alert a CROSS JOIN run r ON r.id = a.run_id LEFT JOIN run b ON b.id = a.before_run_id
  WHERE :groups = '1' AND (:state IS NULL OR a.state = :state)
    AND (:kind IS NULL OR a.kind = :kind) AND (:device IS NULL OR a.device = :device)
    AND (:case IS NULL OR a.track_id IN (SELECT t.id FROM track t WHERE t.case_id = :case))),
led AS (
  SELECT id, max(id) OVER (PARTITION BY at, run_id, before) AS leader,
    row_number() OVER (PARTITION BY at, run_id, before ORDER BY id DESC) AS n FROM fit),
grouped AS (
  SELECT id, leader,
    count(*) OVER (ORDER BY leader DESC) - count(*) OVER (PARTITION BY leader) AS n_before
  FROM led WHERE n <= 1000 AND (:after1 IS NULL OR leader < :after1 + 0)),
single AS (
  SELECT a.id FROM alert a
  WHERE :groups = '0' AND (:after1 IS NULL OR a.id < :after1)
    AND (:state IS NULL OR a.state = :state) AND (:kind IS NULL OR a.kind = :kind)
    AND (:device IS NULL OR a.device = :device)
    AND (:case IS NULL OR a.track_id IN (SELECT t.id FROM track t WHERE t.case_id = :case))
  ORDER BY a.id DESC LIMIT coalesce(:limit, 0)),
shown AS MATERIALIZED (
  SELECT id, leader, more FROM (
    SELECT id, leader, n_before, max(n_before) OVER () >= :limit - 1 AS more FROM grouped
    UNION ALL
    SELECT id, id, row_number() OVER (ORDER BY id DESC) - 1, count(*) OVER () >= :limit + 0
    FROM single)
  WHERE n_before < :limit - 1
  UNION ALL SELECT value, -key, 0 FROM json_each(:ids)),
told AS MATERIALIZED (
  SELECT a.*, t.case_id, t.kind AS track_kind, s.leader, s.more, r.uuid, r.subject, r.author, r.dirty,
    r.contract AS run_contract, r.branch, r.place_ms, v.commit_id, v.parent,
    w.commit_id AS before_commit, b.subject AS before_subject, b.author AS before_author,
    iif(a.confirmed = 0 AND a.kind IN ('regression', 'improvement') AND t.kind <> 'paired'
      AND b.machine <> r.machine AND NOT EXISTS (SELECT 1 FROM run o WHERE o.machine = r.machine
        AND o.device = r.device AND (o.time_ms, o.id) < (r.time_ms, r.id)), r.machine, NULL)
      AS machine,
    (SELECT n.run_id FROM result n INDEXED BY result_red WHERE a.confirmed = 1
       AND n.track_id = a.track_id AND n.branch = r.branch AND n.arm = 0
       AND n.verdict IN ('regression', 'wrong')
       AND (n.place_ms, n.time_ms, n.run_id) >= (r.place_ms, r.time_ms, r.id)
     ORDER BY n.place_ms, n.time_ms, n.run_id LIMIT 1) AS told_run_id
  FROM shown s CROSS JOIN alert a ON a.id = s.id CROSS JOIN track t ON t.id = a.track_id
    CROSS JOIN run r ON r.id = a.run_id LEFT JOIN revision v ON v.id = r.revision_id
    LEFT JOIN run b ON b.id = a.before_run_id LEFT JOIN revision w ON w.id = b.revision_id)
SELECT a.leader, -- integer key1 hidden: the newest of its group, where groups are asked for
  a.more, -- boolean more hidden: another page follows
  a.id, -- integer: its number
  a.case_id AS "case", -- text: the case
  a.device, -- text: the device model
  nullif(a.provider, '') AS provider, -- text null: whose times; null: of a case never timed
  a.run_contract AS contract, -- text: the rules of measuring
  a.kind, -- text: regression, improvement, error or wrong
  a.state, -- text: new, acknowledged, accepted, fixed or ignored
  a.time_ms, -- integer: of the first run at the new level
  a.uuid AS run, -- text: that run
  a.commit_id AS "commit", -- text null: of that run
  nullif(a.subject, '') AS subject, -- text null: of the commit
  nullif(a.author, '') AS author, -- text null: of the commit: a name, never an e-mail address
  a.dirty, -- boolean: that run had changes that the commit does not have
  nullif(a.parent, '')
    AS parent, -- text null: of the commit; any between before_commit and it may be the cause
  a.machine, -- text null: of times alone: the new machine that they began with, and no commit
  a.before_commit, -- text null: of the last good run before it
  nullif(a.before_subject, '') AS before_subject, -- text null: of that commit
  nullif(a.before_author, '') AS before_author, -- text null: of that commit
  iif(a.commit_id IS NULL, a.uuid, coalesce(a.before_commit, '') || '..' || a.commit_id)
    AS "group", -- text: the same in all alerts of one range of commits, on whatever device
  a.case_id || ' on ' || a.device || CASE
      WHEN a.kind = 'wrong' THEN ' is wrong'
      WHEN a.kind = 'error' THEN printf(' is less accurate: %s %.3g to %.3g',
        iif(a.by_vendor, 'error over the vendor''s', 'relative error'), a.before_value,
        a.after_value)
      ELSE printf(' is %s: %s to %s', CASE
          WHEN a.kind = 'improvement' THEN percent(abs(a.change)) || ' faster'
          WHEN a.change > 0 THEN percent(a.change) || ' slower' ELSE 'a regression' END,
        duration(a.before_value), duration(a.after_value)) END
    || coalesce(' since another machine measures: ' || substr(a.machine, 1, 64),
      ' since commit ' || substr(a.commit_id, 1, 12) ||
        iif(a.dirty, ' with uncommitted changes', ''), '')
    || iif(a.kind = 'regression' AND a.told_run_id <> a.run_id, ', now over the threshold', '')
    AS text, -- text: what it is about, in a sentence
  iif(a.kind = 'wrong', NULL, a.change) AS change, -- number null: after over before, less 1
  iif(a.kind = 'error', NULL, nullif(a.before_value, 0)) AS before_ns, -- number null: a median
  iif(a.kind = 'error', NULL, nullif(a.after_value, 0)) AS after_ns, -- number null: the same
  iif(a.kind = 'error', nullif(a.before_value, 0), NULL)
    AS before_error, -- number null: the usual one before it, of an alert of the kind error
  iif(a.kind = 'error', nullif(a.after_value, 0), NULL)
    AS after_error, -- number null: that of the run
  a.by_vendor, -- boolean: errors are over that of the vendor's own kernel on the same inputs
  a.confirmed, -- boolean: by the verdict of the run, not only by the trend
  (SELECT nullif(e.reason, '') FROM result e WHERE e.run_id = a.told_run_id
    AND e.track_id = a.track_id AND e.arm = 0
  ) AS evidence, -- text null: of a confirmed one: the reason that the run gives
  a.reason, -- text: of its last step
  a.who, -- text: who took that
  nullif(a.assignee, '') AS assignee, -- text null: who looks after it
  a.updated_ms, -- integer: when that step was taken
  a.closed_ms -- integer null: when it was closed
FROM told a ORDER BY a.leader DESC, a.id DESC;

SELECT count(*) FILTER (WHERE a.state = 'new') AS "counts.new", -- integer: in this state
  count(*) FILTER (WHERE a.state = 'acknowledged') AS "counts.acknowledged", -- integer: the same
  count(*) FILTER (WHERE a.state = 'accepted') AS "counts.accepted", -- integer: the same
  count(*) FILTER (WHERE a.state = 'fixed') AS "counts.fixed", -- integer: the same
  count(*) FILTER (WHERE a.state = 'ignored') AS "counts.ignored", -- integer: the same
  (SELECT count(*) FROM (SELECT DISTINCT a.kind, r.revision_id,
      iif(r.revision_id IS NULL, r.id, b.revision_id)
    FROM alert a CROSS JOIN run r ON r.id = a.run_id LEFT JOIN run b ON b.id = a.before_run_id
    WHERE a.state IN ('new', 'acknowledged') AND a.kind <> 'improvement'
      AND (:device IS NULL OR a.device = :device) AND (:case IS NULL
        OR a.track_id IN (SELECT o.id FROM track o WHERE o.case_id = :case)))
  ) AS causes -- integer: how many are open: alerts that are no improvement, by kind and group
FROM alert a WHERE (:device IS NULL OR a.device = :device) AND (:kind IS NULL OR a.kind = :kind)
  AND (:case IS NULL OR a.track_id IN (SELECT o.id FROM track o WHERE o.case_id = :case))
