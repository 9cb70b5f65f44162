/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/cases/op_file.h"
#include "gate/worker/message.h"
#include "gate/launch/session.h"
#include "gate/base/clock.h"

#define ROUNDS_MIN (PROTOCOL_SAMPLES_MIN / 2) /* one of each kind; enough if very sharp */
#define VERY_SHARP 0.5
#define PROVIDER_HALF_WIDTH 0.005
#define PROVIDER_BUDGET_SHARE 0.5
#define SINGLE_LAUNCHES_MIN 10

/* Wall time that a replay may take beyond its device time when nothing hides on another stream. */
#define HIDDEN_NS 200e3
#define HIDDEN_SHARE 0.1

/* Peaks are datasheet figures: leave room for a boost clock, and for what stays in the L2. */
#define FLOOR_FLOPS_SLACK 0.9
#define FLOOR_BYTES_SLACK 0.6

const char *measure_contract(const struct device *d)
{
    return device_info(d)->kg.kind == KG_DEVICE_CUDA ? "paired-graph-v3" : "paired-loop-v3";
}

/* Three TF32 products are as exact as one of fp32 and may be the faster way to it. An op of a
 * user's may multiply an input of few bits by itself, or by another one that it rounds to as few,
 * whatever the dtype of its case; and all in a dtype whose errors are within its limit. */
static double peak_flops(const struct kg_problem *p, const struct device_peaks *peaks)
{
    const double peak[RATES] = {
        [RATE_FP16] = peaks->fp16_flops,
        [RATE_BF16] = peaks->fp16_flops,
        [RATE_TF32] = peaks->tf32_flops,
        [RATE_FP8] = 2 * peaks->fp16_flops,
        [RATE_FP32] = fmax(peaks->fp32_flops, peaks->tf32_flops / 3),
    };
    unsigned fewest = 32;
    for (unsigned i = 0; i < p->n_in; i++) {
        const unsigned bits = kg_dtype_bits(p->dtype[i]);
        const bool is_factor = p->dtype[i] != KG_BOOL && p->dtype[i] != KG_E8M0;
        fewest = is_factor && bits < fewest ? bits : fewest;
    }
    double most =
        fmax(peak[dtype_of(p)->rate], fewest < 32 ? 16.0 / fewest * peaks->fp16_flops : 0);
    for (unsigned i = 0; i < DTYPES && op_of(p)->own; i++)
        if (dtypes[i].error_limit <= problem_error_limit(p))
            most = fmax(most, peak[dtypes[i].rate]);
    return most;
}

/* What a problem takes at least; 0: not known. */
struct least_times {
    double flops_ns, bytes_ns;
};

/* An element of a tensor may be read by nobody, as the weights of an empty group. */
static bool is_all_read(const struct op *op)
{
    unsigned i = 0;
    while (i < op->n_tensors && op->tensors[i].role != OP_INDICES)
        i++;
    return i == op->n_tensors;
}

/* Of how much of a user's op is done, and of what of its tensors is read, indices may be all that
 * says so. */
static struct least_times least_times(const struct kg_problem *p, const struct device_peaks *peaks)
{
    const double bytes = is_all_read(op_of(p)) ? problem_moved(p) : 0;
    const struct own_op *own = op_of(p)->own;
    const double flops = peak_flops(p, peaks);
    if (own && own_op_has_indices(own))
        return (struct least_times){0, 0};
    return (struct least_times){flops > 0 ? problem_flops(p) / flops * 1e9 : 0,
                                peaks->bytes_per_s > 0 ? bytes / peaks->bytes_per_s * 1e9 : 0};
}

double measure_floor_ns(const struct kg_problem *p, const struct device_peaks *peaks)
{
    if (peak_flops(p, peaks) <= 0 || peaks->bytes_per_s <= 0)
        return 0;
    const struct least_times least = least_times(p, peaks);
    return fmax(least.flops_ns, least.bytes_ns);
}

