/* store_schema_alerts.c: see store_schema.h. Version 4: where trends changed, and what was done. */
#include "store_schema.h"

/* clang-format off */

const char store_schema_alerts[] =
    "";
