/*
 * store_cases.c: the cases with their newest results, filtered, sorted and in pages; see store.h.
 *
 * The tracks are read whole, because they are counted by verdict too, but only the columns that
 * the order needs; the rest is read for the rows of the page. A track has its newest result of any
 * branch; where that is not within the scope, the branches of the scope may have kept one. Where a
 * page ends is told by the key of its last row, so that results which come in between neither
 * repeat nor hide a case.
 */
#include "store_private.h"
#include "store_since.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a row is sorted by: the class, then the value, then the name, all rising. */
struct key {
    int class;
    double value;
    const char *name;
    const char *device;
    int64_t track;
};

struct row {
    struct key key;
    char *names; /* name, NUL, device, NUL; owned */
    int verdict;
    int64_t time_ms, run_id;
    const char *branch; /* that keeps it; NULL: it is the track's own */
};

struct cases {
    const struct store_case_query *query;
    struct store_case_page *page;
    struct scope_runs scope;
    struct buf branches; /* of the scope */
    const char *branch;  /* whose results are being read, or NULL */
    struct row *rows;
    size_t n;
    size_t cap;
    bool no_memory;
};

static int compare_keys(const struct key *a, const struct key *b)
{
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : strcmp(a->device, b->device);
}

static int compare_rows(const void *a, const void *b)
{
    return compare_keys(&((const struct row *)a)->key, &((const struct row *)b)->key);
}

/* wrong, regression, environment, no-verdict, with an open alert, improvement and pass, by
 * store_verdict_code() */
static int badness(int verdict, bool slower)
{
    static const int class_of[STORE_N_VERDICTS] = {5, 1, 5, 0, 3, 2};
    int class = class_of[verdict];
    return class == 5 && slower ? 4 : class;
}

/* Columns of TRACK_COLUMNS: id, name, op, dtype, device, verdict, ratio, p50, time, whether an open
 * alert says that it is slower, run, the track's own run. */
static void set_order(struct query *q, enum store_case_sort sort, struct key *key)
{
    switch (sort) {
    case STORE_CASES_WORST:
        key->class = badness((int)column_int(q, 5), column_int(q, 9) != 0);
        key->value = -column_real(q, 6);
        break;
    case STORE_CASES_P50:
        key->value = -column_real(q, 7);
        break;
    case STORE_CASES_TIME:
        key->value = -(double)column_int(q, 8);
        break;
    case STORE_CASES_NAME:
        break;
    }
}

static bool keep(struct cases *c, struct query *q)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 256;
        struct row *rows = realloc(c->rows, cap * sizeof(*rows));
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
    struct row *row = &c->rows[c->n++];
    *row = (struct row){
        .key = {.name = names, .device = names + len + 1, .track = column_int(q, 0)},
        .names = names,
        .verdict = (int)column_int(q, 5),
        .time_ms = column_int(q, 8),
        .run_id = column_int(q, 10),
        .branch = c->branch,
    };
    set_order(q, c->query->sort, &row->key);
    return true;
}

static bool is_or_any(const char *wanted, const char *value)
{
    return !wanted || strcmp(wanted, value) == 0;
}

static bool has_words(const struct store_case_query *w, const char *name, const char *device)
{
    for (int i = 0; i < w->n_words; i++)
        if (!strstr(name, w->words[i]) && !strstr(device, w->words[i]))
            return false;
    return true;
}

/* Of the results of branches those of a track whose own is within the scope are older. */
static bool is_within(struct cases *c, struct query *q)
{
    return scope_has_run(&c->scope, column_int(q, 11)) == (c->branch == NULL);
}

static bool track_row(struct query *q, void *call)
{
    struct cases *c = call;
    const struct store_case_query *w = c->query;
    if (is_or_any(w->op, column_text(q, 2)) && is_or_any(w->dtype, column_text(q, 3)) &&
        has_words(w, column_text(q, 1), column_text(q, 4)) && is_within(c, q))
        c->no_memory = !keep(c, q);
    return !c->no_memory && c->scope.status == GATE_OK;
}

static enum gate_status read_rows(struct store *s, struct query *q, struct cases *c,
                                  struct gate_error *err)
{
    enum gate_status status = store_each_row(s, q, track_row, c, err);
    if (status == GATE_OK && c->no_memory)
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    return status == GATE_OK ? c->scope.status : status;
}

