-- controls:
WITH RECURSIVE name(machine) AS (SELECT min(machine) FROM run WHERE :run IS NULL UNION ALL
  SELECT (SELECT min(r.machine) FROM run r WHERE r.machine > n.machine) FROM name n
  WHERE n.machine IS NOT NULL),
asked(id) AS (
  SELECT id FROM run WHERE uuid = :run AND contract NOT GLOB 'foreign-*' UNION ALL
  SELECT (SELECT r.id FROM run r WHERE r.machine = n.machine AND r.contract NOT GLOB 'foreign-*'
    AND (:device IS NULL OR r.device = :device) ORDER BY r.time_ms DESC, r.uuid DESC LIMIT 1)
  FROM name n WHERE n.machine <> '')
SELECT r.uuid AS run, -- text: the newest run of a machine, or the one that was asked for
  r.device, -- text: the device model
  nullif(r.host, '') AS host, -- text null: where it ran
  nullif(r.gpu, '') AS gpu, -- text null: uuid of the GPU
  nullif(r.machine, '') AS machine, -- text null: the GPU, or else the host
  r.time_ms, -- integer: when it began
  r.control_ns, -- number null: the control kernel's time, geometric mean over the cases
  r.control_drift, -- number null: how far the control moved between processes
  r.n_cases AS cases, -- integer: in the run
  r.n_no_verdict + r.n_environment AS undecided, -- integer: of them without a verdict on the code
  (SELECT json_group_array(CAST(printf('%.9g', b.control_ns) AS REAL)) FROM (
    SELECT h.control_ns FROM run h WHERE h.machine = r.machine AND h.device = r.device
      AND h.epoch = r.epoch AND h.contract = r.contract AND h.control_ns IS NOT NULL
      AND (h.time_ms, h.uuid) < (r.time_ms, r.uuid)
    ORDER BY h.time_ms DESC, h.uuid DESC LIMIT 20) b
  ) AS before -- json Numbers: control_ns of the machine's 20 runs before it in its epoch
FROM asked a CROSS JOIN run r ON r.id = a.id
