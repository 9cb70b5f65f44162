/*
 * watch_branches.h: the branches whose runs make up the trend that is watched. Runs of others, such
 * as those of merge requests, are stored and shown, but raise no alert and are no part of a level:
 * the gate held each of them against the best already.
 */
#ifndef SERVER_STORE_WATCH_BRANCHES_H
#define SERVER_STORE_WATCH_BRANCHES_H

#include <stdbool.h>
#include <stddef.h>

#define WATCH_MAX_BRANCHES 16

/* Names, in which * and ? stand for other characters; "" is of runs that name no branch. */
struct watch_branches {
    size_t n; /* 0: main, master, and runs that name none */
    const char *pattern[WATCH_MAX_BRANCHES];
};

bool watch_has_branch(const struct watch_branches *b, const char *branch);

#endif