/* The newest of each track first. */
static int compare_tracks(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->key.track != y->key.track)
        return x->key.track < y->key.track ? -1 : 1;
    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? 1 : -1;
    return (x->run_id < y->run_id) - (x->run_id > y->run_id);
}

/* Where a track has results of several branches. */
static void keep_newest(struct cases *c)
{
    size_t n = 0;
    if (c->n > 0)
        qsort(c->rows, c->n, sizeof(*c->rows), compare_tracks);
    for (size_t i = 0; i < c->n; i++) {
        if (n > 0 && c->rows[i].key.track == c->rows[n - 1].key.track)
            free(c->rows[i].names);
        else
            c->rows[n++] = c->rows[i];
    }
    c->n = n;
}

/* The results that branches of the scope have where the track's own is of another one. */
static enum gate_status read_branches(struct store *s, struct cases *c, struct gate_error *err)
{
    enum gate_status status = scope_branches(s, &c->query->scope, &c->branches, err);
    const char *name = NULL;
    while (status == GATE_OK && (name = scope_next_branch(&c->branches, name))) {
        c->branch = name;
        struct query q = query_begin(s, SQL_TRACKS_OF_BRANCH);
        bind_text(&q, name);
        bind_text_or_null(&q, c->query->device_model);
        status = read_rows(s, &q, c, err);
    }
    keep_newest(c);
    return status;
}

static void count_verdicts(struct cases *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->page->counts[c->rows[i].verdict]++;
        if (is_or_any(c->query->verdict, store_verdict_name(c->rows[i].verdict)))
            c->rows[n++] = c->rows[i];
        else
            free(c->rows[i].names);
    }
    c->n = n;
    c->page->total = (int64_t)n;
}

static enum gate_status read_tracks(struct store *s, struct cases *c, struct gate_error *err)
{
    const char *device = c->query->device_model;
    struct query q = query_begin(s, device ? SQL_TRACKS_OF_DEVICE : SQL_TRACKS);
    if (device)
        bind_text(&q, device);
    enum gate_status status = read_rows(s, &q, c, err);
    if (status == GATE_OK && !scope_is_open(&c->query->scope))
        status = read_branches(s, c, err);
    count_verdicts(c);
    return status;
}

/* ---- pages ---- */

/* "<class>.<value's bits>.<track>" */
static void write_after(const struct key *key, char *out, size_t size)
{
    uint64_t bits;
    memcpy(&bits, &key->value, sizeof(bits));
    snprintf(out, size, "%d.%016" PRIx64 ".%" PRId64, key->class, bits, key->track);
}

static bool parse_after(const char *text, struct key *key)
{
    char *end;
    errno = 0;
    if (text[0] < '0' || text[0] > '5' || text[1] != '.' ||
        strspn(text + 2, "0123456789abcdef") != 16 || text[18] != '.' ||
        strspn(text + 19, "0123456789") != strlen(text + 19) || text[19] == '\0')
        return false;
    uint64_t bits = strtoull(text + 2, &end, 16);
    key->class = text[0] - '0';
    memcpy(&key->value, &bits, sizeof(bits));
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
    snprintf(names->name, sizeof(names->name), "%s", column_text(q, 0));
    snprintf(names->device, sizeof(names->device), "%s", column_text(q, 3));
    return true;
}

/* The first row behind the page before. */
static enum gate_status find_start(struct store *s, const struct cases *c, size_t *start,
                                   struct gate_error *err)
{
    struct key after = {0};
    struct names names = {0};
    *start = 0;
    if (!c->query->after)
        return GATE_OK;
    if (!parse_after(c->query->after, &after))
        return gate_fail(err, GATE_USAGE, "'%.80s' is not the end of a page", c->query->after);
    struct query q = query_begin(s, SQL_CASE);
    bind_int(&q, after.track);
    enum gate_status status = store_each_row(s, &q, names_row, &names, err);
    if (status == GATE_OK && names.name[0] == '\0')
        status = gate_fail(err, GATE_USAGE, "'%.80s' is not the end of a page", c->query->after);
    if (status != GATE_OK)
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
    struct scope_runs *spark; /* runs of these scopes count */
    struct scope_runs *since;
    store_case_fn fn;
    void *context;
    bool go_on;
    enum gate_status status;
    struct gate_error *err;
};

