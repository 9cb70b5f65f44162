/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c: a made-up history of any size, for load tests.
 *
 *     history --db FILE --series N --points M [--seed S]
 *
 * Two devices of the same cases, each case with a candidate and a provider, so N/4 cases; each
 * device has M/N runs, of two commits a day, up to the end of 2024: what is stored now is newer.
 * The rows go straight into the tables of the store, in
 * their order, because taking millions of documents apart would take days; what is not there is
 * marked as such: the documents have no cases, and the watch has seen all of it. Series have noise,
 * a slow component, steps up and down, epochs, and two modes for one in eight; everything follows
 * from the seed.
 */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/seed.h"
#include "gate/store/store_pack.h"
#include "gate/store/store_private.h"

#define N_DEVICES 2
#define END_MS 1735689600000LL
#define INTERVAL_MS 43200000LL
#define MAX_RUNS (END_MS / INTERVAL_MS) /* of a device: times are after 1970 */
#define N_EPOCHS 5
#define N_STEPS 4

struct plan {
    const char *db;
    int64_t n_series, n_points;
    uint64_t seed;
    /* that follow */
    int64_t n_cases, n_runs; /* of a device */
};

struct history {
    struct plan plan;
    struct store *store;
    struct gate_error err;
    int64_t *newest_ps; /* of each series, by its id */
};

/* ---- numbers ---- */

/* About N(0, 1), of one draw: the sum of four uniform numbers of 16 bits. */
static double noise(uint64_t *state)
{
    uint64_t z = seed_next(state);
    double sum = (double)(z & 0xffff) + (double)(z >> 16 & 0xffff) + (double)(z >> 32 & 0xffff) +
                 (double)(z >> 48);
    return (sum / 65536 - 2) * 1.7320508;
}

static void hex(uint64_t *state, int n, char *out)
{
    for (int i = 0; i < n; i++)
        out[i] = "0123456789abcdef"[seed_next(state) >> 60];
    out[n] = '\0';
}

/* ---- rows ---- */

static void must(struct history *h, enum gate_status status)
{
    if (status == GATE_OK)
        return;
    fprintf(stderr, "history: %s\n", h->err.message);
    exit((int)status);
}

static void finish(struct history *h, struct query *q)
{
    must(h, store_finish(h->store, q, &h->err));
}

static void run_sql(struct history *h, const char *sql)
{
    must(h, store_execute(h->store, sql, "fill", &h->err));
}

static int64_t run_id(const struct history *h, int64_t device, int64_t index)
{
    (void)h;
    return index * N_DEVICES + device + 1;
}

static int64_t time_of(const struct history *h, int64_t device, int64_t index)
{
    return END_MS - (h->plan.n_runs - index) * INTERVAL_MS + device * 1000;
}

static int64_t epoch_of(const struct history *h, int64_t index)
{
    return index * N_EPOCHS / h->plan.n_runs;
}

static void put_commit(struct history *h, int64_t index)
{
    uint64_t state = h->plan.seed * 31 + (uint64_t)index;
    uint64_t before = h->plan.seed * 31 + (uint64_t)index - 1;
    char commit[41], parent[41];
    int64_t id = 0;
    hex(&state, 40, commit);
    hex(&before, 40, parent);
    struct query q = query_begin(h->store, SQL_PUT_REVISION);
    bind_text(&q, commit);
    bind_text(&q, index > 0 ? parent : "");
    bind_text(&q, "main");
    bind_int(&q, time_of(h, 0, index));
    must(h, store_finish_id(h->store, &q, &id, &h->err));
}

