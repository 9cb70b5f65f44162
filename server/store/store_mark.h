/*
 * store_mark.h: has anything been written since? Told without a statement or a system call.
 */
#ifndef SERVER_STORE_STORE_MARK_H
#define SERVER_STORE_STORE_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

struct store_mark {
    uint32_t words[12];
};

/*
 * Equal marks: nothing was committed to the file in between, by whatever process. Marks may differ
 * without a commit. False: there is none to be had, ask the database itself. It needs a store that
 * was read from already, and lets several threads ask the same one.
 */
bool store_mark(struct store *s, struct store_mark *out);

#endif
