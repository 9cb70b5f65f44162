/* SPDX-License-Identifier: Apache-2.0 */
/* store_put_run.c: see store_put_run.h. */
#include "gate/store/store_put_run.h"

#include <math.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/store/store_figures.h"
#include "gate/store/store_private.h"

/* `who` is user@host. */
static const char *host_of(const struct document *d)
{
    const char *at = d->who ? strrchr(d->who, '@') : NULL;
    return at ? at + 1 : "";
}

/* What all cases of a run say together. */
static void bind_means(struct query *q, const struct document *d)
{
    struct store_figures figures;
    double control = 0, vendor = 0;
    int64_t n_control = 0, n_vendor = 0;
    for (size_t i = 0; i < d->n_cases; i++) {
        store_figures_read(&d->cases[i], &figures);
        if (figures.control_ns > 0) {
            control += log(figures.control_ns);
            n_control++;
        }
        if (figures.peer_ratio > 0) {
            vendor += log(figures.peer_ratio);
            n_vendor++;
        }
    }
    bind_positive_or_null(q, n_control > 0 ? exp(control / (double)n_control) : 0);
    bind_real(q, d->control_drift);
    bind_positive_or_null(q, n_vendor > 0 ? exp(vendor / (double)n_vendor) : 0);
    bind_int(q, n_vendor);
}

