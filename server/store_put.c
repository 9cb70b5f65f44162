/*
 * store_put.c: a run document into the tables, in one transaction; see store.h.
 *
 * A timing enters `point`, and so trends and the leaderboard, only if its arm passed verification
 * in this run, and a candidate's only if its case is not wrong. The best that is measured beside
 * the candidate is neither candidate nor provider: it is the line that both are held against.
 */
#include "store_private.h"

#include <string.h>

#include "base/json.h"

/* One run on its way in. */
struct put {
    struct store *store;
    const cJSON *document;
    const char *text; /* the document's bytes */
    size_t len;
    bool *existed;
    const char *uuid;
    const char *contract;
    int64_t time_ms;
    int64_t run_id;
    int64_t device_id;
    struct gate_error *err;
};

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static enum gate_status fail(const struct put *p, int rc)
{
    return store_fail(p->store, rc, "store a run in", p->err);
}

/* Ends a statement that gives no row. */
static enum gate_status finish(const struct put *p, struct query *q)
{
    int rc = query_step(q);
    enum gate_status status = rc == SQLITE_DONE ? GATE_OK : fail(p, rc);
    query_end(q);
    return status;
}

/* Ends a statement that gives the id of its row. */
static enum gate_status finish_id(const struct put *p, struct query *q, int64_t *id)
{
    int rc = query_step(q);
    if (rc == SQLITE_ROW) {
        *id = sqlite3_column_int64(q->stmt, 0);
        rc = query_step(q);
    }
    enum gate_status status = rc == SQLITE_DONE ? GATE_OK : fail(p, rc);
    query_end(q);
    return status;
}

static bool is_timed(const cJSON *arm)
{
    return cJSON_IsObject(member(arm, "timing")) && json_bool(member(arm, "verify"), "ok", false);
}

static bool has_role(const cJSON *arm, const char *role)
{
    return strcmp(json_string(arm, "role", ""), role) == 0;
}

/* The case's own timing; NULL when there is none that counts. */
static const cJSON *candidate_timing(const cJSON *item)
{
    if (strcmp(json_string(item, "verdict", "wrong"), "wrong") == 0)
        return NULL;
    const cJSON *arm = NULL;
    cJSON_ArrayForEach (arm, member(item, "arms")) {
        if (has_role(arm, "candidate") && is_timed(arm))
            return member(arm, "timing");
    }
    return NULL;
}

/* p50 of the best: as measured in this run, else as it was on record. 0: there is none. */
static double best_p50_ns(const cJSON *item)
{
    const cJSON *arm = NULL;
    cJSON_ArrayForEach (arm, member(item, "arms")) {
        if (has_role(arm, "best") && is_timed(arm))
            return json_number(member(arm, "timing"), "p50_ns", 0.0);
    }
    return json_number(member(item, "best"), "p50_ns", 0.0);
}

/*
 * Candidate over this provider: from pairs of samples where there are any, since those drift
 * together. 0: the provider has no timing.
 */
static double ratio_to(const cJSON *arm, double candidate_p50_ns)
{
    const cJSON *timing = member(arm, "timing");
    double paired = json_number(member(timing, "ratio_to_candidate"), "value", 0.0);
    if (paired > 0.0)
        return paired;
    double p50_ns = json_number(timing, "p50_ns", 0.0);
    return p50_ns > 0.0 ? candidate_p50_ns / p50_ns : 0.0;
}

/* The provider that is hardest to beat. */
static const char *fastest_peer(const cJSON *item, double candidate_p50_ns, double *ratio)
{
    const char *peer = "";
    const cJSON *arm = NULL;
    *ratio = 0.0;
    cJSON_ArrayForEach (arm, member(item, "arms")) {
        if (!has_role(arm, "provider") || !is_timed(arm))
            continue;
        double r = ratio_to(arm, candidate_p50_ns);
        if (r > *ratio) {
            *ratio = r;
            peer = json_string(arm, "provider", "");
        }
    }
    return peer;
}

static enum gate_status put_result(const struct put *p, const cJSON *item, int64_t track_id)
{
    const cJSON *timing = candidate_timing(item);
    const cJSON *ratio = member(item, "ratio");
    double p50_ns = json_number(timing, "p50_ns", 0.0);
    double peer_ratio = 0.0;
    const char *peer = timing ? fastest_peer(item, p50_ns, &peer_ratio) : "";