static void put_document(struct history *h, int64_t id, const char *uuid)
{
    char text[200];
    struct store_packed packed;
    int len = snprintf(text, sizeof(text),
                       "{\"schema\":\"gate-run/1\",\"uuid\":\"%s\",\"cases\":[]}", uuid);
    must(h, store_pack(text, (size_t)len, &packed, &h->err));
    struct query q = query_begin(h->store, SQL_PUT_DOCUMENT);
    bind_int(&q, id);
    bind_int(&q, (int64_t)packed.n_bytes);
    bind_blob(&q, packed.sha256, sizeof(packed.sha256));
    bind_int(&q, 0);
    bind_blob(&q, packed.bytes, packed.len);
    finish(h, &q);
    store_packed_release(&packed);
}

/* One run in seven is of a merge request. */
static const char *branch_of(int64_t index)
{
    return index % 7 == 3 ? "tune" : "main";
}

static void put_run(struct history *h, int64_t device, int64_t index)
{
    uint64_t state = h->plan.seed * 17 + (uint64_t)run_id(h, device, index) * 1000003;
    char d[33], uuid[40], epoch[40];
    hex(&state, 32, d);
    snprintf(uuid, sizeof(uuid), "%.8s-%.4s-4%.3s-8%.3s-%.12s", d, d + 8, d + 12, d + 15, d + 18);
    snprintf(epoch, sizeof(epoch), "%" PRId64 ".10/13.0/700000", 560 + epoch_of(h, index));
    struct query q = query_begin(h->store, SQL_PUT_RUN);
    bind_text(&q, uuid);
    bind_int(&q, time_of(h, device, index));
    bind_int(&q, index + 1);
    bind_text(&q, branch_of(index));
    bind_text(&q, "gemm: another tile");
    bind_text(&q, "Ada Example");
    bind_int(&q, 0);
    bind_text(&q, "canonical");
    bind_int(&q, device + 1);
    bind_text(&q, "NVIDIA GPU");
    bind_text(&q, "paired-loop-v3");
    bind_text(&q, epoch);
    bind_text(&q, "pass");
    bind_int(&q, 0);
    bind_int(&q, h->plan.n_cases);
    bind_int(&q, h->plan.n_cases);
    for (int i = 0; i < 5; i++)
        bind_int(&q, 0);
    bind_text(&q, "runner");
    bind_null(&q);
    bind_real(&q, 1002300);
    bind_null(&q);
    bind_real(&q, 1.02);
    bind_int(&q, h->plan.n_cases);
    finish(h, &q);
    put_document(h, run_id(h, device, index), uuid);
    if (index == 0 || epoch_of(h, index) != epoch_of(h, index - 1)) {
        q = query_begin(h->store, SQL_PUT_EPOCH);
        bind_int(&q, device + 1);
        bind_int(&q, time_of(h, device, index));
        bind_text(&q, epoch);
        finish(h, &q);
    }
}

static void put_runs(struct history *h)
{
    static const char *const models[N_DEVICES] = {"nvidia-h200", "nvidia-a100"};
    for (int64_t d = 0; d < N_DEVICES; d++) {
        int64_t id = 0;
        struct query q = query_begin(h->store, SQL_PUT_DEVICE);
        bind_text(&q, models[d]);
        must(h, store_finish_id(h->store, &q, &id, &h->err));
    }
    for (int64_t i = 0; i < h->plan.n_runs; i++) {
        put_commit(h, i);
        for (int64_t d = 0; d < N_DEVICES; d++)
            put_run(h, d, i);
    }
}

