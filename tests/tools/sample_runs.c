/* SPDX-License-Identifier: Apache-2.0 */
/* sample_runs.c: see sample_runs.h. */
#include "tests/tools/sample_runs.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/base/seed.h"
#include "gate/decide/decide.h"
#include "tests/tools/sample_devices.h"
#include "tests/tools/sample_story.h"

#define FIRST_TIME_MS 1750000000000LL
#define RUN_INTERVAL_MS 21600000LL /* four runs a day */
#define THRESHOLD 0.02
#define N_PROCESSES 5
#define N_NO_VERDICT 20
#define N_SAMPLES 40
#define CONTROL_NS 1002300.0
#define PEAK_TFLOPS 989.0
#define PEAK_GBPS 4800.0
#define REACHED_TFLOPS 835.0 /* of any type */
#define REACHED_GBPS 4530.0
#define ON_RECORD 0.995 /* the stored p50 of a baseline over what it takes in these runs */

struct sample_case {
    const char *id;
    const char *op;
    const char *dtype;
    const char *kernel;
    const char *rival;  /* the provider beside torch */
    double p50_ns;      /* of the candidate, before any step */
    double flops;       /* a launch */
    double bytes;       /* a launch, compulsory */
    double rival_ratio; /* candidate over rival */
    double registers;   /* of a thread; 0 on the host */
    double shared_bytes;
};

static const struct sample_case known[] = {
    {"attention_fwd/fp16/b8-h16-s512-d64/causal", "attention_fwd", "fp16", "fa_sm90_d64", "cudnn",
     18600, 4.295e9, 3.36e7, 0.97, 168, 196608},
    {"attention_fwd/fp16/b4-h16-s4096-d128/causal", "attention_fwd", "fp16", "fa_sm90_d128",
     "cudnn", 541000, 2.749e11, 2.68e8, 1.04, 168, 229376},
    {"attention_fwd/bf16/b4-h32-s2048-d128", "attention_fwd", "bf16", "fa_sm90_d128", "cudnn",
     512000, 2.749e11, 2.68e8, 1.01, 168, 229376},
    {"gemm/fp16/m4096-n4096-k4096", "gemm", "fp16", "gemm_sm90_128x256", "cublas", 186000, 1.374e11,
     1.01e8, 1.02, 168, 213000},
    {"gemm/bf16/m8192-n1024-k8192", "gemm", "bf16", "gemm_sm90_128x256", "cublas", 191400, 1.374e11,
     1.68e8, 1.03, 168, 213000},
    {"gemm/tf32/m2048-n2048-k2048", "gemm", "tf32", "gemm_sm80_tf32", "cublas", 52300, 1.718e10,
     5.03e7, 1.11, 128, 98304},
    {"gemv/fp16/m8192-k8192", "gemv", "fp16", "gemv_vec8", "cublas", 31900, 1.342e8, 1.34e8, 0.92,
     40, 0},
    {"gemv/fp32/m2048-k2048", "gemv", "fp32", "gemv_vec4", "cublas", 5230, 8.39e6, 1.68e7, 0.88, 48,
     0},
    {"linear_relu/fp16/b1024-i2048-o768", "linear_relu", "fp16", "linear_relu_fused", "cublas",
     12400, 3.221e9, 8.91e6, 0.81, 128, 131072},
    {"linear_relu/bf16/b8192-i4096-o4096", "linear_relu", "bf16", "linear_relu_fused", "cublas",
     389000, 2.749e11, 1.68e8, 0.96, 168, 213000},
    {"linear_relu_bwd/fp16/b1024-i2048-o768", "linear_relu_bwd", "fp16", "linear_relu_bwd",
     "cublas", 29700, 6.442e9, 1.83e7, 0.99, 128, 131072},
    {"linear_relu_bwd/fp32/b512-i1024-o512", "linear_relu_bwd", "fp32", "linear_relu_bwd_fp32",
     "cublas", 24100, 1.074e9, 9.4e6, 1.21, 96, 65536},
};
#define N_KNOWN ((int)(sizeof(known) / sizeof(known[0])))

static const char *const subjects[] = {
    "attention: keep P in registers between the two products",
    "gemm: four stages where shared memory allows it",
    "gemv: 16-byte loads on the aligned middle",
    "linear_relu: fuse the bias into the epilogue",
    "dispatch: 128x256 tiles from 4096 columns on",
    "tests: neighbour shapes of every canonical case",
    "gate: shuffle the cases of a suite",
};
#define N_SUBJECTS ((int)(sizeof(subjects) / sizeof(subjects[0])))