static bool case_row(struct query *q, void *call)
{
    struct one_case *c = call;
    struct store_case row = {
        .id = column_text(q, 0),
        .op = column_text(q, 1),
        .dtype = column_text(q, 2),
        .device_model = column_text(q, 3),
        .n_runs = column_int(q, 4),
        .time_ms = column_int(q, 5),
        .run_uuid = column_text(q, 6),
        .commit = column_text(q, 7),
        .verdict = store_verdict_name((int)column_int(q, 8)),
        .p50_ns = column_real(q, 9),
        .best_p50_ns = column_real(q, 10),
        .tflops = column_real(q, 11),
        .ceiling = column_real(q, 12),
        .contract = column_text(q, 13),
        .reason = column_text(q, 14),
        .p50_lo_ns = column_real(q, 15),
        .p50_hi_ns = column_real(q, 16),
        .ratio = column_real(q, 17),
        .ratio_lo = column_real(q, 18),
        .ratio_hi = column_real(q, 19),
        .peer = column_text(q, 20),
        .peer_ratio = column_real(q, 21),
        .mde = column_real(q, 22),
        .gbps = column_real(q, 23),
        .control_ns = column_real(q, 24),
        .rel_err = column_real(q, 25),
        .threshold = column_real(q, 26),
        .track = column_int(q, 28),
        .branch = column_text(q, 29),
    };
    int64_t series_id = column_int(q, 27);
    c->status = store_spark(c->store, c->spark, series_id, &row, c->err);
    if (c->status == GATE_OK)
        c->status = store_since(c->store, c->since, series_id, &row, c->err);
    c->go_on = c->status == GATE_OK && c->fn(c->context, &row);
    return false;
}

static struct query begin_case(struct store *s, const struct row *row)
{
    struct query q = query_begin(s, row->branch ? SQL_CASE_OF_BRANCH : SQL_CASE);
    bind_int(&q, row->key.track);
    if (row->branch)
        bind_text(&q, row->branch);
    return q;
}

static enum gate_status tell_rows(struct store *s, struct cases *c, size_t start, store_case_fn fn,
                                  void *context, struct gate_error *err)
{
    /* Who asks for all branches wants to know since when it is so in the watched ones. */
    struct store_scope since_scope = c->query->scope;
    since_scope.watched_only = !since_scope.branch && since_scope.watched;
    struct scope_runs since = {.store = s, .scope = &since_scope, .err = err};
    struct one_case one = {.store = s,
                           .spark = &c->scope,
                           .since = &since,
                           .fn = fn,
                           .context = context,
                           .go_on = true,
                           .err = err};
    enum gate_status status = GATE_OK;
    size_t end = start;
    for (; end < c->n && (int64_t)(end - start) < c->query->limit; end++) {
        if (!one.go_on || status != GATE_OK)
            break;
        struct query q = begin_case(s, &c->rows[end]);
        status = store_each_row(s, &q, case_row, &one, err);
        if (status == GATE_OK)
            status = one.status;
    }
    if (end < c->n && end > start)
        write_after(&c->rows[end - 1].key, c->page->next, sizeof(c->page->next));
    return status;
}

enum gate_status store_cases(struct store *s, const struct store_case_query *query,
                             store_case_fn fn, void *context, struct store_case_page *page,
                             struct gate_error *err)
{
    struct cases c = {
        .query = query, .page = page, .scope = {.store = s, .scope = &query->scope, .err = err}};
    size_t start = 0;
    *page = (struct store_case_page){0};
    enum gate_status status = store_check_limit(query->limit, err);
    if (status == GATE_OK)
        status = read_tracks(s, &c, err);
    if (status == GATE_OK && c.n > 0)
        qsort(c.rows, c.n, sizeof(*c.rows), compare_rows);
    if (status == GATE_OK)
        status = find_start(s, &c, &start, err);
    if (status == GATE_OK)
        status = tell_rows(s, &c, start, fn, context, err);
    for (size_t i = 0; i < c.n; i++)
        free(c.rows[i].names);
    free(c.rows);
    buf_release(&c.branches);
    return status;
}