    struct query q = query_begin(p->store, SQL_PUT_RESULT);
    bind_int(&q, track_id);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_text(&q, json_string(item, "verdict", ""));
    bind_text(&q, json_string(item, "reason", ""));
    bind_positive_or_null(&q, p50_ns);
    bind_positive_or_null(&q, json_number(timing, "p50_lo_ns", 0.0));
    bind_positive_or_null(&q, json_number(timing, "p50_hi_ns", 0.0));
    bind_positive_or_null(&q, json_number(timing, "tflops", 0.0));
    bind_positive_or_null(&q, json_number(timing, "ceiling", 0.0));
    bind_positive_or_null(&q, best_p50_ns(item));
    bind_positive_or_null(&q, json_number(ratio, "value", 0.0));
    bind_positive_or_null(&q, json_number(ratio, "lo", 0.0));
    bind_positive_or_null(&q, json_number(ratio, "hi", 0.0));
    bind_positive_or_null(&q, json_number(item, "mde", 0.0));
    bind_text(&q, peer);
    bind_positive_or_null(&q, peer_ratio);
    return finish(p, &q);
}

static enum gate_status put_point(const struct put *p, const cJSON *arm, int index,
                                  int64_t track_id)
{
    int64_t series_id = 0;
    struct query q = query_begin(p->store, SQL_PUT_SERIES);
    bind_int(&q, track_id);
    bind_text(&q, json_string(arm, "provider", ""));
    bind_text(&q, p->contract);
    enum gate_status status = finish_id(p, &q, &series_id);
    if (status != GATE_OK)
        return status;

    const cJSON *timing = member(arm, "timing");
    q = query_begin(p->store, SQL_PUT_POINT);
    bind_int(&q, series_id);
    bind_int(&q, p->time_ms);
    bind_int(&q, p->run_id);
    bind_int(&q, index);
    bind_text(&q, json_string(arm, "role", ""));
    bind_text(&q, json_string(arm, "kernel", ""));
    bind_real(&q, json_number(timing, "p50_ns", 0.0));
    bind_real(&q, json_number(timing, "p50_lo_ns", 0.0));
    bind_real(&q, json_number(timing, "p50_hi_ns", 0.0));
    bind_real(&q, json_number(timing, "p90_ns", 0.0));
    bind_real(&q, json_number(timing, "tflops", 0.0));
    bind_real(&q, json_number(timing, "gbps", 0.0));
    return finish(p, &q);
}

static enum gate_status put_points(const struct put *p, const cJSON *item, int64_t track_id)
{
    bool candidate_counts = candidate_timing(item) != NULL;
    const cJSON *arm = NULL;
    int index = 0;
    cJSON_ArrayForEach (arm, member(item, "arms")) {
        bool counts = has_role(arm, "provider") || (has_role(arm, "candidate") && candidate_counts);
        if (counts && is_timed(arm)) {
            enum gate_status status = put_point(p, arm, index, track_id);
            if (status != GATE_OK)
                return status;
        }
        index++;
    }
    return GATE_OK;
}

static enum gate_status put_case(const struct put *p, const cJSON *item)
{
    int64_t case_id = 0;
    int64_t track_id = 0;
    struct query q = query_begin(p->store, SQL_PUT_CASE);
    bind_text(&q, json_string(item, "id", ""));
    bind_text(&q, json_string(item, "op", ""));
    bind_text(&q, json_string(item, "dtype", ""));
    enum gate_status status = finish_id(p, &q, &case_id);
    if (status != GATE_OK)
        return status;

    q = query_begin(p->store, SQL_PUT_TRACK);
    bind_int(&q, case_id);
    bind_int(&q, p->device_id);
    status = finish_id(p, &q, &track_id);
    if (status == GATE_OK)
        status = put_result(p, item, track_id);
    if (status == GATE_OK)
        status = put_points(p, item, track_id);
    return status;
}

static int count_verdict(const cJSON *cases, const char *verdict)
{
    int n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, cases) {
        n += strcmp(json_string(item, "verdict", ""), verdict) == 0;
    }
    return n;
}

static enum gate_status put_run_row(struct put *p)
{
    const cJSON *device = member(p->document, "device");
    const cJSON *git = member(p->document, "git");
    const cJSON *cases = member(p->document, "cases");