static const char *const authors[] = {"Ada Byrne", "Grace Murray", "Kurt Zuse"};
#define N_AUTHORS ((int)(sizeof(authors) / sizeof(authors[0])))

/* About N(0, 1): the sum of twelve uniform numbers. */
static double noise(uint64_t *state)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += (double)(seed_next(state) >> 11) * 0x1p-53;
    return sum;
}

static void hex(uint64_t *state, int digits, char *out)
{
    for (int i = 0; i < digits; i++)
        out[i] = "0123456789abcdef"[seed_next(state) >> 60];
    out[digits] = '\0';
}

static void text(cJSON *o, const char *key, const char *value)
{
    cJSON_AddStringToObject(o, key, value);
}

static void num(cJSON *o, const char *key, double value)
{
    cJSON_AddNumberToObject(o, key, value);
}

static void add_uuid(cJSON *o, uint64_t *state)
{
    char d[33];
    char uuid[37];
    hex(state, 32, d);
    snprintf(uuid, sizeof(uuid), "%.8s-%.4s-4%.3s-8%.3s-%.12s", d, d + 8, d + 12, d + 15, d + 18);
    text(o, "uuid", uuid);
}

/* The commit of a run; that of the run before it is its parent. */
static void commit_of(const struct sample_plan *plan, int index, char out[41])
{
    uint64_t stream = plan->seed * 7919 + (uint64_t)(index + 1) * 0x51ed2701;
    hex(&stream, 40, out);
}

static void add_git(cJSON *o, const struct sample_plan *plan, int index)
{
    char commit[41];
    char parent[41];
    commit_of(plan, index, commit);
    commit_of(plan, index - 1, parent);
    cJSON *git = cJSON_AddObjectToObject(o, "git");
    text(git, "commit", commit);
    text(git, "branch", index % 5 == 4 ? "tune-tiles" : "main");
    text(git, "parent", parent);
    text(git, "subject", subjects[index % N_SUBJECTS]);
    text(git, "author", authors[index % N_AUTHORS]);
    if (index % 5 == 4) {
        char job[64];
        snprintf(job, sizeof job, "https://ci.example.org/jobs/%d", index);
        text(git, "base", "main");
        text(git, "change", "831");
        text(git, "job", job);
    }
    cJSON_AddBoolToObject(git, "dirty", index % 9 == 8);
}

static void add_library(cJSON *libraries, const char *role, const char *provider, uint64_t *state)
{
    char sha256[65];
    hex(state, 64, sha256);
    cJSON *l = cJSON_CreateObject();
    text(l, "role", role);
    text(l, "provider", provider);
    text(l, "version", "1.0");
    char file[80];
    snprintf(file, sizeof(file), "libkernels-%s.so", provider);
    text(l, "file", file);
    text(l, "sha256", sha256);
    cJSON_AddItemToArray(libraries, l);
}

static cJSON *interval(double value, double half_width)
{
    cJSON *r = cJSON_CreateObject();
    num(r, "value", value);
    num(r, "lo", value * (1 - half_width));
    num(r, "hi", value * (1 + half_width));
    return r;
}

static cJSON *ratio(double value)
{
    return interval(value, 0.0006);
}

static cJSON *add_verify(cJSON *arm, bool ok, double rel_fro)
{
    cJSON *v = cJSON_AddObjectToObject(arm, "verify");
    cJSON_AddBoolToObject(v, "ok", ok);
    num(v, "seeds", 3);
    num(v, "rel_fro", ok ? rel_fro : 7.3e-2);
    num(v, "limit", 6e-4);
    num(v, "max_abs", ok ? 9.8e-4 : 1.31);
    num(v, "allclose_1e2", ok ? 1 : 0.9712);
    num(v, "allclose_1e3", ok ? 0.9991 : 0.9406);
    num(v, "nonfinite", ok ? 0 : 12);
    text(v, "message",
         ok ? "" : "output 0: relative error 7.3e-02 over the limit 6.0e-04, worst in tile (3, 7)");
    return v;
}

