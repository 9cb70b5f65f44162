/* store_schema_history.c: see store_schema.h. Version 2: what trends and the wall read of a run. */
#include "store_schema.h"

/* clang-format off */

const char store_schema_history[] =
    "";
