/* SPDX-License-Identifier: Apache-2.0 */
/* api_runs.c: the document of a run; see api_call.h. */
#include <math.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "server/api/api_call.h"
#include "gate/document/document.h"
#include "gate/report/report.h"
#include "gate/store/store_figures.h"

/* ---- a run as its page begins ---- */

#define DIGITS 7 /* of a number, more than a row shows */

static const char *const brief_columns[] = {
    "id",       "verdict", "reason",    "p50_ns", "baseline_p50_ns", "ratio",   "ratio_lo",
    "ratio_hi", "mde",     "threshold", "peer",   "peer_ratio",      "ceiling", "warning",
};
#define N_BRIEF (sizeof brief_columns / sizeof brief_columns[0])

/* null where it is not known */
static void put_rounded(struct emit *e, double value, bool known)
{
    if (!known || !isfinite(value)) {
        emit_null(e);
        return;
    }
    double unit = value != 0 ? pow(10, DIGITS - 1 - floor(log10(fabs(value)))) : 1;
    bool rounds = isfinite(unit) && isfinite(value * unit);
    emit_real(e, rounds ? round(value * unit) / unit : value);
}

/* The values of a case, each into the array of its column. */
static void put_brief_case(struct emit to[N_BRIEF], const struct document_case *c)
{
    static const struct document_timing none;
    struct store_figures f;
    store_figures_read(c, &f);
    const struct document_timing *t = f.candidate ? &f.candidate->timing : &none;
    struct emit *e = to;
    emit_string(e++, c->id);
    emit_string(e++, verdict_name((enum verdict)c->verdict));
    /* One that passed has no more to say than its numbers. */
    emit_string(e++, c->verdict == VERDICT_PASS ? NULL : c->reason);
    put_rounded(e++, t->p50_ns, f.candidate != NULL);
    put_rounded(e++, f.baseline_p50_ns, true);
    put_rounded(e++, c->ratio.value, c->has_ratio);
    put_rounded(e++, c->ratio.lo, c->has_ratio);
    put_rounded(e++, c->ratio.hi, c->has_ratio);
    put_rounded(e++, c->mde, c->mde >= 0);
    put_rounded(e++, c->threshold, c->threshold > 0);
    emit_string(e++, f.peer_ratio > 0 ? f.peer : NULL);
    put_rounded(e++, f.peer_ratio, f.peer_ratio > 0);
    put_rounded(e++, t->ceiling, t->ceiling > 0);
    /* Of a second comparison that decides nothing. */
    emit_string(e, c->has_warning ? verdict_name((enum verdict)c->warning.verdict) : NULL);
}

/* In columns what a row of each case shows. Of the rest, all but what each process of the
 * calibration measured. */
static void write_brief(struct document *d, struct emit *e)
{
    struct emit_arrays arrays;
    emit_open(e, '{');
    emit_arrays_begin(&arrays, N_BRIEF, e);
    for (size_t i = 0; i < d->n_cases; i++)
        put_brief_case(arrays.to, &d->cases[i]);
    emit_key(e, "cases");
    emit_arrays_end(&arrays, brief_columns, e);
    struct document rest = *d;
    rest.n_cases = 0;
    for (size_t i = 0; i < d->calibration.n_cases; i++)
        for (size_t k = 0; k < d->calibration.cases[i].n_injected; k++)
            d->calibration.cases[i].injected[k].n_log_ratio = 0;
    buf_puts(e->out, ",\"run\":");
    document_write(&rest, e->out);
    emit_close(e, '}');
    buf_putc(e->out, '\n');
}

/* ---- any form ---- */

/* CSV and Markdown are as the reports of `gate run` have them. */
enum gate_status get_document(struct call *c)
{
    static const char *const names[] = {"json", "csv", "markdown", "brief"};
    static const enum report_format formats[] = {REPORT_JSON, REPORT_CSV, REPORT_MARKDOWN};
    RELEASED_BY(buf_release) struct buf text = buf_of(STORE_MAX_DOCUMENT);
    struct document document;
    const char *case_id;
    int format;
    if (!read_word(c, "format", names, 4, 0, &format) ||
        !read_parameter(c, "case", false, &case_id))
        return GATE_OK;
    bool as_stored = format == 0 && !case_id;
    enum gate_status status =
        store_document(c->store, c->rest, as_stored ? &c->reply->body : &text, &c->err);
    if (status == GATE_USAGE) {
        reply_problem(c->reply, 404, "No run has a uuid that begins like this, or several have.");
        return GATE_OK;
    }
    if (status || as_stored)
        return status;
    TRY(document_parse("the stored document", 1, text.data, text.len, GATE_IO, &document, &c->err));
    if (case_id)
        document_keep_case(&document, case_id);
    if (format == 1)
        c->reply->type = "text/csv; charset=utf-8; header=present";
    else if (format == 2)
        c->reply->type = "text/markdown; charset=utf-8";
    if (format == 0)
        document_write(&document, c->emit.out);
    else if (format == 3)
        write_brief(&document, &c->emit);
    else
        report_write(&document, formats[format], &(struct report_style){.link = c->site.public_url},
                     c->emit.out);
    document_release(&document);
    return GATE_OK;
}