/* The numbers of a track go by device, then case: track 1 + device * n_cases + case. */
static void put_tracks(struct history *h)
{
    static const char *const ops[] = {"gemm", "gemv", "linear_relu", "attention_fwd"};
    static const char *const dtypes[] = {"fp16", "bf16", "fp32"};
    for (int64_t k = 0; k < h->plan.n_cases; k++) {
        char name[80];
        snprintf(name, sizeof(name), "%s/%s/m%" PRId64 "-n%" PRId64 "-k%" PRId64, ops[k % 4],
                 dtypes[k % 3], 64 + k, 128 * (1 + k % 32), 64 * (1 + k % 64));
        struct query q = query_begin(h->store, SQL_PUT_CASE);
        bind_text(&q, name);
        bind_text(&q, ops[k % 4]);
        bind_text(&q, dtypes[k % 3]);
        finish(h, &q);
    }
    for (int64_t d = 0; d < N_DEVICES; d++) {
        for (int64_t k = 0; k < h->plan.n_cases; k++) {
            struct query q = query_begin(h->store, SQL_PUT_TRACK);
            bind_int(&q, k + 1);
            bind_int(&q, d + 1);
            bind_int(&q, 0);
            bind_int(&q, 1);
            bind_text(&q, "main");
            finish(h, &q);
        }
    }
    for (int i = 0; i < 2; i++) {
        struct query q = query_begin(h->store, SQL_PUT_KERNEL);
        bind_text(&q, i == 0 ? "gemm_sm90_128x256" : "default");
        finish(h, &q);
    }
}

/* ---- points ---- */

/* A series and how it goes. */
struct series {
    int64_t id, device;
    bool candidate, bimodal;
    double p50_ns; /* at the start */
    double sigma;
    int64_t step_at[N_STEPS];
    double step[N_STEPS];
    uint64_t state;
    double slow; /* AR(1) */
};

static struct series series_of(const struct history *h, int64_t id)
{
    struct series s = {
        .id = id,
        .device = (id - 1) / 2 / h->plan.n_cases,
        .candidate = id % 2 == 1,
        .state = h->plan.seed * 0x51ed2701 + (uint64_t)id,
    };
    s.p50_ns = exp(log(2000) + (double)(seed_next(&s.state) >> 40) / 16777216 * log(1000));
    s.sigma = 0.001 * exp(0.8 * noise(&s.state));
    s.bimodal = seed_next(&s.state) % 8 == 0;
    for (int i = 0; i < N_STEPS; i++) {
        s.step_at[i] = (int64_t)(seed_next(&s.state) % (uint64_t)(h->plan.n_runs + 1));
        s.step[i] = 1 + 0.02 * noise(&s.state);
    }
    return s;
}

static double p50_of(struct series *s, int64_t index)
{
    double p50 = s->p50_ns;
    for (int i = 0; i < N_STEPS; i++)
        p50 *= index >= s->step_at[i] ? s->step[i] : 1;
    s->slow = 0.9 * s->slow + 0.3 * noise(&s->state);
    if (s->bimodal && (seed_next(&s->state) & 3) == 0)
        p50 *= 1.02;
    return p50 * (1 + s->sigma * (noise(&s->state) + 0.5 * s->slow));
}

struct lowest {
    int64_t ps, index;
};

static void put_point(struct history *h, struct series *s, int64_t index, struct lowest *lowest)
{
    int64_t ps = llround(1e3 * p50_of(s, index));
    struct query q = query_begin(h->store, SQL_PUT_POINT);
    bind_int(&q, s->id);
    bind_int(&q, time_of(h, s->device, index));
    bind_int(&q, run_id(h, s->device, index));
    bind_int(&q, s->candidate ? 0 : 2);
    bind_int(&q, s->candidate ? 0 : 1);
    bind_int(&q, 0);
    bind_int(&q, s->candidate ? 1 : 2);
    bind_int(&q, ps);
    bind_int(&q, ps - ps / 700);
    bind_int(&q, ps + ps / 650);
    bind_int(&q, ps - ps / 110);
    bind_int(&q, ps + ps / 90);
    bind_int(&q, 1002300000 + (int64_t)(1e6 * noise(&s->state)));
    bind_id_or_null(&q, s->candidate ? llround(1e3 * s->p50_ns) : 0);
    bind_int(&q, 1755000 + (int64_t)(seed_next(&s->state) % 20000));
    bind_int(&q, 168);
    bind_int(&q, 213000);
    bind_int(&q, 0);
    bind_real(&q, 2.9e-4 * (1 + 1e-3 * noise(&s->state)));
    finish(h, &q);
    h->newest_ps[s->id] = ps;
    if (ps < lowest->ps)
        *lowest = (struct lowest){ps, index};
}