/* Is every interval as narrow as `times` what its arm asks for? */
static bool is_sharp(const struct session *s, double times)
{
    for (unsigned m = s->n_members > 1 ? 1 : 0; m < s->n_members; m++) {
        unsigned i = s->members[m];
        struct estimate e = i ? session_ratio(s, i) : session_quantiles(s, 0).p50;
        double wanted = s->arms[i].role == ROLE_PROVIDER ? PROVIDER_HALF_WIDTH : MEASURE_HALF_WIDTH;
        if (!(stats_half_width(e) < times * wanted))
            return false;
    }
    return true;
}

static enum gate_status take_rounds(struct session *s, double budget_ns, struct gate_error *err)
{
    double start = clock_ns();
    for (unsigned round = 1; round <= SESSION_ROUNDS_MAX; round++) {
        TRY(session_round(s, err));
        if (round < ROUNDS_MIN || round % PAIRS_KINDS)
            continue;
        if ((round >= MEASURE_ROUNDS && clock_ns() - start > budget_ns) ||
            is_sharp(s, round < MEASURE_ROUNDS ? VERY_SHARP : 1))
            break;
    }
    return GATE_OK;
}

/* Cold launches of all arms, one by one. */
static enum gate_status take_singles(struct session *s, double budget_ns, struct gate_error *err)
{
    RELEASED_BY(free_at) double(*ns)[MEASURE_SINGLES] = xcalloc(s->n_arms, sizeof *ns);
    double start = clock_ns();
    size_t n = 0;
    for (; n < MEASURE_SINGLES; n++) {
        if (n >= SINGLE_LAUNCHES_MIN && clock_ns() - start > budget_ns)
            break;
        for (unsigned slot = 0; slot < s->n_arms; slot++) {
            s->at = n % 2 ? s->n_arms - 1 - slot : slot;
            double *taken = &ns[s->at][n];
            TRY(session_restore(s, (unsigned)n, 1, err));
            TRY(device_single_run(s->device, arm_launch, &s->series[s->at].launch[0], (unsigned)n,
                                  taken, err));
            if (!clock_can_be(*taken))
                return gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a single launch",
                                 *taken);
        }
    }
    for (unsigned i = 0; i < s->n_arms; i++) {
        struct document_timing *m = &s->arms[i].timing;
        stats_sort(ns[i], n);
        m->single_samples = (int64_t)n;
        m->single_p50_ns = stats_quantile(ns[i], n, 0.5);
        m->single_p90_ns = stats_quantile(ns[i], n, 0.9);
    }
    return GATE_OK;
}

static enum gate_status check_clock(const struct session *s, unsigned i, struct gate_error *err)
{
    const struct series *x = &s->series[i];
    for (size_t j = 0; j < x->n; j++)
        if (!clock_can_be(x->ns[j]))
            return gate_fail(err, GATE_ENVIRONMENT,
                             "the clock stopped or jumped: sample %zu of kernel '%s' took %g ns a "
                             "launch; nothing can be timed on this machine",
                             j + 1, s->arms[i].kernel->name, x->ns[j]);
    return GATE_OK;
}

/* Base64 of little-endian float32, as the schema says: every platform of the gate is little-endian.
 */
static char *text_of_samples(const double *samples_ns, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t size = n * sizeof(float);
    RELEASED_BY(free_at) float *values = xcalloc(n, sizeof *values);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)samples_ns[i];
    const unsigned char *bytes = (const unsigned char *)values;
    char *text = xcalloc(1, size / 3 * 4 + 8), *to = text;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        unsigned word = (unsigned)bytes[i] << 16;
        word |= left > 1 ? (unsigned)bytes[i + 1] << 8 : 0;
        word |= left > 2 ? bytes[i + 2] : 0;
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[word & 63] : '=';
    }
    return text;
}