static cJSON *add_class(cJSON *covered, const char *of, const char *name, int n)
{
    cJSON *classes = cJSON_AddObjectToObject(covered, of);
    num(classes, name, n);
    return classes;
}

static void add_classes(cJSON *verify, int more)
{
    cJSON *covered = cJSON_AddObjectToObject(verify, "covered");
    num(add_class(covered, "values", "random_normal", 7), "nan_in_second", more);
    num(add_class(covered, "shapes", "small", 30), "giant", more);
    add_class(covered, "layouts", "odd_rows", 20 + more);
    num(add_class(covered, "launches", "of_checks", 100), "in_a_row", 1900 + more);
}

/* What the candidate's verification looked at; more of some ops. */
static void add_coverage(cJSON *verify, const char *op)
{
    int more = (int)strlen(op);
    num(verify, "checks", 70 + more);
    num(verify, "skipped", 2);
    num(verify, "refused", 2);
    num(verify, "values", more % 3 + 8);
    num(verify, "shapes", 30 + more);
    num(verify, "layouts", 20 + more);
    num(verify, "launches", 2000 + more);
    num(verify, "pairs", 2200 + more);
    num(verify, "pairs_of", 9747);
    add_classes(verify, more);
}

static void put_base64(const unsigned char *bytes, size_t n, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned word = 0;
        for (size_t k = 0; k < 3; k++)
            word = word << 8 | (i + k < n ? bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            *out++ = i + k <= n ? digits[word >> (18 - 6 * k) & 63] : '=';
    }
    *out = '\0';
}

/* Raw samples around p50, as the gate writes them. Of a stream of their own, like the evidence. */
static void add_samples(cJSON *timing, double p50_ns, uint64_t stream)
{
    float samples[N_SAMPLES];
    char coded[sizeof(samples) * 2];
    for (int i = 0; i < N_SAMPLES; i++)
        samples[i] = (float)(p50_ns * (1 + 0.004 * noise(&stream)));
    put_base64((const unsigned char *)samples, sizeof(samples), coded);
    text(timing, "samples_ns", coded);
}

static cJSON *add_timing(cJSON *arm, const struct sample_case *c, double p50_ns, double over)
{
    cJSON *t = cJSON_AddObjectToObject(arm, "timing");
    num(t, "p50_ns", p50_ns);
    num(t, "p50_lo_ns", p50_ns * 0.997);
    num(t, "p50_hi_ns", p50_ns * 1.003);
    num(t, "p10_ns", p50_ns * 0.994);
    num(t, "p90_ns", p50_ns * 1.012);
    num(t, "samples", 200);
    num(t, "launches_per_sample", 64);
    num(t, "input_sets", 8);
    cJSON_AddTrueToObject(t, "cold");
    num(t, "tflops", c->flops / p50_ns / 1e3);
    num(t, "gbps", c->bytes / p50_ns);
    num(t, "ceiling", fmax(c->flops / p50_ns / 1e3 / PEAK_TFLOPS, c->bytes / p50_ns / PEAK_GBPS));
    if (c->registers > 0) {
        num(t, "measured_ceiling",
            fmax(c->flops / p50_ns / 1e3 / REACHED_TFLOPS, c->bytes / p50_ns / REACHED_GBPS));
        num(t, "sm_clock_mhz", 1755);
        num(t, "registers", c->registers);
        num(t, "shared_bytes", c->shared_bytes);
        num(t, "spill_bytes", 0);
    } else {
        num(t, "sm_clock_mhz", 0);
    }
    num(t, "single_p50_ns", p50_ns * 1.08 + 900);
    num(t, "single_p90_ns", p50_ns * 1.11 + 1100);
    num(t, "single_samples", 200);
    if (over > 0)
        cJSON_AddItemToObject(t, "ratio_to_candidate", ratio(over));
    else
        cJSON_AddNullToObject(t, "ratio_to_candidate");
    return t;
}

