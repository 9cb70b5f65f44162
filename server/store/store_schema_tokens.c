/* store_schema_tokens.c: see store_schema.h. Version 3: who may write. */
#include "store_schema.h"

/* clang-format off */

const char store_schema_tokens[] =
    "CREATE TABLE token ("
    "  id TEXT PRIMARY KEY CHECK (length(id) = 12),"
    "  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),"
    "  scopes INTEGER NOT NULL CHECK (scopes BETWEEN 1 AND 15)," /* bits of enum token_scope */
    "  digest BLOB NOT NULL CHECK (length(digest) = 32)," /* SHA-256 of the secret */
    "  created_ms INTEGER NOT NULL,"
    "  expires_ms INTEGER,"
    "  last_used_ms INTEGER,"
    "  revoked_ms INTEGER"
    ") STRICT, WITHOUT ROWID;";
