/*
 * store_schema.h: the tables of the history, and how an older file gets them.
 */
#ifndef SERVER_STORE_SCHEMA_H
#define SERVER_STORE_SCHEMA_H

#include "store.h"

/*
 * Element i takes a file from schema version i to i + 1; one script runs in one transaction.
 * A script that was ever released is never edited.
 */
extern const char *const store_migrations[STORE_SCHEMA_VERSION];

#endif
