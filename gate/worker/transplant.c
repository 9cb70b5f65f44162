/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/worker.h"

#include <math.h>
#include <stdio.h>

#include "gate/base/clock.h"
#include "gate/base/utf8.h"
#include "gate/launch/session.h"
#include "gate/verify/verify.h"

#define LIMIT_NS 20e9 /* of all hybrids of a case */

enum { CANDIDATE, BASELINE, HYBRID };

/* A case that is taken apart. */
struct surgery {
    const struct transplant_job *job;
    struct session s;
    struct audit audit;
    struct device_nodes nodes[2]; /* of each side */
    double deadline_ns;
};

/* ---- are the hybrid's outputs right? ---- */

/* Sets of one content have the same outputs: those of one are compared with the reference. */
static enum gate_status look_once(void *context, struct arm *arm, const struct operands *o,
                                  unsigned content, struct gate_error *err)
{
    const struct surgery *x = context;
    TRY(x->job->check(x->job->look, arm, o, content, err));
    return operands_hash_outputs(x->job->device, o, 1, &arm->verification.fingerprints.of[content],
                                 err);
}

/* ---- time ---- */

static enum gate_status compare_arms(struct surgery *x, unsigned one, unsigned other,
                                     struct estimate *ratio, struct gate_error *err)
{
    struct session *s = &x->s;
    const unsigned members[2] = {one, other};
    double start = clock_ns();
    session_select(s, members, 2);
    for (unsigned round = 1; round <= SESSION_ROUNDS_MAX; round++) {
        TRY(session_round(s, err));
        if (round >= MEASURE_ROUNDS && round % PAIRS_KINDS == 0 &&
            clock_ns() - start > x->job->budget_ns)
            break;
    }
    *ratio = pairs_ratio(s->series[one].ns, s->series[other].ns, s->series[one].n);
    return ratio->value > 0 && isfinite(ratio->value)
               ? GATE_OK
               : gate_fail(err, GATE_ENVIRONMENT, "the clock stopped or jumped");
}

/* ---- hybrids ---- */

static void forget_hybrid(struct surgery *x)
{
    struct series *h = &x->s.series[HYBRID];
    for (unsigned copy = 0; copy < ARM_COPIES; copy++) {
        device_replay_free(x->s.device, h->replay[copy]);
        h->replay[copy] = NULL;
    }
}

static enum gate_status make_hybrid(struct surgery *x, unsigned side, unsigned node,
                                    struct gate_error *err)
{
    struct session *s = &x->s;
    struct series *into = &s->series[side], *from = &s->series[!side], *h = &s->series[HYBRID];
    const struct device_memory shared[] = {s->memory, s->workspace};
    h->n_copies = into->n_copies < from->n_copies ? into->n_copies : from->n_copies;
    h->n_launches = into->n_launches;
    for (unsigned copy = 0; copy < h->n_copies; copy++)
        TRY(device_replay_transplant(s->device,
                                     &(struct device_transplant){.into = into->replay[copy],
                                                                 .from = from->replay[copy],
                                                                 .launches = into->n_launches,
                                                                 .node = node,
                                                                 .shared = shared,
                                                                 .n_shared = 2},
                                     &h->replay[copy], err));
    return GATE_OK;
}

/* How much slower the candidate's node makes the launches of a side. What is no fault of the device
 * is said in `why`. */
static enum gate_status try_hybrid(struct surgery *x, unsigned side, unsigned node,
                                   struct estimate *ratio, char *why, size_t size,
                                   struct gate_error *err)
{
    static const char *const names[] = {"the candidate", "the baseline"};
    struct gate_error made = {0};
    struct session *s = &x->s;
    enum gate_status status = GATE_OK;
    if (make_hybrid(x, side, node, &made)) {
        utf8_print(why, size, "%.280s", made.message);
        return GATE_OK;
    }
    s->at = HYBRID;
    for (unsigned copy = 0; copy < s->series[HYBRID].n_copies && !status; copy++) {
        /* The inputs change with each look, so that nothing which is left of another launch is
         * right. */
        struct device_time unused;
        s->arms[HYBRID].verification = verification_start(&s->c->problem);
        status = session_load(s, s->rotation + 1, true, err);
        if (!status)
            status = device_replay_run(s->device, s->series[HYBRID].replay[copy], &unused, err);
        if (!status)
            status = audit_outputs(&x->audit, err);
    }
    if (status == GATE_WRONG && !s->arms[HYBRID].verification.ok) {
        snprintf(why, size, "%s with this node of %s gives a wrong result", names[side],
                 names[!side]);
        return GATE_OK;
    }
    if (!status)
        status = side == CANDIDATE ? compare_arms(x, CANDIDATE, HYBRID, ratio, err)
                                   : compare_arms(x, HYBRID, BASELINE, ratio, err);
    return status;
}