static void add_process(cJSON *processes, const char *stage, double p50_ns, double d, bool paired,
                        uint64_t *stream)
{
    cJSON *p = cJSON_CreateObject();
    text(p, "stage", stage);
    cJSON_AddBoolToObject(p, "swapped", cJSON_GetArraySize(processes) % 2 == 1);
    num(p, "p50_ns", p50_ns);
    num(p, "log_ratio", d);
    if (paired) {
        num(p, "baseline_p50_ns", p50_ns / exp(d));
        num(p, "log_ratio_cycles", d * 0.99);
        num(p, "log_ratio_p90", d + 0.0004);
    } else {
        cJSON_AddNullToObject(p, "baseline_p50_ns");
        cJSON_AddNullToObject(p, "log_ratio_cycles");
        cJSON_AddNullToObject(p, "log_ratio_p90");
    }
    num(p, "control_ns", CONTROL_NS * (1 + 0.0008 * noise(stream)));
    cJSON_AddItemToArray(processes, p);
}

/* What the verdict rests on. Draws from a stream of its own, so that the times stay as they are. */
static void add_evidence(cJSON *o, const char *verdict, double p50_ns, double over_baseline,
                         bool paired, uint64_t stream)
{
    bool noisy = verdict[0] == 'n';
    bool confirmed = verdict[0] == 'r' || verdict[0] == 'i';
    double spread = noisy ? 0.015 : paired ? 0.0004 : 0.002;
    cJSON *processes = cJSON_AddArrayToObject(o, "processes");
    if (verdict[0] == 'w') {
        cJSON_AddNullToObject(o, "mde");
        return;
    }
    for (int i = 0; i < (noisy ? N_NO_VERDICT : N_PROCESSES); i++)
        add_process(processes, "first", p50_ns, log(over_baseline) + spread * noise(&stream),
                    paired, &stream);
    for (int i = 0; i < (confirmed ? N_PROCESSES : 0); i++)
        add_process(processes, "confirmation", p50_ns, log(over_baseline) + spread * noise(&stream),
                    paired, &stream);
    num(o, "mde", noisy ? 0.031 : 5.76 * spread);
}

static cJSON *add_arm(cJSON *arms, const char *provider, const char *role, const char *kernel)
{
    cJSON *arm = cJSON_CreateObject();
    text(arm, "provider", provider);
    text(arm, "role", role);
    text(arm, "kernel", kernel);
    cJSON_AddItemToArray(arms, arm);
    return arm;
}

static const char *verdict_of(const struct sample_moment *m, double over_baseline)
{
    if (m->is_wrong)
        return "wrong";
    if (m->has_no_verdict)
        return "no-verdict";
    if (over_baseline > 1 + THRESHOLD)
        return "regression";
    return over_baseline < 1 - THRESHOLD ? "improvement" : "pass";
}

/* The interval of a pass does not reach the threshold. */
static double half_width_of(const char *verdict, double over_baseline)
{
    double room = (1 + THRESHOLD) / over_baseline - 1;
    return verdict[0] == 'n' ? 0.012 : verdict[0] == 'p' ? fmin(0.0006, 0.9 * room) : 0.0006;
}

static void reason_of(const char *verdict, double over_baseline, char *out, size_t size)
{
    double percent = (over_baseline - 1) * 100;
    if (verdict[0] == 'w')
        snprintf(out, size, "verification failed: relative error over the limit");
    else if (verdict[0] == 'n')
        snprintf(out, size, "this machine resolves 3.1 %%, the threshold is 2 %%");
    else
        snprintf(out, size, "%+.2f %% against the stored baseline, 5 processes%s", percent,
                 verdict[0] == 'r' ? ", confirmed in 5 fresh ones" : "");
}

static int64_t time_of(int index)
{
    return FIRST_TIME_MS + index * RUN_INTERVAL_MS;
}

/* What the case was compared with: a baseline from before the history, or one of its runs. */
static void add_baseline(cJSON *o, const struct sample_plan *plan, const struct sample_moment *m,
                         double baseline_ns)
{
    char commit[41] = "3f9d2c1b7a6e5d4c3b2a19080706050403020100";
    cJSON *b = cJSON_AddObjectToObject(o, "baseline");
    if (m->baseline_index >= 0)
        commit_of(plan, m->baseline_index, commit);
    num(b, "p50_ns", baseline_ns * ON_RECORD);
    text(b, "commit", commit);
    num(b, "time_ms", (double)time_of(m->baseline_index));
    if (m->baseline_index < 0)
        text(b, "made_by", "accept-new");
    else
        text(b, "made_by", m->baseline > 1 ? "accept" : "ratchet");
}

