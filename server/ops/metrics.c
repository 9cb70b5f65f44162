/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: see metrics.h. */
#include "server/ops/metrics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const unsigned codes[] = {200, 201, 304, 400, 401, 403, 404, 405, 409,
                                 413, 414, 415, 422, 429, 500, 503, 507, 0 /* any other */};
#define N_CODES (sizeof codes / sizeof codes[0])

/* Upper ends in ns; the last bucket has none. */
static const int64_t bounds[] = {100000,    250000,     500000,    1000000,  2500000,
                                 5000000,   10000000,   25000000,  50000000, 100000000,
                                 250000000, 1000000000, 5000000000};
#define N_BOUNDS (sizeof bounds / sizeof bounds[0])

struct histogram {
    atomic_uint_fast64_t buckets[N_BOUNDS + 1];
    atomic_uint_fast64_t sum_ns;
};

static atomic_uint_fast64_t counts[METRIC_COUNT], requests_by_code[N_CODES];
static struct histogram requests, commits;

static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void observe(struct histogram *h, int64_t ns)
{
    size_t i = 0;
    while (i < N_BOUNDS && ns > bounds[i])
        i++;
    add(&h->buckets[i], 1);
    add(&h->sum_ns, (uint64_t)ns);
}

void metrics_add(enum metric metric, uint64_t n)
{
    add(&counts[metric], n);
}

void metrics_request(unsigned status, int64_t ns)
{
    size_t i = 0;
    while (i + 1 < N_CODES && codes[i] != status)
        i++;
    add(&requests_by_code[i], 1);
    observe(&requests, ns);
}

void metrics_commit(int64_t ns)
{
    observe(&commits, ns);
}

static uint64_t total(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static const struct {
    enum metric metric;
    const char *name;
    const char *help;
} counters[] = {
    {METRIC_BYTES_SENT, "gate_http_sent_bytes", "Bytes of answers' bodies."},
    {METRIC_CONNECTIONS, "gate_http_connections", "Connections that were taken."},
    {METRIC_DEADLINES, "gate_http_deadlines", "Connections closed because they were too slow."},
    {METRIC_SHARE_REFUSED, "gate_http_share_refused", "Long answers refused with 429."},
    {METRIC_AUTH_REFUSED, "gate_auth_refused", "Requests with a token that is not valid."},
    {METRIC_RUNS_STORED, "gate_runs_stored", "Runs stored."},
    {METRIC_RUNS_REPEATED, "gate_runs_repeated", "Runs that were there already."},
    {METRIC_RUNS_REFUSED, "gate_runs_refused", "Runs that could not be stored."},
    {METRIC_ARTIFACTS_STORED, "gate_artifacts_stored", "Artifacts stored."},
    {METRIC_COMMITS, "gate_commits", "Turns to write that ended well."},
    {METRIC_COMMITS_FAILED, "gate_commits_failed", "Turns to write that failed."},
};

/* The name of a counter's family has no _total in OpenMetrics, and has one in the older format. */
static void head(struct buf *out, bool openmetrics, const char *name, const char *type,
                 const char *help)
{
    const char *suffix = !openmetrics && !strcmp(type, "counter") ? "_total" : "";
    buf_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix, type);
}

static void put_counters(struct buf *out, bool openmetrics)
{
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        head(out, openmetrics, counters[i].name, "counter", counters[i].help);
        buf_printf(out, "%s_total %llu\n", counters[i].name,
                   (unsigned long long)total(&counts[counters[i].metric]));
    }
    head(out, openmetrics, "gate_http_requests", "counter", "Requests by status.");
    for (size_t i = 0; i < N_CODES; i++) {
        char code[16] = "other";
        if (codes[i] != 0)
            snprintf(code, sizeof code, "%u", codes[i]);
        buf_printf(out, "gate_http_requests_total{code=\"%s\"} %llu\n", code,
                   (unsigned long long)total(&requests_by_code[i]));
    }
}

static void put_histogram(struct buf *out, bool openmetrics, const char *name, const char *help,
                          const struct histogram *h)
{
    uint64_t n = 0;
    head(out, openmetrics, name, "histogram", help);
    for (size_t i = 0; i <= N_BOUNDS; i++) {
        char bound[32] = "+Inf";
        if (i < N_BOUNDS)
            snprintf(bound, sizeof bound, "%g", (double)bounds[i] / 1e9);
        n += total(&h->buckets[i]);
        buf_printf(out, "%s_bucket{le=\"%s\"} %llu\n", name, bound, (unsigned long long)n);
    }
    buf_printf(out, "%s_sum %.9g\n%s_count %llu\n", name, (double)total(&h->sum_ns) / 1e9, name,
               (unsigned long long)n);
}

static void put_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
    if (value < 0)
        return;
    head(out, true, name, "gauge", help);
    buf_printf(out, "%s %lld\n", name, (long long)value);
}

/* Resident pages, from the one line of /proc/self/statm. */
static int64_t resident_bytes(void)
{
    long long size = 0;
    long long resident = -1;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return -1;
    if (fscanf(file, "%lld %lld", &size, &resident) != 2) /* NOLINT(cert-err34-c): the kernel's */
        resident = -1;
    fclose(file);
    return resident < 0 ? -1 : resident * sysconf(_SC_PAGESIZE);
}

void metrics_write(struct buf *out, const struct metrics_now *now, bool openmetrics)
{
    put_counters(out, openmetrics);
    put_histogram(out, openmetrics, "gate_http_request_seconds",
                  "Time from the headers of a request to the end of its answer.", &requests);
    put_histogram(out, openmetrics, "gate_commit_seconds",
                  "Time of a turn to write, with its commit.", &commits);
    head(out, true, "gate_build_info", "gauge", "The version that runs.");
    buf_printf(out, "gate_build_info{version=\"%s\"} 1\n", now->version);
    put_gauge(out, "gate_http_connections_open", "Connections that are open.", now->connections);
    put_gauge(out, "gate_writes_waiting", "Writes that wait or are under way.",
              now->writes_waiting);
    put_gauge(out, "gate_writer_alive", "1 while the writer works.", now->writer_alive);
    put_gauge(out, "gate_database_bytes", "Size of the database.", now->database_bytes);
    put_gauge(out, "gate_wal_bytes", "Size of its write-ahead log.", now->wal_bytes);
    put_gauge(out, "gate_disk_free_bytes", "Free space on its disk.", now->disk_free_bytes);
    put_gauge(out, "gate_alerts_new", "Open alerts that nobody has taken.", now->alerts_new);
    put_gauge(out, "gate_alerts_acknowledged", "Open alerts that somebody looks into.",
              now->alerts_acknowledged);
    put_gauge(out, "gate_silences",
              "Devices, cases and branches that are no longer measured regularly.", now->silences);
    put_gauge(out, "process_resident_memory_bytes", "Resident memory.", resident_bytes());
    head(out, openmetrics, "process_cpu_seconds", "counter", "Processor time.");
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    buf_printf(out, "process_cpu_seconds_total %.3f\n",
               (double)used.tv_sec + (double)used.tv_nsec / 1e9);
    if (openmetrics)
        buf_puts(out, "# EOF\n");
}