static enum gate_status try_node(struct surgery *x, unsigned node, struct transplant *out,
                                 struct gate_error *err)
{
    struct document_node *n = &out->nodes[node];
    char *why = out->messages[node], text[64];
    struct estimate ratio[2];
    enum gate_status status = GATE_OK;
    snprintf(text, sizeof text, "node %u of %u", node + 1, x->nodes[CANDIDATE].n);
    x->job->notice(x->job->context, text);
    if (!x->nodes[CANDIDATE].is_kernel[node])
        snprintf(why, sizeof out->messages[node], "it is no kernel");
    else if (clock_ns() > x->deadline_ns)
        snprintf(why, sizeof out->messages[node], "there was no time left");
    for (unsigned side = CANDIDATE; side <= BASELINE && !status && !why[0]; side++) {
        status = try_hybrid(x, side, node, &ratio[side], why, sizeof out->messages[node], err);
        forget_hybrid(x);
    }
    if (why[0])
        n->message = why;
    else if (!status) {
        /* The two hybrids see the same node in other company: the interval holds what both saw. */
        const struct estimate *a = &ratio[CANDIDATE], *b = &ratio[BASELINE];
        double mean = (log(a->value) + log(b->value)) / 2;
        double widths = hypot(log(a->hi / a->lo), log(b->hi / b->lo)) / 4;
        double half = fmax(widths, fabs(log(a->value) - log(b->value)) / 2);
        n->has_carries = true;
        n->carries = (struct estimate){exp(mean), exp(mean - half), exp(mean + half)};
    }
    return status;
}

/* ---- a case ---- */

static enum gate_status operate(struct surgery *x, struct transplant *out, struct gate_error *err)
{
    const struct device_nodes *own = &x->nodes[CANDIDATE], *other = &x->nodes[BASELINE];
    struct gate_error told = {0};
    struct session *s = &x->s;
    for (unsigned i = 0; i < 2 && !told.status; i++)
        device_replay_nodes(s->device, s->series[i].replay[0], s->series[i].n_launches,
                            &x->nodes[i], &told);
    if (told.status) {
        utf8_print(out->message, sizeof out->message, "%.480s", told.message);
        out->document.message = out->message;
        return GATE_OK;
    }
    for (unsigned i = 0; i < own->n; i++) {
        snprintf(out->names[i], sizeof out->names[i], "%s", own->name[i]);
        out->nodes[i].name = out->names[i];
    }
    out->document.n_nodes = own->n;
    bool same = own->n == other->n;
    for (unsigned i = 0; i < own->n && same; i++)
        same = own->is_kernel[i] == other->is_kernel[i];
    if (!same) {
        snprintf(out->message, sizeof out->message,
                 "the nodes of the two launches do not correspond");
        out->document.message = out->message;
        for (unsigned i = 0; i < other->n; i++) {
            snprintf(out->baseline_names[i], sizeof out->baseline_names[i], "%s", other->name[i]);
            out->baseline[i] = out->baseline_names[i];
        }
        out->document.baseline = out->baseline;
        out->document.n_baseline = other->n;
        return GATE_OK;
    }
    TRY(compare_arms(x, CANDIDATE, BASELINE, &out->document.slowdown, err));
    out->document.has_slowdown = true;
    forget_hybrid(x); /* which was recorded as the candidate is */
    for (unsigned i = 0; i < own->n; i++)
        TRY(try_node(x, i, out, err));
    return GATE_OK;
}

enum gate_status transplant_run(const struct transplant_job *job, struct transplant *out,
                                struct gate_error *err)
{
    struct surgery x = {
        .job = job,
        .s = {.device = job->device, .c = job->c, .arms = job->arms, .n_arms = TRANSPLANT_ARMS},
        .deadline_ns = clock_ns() + LIMIT_NS};
    x.audit = (struct audit){.session = &x.s, .check = look_once, .context = &x};
    out->document.nodes = out->nodes;
    enum gate_status status = session_start(&x.s, job->seed, err);
    if (!status)
        status = operate(&x, out, err);
    session_release(&x.s);
    return status;
}