static void add_case(cJSON *cases, const struct sample_plan *plan, int index, int k,
                     const struct sample_device *device, bool newest, uint64_t *state)
{
    struct sample_case c = known[k % N_KNOWN];
    struct sample_moment m = sample_story(plan->seed, plan->n_runs, index, k, newest);
    bool host = device->kind[0] == 'h';
    char id[96];
    snprintf(id, sizeof(id), "%s", c.id);
    if (k >= N_KNOWN)
        snprintf(id, sizeof(id), "%s-x%d", c.id, k / N_KNOWN);
    c.p50_ns *= device->slowness;
    c.registers = host ? 0 : c.registers;

    double baseline = c.p50_ns * m.baseline;
    double p50_ns = c.p50_ns * m.time * (1 + 0.0025 * noise(state));
    double over_baseline = p50_ns / baseline;
    const char *verdict = verdict_of(&m, over_baseline);
    bool wrong = verdict[0] == 'w';
    char reason[200];
    reason_of(verdict, over_baseline, reason, sizeof(reason));

    cJSON *o = cJSON_CreateObject();
    text(o, "id", id);
    text(o, "op", c.op);
    text(o, "dtype", c.dtype);
    text(o, "verdict", verdict);
    text(o, "reason", reason);
    add_baseline(o, plan, &m, baseline);
    text(o, "mode", host ? "number" : "paired");
    cJSON_AddFalseToObject(o, "same_library");
    add_evidence(o, verdict, p50_ns, over_baseline, !host, ~*state);
    if (wrong)
        cJSON_AddNullToObject(o, "ratio");
    else
        cJSON_AddItemToObject(o, "ratio",
                              interval(over_baseline, half_width_of(verdict, over_baseline)));
    if (wrong || host)
        cJSON_AddNullToObject(o, "ratio_p90");
    else
        cJSON_AddItemToObject(o, "ratio_p90", interval(over_baseline * 1.0004, 0.002));

    cJSON *arms = cJSON_AddArrayToObject(o, "arms");
    uint64_t luck = ~*state + 3;
    double rival_error = 2.8e-4 * (1 + 0.01 * noise(&luck));
    double own_error = rival_error * (1.04 + 0.002 * noise(&luck));
    cJSON *arm = add_arm(arms, "ours", "candidate", host ? "plain_omp" : c.kernel);
    cJSON *verify = add_verify(arm, !wrong, own_error);
    if (!host)
        add_coverage(verify, c.op);
    if (wrong)
        cJSON_AddNullToObject(arm, "timing");
    else
        add_samples(add_timing(arm, &c, p50_ns, 0), p50_ns, ~*state + 1);
    if (!host && !wrong) {
        arm = add_arm(arms, "ours", "baseline", c.kernel);
        add_verify(arm, true, own_error);
        add_samples(add_timing(arm, &c, baseline, over_baseline), baseline, ~*state + 2);
    }
    if (!host) {
        double rival = c.p50_ns / c.rival_ratio * (1 + 0.002 * noise(state));
        double torch = c.p50_ns * 1.09 * (1 + 0.003 * noise(state));
        arm = add_arm(arms, c.rival, "provider", "default");
        add_verify(arm, true, rival_error);
        text(verify, "vendor", c.rival);
        num(verify, "vendor_ratio", (wrong ? 7.3e-2 : own_error) / rival_error);
        add_timing(arm, &c, rival, p50_ns / rival);
        arm = add_arm(arms, "torch", "provider", "sdpa");
        add_verify(arm, true, rival_error);
        add_timing(arm, &c, torch, p50_ns / torch);
    }
    cJSON_AddItemToArray(cases, o);
}

static void add_ceilings(cJSON *o)
{
    cJSON *ceilings = cJSON_AddObjectToObject(o, "ceilings");
    num(ceilings, "read_gbps", REACHED_GBPS);
    num(ceilings, "copy_gbps", 0.93 * REACHED_GBPS);
    num(ceilings, "fp16_tflops", REACHED_TFLOPS);
    num(ceilings, "bf16_tflops", REACHED_TFLOPS);
    num(ceilings, "tf32_tflops", REACHED_TFLOPS);
    num(ceilings, "fp32_tflops", REACHED_TFLOPS);
}

