/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_put_baseline.c: what a case was compared with, and how that changed; see store_put.h.
 *
 * Documents name the baseline of each case and when it became that (its time_ms). `baseline` has
 * what the newest run was compared with. An entry of the log is a baseline that is newer than all
 * that were logged: a run from a branch that is behind brings an old one, which is no change.
 */
#include "gate/store/store_put.h"

#include <string.h>

struct logged {
    bool known;
    int64_t stored_ms;
    double p50_ns;
    int64_t run_id;
    bool other_epoch; /* than this run's */
    bool other_contract;
};

struct find {
    const struct put *put;
    struct logged *logged;
};

static bool baseline_row(struct query *q, void *call)
{
    const struct find *f = call;
    *f->logged = (struct logged){
        .known = true,
        .stored_ms = column_int(q, 2),
        .p50_ns = column_real(q, 3),
        .run_id = column_int(q, 6),
        .other_epoch = strcmp(column_text(q, 4), f->put->epoch),
        .other_contract = strcmp(column_text(q, 5), f->put->document->contract),
    };
    return true;
}

/*
 * Only an accept raises a baseline. A slower one that none made, or the first one of its store,
 * does not follow from what was logged: a runner without the stored baselines began anew.
 */
static const char *kind_of(const struct logged *before, const struct document_baseline *baseline)
{
    const char *made_by = baseline->made_by ? baseline->made_by : "";
    if (!before->known || before->other_contract || !strcmp(made_by, "accept-new"))
        return "first";
    if (before->other_epoch)
        return "epoch";
    if (baseline->p50_ns < before->p50_ns)
        return "lowered";
    return !strcmp(made_by, "accept") ? "raised" : "first";
}

static enum gate_status put_log(const struct put *p, const struct document_baseline *baseline,
                                int64_t track_id, const struct logged *before)
{
    const char *kind = kind_of(before, baseline);
    struct query q = query_begin(p->store, SQL_PUT_BASELINE_LOG);
    bind_int(&q, p->device_id);
    bind_int(&q, track_id);
    bind_int(&q, p->run_id);
    bind_positive_or_null(&q, !strcmp(kind, "first") ? 0.0 : before->p50_ns);
    bind_real(&q, baseline->p50_ns);
    bind_text(&q, baseline->commit);
    bind_text(&q, kind);
    return store_finish(p->store, &q, p->err);
}

enum gate_status put_baseline(const struct put *p, const struct document_baseline *baseline,
                              int64_t track_id)
{
    struct logged logged = {0};
    struct find find = {p, &logged};
    struct query q = query_begin(p->store, SQL_FIND_BASELINE);
    bind_int(&q, track_id);
    enum gate_status status = store_each_row(p->store, &q, baseline_row, &find, p->err);
    if (status)
        return status;

    bool changed = !logged.known || logged.other_contract ||
                   (baseline->time_ms > logged.stored_ms && baseline->p50_ns != logged.p50_ns);
    if (changed) {
        status = put_log(p, baseline, track_id, &logged);
        logged = (struct logged){
            .stored_ms = baseline->time_ms, .p50_ns = baseline->p50_ns, .run_id = p->run_id};
    }
    if (status)
        return status;
    q = query_begin(p->store, SQL_PUT_BASELINE);
    bind_int(&q, track_id);
    bind_int(&q, p->document->time_ms);
    bind_int(&q, p->run_id);
    bind_real(&q, baseline->p50_ns);
    bind_text(&q, baseline->commit);
    bind_int(&q, baseline->time_ms);
    bind_int(&q, logged.stored_ms);
    bind_real(&q, logged.p50_ns);
    bind_int(&q, logged.run_id);
    return store_finish(p->store, &q, p->err);
}
