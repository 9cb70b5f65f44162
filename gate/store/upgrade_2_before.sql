-- upgrade_2_before.sql: moves the tables of version 1 out of the way of those of version 2. Those
-- of documents, tokens and steps of alerts are the same in both, and stay.
DROP INDEX machine_by_time;
DROP INDEX run_by_time;
DROP INDEX run_by_device;
DROP INDEX run_by_device_branch;
DROP INDEX run_by_branch;
DROP INDEX run_by_verdict;
DROP INDEX run_by_revision;
DROP INDEX run_by_machine;
DROP INDEX track_by_device;
DROP INDEX alert_open;
DROP INDEX alert_by_state;
DROP INDEX alert_by_kind;
DROP INDEX alert_by_kind_state;
DROP INDEX alert_by_device;
DROP INDEX alert_by_track;
DROP INDEX alert_by_series;
DROP INDEX alert_by_run;
ALTER TABLE revision RENAME TO old_revision;
ALTER TABLE run RENAME TO old_run;
ALTER TABLE track RENAME TO old_track;
ALTER TABLE result RENAME TO old_result;
ALTER TABLE alert RENAME TO old_alert;
