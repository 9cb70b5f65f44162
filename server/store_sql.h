/*
 * store_sql.h: every statement of the store, by name. They are prepared once, when the file is
 * opened; nothing else in the program holds SQL but the schema.
 */
#ifndef SERVER_STORE_SQL_H
#define SERVER_STORE_SQL_H

#include <stdbool.h>

enum store_sql {
    /* queries */
    SQL_STATE,
    SQL_RUNS,
    SQL_DEVICES,
    SQL_CASES,
    SQL_TREND,
    SQL_LEADERBOARD,
    SQL_FIND_RUN,
    SQL_DOCUMENT,
    SQL_DOCUMENTS,
    SQL_FIND_TOKEN,
    SQL_TOKENS,
    /* writes */
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVEPOINT,
    SQL_RELEASE,
    SQL_ROLLBACK_TO,
    SQL_RUN_EXISTS,
    SQL_PUT_DEVICE,
    SQL_PUT_RUN,
    SQL_PUT_DOCUMENT,
    SQL_PUT_CASE,
    SQL_PUT_TRACK,
    SQL_PUT_RESULT,
    SQL_PUT_SERIES,
    SQL_PUT_POINT,
    SQL_PUT_TOKEN,
    SQL_REVOKE_TOKEN,
    SQL_TOUCH_TOKEN,
    STORE_SQL_COUNT
};

#define STORE_SQL_FIRST_WRITE SQL_BEGIN

extern const char *const store_sql[STORE_SQL_COUNT];

#endif
