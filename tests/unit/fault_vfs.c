/* SPDX-License-Identifier: Apache-2.0 */
/* fault_vfs.c: see fault_vfs.h. */
#include "tests/unit/fault_vfs.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

struct file {
    sqlite3_file base;
    sqlite3_file real[]; /* of the usual VFS, szOsFile bytes */
};

static sqlite3_vfs *usual;
static sqlite3_vfs shim;
static atomic_int fault_kind;
static atomic_int passes_left;
static atomic_int n_failed;

static sqlite3_file *real(sqlite3_file *f)
{
    return ((struct file *)(void *)f)->real;
}

static bool fails(enum fault kind)
{
    if (atomic_load(&fault_kind) != (int)kind || atomic_fetch_sub(&passes_left, 1) > 0)
        return false;
    atomic_fetch_add(&n_failed, 1);
    return true;
}

static int do_close(sqlite3_file *f)
{
    return real(f)->pMethods ? real(f)->pMethods->xClose(real(f)) : SQLITE_OK;
}

static int do_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return real(f)->pMethods->xRead(real(f), to, n, at);
}

static int do_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    if (fails(FAULT_FULL))
        return SQLITE_FULL;
    if (fails(FAULT_WRITE)) {
        real(f)->pMethods->xWrite(real(f), from, n / 2, at);
        return SQLITE_IOERR_WRITE;
    }
    return real(f)->pMethods->xWrite(real(f), from, n, at);
}

static int do_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return real(f)->pMethods->xTruncate(real(f), size);
}

static int do_sync(sqlite3_file *f, int flags)
{
    return fails(FAULT_SYNC) ? SQLITE_IOERR_FSYNC : real(f)->pMethods->xSync(real(f), flags);
}

static int do_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real(f)->pMethods->xFileSize(real(f), size);
}

static int do_lock(sqlite3_file *f, int lock)
{
    return real(f)->pMethods->xLock(real(f), lock);
}

static int do_unlock(sqlite3_file *f, int lock)
{
    return real(f)->pMethods->xUnlock(real(f), lock);
}

static int do_check_lock(sqlite3_file *f, int *out)
{
    return real(f)->pMethods->xCheckReservedLock(real(f), out);
}

static int do_control(sqlite3_file *f, int op, void *arg)
{
    return real(f)->pMethods->xFileControl(real(f), op, arg);
}

static int do_sector_size(sqlite3_file *f)
{
    return real(f)->pMethods->xSectorSize(real(f));
}

static int do_characteristics(sqlite3_file *f)
{
    return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int do_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
}

static int do_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real(f)->pMethods->xShmLock(real(f), offset, n, flags);
}

static void do_shm_barrier(sqlite3_file *f)
{
    real(f)->pMethods->xShmBarrier(real(f));
}

static int do_shm_unmap(sqlite3_file *f, int remove)
{
    return real(f)->pMethods->xShmUnmap(real(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = do_close,
    .xRead = do_read,
    .xWrite = do_write,
    .xTruncate = do_truncate,
    .xSync = do_sync,
    .xFileSize = do_size,
    .xLock = do_lock,
    .xUnlock = do_unlock,
    .xCheckReservedLock = do_check_lock,
    .xFileControl = do_control,
    .xSectorSize = do_sector_size,
    .xDeviceCharacteristics = do_characteristics,
    .xShmMap = do_shm_map,
    .xShmLock = do_shm_lock,
    .xShmBarrier = do_shm_barrier,
    .xShmUnmap = do_shm_unmap,
};

static int do_open(sqlite3_vfs *, const char *name, sqlite3_file *f, int flags, int *out)
{
    int rc = usual->xOpen(usual, name, real(f), flags, out);
    f->pMethods = real(f)->pMethods ? &methods : NULL;
    return rc;
}

void fault_vfs_install(void)
{
    usual = sqlite3_vfs_find(NULL);
    shim = *usual;
    shim.zName = "fault";
    shim.pNext = NULL;
    shim.szOsFile = (int)sizeof(struct file) + usual->szOsFile;
    shim.xOpen = do_open;
    fault_vfs_set(FAULT_NONE, 0);
    sqlite3_vfs_register(&shim, 1);
}

void fault_vfs_remove(void)
{
    sqlite3_vfs_unregister(&shim);
    sqlite3_vfs_register(usual, 1);
}

void fault_vfs_set(enum fault kind, int passes)
{
    atomic_store(&passes_left, passes);
    atomic_store(&n_failed, 0);
    atomic_store(&fault_kind, (int)kind);
}

int fault_vfs_count(void)
{
    return atomic_load(&n_failed);
}