static void put_series(struct history *h, int64_t id)
{
    struct series s = series_of(h, id);
    struct lowest lowest = {INT64_MAX, 0};
    struct query q = query_begin(h->store, SQL_PUT_SERIES);
    bind_int(&q, (id + 1) / 2);
    bind_text(&q, s.candidate ? "ours" : "cublas");
    bind_text(&q, "paired-loop-v3");
    bind_real(&q, s.p50_ns * 5e5);
    bind_real(&q, s.p50_ns * 900);
    finish(h, &q);
    for (int64_t i = 0; i < h->plan.n_runs; i++)
        put_point(h, &s, i, &lowest);
    q = query_begin(h->store, SQL_PUT_LEADER);
    bind_int(&q, id);
    bind_int(&q, lowest.ps);
    bind_int(&q, time_of(h, s.device, lowest.index));
    bind_int(&q, run_id(h, s.device, lowest.index));
    bind_int(&q, s.candidate ? 0 : 2);
    bind_text(&q, branch_of(lowest.index));
    finish(h, &q);
}

/* ---- results and what is the newest ---- */

static void put_results(struct history *h)
{
    for (int64_t i = 0; i < h->plan.n_runs; i++) {
        for (int64_t d = 0; d < N_DEVICES; d++) {
            for (int64_t k = 0; k < h->plan.n_cases; k++) {
                int64_t track = 1 + d * h->plan.n_cases + k;
                struct query q = query_begin(h->store, SQL_PUT_RESULT);
                bind_int(&q, run_id(h, d, i));
                bind_int(&q, track);
                bind_int(&q, 0);
                for (int n = 0; n < 5; n++)
                    bind_null(&q); /* evidence, threshold, ratio and its interval */
                bind_int(&q, 2 * track - 1);
                bind_int(&q, 0);
                finish(h, &q);
            }
        }
    }
}

static void put_newest(struct history *h, int64_t track)
{
    int64_t device = (track - 1) / h->plan.n_cases;
    int64_t last = h->plan.n_runs - 1;
    struct series s = series_of(h, 2 * track - 1);
    double p50_ns = (double)h->newest_ps[s.id] / 1000;
    struct query q = query_begin(h->store, SQL_PUT_NEWEST_RESULT);
    bind_int(&q, track);
    bind_int(&q, time_of(h, device, last));
    bind_int(&q, run_id(h, device, last));
    bind_int(&q, 0);
    bind_text(&q, "within 2 % of the stored baseline, 5 processes");
    bind_int(&q, 2 * track - 1);
    bind_real(&q, 0.02);
    bind_real(&q, p50_ns);
    bind_real(&q, p50_ns * 0.999);
    bind_real(&q, p50_ns * 1.001);
    bind_real(&q, 500);
    bind_real(&q, 900);
    bind_real(&q, 0.5);
    bind_real(&q, s.p50_ns);
    bind_real(&q, 1 + s.sigma);
    bind_real(&q, 0.999);
    bind_real(&q, 1.001);
    bind_real(&q, 5 * s.sigma);
    bind_text(&q, "cublas");
    bind_real(&q, 1.02);
    bind_real(&q, 1002300);
    bind_real(&q, 2.9e-4);
    bind_text(&q, branch_of(last));
    finish(h, &q);
    q = query_begin(h->store, SQL_ADD_TO_TRACK);
    bind_int(&q, track);
    bind_int(&q, time_of(h, device, last));
    bind_int(&q, run_id(h, device, last));
    bind_text(&q, branch_of(last));
    bind_int(&q, time_of(h, device, last));
    bind_text(&q, "paired-loop-v3");
    finish(h, &q);
    q = query_begin(h->store, SQL_PUT_BASELINE);
    bind_int(&q, track);
    bind_int(&q, time_of(h, device, last));
    bind_int(&q, run_id(h, device, last));
    bind_real(&q, s.p50_ns);
    bind_text(&q, "");
    bind_int(&q, time_of(h, device, 0));
    bind_int(&q, time_of(h, device, 0));
    bind_real(&q, s.p50_ns);
    bind_int(&q, run_id(h, device, 0));
    finish(h, &q);
}