/* What the samples of an arm say. */
static enum gate_status summarise(struct session *s, unsigned i, struct gate_error *err)
{
    const struct series *x = &s->series[i];
    const struct kg_problem *p = &s->c->problem;
    const struct least_times least = least_times(p, &device_info(s->device)->peaks);
    struct arm *arm = &s->arms[i];
    struct document_timing *m = &arm->timing;
    const char *name = arm->kernel->name;
    double floor_ns = measure_floor_ns(p, &device_info(s->device)->peaks);
    TRY(check_clock(s, i, err));
    const struct session_quantiles own = session_quantiles(s, i);
    m->p50_ns = own.p50.value;
    m->p50_lo_ns = own.p50.lo;
    m->p50_hi_ns = own.p50.hi;
    m->p10_ns = own.p10;
    m->p90_ns = own.p90;
    m->has_ratio_to_candidate = i > 0;
    if (i > 0) {
        double cycles = session_ratio_cycles(s, i);
        m->ratio_to_candidate = session_ratio(s, i);
        m->ratio_cycles = cycles > 0 ? cycles : NAN;
        m->ratio_p90 = session_quantiles(s, 0).p90 / own.p90;
    }
    m->tflops = problem_flops(p) / m->p50_ns * 1e-3;
    m->gbps = problem_moved(p) / m->p50_ns;
    m->ceiling = floor_ns > 0 ? floor_ns / m->p50_ns : NAN;
    m->samples = (int64_t)x->n;
    m->launches_per_sample = x->n_launches;
    m->input_sets = session_sets(s, i);
    m->cold = session_is_cold(s, i);
    m->sm_clock_mhz = x->clock_sum / (double)x->n;
    s->at = i;
    /* A time that cannot be is an error, not a success. */
    if (m->p50_ns < FLOOR_FLOPS_SLACK * least.flops_ns ||
        (m->cold && m->p50_ns < FLOOR_BYTES_SLACK * least.bytes_ns))
        return gate_fail(err, GATE_WRONG,
                         "kernel '%s' seems to take %.3g us, less than this chip can: %.3g us of "
                         "arithmetic, %.3g us of memory traffic",
                         name, m->p50_ns / 1e3, least.flops_ns / 1e3,
                         m->cold ? least.bytes_ns / 1e3 : 0);
    if (x->least_hidden_ns > HIDDEN_NS + HIDDEN_SHARE * m->p50_ns * x->n_launches)
        return gate_fail(err, GATE_WRONG,
                         "the device works at least %.3g us beyond the timed span of kernel '%s': "
                         "work hides on another stream",
                         x->least_hidden_ns / 1e3, name);
    arm->timed = true;
    free(arm->samples);
    m->samples_ns = arm->samples = text_of_samples(x->ns, x->n);
    return GATE_OK;
}

/* Rounds of these arms, and what they say of all but the first `known` of them. */
static enum gate_status measure_group(struct session *s, const unsigned *members, unsigned n,
                                      unsigned known, double budget_ns, struct gate_error *err)
{
    session_select(s, members, n);
    TRY(take_rounds(s, budget_ns, err));
    for (unsigned m = known; m < n; m++)
        TRY(summarise(s, members[m], err));
    return GATE_OK;
}

/*
 * The candidate and the baseline first, by themselves: a third kernel in the round leaves other
 * things in the caches, and its neighbour would pay for that (1 % was seen). Then each provider
 * beside the candidate.
 */
static enum gate_status measure_groups(struct session *s, double budget_ns, struct gate_error *err)
{
    bool paired = session_is_paired(s);
    const unsigned pair[2] = {0, 1};
    TRY(measure_group(s, pair, paired ? 2 : 1, 0, budget_ns, err));
    session_note_copies(s); /* here, where the baseline is what it is compared with */
    s->swap = false;
    for (unsigned i = paired ? 2 : 1; i < s->n_arms; i++) {
        const unsigned beside[2] = {0, i};
        TRY(measure_group(s, beside, 2, 1, PROVIDER_BUDGET_SHARE * budget_ns, err));
    }
    return GATE_OK;
}

static void blame(struct session *s, const struct gate_error *err)
{
    s->arms[s->at].timed = false;
    verification_fault(&s->arms[s->at].verification, "%.500s", err->message);
}

