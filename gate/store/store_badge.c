/* SPDX-License-Identifier: Apache-2.0 */
/* store_badge.c: see store_badge.h. */
#include "gate/store/store_badge.h"

#include <stdio.h>

#include "gate/store/store_alert.h"
#include "gate/store/store_private.h"

static bool identity_row(struct query *q, void *call)
{
    snprintf(call, STORE_IDENTITY_MAX, "%s", column_text(q, 0));
    return true;
}

enum gate_status store_identity(struct store *s, char out[STORE_IDENTITY_MAX],
                                struct gate_error *err)
{
    out[0] = '\0';
    struct query q = query_begin(s, "SELECT value FROM meta WHERE key = 'identity'");
    return store_each_row(s, &q, identity_row, out, err);
}

static bool device_row(struct query *q, void *call)
{
    struct badge_facts *facts = call;
    snprintf(facts->verdict, sizeof facts->verdict, "%s", column_text(q, 0));
    return true;
}

enum gate_status store_badge_of_device(struct store *s, const char *branch,
                                       const char *device_model, struct badge_facts *out,
                                       struct gate_error *err)
{
    *out = (struct badge_facts){.p50_ns = 0.0};
    struct query q = query_begin(s, "SELECT verdict FROM run WHERE device = ?1 AND branch = ?2 "
                                    "ORDER BY place_ms DESC, time_ms DESC, uuid DESC LIMIT 1");
    bind_text(&q, device_model);
    bind_text(&q, branch);
    enum gate_status status = store_each_row(s, &q, device_row, out, err);
    return !status ? store_open_causes(s, device_model, NULL, &out->n_causes, err) : status;
}

static bool case_row(struct query *q, void *call)
{
    struct badge_facts *facts = call;
    snprintf(facts->verdict, sizeof facts->verdict, "%s", column_text(q, 0));
    facts->p50_ns = column_real(q, 1);
    return true;
}

enum gate_status store_badge_of_case(struct store *s, const char *branch, const char *device_model,
                                     const char *case_id, struct badge_facts *out,
                                     struct gate_error *err)
{
    *out = (struct badge_facts){.p50_ns = 0.0};
    struct query q = query_begin(
        s, "SELECT e.verdict, e.p50_ns FROM track t CROSS JOIN result e ON e.track_id = t.id "
           " AND e.branch = ?2 AND e.arm = 0 "
           "WHERE t.device = ?1 AND t.case_id = ?3 ORDER BY e.place_ms DESC,"
           " e.time_ms DESC, e.run_id DESC LIMIT 1");
    bind_text(&q, device_model);
    bind_text(&q, branch);
    bind_text(&q, case_id);
    return store_each_row(s, &q, case_row, out, err);
}
