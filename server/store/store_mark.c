/*
 * store_mark.c: see store_mark.h.
 *
 * The mark is the header of the WAL index (sqlite.org/walformat.html, 2.2): 48 bytes of memory that
 * all connections to the file share. A commit writes its second copy, then the first, which is the
 * one that is read here, and its counter, length, salts or checksums are then others than before.
 * A header in the middle of being written is just a mark that equals no other.
 */
#include "store_mark.h"

#include "store_private.h"

#define INDEX_REGION 32768 /* the size that SQLite maps at a time */

bool store_mark(struct store *s, struct store_mark *out)
{
    sqlite3_file *file = NULL;
    volatile void *region = NULL;
    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->iVersion < 2)
        return false;
    /* Mapped already by the first read; 0: not to be made. */
    if (file->pMethods->xShmMap(file, 0, INDEX_REGION, 0, &region) != SQLITE_OK || !region)
        return false;
    const volatile uint32_t *words = region;
    for (int i = 0; i < 12; i++)
        out->words[i] = words[i];
    return words[0] != 0; /* the version of the format; 0: there is no log yet */
}
