/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gate/base/utf8.h"
#include "gate/worker/audit_fresh.h"
#include "gate/worker/message.h"
#include "gate/launch/pairs.h"
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

/* Three TF32 products are as exact as one of fp32 and may be the faster way to it. */
static double peak_flops(const struct kg_problem *p, const struct device_peaks *peaks)
{
    const double peak[RATES] = {
        [RATE_FP16] = peaks->fp16_flops,
        [RATE_BF16] = peaks->fp16_flops,
        [RATE_TF32] = peaks->tf32_flops,
        [RATE_FP32] = fmax(peaks->fp32_flops, peaks->tf32_flops / 3),
    };
    return peak[dtype_of(p)->rate];
}

double measure_floor_ns(const struct kg_problem *p, const struct device_peaks *peaks)
{
    double flops = peak_flops(p, peaks);
    if (flops <= 0 || peaks->bytes_per_s <= 0)
        return 0;
    return fmax(problem_flops(p) / flops, problem_bytes(p) / peaks->bytes_per_s) * 1e9;
}

/* Is every interval as narrow as `times` what its arm asks for? */
static enum gate_status is_sharp(const struct session *s, double times, bool *sharp,
                                 struct gate_error *err)
{
    *sharp = true;
    for (unsigned m = s->n_members > 1 ? 1 : 0; m < s->n_members && *sharp; m++) {
        unsigned i = s->members[m];
        struct session_quantiles q;
        enum gate_status status =
            i ? session_ratio(s, i, &q.p50, err) : session_quantiles(s, 0, &q, err);
        if (status)
            return status;
        double wanted = s->arms[i].role == ROLE_PROVIDER ? PROVIDER_HALF_WIDTH : MEASURE_HALF_WIDTH;
        *sharp = stats_half_width(q.p50) < times * wanted;
    }
    return GATE_OK;
}

static enum gate_status take_rounds(struct session *s, double budget_ns, struct gate_error *err)
{
    double start = clock_ns();
    bool sharp = false;
    enum gate_status status = GATE_OK;
    for (unsigned round = 1; round <= SESSION_ROUNDS_MAX && !status && !sharp; round++) {
        status = session_round(s, err);
        if (status || round < ROUNDS_MIN || round % PAIRS_KINDS)
            continue;
        if (round >= MEASURE_ROUNDS && clock_ns() - start > budget_ns)
            break;
        status = is_sharp(s, round < MEASURE_ROUNDS ? VERY_SHARP : 1, &sharp, err);
    }
    return status;
}

/* Cold launches of all arms, ns[arm][0] to ns[arm][*n - 1]. */
static enum gate_status time_singles(struct session *s, const struct measure_policy *policy,
                                     double (*ns)[MEASURE_SINGLES], size_t *n,
                                     struct gate_error *err)
{
    double start = clock_ns();
    enum gate_status status = GATE_OK;
    for (*n = 0; *n < MEASURE_SINGLES && !status; ++*n) {
        if (*n >= SINGLE_LAUNCHES_MIN && clock_ns() - start > policy->single_budget_ns)
            break;
        bool forth = *n % 2 == 0;
        for (unsigned slot = 0; slot < s->n_arms && !status; slot++) {
            s->at = forth ? slot : s->n_arms - 1 - slot;
            double *taken = &ns[s->at][*n];
            status = device_single_run(s->device, arm_launch, &s->series[s->at].launch[0],
                                       (unsigned)*n, taken, err);
            if (!status && !clock_can_be(*taken))
                status = gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a single launch",
                                   *taken);
        }
    }
    return status;
}

static enum gate_status take_singles(struct session *s, const struct measure_policy *policy,
                                     struct gate_error *err)
{
    double(*ns)[MEASURE_SINGLES] = malloc(s->n_arms * sizeof *ns);
    size_t n;
    if (!ns)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    enum gate_status status = time_singles(s, policy, ns, &n, err);
    for (unsigned i = 0; i < s->n_arms && !status; i++) {
        struct document_timing *m = &s->arms[i].timing;
        stats_sort(ns[i], n);
        m->single_samples = (int64_t)n;
        m->single_p50_ns = stats_quantile(ns[i], n, 0.5);
        m->single_p90_ns = stats_quantile(ns[i], n, 0.9);
    }
    free(ns);
    return status;
}

