/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_cases.c: the cases with their newest results, filtered, sorted and in pages; see
 * store_cases.h.
 *
 * The tracks are read whole, because they are counted by verdict too, but only the columns that
 * the order needs; the rest is read for the rows of the page. A page begins behind the key of the
 * last row of the page before, so that results which come in between neither repeat nor hide a
 * case.
 */
#include "gate/store/store_cases.h"
#include "gate/store/store_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Points of any branch that are read for a curve: between two of a branch there may be many. */
#define SPARK_READ (8 * STORE_SPARK)

#define UNKNOWN 6 /* a class behind all others, whichever way these are sorted */

/* What a row is sorted by: the class, then the value, then the name, all rising, or falling. */
struct case_key {
    int way; /* 1, or -1 where they fall */
    int class;
    double value;
    const char *name;
    const char *device;
    int64_t track;
};

struct case_row {
    struct case_key key;
    char *names; /* name, NUL, device, NUL; owned */
    int verdict;
    double peer_ratio; /* 0: not known */
};

struct cases {
    const struct store_case_query *query;
    struct store_case_page *page;
    struct case_row *rows;
    size_t n;
    size_t cap;
    bool no_memory;
};

static int compare_keys(const struct case_key *a, const struct case_key *b)
{
    int way = a->class == UNKNOWN || b->class == UNKNOWN ? 1 : a->way;
    if (a->class != b->class)
        return a->class < b->class ? -way : way;
    if (a->value != b->value)
        return a->value < b->value ? -way : way;
    int order = strcmp(a->name, b->name);
    if (order == 0)
        order = strcmp(a->device, b->device);
    return way * order;
}

static int compare_rows(const void *a, const void *b)
{
    return compare_keys(&((const struct case_row *)a)->key, &((const struct case_row *)b)->key);
}

/* wrong, regression, environment, no-verdict, with an open alert, improvement and pass; by enum
 * verdict */
static int badness(int verdict, bool slower)
{
    static const int class_of[VERDICT_COUNT] = {5, 1, 5, 0, 3, 2};
    int class = class_of[verdict];
    return class == 5 && slower ? 4 : class;
}

/* Columns of SQL_TRACKS: id, name, op, dtype, device, verdict, ratio, p50, time, whether an open
 * alert says that it is slower, ratio to the fastest other library, share of the ceiling. */
static void set_value(struct query *q, int column, int sign, struct case_key *key)
{
    double value = column_real(q, column);
    key->class = value > 0 ? 0 : UNKNOWN;
    key->value = sign * value;
}

static void set_order(struct query *q, enum store_case_sort sort, struct case_key *key)
{
    switch (sort) {
    case STORE_CASES_WORST:
        key->class = badness((int)column_int(q, 5), column_int(q, 9) != 0);
        key->value = -column_real(q, 6);
        break;
    case STORE_CASES_P50:
        set_value(q, 7, -1, key);
        break;
    case STORE_CASES_TIME:
        key->value = -(double)column_int(q, 8);
        break;
    case STORE_CASES_CHANGE:
        set_value(q, 6, -1, key);
        break;
    case STORE_CASES_VENDOR:
        set_value(q, 10, -1, key);
        break;
    case STORE_CASES_CEILING:
        set_value(q, 11, 1, key);
        break;
    case STORE_CASES_NAME:
        break;
    }
}

static int way_of(const struct store_case_query *query)
{
    return query->reversed ? -1 : 1;
}

static bool keep(struct cases *c, struct query *q)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 256;
        struct case_row *rows = realloc(c->rows, cap * sizeof *rows);
        if (!rows)
            return false;
        c->rows = rows;
        c->cap = cap;
    }
    const char *name = column_text(q, 1);
    size_t len = (size_t)sqlite3_column_bytes(q->stmt, 1);
    const char *device = column_text(q, 4);
    size_t device_len = (size_t)sqlite3_column_bytes(q->stmt, 4);
    char *names = malloc(len + device_len + 2);
    if (!names)
        return false;
    memcpy(names, name, len + 1);
    memcpy(names + len + 1, device, device_len + 1);
    struct case_row *row = &c->rows[c->n++];
    *row = (struct case_row){
        .key = {.way = way_of(c->query),
                .name = names,
                .device = names + len + 1,
                .track = column_int(q, 0)},
        .names = names,
        .verdict = (int)column_int(q, 5),
        .peer_ratio = column_real(q, 10),
    };
    set_order(q, c->query->sort, &row->key);
    return true;
}

