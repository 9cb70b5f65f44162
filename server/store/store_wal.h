/*
 * store_wal.h: writes to the write-ahead log in large pieces, for a connection that writes much.
 *
 * SQLite writes each page of a transaction with two calls, its 24 bytes of head apart: 10,700 calls
 * for a run of 5,000 series. Here they are gathered, and each full piece is on its way to the disk
 * while the next one fills, so that there is little to wait for at the end. Nobody reads what is
 * not committed but who wrote it, and at synchronous=FULL, which this needs, a commit syncs the log
 * before it is told to others; so what is gathered is never missed.
 */
#ifndef SERVER_STORE_STORE_WAL_H
#define SERVER_STORE_STORE_WAL_H

#include <sqlite3.h>

/* From now on until the connection is closed. Where that cannot be, all stays as it is. */
void store_wal_gather(sqlite3 *db);

#endif
