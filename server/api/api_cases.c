/* SPDX-License-Identifier: Apache-2.0 */
/* api_cases.c: each case with its newest result; see api.h. */
#include <string.h>

#include "server/api/api_call.h"
#include "gate/store/store_cases.h"

#define CASES_DEFAULT 200
#define CASES_MAX 1000

static void put_spark(struct emit *e, const struct store_spark *spark)
{
    emit_key(e, "spark");
    emit_open(e, '[');
    for (int i = 0; i < spark->n; i++)
        emit_real(e, spark->ns[i]);
    emit_close(e, ']');
}

static bool case_row(void *context, const struct store_cell *cells, int n,
                     const struct store_spark *spark)
{
    struct emit *e = context;
    emit_row_begin(e);
    put_cells(e, cells, n);
    if (e->form != EMIT_CSV)
        put_spark(e, spark);
    emit_row_end(e);
    return true;
}

static bool empty_row(void *context, const struct store_cell *cells, int n)
{
    return case_row(context, cells, n, &(struct store_spark){0});
}

static void put_empty_case(struct call *c, struct emit *e)
{
    store_list_names(c->store, STORE_CASE, empty_row, e);
}

#define MAX_SEARCH 160

/* Words in any order, apart by spaces. `text` has them for as long as the query is used. */
static bool read_words(struct call *c, char text[MAX_SEARCH + 1], struct store_case_query *q)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_./+- ";
    const char *search = request_parameter(c->request, "q");
    char *rest = text;
    if (!search)
        return true;
    if (strlen(search) > MAX_SEARCH || search[strspn(search, good)] != '\0') {
        reply_problem(c->reply, 400, "The parameter 'q' has characters that no name can have.");
        return false;
    }
    memcpy(text, search, strlen(search) + 1);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (q->n_words == STORE_MAX_WORDS) {
            reply_problem(c->reply, 400, "The parameter 'q' has more than %d words.",
                          STORE_MAX_WORDS);
            return false;
        }
        q->words[q->n_words++] = word;
    }
    return true;
}

static bool read_sort(struct call *c, struct store_case_query *q)
{
    enum { N = STORE_CASES_CEILING + 1 };
    static const char *const names[] = {/* of the enum, each way */
                                        "worst",  "name",    "p50",     "time",    "change",
                                        "vendor", "ceiling", "-worst",  "-name",   "-p50",
                                        "-time",  "-change", "-vendor", "-ceiling"};
    int sort;
    if (!read_word(c, "sort", names, 2 * N, STORE_CASES_NAME, &sort))
        return false;
    q->sort = (enum store_case_sort)(sort % N);
    q->reversed = sort >= N;
    return true;
}

static bool read_query(struct call *c, char text[MAX_SEARCH + 1], struct store_case_query *q)
{
    int64_t spark;
    *q = (struct store_case_query){.after = request_parameter(c->request, "after")};
    if (!read_number(c, "spark", 1, 0, 1, &spark))
        return false;
    q->without_spark = spark == 0;
    return read_branch(c, &q->branch) && read_device(c, false, &q->device_model) &&
           read_name(c, "op", "_", 64, false, &q->op) &&
           read_name(c, "dtype", "_", 64, false, &q->dtype) && read_verdict(c, &q->verdict) &&
           read_words(c, text, q) && read_sort(c, q) &&
           read_number(c, "limit", CASES_DEFAULT, 1, CASES_MAX, &q->limit);
}

enum gate_status get_cases(struct call *c)
{
    struct store_case_query query;
    struct store_case_page page;
    char search[MAX_SEARCH + 1];
    if (!read_format(c) || !read_row_columns(c, put_empty_case) || !read_query(c, search, &query))
        return GATE_OK;
    list_open(c, "cases");
    enum gate_status status = store_cases(c->store, &query, case_row, &c->emit, &page, &c->err);
    if (status == GATE_USAGE) {
        refuse_after(c);
        return GATE_OK;
    }
    if (list_rows_end(c)) {
        emit_integer_member(&c->emit, "total", page.total);
        emit_key(&c->emit, "counts");
        emit_open(&c->emit, '{');
        for (int i = 0; i < VERDICT_COUNT; i++)
            emit_integer_member(&c->emit, verdict_name((enum verdict)i), page.counts[i]);
        emit_close(&c->emit, '}');
        emit_integer_member(&c->emit, "vendor_cases", page.n_peers);
        emit_known_real(&c->emit, "vendor_mean", page.peer_mean);
        emit_known_string(&c->emit, "next", page.next);
    }
    if (list_lacks_header(c))
        put_empty_case(c, &c->emit);
    list_close(c);
    return status;
}
