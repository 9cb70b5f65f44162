/* store_schema_history.c: see store_schema.h. Version 2: the numbers of a run that trends, the wall and the leaderboard read. */
#include "store_schema.h"

/* clang-format off */

const char store_schema_history[] =
    "";
