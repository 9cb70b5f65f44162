/* store_schema_tokens.c: see store_schema.h. Version 3: who may write. */
#include "store_schema.h"

/* clang-format off */

const char store_schema_tokens[] =
    "";