/* A time that cannot be is an error, not a success. */
static enum gate_status check_plausible(const struct session *s, unsigned i, struct gate_error *err)
{
    const struct kg_problem *p = &s->c->problem;
    const struct device_peaks *peaks = &device_info(s->device)->peaks;
    const struct series *x = &s->series[i];
    const char *name = s->arms[i].kernel->name;
    double p50 = s->arms[i].timing.p50_ns;
    double flops_ns = peak_flops(p, peaks) > 0 ? problem_flops(p) / peak_flops(p, peaks) * 1e9 : 0;
    double bytes_ns = peaks->bytes_per_s > 0 && session_is_cold(s, i)
                          ? problem_bytes(p) / peaks->bytes_per_s * 1e9
                          : 0;
    if (p50 < FLOOR_FLOPS_SLACK * flops_ns || p50 < FLOOR_BYTES_SLACK * bytes_ns)
        return gate_fail(err, GATE_WRONG,
                         "kernel '%s' seems to take %.3g us, less than this chip can: %.3g us of "
                         "arithmetic, %.3g us of memory traffic",
                         name, p50 / 1e3, flops_ns / 1e3, bytes_ns / 1e3);
    if (x->least_hidden_ns > HIDDEN_NS + HIDDEN_SHARE * p50 * x->n_launches)
        return gate_fail(err, GATE_WRONG,
                         "the device works at least %.3g us beyond the timed span of kernel '%s': "
                         "work hides on another stream",
                         x->least_hidden_ns / 1e3, name);
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

static enum gate_status summarise(struct session *s, unsigned i, struct gate_error *err)
{
    const struct series *x = &s->series[i];
    const struct kg_problem *p = &s->c->problem;
    struct document_timing *m = &s->arms[i].timing;
    struct session_quantiles own, candidate;
    double floor_ns = measure_floor_ns(p, &device_info(s->device)->peaks), cycles = 0;
    enum gate_status status = check_clock(s, i, err);
    if (!status)
        status = session_quantiles(s, i, &own, err);
    if (!status && i > 0)
        status = session_quantiles(s, 0, &candidate, err);
    if (!status && i > 0)
        status = session_ratio(s, i, &m->ratio_to_candidate, err);
    if (!status && i > 0)
        status = session_ratio_cycles(s, i, &cycles, err);
    if (status)
        return status;
    m->p50_ns = own.p50.value;
    m->p50_lo_ns = own.p50.lo;
    m->p50_hi_ns = own.p50.hi;
    m->p10_ns = own.p10;
    m->p90_ns = own.p90;
    m->has_ratio_to_candidate = i > 0;
    m->ratio_cycles = cycles > 0 ? cycles : NAN;
    m->ratio_p90 = i > 0 ? candidate.p90 / own.p90 : NAN;
    m->tflops = problem_flops(p) / m->p50_ns * 1e-3;
    m->gbps = problem_bytes(p) / m->p50_ns;
    m->ceiling = floor_ns > 0 ? floor_ns / m->p50_ns : NAN;
    m->samples = (int64_t)x->n;
    m->launches_per_sample = x->n_launches;
    m->input_sets = session_sets(s, i);
    m->cold = session_is_cold(s, i);
    m->sm_clock_mhz = x->clock_sum / (double)x->n;
    s->at = i;
    status = check_plausible(s, i, err);
    s->arms[i].timed = !status;
    return status;
}

/* The samples become the arm's. */
static void keep_samples(struct session *s, unsigned i)
{
    size_t n = s->series[i].n;
    double *copy = malloc((n ? n : 1) * sizeof *copy);
    free(s->arms[i].samples_ns);
    for (size_t j = 0; copy && j < n; j++)
        copy[j] = s->series[i].ns[j];
    s->arms[i].samples_ns = copy;
}

/* Rounds of these arms, and what they say of all but the first `known` of them. */
static enum gate_status measure_group(struct session *s, const unsigned *members, unsigned n,
                                      unsigned known, double budget_ns, struct gate_error *err)
{
    session_select(s, members, n);
    enum gate_status status = take_rounds(s, budget_ns, err);
    for (unsigned m = known; m < n && !status; m++) {
        status = summarise(s, members[m], err);
        if (!status)
            keep_samples(s, members[m]);
    }
    return status;
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
    enum gate_status status = measure_group(s, pair, paired ? 2 : 1, 0, budget_ns, err);
    session_note_copies(s); /* here, where the baseline is what it is compared with */
    s->swap = false;
    for (unsigned i = paired ? 2 : 1; i < s->n_arms && !status; i++) {
        const unsigned beside[2] = {0, i};
        status = measure_group(s, beside, 2, 1, PROVIDER_BUDGET_SHARE * budget_ns, err);
    }
    return status;
}

static void blame(struct session *s, const struct gate_error *err)
{
    struct verification *v = &s->arms[s->at].verification;
    v->ok = false;
    s->arms[s->at].timed = false;
    utf8_print(v->message, sizeof v->message, "%.500s", err->message);
}

/* How long the device was throttled since `before`, for every arm: the counters do not tell whose
 * samples it hit. */
static enum gate_status note_throttle(struct session *s, const struct device_throttle *before,
                                      struct gate_error *err)
{
    struct device_throttle after;
    enum gate_status status = device_throttle_read(s->device, &after, err);
    for (unsigned i = 0; i < s->n_arms && !status; i++) {
        struct document_timing *m = &s->arms[i].timing;
        m->throttled_power_ns = fmax(0, (double)(after.power_ns - before->power_ns));
        m->throttled_thermal_ns = fmax(0, (double)(after.thermal_ns - before->thermal_ns));
    }
    return status;
}

/* The sensors around the rounds, for the candidate: they are the device's, and tell it once. */
static void note_sensors(struct session *s, struct device_sensors before)
{
    struct document_timing *m = &s->arms[0].timing;
    struct device_sensors after = device_sensors_read(s->device);
    m->power_w = (struct document_sensor){before.power_w, after.power_w};
    m->has_power_w = !isnan(before.power_w) || !isnan(after.power_w);
    m->temperature_c = (struct document_sensor){before.temperature_c, after.temperature_c};
    m->has_temperature_c = !isnan(before.temperature_c) || !isnan(after.temperature_c);
}

static void note_code(struct session *s)
{
    const struct kg_device *where = &device_info(s->device)->kg;
    unsigned architecture = (unsigned)(10 * where->cc_major + where->cc_minor);
    for (unsigned i = 0; i < s->n_arms; i++) {
        struct arm *arm = &s->arms[i];
        const struct device_kernels kernels =
            device_replay_kernels(s->device, s->series[i].replay[0]);
        struct code *code = &arm->code;
        *code = code_of(&kernels, s->series[i].n_launches, arm->library->code, architecture);
        code->order = s->series[i].order;
        if (code->has_resources) {
            arm->timing.registers = code->registers;
            arm->timing.shared_bytes = code->shared_bytes;
            arm->timing.spill_bytes = code->spill_bytes;
        }
        if (i > 0 && code->sha256[0])
            arm->timing.same_code = code_is_same(&s->arms[0].code, code) ? YES : NO;
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
#define CALLS_SIDES 2

/* Of each side, per call. */
struct calls {
    unsigned n_sides, n_calls;
    double ns[CALLS_SIDES][2 * CALLS_ROUNDS_MAX];
    size_t n[CALLS_SIDES];
};

static unsigned calls_of_a_sample(const struct session *s, unsigned n_sides)
{
    double longest = 1;
    for (unsigned i = 0; i < n_sides; i++)
        longest = fmax(longest, s->arms[i].timing.p50_ns);
    return (unsigned)fmin(fmax(floor(CALLS_NS / longest), 1), CALLS_MAX);
}

static enum gate_status take_call(struct session *s, struct calls *c, unsigned side,
                                  struct gate_error *err)
{
    struct series *x = &s->series[side];
    size_t j = c->n[side];
    const struct device_calls calls = {(unsigned)j * c->n_calls, c->n_calls};
    double ns = 0;
    s->at = side;
    enum gate_status status = device_calls_run(
        s->device, arm_launch, &x->launch[pairs_copy(j) % x->n_copies], calls, &ns, err);
    if (!status && !clock_can_be(ns))
        status = gate_fail(err, GATE_ENVIRONMENT, SESSION_CLOCK_BROKEN, "a call of launch()", ns);
    c->ns[side][j] = ns / c->n_calls;
    c->n[side] += !status;
    return status;
}

/* A B B A, then B A A B, as pairs_kind() has it. */
static enum gate_status take_calls(struct session *s, struct calls *c, bool other_first,
                                   struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    for (unsigned i = 0; i < 2 * c->n_sides && !status; i++) {
        unsigned slot = i < c->n_sides ? i : 2 * c->n_sides - 1 - i;
        status = take_call(s, c, other_first && c->n_sides == CALLS_SIDES ? 1 - slot : slot, err);
    }
    return status;
}

/* Fills call_ns of the candidate and of the baseline, and the latter's ratio_calls; `swap`: the
 * baseline comes first. The arms' p50 must be known: it says how many calls a sample has. */
static enum gate_status measure_calls(struct session *s, bool swap, struct gate_error *err)
{
    struct estimate ratio = {0};
    struct calls c = {.n_sides = session_is_paired(s) ? CALLS_SIDES : 1};
    double start = clock_ns();
    enum gate_status status = GATE_OK;
    c.n_calls = calls_of_a_sample(s, c.n_sides);
    for (unsigned round = 0; round < CALLS_ROUNDS_MAX && !status; round++) {
        if (round && round % PAIRS_KINDS == 0 && clock_ns() - start > CALLS_BUDGET_NS)
            break;
        status = take_calls(s, &c, swap != (round % 2 == 1), err);
    }
    if (!status && c.n_sides == CALLS_SIDES)
        status = pairs_ratio(c.ns[0], c.ns[1], c.n[0], &ratio, err);
    if (!status && ratio.value > 0)
        s->arms[1].timing.ratio_calls = ratio.value;
    for (unsigned i = 0; i < c.n_sides && !status; i++)
        s->arms[i].timing.call_ns = stats_middle(c.ns[i], c.n[i]);
    return status;
}

/* ---- all of a case ---- */

static enum gate_status measure_session(struct session *s, const struct measure_policy *policy,
                                        struct gate_error *err)
{
    struct device_throttle before;
    struct device_sensors sensors = {0};
    enum gate_status status = device_throttle_read(s->device, &before, err);
    note_code(s);
    if (policy->sensors)
        sensors = device_sensors_read(s->device);
    if (!status)
        status = measure_groups(s, policy->budget_ns, err);
    if (policy->sensors)
        note_sensors(s, sensors);
    if (!status)
        status = note_throttle(s, &before, err);
    if (!status)
        status = measure_calls(s, policy->swap, err);
    if (!status && policy->single_budget_ns > 0)
        status = take_singles(s, policy, err);
    return status;
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
    enum gate_status status = session_start(&s, seed, err);
    if (!status)
        status = measure_session(&s, policy, err);
    if (!status)
        status = audit_memory(&s, err);
    if (!status)
        status = audit_arms(&audit, err);
    if (!status)
        status = audit_fresh(&audit, err);
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
    struct estimate ratio = {0};
    struct session_quantiles q;
    enum gate_status status = delay_candidate(s, 0, err);
    session_clear(s);
    for (int i = 0; i < PAIRS_KINDS && !status; i++)
        status = session_round(s, err);
    if (!status)
        status = session_quantiles(s, 1, &q, err);
    if (!status)
        status = delay_candidate(s, share * q.p50.value * s->series[1].n_launches, err);
    session_clear(s);
    if (!status)
        status = take_rounds(s, budget_ns, err);
    for (unsigned i = 0; i < 2 && !status; i++)
        status = check_clock(s, i, err);
    if (!status)
        status = session_ratio(s, 1, &ratio, err);
    *out = status ? 0 : log(ratio.value);
    return status;
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