/* What a document does not say is -1. */
static int64_t or_zero(int64_t n)
{
    return n > 0 ? n : 0;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#define MAX_OPS 32

struct covered {
    const char *op;
    int64_t cases, checks, shapes, layouts, launches, skipped, values, pairs, pairs_of;
};

static struct covered *covered_of(struct covered *list, size_t *n, const char *op)
{
    for (size_t i = 0; i < *n; i++) {
        if (!strcmp(list[i].op, op))
            return &list[i];
    }
    if (*n == MAX_OPS)
        return NULL;
    list[*n] = (struct covered){.op = op};
    return &list[(*n)++];
}

static void add_case(struct covered *list, size_t *n, const struct document_case *c)
{
    const struct document_arm *arm = document_candidate(c);
    if (!arm || !arm->has_verify || or_zero(arm->verify.values) + or_zero(arm->verify.shapes) == 0)
        return;
    const struct document_verify *v = &arm->verify;
    struct covered *sum = covered_of(list, n, c->op);
    if (!sum)
        return;
    sum->cases++;
    sum->checks += or_zero(v->checks);
    sum->shapes += or_zero(v->shapes);
    sum->layouts += or_zero(v->layouts);
    sum->launches += or_zero(v->launches);
    sum->skipped += or_zero(v->skipped);
    sum->values = most(sum->values, v->values);
    sum->pairs = most(sum->pairs, v->pairs);
    sum->pairs_of = most(sum->pairs_of, v->pairs_of);
}

/* Of each op; empty where nothing is known. */
static void write_covered(const struct document *d, struct buf *out)
{
    struct covered list[MAX_OPS];
    size_t n = 0;
    for (size_t i = 0; i < d->n_cases; i++)
        add_case(list, &n, &d->cases[i]);
    for (size_t i = 0; i < n; i++) {
        const struct covered *s = &list[i];
        buf_puts(out, i == 0 ? "[{\"op\":\"" : ",{\"op\":\"");
        json_escape(s->op, out);
        buf_printf(out,
                   "\",\"runs\":1,\"cases\":%lld,\"checks\":%lld,\"shapes\":%lld,"
                   "\"layouts\":%lld,\"launches\":%lld,\"skipped\":%lld,\"values\":%lld,"
                   "\"pairs\":%lld,\"pairs_of\":%lld}",
                   (long long)s->cases, (long long)s->checks, (long long)s->shapes,
                   (long long)s->layouts, (long long)s->launches, (long long)s->skipped,
                   (long long)s->values, (long long)s->pairs, (long long)s->pairs_of);
    }
    buf_puts(out, n > 0 ? "]" : "");
}

static void write_real(struct buf *out, const char *before, double value)
{
    if (isfinite(value))
        buf_printf(out, "%s%.15g", before, value);
    else
        buf_printf(out, "%snull", before);
}

static void write_calibrated(const struct document_calibrated *c, struct buf *out)
{
    buf_puts(out, "{\"id\":\"");
    json_escape(c->id, out);
    write_real(out, "\",\"mde\":", c->mde);
    buf_printf(out, ",\"resolved\":%s,\"injected\":[", c->resolved ? "true" : "false");
    for (size_t i = 0; i < c->n_injected; i++) {
        const struct document_injected *injected = &c->injected[i];
        write_real(out, i == 0 ? "{\"share\":" : ",{\"share\":", injected->share);
        buf_printf(out, ",\"decisions\":%lld,\"red\":%lld,\"pass\":%lld,\"no_verdict\":%lld}",
                   (long long)injected->decisions, (long long)injected->red,
                   (long long)injected->pass, (long long)injected->no_verdict);
    }
    buf_puts(out, "]}");
}

/* What a machine could tell, by `gate calibrate`. */
static void write_calibration(const struct document *d, struct buf *out)
{
    if (!d->has_calibration)
        return;
    write_real(out, "{\"threshold\":", d->policy.threshold);
    buf_printf(out, ",\"processes\":%lld,\"cases\":[", (long long)d->calibration.processes);
    for (size_t i = 0; i < d->calibration.n_cases; i++) {
        buf_puts(out, i == 0 ? "" : ",");
        write_calibrated(&d->calibration.cases[i], out);
    }
    buf_puts(out, "]}");
}

/* A machine is its GPU, since a runner in a container may have a new name each time; a CPU is its
 * host. */
static void bind_run(const struct document *d, struct query *q, int64_t revision_id)
{
    const char *gpu = d->device.uuid ? d->device.uuid : "";
    int64_t n_verdicts[VERDICT_COUNT] = {0};
    for (size_t i = 0; i < d->n_cases; i++)
        n_verdicts[d->cases[i].verdict]++;
    bind_text(q, d->uuid);
    bind_int(q, d->time_ms);
    bind_id_or_null(q, revision_id);
    bind_text(q, d->git.branch);
    bind_text(q, d->git.subject);
    bind_text(q, d->git.author ? d->git.author : "");
    bind_int(q, d->git.dirty);
    bind_text(q, d->suite);
    bind_text(q, d->device.model);
    bind_text(q, d->device.name);
    bind_text(q, host_of(d));
    bind_text(q, gpu);
    bind_text(q, gpu[0] != '\0' ? gpu : host_of(d));
    bind_text(q, d->contract);
    bind_text(q, d->epoch ? d->epoch : "");
    bind_text(q, verdict_name((enum verdict)d->verdict));
    bind_int(q, d->exit_code);
    bind_int(q, (int64_t)d->n_cases);
    for (int i = 0; i < VERDICT_COUNT; i++)
        bind_int(q, n_verdicts[i]);
    bind_means(q, d);
}

static void bind_json(struct query *q, const struct buf *text)
{
    bind_text_or_null(q, text->len > 0 ? text->data : NULL);
}

enum gate_status store_put_run_row(struct store *s, const struct document *d, int64_t *run_id,
                                   int64_t *place_ms, struct gate_error *err)
{
    int64_t revision_id = 0;
    struct buf covered, calibration;
    enum gate_status status = store_place(s, d, &revision_id, place_ms, err);
    if (status)
        return status;
    buf_init(&covered, STORE_MAX_DOCUMENT);
    buf_init(&calibration, STORE_MAX_DOCUMENT);
    write_covered(d, &covered);
    write_calibration(d, &calibration);
    struct query q = query_begin(
        s, "INSERT INTO run (uuid, time_ms, revision_id, branch, subject, author, dirty,"
           " suite, device, device_name, host, gpu, machine, contract, epoch, verdict,"
           " exit_code, n_cases, n_pass, n_regression, n_improvement, n_wrong,"
           " n_no_verdict, n_environment, control_ns, control_drift, vendor_ratio,"
           " n_vendor, covered, calibration, place_ms, change, job) "
           "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
           " ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31,"
           " ?32, ?33)");
    bind_run(d, &q, revision_id);
    bind_json(&q, &covered);
    bind_json(&q, &calibration);
    bind_int(&q, *place_ms);
    bind_text(&q, d->git.change ? d->git.change : "");
    bind_text(&q, d->git.job ? d->git.job : "");
    if (covered.failed || calibration.failed)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    else
        status = store_finish_new(s, &q, run_id, err);
    buf_release(&covered);
    buf_release(&calibration);
    return status;
}
