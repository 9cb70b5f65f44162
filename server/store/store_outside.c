/* store_outside.c: see store_outside.h. */
#include "store_outside.h"

#include <stdio.h>

#include "store_private.h"

#define PS_PER_NS 1000.0

/*
 * How far back a watched run is looked for, in runs of any branch: between two of the main branch
 * there may be many of merge requests, and a device may have none at all.
 */
#define BADGE_MAX_RUNS 4096

static bool identity_row(struct query *q, void *call)
{
    snprintf(call, STORE_IDENTITY_MAX, "%s", column_text(q, 0));
    return true;
}

enum gate_status store_identity(struct store *s, char out[STORE_IDENTITY_MAX],
                                struct gate_error *err)
{
    out[0] = '\0';
    struct query q = query_begin(s, SQL_IDENTITY);
    return store_each_row(s, &q, identity_row, out, err);
}

struct badge_call {
    const struct watch_branches *branches;
    struct badge_facts *facts;
};

static bool device_row(struct query *q, void *call)
{
    struct badge_call *c = call;
    if (!watch_has_branch(c->branches, column_text(q, 0)))
        return true;
    snprintf(c->facts->verdict, sizeof(c->facts->verdict), "%s", column_text(q, 1));
    return false;
}

static bool alerts_row(struct query *q, void *call)
{
    struct badge_facts *facts = call;
    facts->n_alerts = column_int(q, 0);
    return true;
}

enum gate_status store_badge_of_device(struct store *s, const struct watch_branches *branches,
                                       const char *device_model, struct badge_facts *out,
                                       struct gate_error *err)
{
    struct badge_call call = {branches, out};
    *out = (struct badge_facts){.p50_ns = 0.0};
    struct query q = query_begin(s, SQL_BADGE_DEVICE);
    bind_text(&q, device_model);
    bind_int(&q, BADGE_MAX_RUNS);
    enum gate_status status = store_each_row(s, &q, device_row, &call, err);
    if (status != GATE_OK)
        return status;
    q = query_begin(s, SQL_BADGE_ALERTS);
    bind_text(&q, device_model);
    return store_each_row(s, &q, alerts_row, out, err);
}

static bool case_row(struct query *q, void *call)
{
    struct badge_call *c = call;
    bool has_case = sqlite3_column_type(q->stmt, 1) != SQLITE_NULL;
    if (!has_case || !watch_has_branch(c->branches, column_text(q, 0)))
        return true;
    const char *verdict = store_verdict_name((int)column_int(q, 1));
    snprintf(c->facts->verdict, sizeof(c->facts->verdict), "%s", verdict);
    c->facts->p50_ns = column_real(q, 2) / PS_PER_NS;
    return false;
}

enum gate_status store_badge_of_case(struct store *s, const struct watch_branches *branches,
                                     const char *device_model, const char *case_id,
                                     struct badge_facts *out, struct gate_error *err)
{
    struct badge_call call = {branches, out};
    *out = (struct badge_facts){.p50_ns = 0.0};
    struct query q = query_begin(s, SQL_BADGE_CASE);
    bind_text(&q, device_model);
    bind_int(&q, BADGE_MAX_RUNS);
    bind_text(&q, case_id);
    return store_each_row(s, &q, case_row, &call, err);
}