static bool is_or_any(const char *wanted, const char *value)
{
    return !wanted || !strcmp(wanted, value);
}

static bool has_words(const struct store_case_query *w, const char *name, const char *device)
{
    for (int i = 0; i < w->n_words; i++)
        if (!strstr(name, w->words[i]) && !strstr(device, w->words[i]))
            return false;
    return true;
}

static bool track_row(struct query *q, void *call)
{
    struct cases *c = call;
    const struct store_case_query *w = c->query;
    if (is_or_any(w->op, column_text(q, 2)) && is_or_any(w->dtype, column_text(q, 3)) &&
        has_words(w, column_text(q, 1), column_text(q, 4)))
        c->no_memory = !keep(c, q);
    return !c->no_memory;
}

static void count_verdicts(struct cases *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->page->counts[c->rows[i].verdict]++;
        if (is_or_any(c->query->verdict, verdict_name((enum verdict)c->rows[i].verdict)))
            c->rows[n++] = c->rows[i];
        else
            free(c->rows[i].names);
    }
    c->n = n;
    c->page->total = (int64_t)n;
}

/* The geometric mean of those that are shown. */
static void average_peers(struct cases *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->rows[i].peer_ratio > 0) {
            sum += log(c->rows[i].peer_ratio);
            c->page->n_peers++;
        }
    }
    if (c->page->n_peers > 0)
        c->page->peer_mean = exp(sum / (double)c->page->n_peers);
}

static enum gate_status read_tracks(struct store *s, struct cases *c, struct gate_error *err)
{
    struct query q = query_begin(s, SQL_TRACKS);
    bind_text_or_null(&q, c->query->branch);
    bind_text_or_null(&q, c->query->device_model);
    enum gate_status status = store_each_row(s, &q, track_row, c, err);
    if (!status && c->no_memory)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    count_verdicts(c);
    average_peers(c);
    return status;
}

/* ---- pages ---- */

/* "<class>.<value's bits>.<track>" */
static void write_after(const struct case_key *key, char *out, size_t size)
{
    uint64_t bits;
    memcpy(&bits, &key->value, sizeof bits);
    snprintf(out, size, "%d.%016" PRIx64 ".%" PRId64, key->class, bits, key->track);
}

static bool parse_after(const char *text, struct case_key *key)
{
    char *end;
    errno = 0;
    if (text[0] < '0' || text[0] > '0' + UNKNOWN || text[1] != '.' ||
        strspn(text + 2, "0123456789abcdef") != 16 || text[18] != '.' ||
        strspn(text + 19, "0123456789") != strlen(text + 19) || text[19] == '\0')
        return false;
    uint64_t bits = strtoull(text + 2, &end, 16);
    key->class = text[0] - '0';
    memcpy(&key->value, &bits, sizeof bits);
    key->track = strtoll(text + 19, &end, 10);
    return errno == 0 && key->value == key->value;
}

struct names {
    char name[164];
    char device[68];
};

static bool names_row(struct query *q, void *call)
{
    struct names *names = call;
    snprintf(names->name, sizeof names->name, "%s", column_text(q, 0));
    snprintf(names->device, sizeof names->device, "%s", column_text(q, 3));
    return true;
}

static struct query begin_case(struct store *s, int64_t track, const char *branch)
{
    struct query q = query_begin(s, SQL_CASE);
    bind_int(&q, track);
    bind_text_or_null(&q, branch);
    return q;
}