/* ---- all of it ---- */

static void progress(const char *what, int64_t n, int64_t of)
{
    if (isatty(STDERR_FILENO) && of > 100 && n % (of / 100) == 0)
        fprintf(stderr, "\r%s %lld %% ", what, (long long)(100 * n / of));
}

static void fill(struct history *h)
{
    int64_t n_tracks = N_DEVICES * h->plan.n_cases;
    /* A file that is lost with the machine is made again; the journal is for one that is not. */
    run_sql(h, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF;"
               "PRAGMA cache_size = -65536; BEGIN");
    put_runs(h);
    put_tracks(h);
    for (int64_t id = 1; id <= 2 * n_tracks; id++) {
        put_series(h, id);
        progress("points", id, 2 * n_tracks);
    }
    put_results(h);
    for (int64_t track = 1; track <= n_tracks; track++)
        put_newest(h, track);
    run_sql(h, "UPDATE device SET n_runs = (SELECT count(*) FROM run WHERE device_id = device.id);"
               "UPDATE track SET n_runs = (SELECT n_runs FROM device WHERE id = device_id);"
               "UPDATE watch SET run_id = (SELECT max(id) FROM run),"
               " track_id = (SELECT max(id) FROM track);"
               "COMMIT; PRAGMA journal_mode = WAL");
}

static int64_t number(const char *name, const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > 1000000000) {
        fprintf(stderr, "history: --%s '%s' is not a count\n", name, text);
        exit(GATE_USAGE);
    }
    return value;
}

static void parse_arguments(int argc, char **argv, struct plan *plan)
{
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},
        {"series", required_argument, NULL, 's'},
        {"points", required_argument, NULL, 'p'},
        {"seed", required_argument, NULL, 'x'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd')
            plan->db = optarg;
        else if (option == 's')
            plan->n_series = number("series", optarg);
        else if (option == 'p')
            plan->n_points = number("points", optarg);
        else if (option == 'x')
            plan->seed = (uint64_t)number("seed", optarg);
        else
            exit(GATE_USAGE);
    }
    plan->n_cases = plan->n_series / (2 * N_DEVICES);
    plan->n_runs = plan->n_series > 0 ? plan->n_points / plan->n_series : 0;
    if (!plan->db || plan->n_cases < 1 || plan->n_runs < 1 || plan->n_runs > MAX_RUNS ||
        optind < argc) {
        fprintf(stderr,
                "usage: history --db FILE --series N --points M [--seed S]\n"
                "N at least 4, M at least N and at most %lld N\n",
                MAX_RUNS);
        exit(GATE_USAGE);
    }
}

int main(int argc, char **argv)
{
    struct history h = {.plan = {.seed = 1}};
    parse_arguments(argc, argv, &h.plan);
    must(&h, store_open(h.plan.db, STORE_READ_WRITE, &h.store, &h.err));
    h.newest_ps = calloc((size_t)h.plan.n_series + 1, sizeof(*h.newest_ps));
    if (!h.newest_ps)
        return GATE_INTERNAL;
    fill(&h);
    free(h.newest_ps);
    store_close(h.store);
    int64_t n_series = 2 * N_DEVICES * h.plan.n_cases;
    printf("%" PRId64 " series, %" PRId64 " points, %" PRId64 " runs, %" PRId64 " cases\n",
           n_series, n_series * h.plan.n_runs, N_DEVICES * h.plan.n_runs, h.plan.n_cases);
    return 0;
}
