/* SPDX-License-Identifier: Apache-2.0 */
/* watch_age.c: see watch_age.h. */
#include "server/watch/watch_age.h"

#include <stdbool.h>
#include <string.h>

#define STEP_MS 1000

static void note(struct watch_age *a, int64_t newest_id, int64_t now_ms)
{
    bool any = a->n > 0;
    unsigned last = any ? a->n - 1 : 0;
    if (newest_id <= (any ? a->came[last].run_id : 0))
        return;
    if (a->n == WATCH_AGE_MAX || (any && now_ms - a->came[last].ms < STEP_MS)) {
        a->came[last].run_id = newest_id;
        return;
    }
    a->came[a->n].run_id = newest_id;
    a->came[a->n].ms = now_ms;
    a->n++;
}

int64_t watch_age(struct watch_age *a, int64_t newest_id, int64_t watched_id, int64_t now_ms)
{
    unsigned n_past = 0;
    note(a, newest_id, now_ms);
    while (n_past < a->n && a->came[n_past].run_id < watched_id)
        n_past++;
    a->n -= n_past;
    memmove(a->came, a->came + n_past, a->n * sizeof a->came[0]);
    return a->n > 0 ? now_ms - a->came[0].ms : 0;
}
