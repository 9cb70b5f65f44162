/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_sql.h: every statement of the store, by name. They are prepared once, when the file is
 * opened; nothing else in the program holds SQL but the schema.
 */
#ifndef GATE_HISTORY_STORE_SQL_H
#define GATE_HISTORY_STORE_SQL_H

#include <stdbool.h>

enum store_sql {
    /* queries */
    SQL_READ_BEGIN,
    SQL_READ_END,
    SQL_STATE,
    SQL_RUNS,
    SQL_RUNS_OF_DEVICE,
    SQL_RUNS_OF_BRANCH,
    SQL_RUNS_OF_VERDICT,
    SQL_RUNS_OF_COMMIT,
    SQL_FIND_COMMIT,
    SQL_BRANCHES,
    SQL_RUN,
    SQL_FIND_RUN,
    SQL_FIND_RUN_OF_COMMIT,
    SQL_DEVICES,
    SQL_EPOCHS,
    SQL_TRACKS,
    SQL_CASE,
    SQL_NEWEST_POINTS,
    SQL_TREND,
    SQL_TRACK,
    SQL_TREND_SERIES,
    SQL_TREND_LEVELS,
    SQL_TREND_KEYS,
    SQL_TREND_LEVELS_OF_RUNS,
    SQL_TREND_CHAIN,
    SQL_TREND_DETAILS,
    SQL_LEADERBOARD,
    SQL_RESULTS,
    SQL_RESULT_POINT,
    SQL_BASELINES,
    SQL_BASELINE_LOG,
    SQL_BASELINE_LOG_OF_DEVICE,
    SQL_BASELINE_LOG_OF_TRACK,
    SQL_CALIBRATIONS,
    SQL_CALIBRATIONS_OF_DEVICE,
    SQL_CALIBRATED,
    SQL_INJECTED,
    SQL_DOCUMENT,
    SQL_DOCUMENT_LENGTH,
    SQL_DOCUMENTS,
    SQL_CHECK_DOCUMENTS,
    SQL_FIND_TOKEN,
    SQL_TOKENS,
    SQL_ALERTS,
    SQL_ALERTS_OF_STATE,
    SQL_ALERTS_OF_CASE,
    SQL_ALERT_COUNTS,
    SQL_ALERT_COUNTS_OF_CASE,
    SQL_ALERT,
    SQL_ALERT_LOG,
    SQL_ALERT_EVENTS,
    SQL_CHANGE_POINTS,
    SQL_WRONG_RESULTS,
    SQL_PUT_WRONG,
    SQL_OPEN_ALERT,
    SQL_IDENTITY,
    SQL_BADGE_DEVICE,
    SQL_BADGE_ALERTS,
    SQL_BADGE_CASE,
    SQL_WEBHOOK_MARK,
    SQL_NEWEST_EVENT,
    /* writes */
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVEPOINT,
    SQL_RELEASE,
    SQL_ROLLBACK_TO,
    SQL_NAME_COPY,
    SQL_TOUCH,
    SQL_RUN_EXISTS,
    SQL_PUT_DEVICE,
    SQL_PUT_REVISION,
    SQL_PUT_RUN,
    SQL_PUT_DOCUMENT,
    SQL_EPOCH_BEFORE,
    SQL_PUT_EPOCH,
    SQL_DROP_EPOCH,
    SQL_NEXT_RUN,
    SQL_PUT_CASE,
    SQL_FIND_TRACK,
    SQL_PUT_TRACK,
    SQL_ADD_TO_TRACK,
    SQL_PUT_NEWEST_RESULT,
    SQL_PUT_RESULT,
    SQL_FIND_SERIES,
    SQL_PUT_SERIES,
    SQL_FIND_KERNEL,
    SQL_PUT_KERNEL,
    SQL_PUT_POINT,
    SQL_PUT_LEADER,
    SQL_FIND_BASELINE,
    SQL_PUT_BASELINE,
    SQL_PUT_BASELINE_LOG,
    SQL_PUT_CALIBRATION,
    SQL_PUT_CALIBRATED,
    SQL_PUT_INJECTED,
    SQL_TO_THIN,
    SQL_THIN,
    SQL_PUT_TOKEN,
    SQL_REVOKE_TOKEN,
    SQL_TOUCH_TOKEN,
    SQL_WATCH_MARK,
    SQL_WATCH_NEXT,
    SQL_PUT_WATCH_MARK,
    SQL_WATCH_POINTS,
    SQL_WATCH_WRONG,
    SQL_RAISED_BASELINE,
    SQL_PUT_ALERT,
    SQL_UNCOUNT_ALERT,
    SQL_COUNT_ALERT,
    SQL_ASSIGN_ALERT,
    SQL_PUT_ALERT_EVENT,
    SQL_STEP_ALERT,
    SQL_MOVE_ALERT,
    SQL_TRACK_ALERTS,
    SQL_PUT_WEBHOOK_MARK,
    STORE_SQL_COUNT
};

#define STORE_SQL_FIRST_WRITE SQL_BEGIN

extern const char *const store_sql[STORE_SQL_COUNT];

/*
 * What must not be, store_sql_checks.c: each row of such a statement is a fault. They walk through
 * the whole file, and are prepared when it is checked. The last has no statement.
 */
struct store_check {
    const char *what;
    const char *sql;
};
extern const struct store_check store_checks[];

#endif