/* The first row behind the page before. */
static enum gate_status find_start(struct store *s, const struct cases *c, size_t *start,
                                   struct gate_error *err)
{
    struct case_key after = {.way = way_of(c->query)};
    struct names names = {0};
    *start = 0;
    if (!c->query->after)
        return GATE_OK;
    if (!parse_after(c->query->after, &after))
        return gate_fail(err, GATE_USAGE, "'%.80s' is not the end of a page", c->query->after);
    struct query q = begin_case(s, after.track, NULL);
    enum gate_status status = store_each_row(s, &q, names_row, &names, err);
    if (!status && names.name[0] == '\0')
        status = gate_fail(err, GATE_USAGE, "'%.80s' is not the end of a page", c->query->after);
    if (status)
        return status;
    after.name = names.name;
    after.device = names.device;
    while (*start < c->n && compare_keys(&c->rows[*start].key, &after) <= 0)
        ++*start;
    return GATE_OK;
}

/* ---- rows ---- */

struct one_case {
    struct store *store;
    const struct store_case_query *query;
    store_case_fn fn;
    void *context;
    bool go_on;
    enum gate_status status;
    struct gate_error *err;
};

/* Newest first; they are put in from the end. */
static bool spark_row(struct query *q, void *call)
{
    struct store_spark *spark = call;
    spark->ns[STORE_SPARK - ++spark->n] = (double)column_int(q, 0) / 1e3;
    return spark->n < STORE_SPARK;
}

static enum gate_status read_spark(const struct one_case *c, int64_t series_id,
                                   struct store_spark *spark)
{
    struct query q = query_begin(c->store, SQL_NEWEST_POINTS);
    bind_int(&q, series_id);
    bind_text_or_null(&q, c->query->branch);
    bind_int(&q, STORE_SPARK);
    bind_int(&q, SPARK_READ);
    enum gate_status status = store_each_row(c->store, &q, spark_row, spark, c->err);
    memmove(spark->ns, spark->ns + STORE_SPARK - spark->n, (size_t)spark->n * sizeof spark->ns[0]);
    return status;
}

static bool case_row(struct query *q, void *call)
{
    struct one_case *c = call;
    struct store_spark spark = {.n = 0};
    struct store_cell cells[STORE_MAX_CELLS];
    int n = store_read_cells(q, cells);
    if (!c->query->without_spark)
        c->status = read_spark(c, store_cell_of(cells, n, "series")->integer, &spark);
    c->go_on = !c->status && c->fn(c->context, cells, n, &spark);
    return false;
}

static enum gate_status report_rows(struct store *s, struct cases *c, size_t start,
                                    store_case_fn fn, void *context, struct gate_error *err)
{
    struct one_case one = {
        .store = s, .query = c->query, .fn = fn, .context = context, .go_on = true, .err = err};
    enum gate_status status = GATE_OK;
    size_t end = start;
    for (; end < c->n && (int64_t)(end - start) < c->query->limit; end++) {
        if (!one.go_on || status)
            break;
        struct query q = begin_case(s, c->rows[end].key.track, c->query->branch);
        status = store_each_row(s, &q, case_row, &one, err);
        if (!status)
            status = one.status;
    }
    if (end < c->n && end > start)
        write_after(&c->rows[end - 1].key, c->page->next, sizeof c->page->next);
    return status;
}

enum gate_status store_cases(struct store *s, const struct store_case_query *query,
                             store_case_fn fn, void *context, struct store_case_page *page,
                             struct gate_error *err)
{
    struct cases c = {.query = query, .page = page};
    size_t start = 0;
    *page = (struct store_case_page){0};
    enum gate_status status = store_check_limit(query->limit, err);
    if (!status)
        status = read_tracks(s, &c, err);
    if (!status && c.n > 0)
        qsort(c.rows, c.n, sizeof *c.rows, compare_rows);
    if (!status)
        status = find_start(s, &c, &start, err);
    if (!status)
        status = report_rows(s, &c, start, fn, context, err);
    for (size_t i = 0; i < c.n; i++)
        free(c.rows[i].names);
    free(c.rows);
    return status;
}