static void note_code(struct session *s)
{
    const struct kg_device *where = &device_info(s->device)->kg;
    unsigned architecture = (unsigned)(10 * where->cc_major + where->cc_minor);
    for (unsigned i = 0; i < s->n_arms; i++) {
        struct arm *arm = &s->arms[i];
        struct document_timing *m = &arm->timing;
        struct device_kernels kernels = device_replay_kernels(s->device, s->series[i].replay[0]);
        kernels.order = s->series[i].order;
        code_read(&arm->code, &kernels, s->series[i].n_launches, arm->library->code, architecture,
                  m);
        if (i > 0 && arm->code.sha256[0])
            m->same_code = code_is_same(&s->arms[0].code, &arm->code) ? YES : NO;
        if (arm->role == ROLE_PROVIDER) { /* nothing is compared with its kernels */
            m->launches = NULL;
            m->kernels = NULL;
            m->n_kernels = 0;
        }
    }
}

/* ---- what a caller pays on the host for a launch ----
 *
 * The samples are the device's time, of launches that were recorded once and replayed: what
 * launch() itself does on the host is not in them. Here the calls are timed, some in a row, then
 * the device is waited for. The candidate and the baseline take turns as in session.h, with both
 * copies of their libraries. On the host device a call does the work, and its time is the work's.
 */

#define CALLS_MAX 16
#define CALLS_NS 100e3 /* of the device's work in a sample */
#define CALLS_ROUNDS_MAX (4 * PAIRS_KINDS)
#define CALLS_BUDGET_NS 10e6

/* Fills call_ns of the candidate and of the baseline, and the latter's ratio_calls; `swap`: the
 * baseline comes first. The arms' p50 must be known: it says how many calls a sample has. */
static enum gate_status measure_calls(struct session *s, bool swap, struct gate_error *err)
{
    double ns[2][2 * CALLS_ROUNDS_MAX], longest = 1, start = clock_ns();
    const unsigned n_sides = session_is_paired(s) ? 2 : 1;
    size_t n[2] = {0};
    for (unsigned i = 0; i < n_sides; i++)
        longest = fmax(longest, s->arms[i].timing.p50_ns);
    const unsigned n_calls = (unsigned)fmin(fmax(floor(CALLS_NS / longest), 1), CALLS_MAX);
    for (unsigned round = 0; round < CALLS_ROUNDS_MAX; round++) {
        if (round && round % PAIRS_KINDS == 0 && clock_ns() - start > CALLS_BUDGET_NS)
            break;
        /* A B B A, then B A A B, as pairs_kind() has it. */
        bool other_first = swap != (round % 2 == 1);
        for (unsigned i = 0; i < 2 * n_sides; i++) {
            unsigned slot = i < n_sides ? i : 2 * n_sides - 1 - i;
            unsigned side = other_first && n_sides == 2 ? 1 - slot : slot;
            struct series *x = &s->series[side];
            size_t j = n[side]++;
            double *taken = &ns[side][j];
            s->at = side;
            TRY(session_restore(s, (unsigned)j * n_calls, n_calls, err));
            TRY(device_calls_run(s->device, arm_launch, &x->launch[pairs_copy(j) % x->n_copies],
                                 (struct device_calls){(unsigned)j * n_calls, n_calls}, taken,
                                 err));
            if (!clock_can_be(*taken))
                return gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a call of launch()",
                                 *taken);
            *taken /= n_calls;
        }
    }
    if (n_sides == 2) {
        double ratio = pairs_ratio(ns[0], ns[1], n[0]).value;
        if (ratio > 0)
            s->arms[1].timing.ratio_calls = ratio;
    }
    for (unsigned i = 0; i < n_sides; i++)
        s->arms[i].timing.call_ns = stats_middle(ns[i], n[i]);
    return GATE_OK;
}

/* ---- all of a case ---- */

