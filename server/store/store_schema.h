/*
 * store_schema.h: the tables of the history, and how an older file gets them.
 */
#ifndef SERVER_STORE_STORE_SCHEMA_H
#define SERVER_STORE_STORE_SCHEMA_H

#include "store.h"

/*
 * Element i takes a file from schema version i to i + 1; one script runs in one transaction.
 * A script that was ever released is never edited.
 */
extern const char store_schema_history[];  /* 1 to 2 */
extern const char store_schema_tokens[];   /* 2 to 3 */
extern const char store_schema_alerts[];   /* 3 to 4 */
extern const char store_schema_wrong[];    /* 4 to 5 */
extern const char store_schema_branches[]; /* 5 to 6 */
extern const char store_schema_errors[];   /* 6 to 7 */

/*
 * The scripts from 2 on start the history empty, with the documents of version 1 put aside: those
 * are read, oldest first, put in again, and their table is dropped, before the transaction ends.
 */
extern const char store_schema_old_documents[];
extern const char store_schema_no_old_documents[];

extern const char *const store_migrations[STORE_SCHEMA_VERSION];

#endif
