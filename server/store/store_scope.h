/*
 * store_scope.h: of which branches something is told: of all, of one, or of the watched ones. Part
 * of the store.
 */
#ifndef SERVER_STORE_STORE_SCOPE_H
#define SERVER_STORE_STORE_SCOPE_H

#include "base/buf.h"
#include "store.h"

bool scope_has_branch(const struct store_scope *scope, const char *branch);
/* Is it about runs of all branches? */
bool scope_is_open(const struct store_scope *scope);

/* The names of those branches of a scope that is not open which there are runs of, one behind the
 * other, each with its NUL. Release them whatever comes back. */
enum gate_status scope_branches(struct store *s, const struct store_scope *scope, struct buf *names,
                                struct gate_error *err);
/* The name behind this one, or NULL; the first one, of NULL. */
const char *scope_next_branch(const struct buf *names, const char *name);

#define SCOPE_N_RUNS 256 /* a power of two */

/* Which runs are within a scope: rows of many cases are of the same few runs. */
struct scope_runs {
    struct store *store;
    const struct store_scope *scope;
    struct {
        int64_t id; /* 0: nobody is here */
        bool within;
    } run[SCOPE_N_RUNS];     /* by the low bits of the id */
    enum gate_status status; /* of the last question */
    struct gate_error *err;
};
/* False too when it cannot be told; then runs->status says so. */
bool scope_has_run(struct scope_runs *runs, int64_t run_id);

typedef bool (*scope_run_fn)(void *context, int64_t run_id, int64_t time_ms);
/* Runs of the filter's scope, which is not open, newest first; its commit does not count. */
enum gate_status scope_each_run(struct store *s, const struct store_run_filter *filter,
                                struct store_run_key after, int64_t limit, scope_run_fn fn,
                                void *context, struct gate_error *err);

#endif