static enum gate_status measure_session(struct session *s, uint64_t seed,
                                        const struct measure_policy *policy,
                                        const struct audit *audit, struct gate_error *err)
{
    struct device_sensors sensors = {0};
    const bool first = policy->single_budget_ns > 0;
    TRY(session_start(s, seed, err));
    const struct device_throttle before = device_throttle_read(s->device);
    note_code(s);
    if (first)
        sensors = device_sensors_read(s->device);
    TRY(measure_groups(s, policy->budget_ns, err));
    if (first) { /* of the candidate: they are the device's, and tell it once */
        struct document_timing *m = &s->arms[0].timing;
        struct device_sensors after = device_sensors_read(s->device);
        m->power_w = (struct document_sensor){sensors.power_w, after.power_w};
        m->has_power_w = !isnan(sensors.power_w) || !isnan(after.power_w);
        m->temperature_c = (struct document_sensor){sensors.temperature_c, after.temperature_c};
        m->has_temperature_c = !isnan(sensors.temperature_c) || !isnan(after.temperature_c);
    }
    /* The counters do not tell which arm's samples it hit. */
    const struct device_throttle throttled = device_throttle_read(s->device);
    for (unsigned i = 0; i < s->n_arms; i++) {
        struct document_timing *m = &s->arms[i].timing;
        m->throttled_power_ns = fmax(0, (double)(throttled.power_ns - before.power_ns));
        m->throttled_thermal_ns = fmax(0, (double)(throttled.thermal_ns - before.thermal_ns));
    }
    TRY(measure_calls(s, policy->swap, err));
    if (first)
        TRY(take_singles(s, policy->single_budget_ns, err));
    TRY(audit_memory(s, err));
    TRY(audit_arms(audit, err));
    return audit_fresh(audit, err);
}

enum gate_status measure_arms(struct device *d, const struct suite_case *c, uint64_t seed,
                              const struct measure_policy *policy, struct arm *arms, unsigned n,
                              audit_check_fn check, void *context, struct gate_error *err)
{
    struct session s = {.device = d,
                        .c = c,
                        .arms = arms,
                        .n_arms = n,
                        .swap = policy->swap,
                        .sets_kept = policy->input_sets};
    const struct audit audit = {&s, policy->single_budget_ns > 0, check, context};
    for (unsigned i = 0; i < n; i++) {
        fields_clear(&document_timing_shape, &arms[i].timing);
        arms[i].timing.single_samples = 0;
    }
    enum gate_status status = measure_session(&s, seed, policy, &audit, err);
    if (status == GATE_WRONG)
        blame(&s, err);
    session_release(&s);
    return status;
}

static enum gate_status delay_candidate(struct session *s, double ns, struct gate_error *err)
{
    struct series *x = &s->series[0];
    for (unsigned copy = 0; copy < x->n_copies; copy++)
        TRY(device_replay_delay(s->device, x->replay[copy], ns, err));
    return GATE_OK;
}

/* d of one share: the delay is a share of the other side's replay, measured just now. */
static enum gate_status inject(struct session *s, double share, double budget_ns, double *out,
                               struct gate_error *err)
{
    TRY(delay_candidate(s, 0, err));
    session_clear(s);
    for (int i = 0; i < PAIRS_KINDS; i++)
        TRY(session_round(s, err));
    double launch_ns = session_quantiles(s, 1).p50.value;
    TRY(delay_candidate(s, share * launch_ns * s->series[1].n_launches, err));
    session_clear(s);
    TRY(take_rounds(s, budget_ns, err));
    for (unsigned i = 0; i < 2; i++)
        TRY(check_clock(s, i, err));
    *out = log(session_ratio(s, 1).value);
    return GATE_OK;
}

enum gate_status measure_injected(struct device *d, const struct suite_case *c, uint64_t seed,
                                  const struct measure_policy *policy, struct arm *arms,
                                  const double *shares, unsigned n_shares, double *out,
                                  struct gate_error *err)
{
    struct session s = {
        .device = d, .c = c, .arms = arms, .n_arms = 2, .swap = policy->swap, .delayed = true};
    enum gate_status status = session_start(&s, seed, err);
    for (unsigned i = 0; i < n_shares && !status; i++)
        status = inject(&s, shares[i], policy->budget_ns, &out[i], err);
    if (status == GATE_WRONG)
        blame(&s, err);
    session_release(&s);
    return status;
}
