/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_vfs.h: a disk that fails when the test says so, for SQLite.
 *
 * A VFS over the usual one. Only files that are opened after fault_vfs_install() are on it.
 */
#ifndef TESTS_UNIT_FAULT_VFS_H
#define TESTS_UNIT_FAULT_VFS_H

enum fault {
    FAULT_NONE,
    FAULT_SYNC,  /* fsync() fails */
    FAULT_FULL,  /* no room for a write */
    FAULT_WRITE, /* a write fails half way: half of its bytes are written */
};

/* Makes it the VFS that SQLite uses unless told otherwise. */
void fault_vfs_install(void);
void fault_vfs_remove(void);

/* The next `passes` operations of that kind are good, all later ones fail. */
void fault_vfs_set(enum fault kind, int passes);

/* How many operations failed since then. */
int fault_vfs_count(void);

#endif