/* A machine that resolves all cases but the one that has no verdict. */
static void add_calibration(cJSON *o, const cJSON *cases)
{
    static const double shares[] = {0, 0.005, 0.01, 0.02, 0.025, 0.03, 0.05};
    cJSON *calibration = cJSON_AddObjectToObject(o, "calibration");
    num(calibration, "processes", N_NO_VERDICT);
    cJSON *calibrated = cJSON_AddArrayToObject(calibration, "cases");
    const cJSON *item;
    int k = 0;
    cJSON_ArrayForEach (item, cases) {
        bool resolved = k++ != 3;
        cJSON *c = cJSON_CreateObject();
        text(c, "id", cJSON_GetObjectItem(item, "id")->valuestring);
        num(c, "mde", resolved ? 0.0023 : 0.031);
        cJSON_AddBoolToObject(c, "resolved", resolved);
        cJSON *injected = cJSON_AddArrayToObject(c, "injected");
        for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
            cJSON *entry = cJSON_CreateObject();
            double steep = resolved ? 8000 : 300;
            double red = floor(1000 / (1 + exp(-steep * (shares[i] - THRESHOLD))));
            num(entry, "share", shares[i]);
            cJSON_AddArrayToObject(entry, "log_ratio");
            num(entry, "decisions", 1000);
            num(entry, "red", red);
            num(entry, "pass", resolved ? 1000 - red : 0);
            num(entry, "no_verdict", resolved ? 0 : 1000 - red);
            cJSON_AddItemToArray(injected, entry);
        }
        cJSON_AddItemToArray(calibrated, c);
    }
}

/* What its cases, and what a calibration cannot resolve, make of a run. */
static void put_verdict(cJSON *o)
{
    size_t counts[VERDICT_COUNT] = {0};
    const cJSON *item;
    cJSON_ArrayForEach (item, json_member(o, "cases"))
        for (int v = 0; v < VERDICT_COUNT; v++)
            counts[v] += !strcmp(json_string(item, "verdict", ""), verdict_names[v]);
    cJSON_ArrayForEach (item, json_member(json_member(o, "calibration"), "cases"))
        counts[VERDICT_NO_VERDICT] += !cJSON_IsTrue(json_member(item, "resolved"));
    text(o, "verdict", verdict_name(verdict_of_run(counts)));
    num(o, "exit_code", verdict_exit_code(counts));
}

cJSON *sample_run(const struct sample_plan *plan, int index)
{
    uint64_t state = plan->seed * 1000003 + (uint64_t)index;
    const struct sample_device *device = sample_device(plan->n_devices, index);
    bool host = device->kind[0] == 'h';
    bool late = index >= plan->n_runs * 3 / 4;
    bool newest = index >= plan->n_runs - plan->n_devices;
    char seed[17];

    cJSON *o = cJSON_CreateObject();
    text(o, "schema", "gate-run/1");
    add_uuid(o, &state);
    num(o, "time_ms", (double)time_of(index));
    num(o, "duration_ms", 74000);
    text(o, "gate_version", "0.1.0");
    add_git(o, plan, index);
    text(o, "who", "ci@runner");
    text(o, "suite", host ? "host" : "canonical");
    sample_device_add(o, device, late);
    cJSON *libraries = cJSON_AddArrayToObject(o, "libraries");
    add_library(libraries, "candidate", "ours", &state);
    if (!host) {
        add_library(libraries, "baseline", "ours", &state);
        add_library(libraries, "provider", "cublas", &state);
        add_library(libraries, "provider", "cudnn", &state);
        add_library(libraries, "provider", "torch", &state);
    }
    text(o, "contract", host ? "host-v1" : "graph-abba-v1");
    cJSON *policy = cJSON_AddObjectToObject(o, "policy");
    num(policy, "threshold", THRESHOLD);
    text(policy, "against", "baseline");
    sample_device_add_epoch(o, device, late);
    num(o, "control_drift", 0.0012);
    num(o, "n_processes", newest ? N_NO_VERDICT : 2 * N_PROCESSES);
    if (!host)
        add_ceilings(o);
    hex(&state, 16, seed);
    text(o, "seed", seed);

    cJSON *cases = cJSON_AddArrayToObject(o, "cases");
    for (int k = 0; k < plan->n_cases; k++)
        add_case(cases, plan, index, k, device, newest, &state);
    bool halfway = index / plan->n_devices == plan->n_runs / plan->n_devices / 2;
    if ((newest || halfway) && !host)
        add_calibration(o, cases);
    put_verdict(o);
    return o;
}
