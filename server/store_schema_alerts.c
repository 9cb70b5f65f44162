/* store_schema_alerts.c: see store_schema.h. Version 4: where a trend changed, what became of it. */
#include "store_schema.h"

/* clang-format off */

const char store_schema_alerts[] =
    "";