    struct query q = query_begin(p->store, SQL_PUT_DEVICE);
    bind_text(&q, json_string(device, "model", ""));
    enum gate_status status = finish_id(p, &q, &p->device_id);
    if (status != GATE_OK)
        return status;

    q = query_begin(p->store, SQL_PUT_RUN);
    bind_text(&q, p->uuid);
    bind_int(&q, p->time_ms);
    bind_text(&q, json_string(git, "commit", ""));
    bind_text(&q, json_string(git, "branch", ""));
    bind_text(&q, json_string(git, "subject", ""));
    bind_int(&q, json_bool(git, "dirty", false));
    bind_text(&q, json_string(p->document, "suite", ""));
    bind_int(&q, p->device_id);
    bind_text(&q, json_string(device, "name", ""));
    bind_text(&q, p->contract);
    bind_text(&q, json_string(p->document, "verdict", ""));
    bind_int(&q, json_integer(p->document, "exit_code", 0));
    bind_int(&q, cJSON_GetArraySize(cases));
    bind_int(&q, count_verdict(cases, "pass"));
    bind_int(&q, count_verdict(cases, "regression"));
    bind_int(&q, count_verdict(cases, "improvement"));
    bind_int(&q, count_verdict(cases, "wrong"));
    bind_int(&q, count_verdict(cases, "no-verdict"));
    bind_int(&q, count_verdict(cases, "environment"));
    status = finish(p, &q);
    /* Not RETURNING, with which SQLite would plan a search for runs that point at this one. */
    p->run_id = sqlite3_last_insert_rowid(p->store->db);
    return status;
}

static enum gate_status put_document(const struct put *p)
{
    struct query q = query_begin(p->store, SQL_PUT_DOCUMENT);
    bind_int(&q, p->run_id);
    if (q.rc == SQLITE_OK)
        q.rc = sqlite3_bind_text64(q.stmt, q.next, p->text, p->len, SQLITE_STATIC, SQLITE_UTF8);
    return finish(p, &q);
}

static enum gate_status run_exists(const struct put *p, bool *exists)
{
    struct query q = query_begin(p->store, SQL_RUN_EXISTS);
    bind_text(&q, p->uuid);
    int rc = query_step(&q);
    *exists = rc == SQLITE_ROW;
    enum gate_status status = rc == SQLITE_ROW || rc == SQLITE_DONE ? GATE_OK : fail(p, rc);
    query_end(&q);
    return status;
}

/* Refuses what the tables could not tell apart, with the name of the case. */
static enum gate_status put_cases(const struct put *p)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, member(p->document, "cases")) {
        enum gate_status status = put_case(p, item);
        if (status != GATE_OK) {
            if (sqlite3_extended_errcode(p->store->db) == SQLITE_CONSTRAINT_PRIMARYKEY)
                return gate_fail(p->err, GATE_IO, "run %s has the case '%s' twice", p->uuid,
                                 json_string(item, "id", ""));
            gate_fail_context(p->err, "run %s, case '%s'", p->uuid, json_string(item, "id", ""));
            return status;
        }
    }
    return GATE_OK;
}

/* Within a transaction; what it leaves behind when it fails is undone by that. */
static enum gate_status put_whole(void *context, struct gate_error *err)
{
    struct put *p = context;
    p->err = err;
    enum gate_status status = run_exists(p, p->existed);
    if (status != GATE_OK || *p->existed)
        return status;
    status = put_run_row(p);
    if (status == GATE_OK)
        status = put_document(p);
    if (status == GATE_OK)
        status = put_cases(p);
    return status;
}

enum gate_status store_put_run(struct store *s, const cJSON *document, const char *text, size_t len,
                               bool *existed, struct gate_error *err)
{
    struct put p = {
        .store = s,
        .document = document,
        .text = text,
        .len = len,
        .existed = existed,
        .uuid = json_string(document, "uuid", ""),
        .contract = json_string(document, "contract", ""),
        .time_ms = json_integer(document, "time_ms", -1),
    };
    *existed = false;
    if (len > STORE_MAX_DOCUMENT)
        return gate_fail(err, GATE_IO, "run %s is too long to be stored: %zu bytes, at most %zu",
                         p.uuid, len, STORE_MAX_DOCUMENT);
    return store_atomically(s, put_whole, &p, err);
}
