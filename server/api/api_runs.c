/* SPDX-License-Identifier: Apache-2.0 */
/* api_runs.c: the list of runs, and the document of one; see api.h. */
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/run_brief.h"
#include "gate/document/document.h"
#include "gate/report/report.h"

/* How a document is wanted. */
struct runs_wanted {
    struct call *call;
    const char *case_id; /* NULL: all cases */
    enum report_format format;
    bool brief;
    enum gate_status status; /* of the document: one that is not stored as it should be */
};

/* CSV and Markdown are as the reports of `gate run` have them. */
static void put_parsed(struct runs_wanted *w, const char *text, size_t len)
{
    struct buf *out = w->call->emit.out;
    struct document document;
    w->status =
        document_parse("the stored document", 1, text, len, GATE_IO, &document, &w->call->err);
    if (w->status)
        return;
    if (w->case_id)
        document_keep_case(&document, w->case_id);
    if (w->brief)
        run_brief_write(&document, &w->call->emit);
    else if (w->format == REPORT_JSON)
        document_write(&document, out);
    else
        report_write(&document, w->format, &(struct report_style){.link = w->call->public_url},
                     out);
    document_release(&document);
}

static bool document_row(void *context, const char *text, size_t len)
{
    struct runs_wanted *w = context;
    if (w->format == REPORT_CSV)
        w->call->reply->type = "text/csv; charset=utf-8; header=present";
    else if (w->format == REPORT_MARKDOWN)
        w->call->reply->type = "text/markdown; charset=utf-8";
    put_parsed(w, text, len);
    return true;
}

enum gate_status get_document(struct call *c)
{
    static const char *const names[] = {"json", "csv", "markdown", "brief"};
    static const enum report_format formats[] = {REPORT_JSON, REPORT_CSV, REPORT_MARKDOWN,
                                                 REPORT_JSON};
    int format;
    struct runs_wanted wanted = {.call = c};
    if (!read_word(c, "format", names, 4, 0, &format) || !read_case(c, false, &wanted.case_id))
        return GATE_OK;
    wanted.format = formats[format];
    wanted.brief = format == 3;
    struct reply *reply = c->reply;
    bool whole = wanted.format == REPORT_JSON && !wanted.brief && !wanted.case_id;
    enum gate_status status =
        whole ? store_find_document(c->store, c->rest, &reply->document.run_id,
                                    &reply->document.bytes, &reply->document.packed_bytes, &c->err)
              : store_document(c->store, c->rest, document_row, &wanted, &c->err);
    if (!status)
        status = wanted.status;
    if (status != GATE_USAGE)
        return status;
    reply_problem(c->reply, 404, "No run has a uuid that begins like this, or several have.");
    return GATE_OK;
}
