#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define L2_MULTIPLE 3.0
#define SETS_MAX 4096
#define SETS_MEMORY_SHARE 0.25 /* of the free memory */
#define ROTATION_MAX_NS 10e6   /* a rotation that takes longer is not worth its cold label */
#define REPLAY_NS 1.5e6
#define WORK_IN_A_ROW_NS 5e6 /* then a rest as long, at most REST_MAX_NS */
#define LONG_SAMPLE_NS 2.5e6 /* a sample over this rests at once */
#define REST_MAX_NS 20e6
#define LAUNCHES_MAX 20000
#define WARM_NS 30e6
#define HALF_WIDTH_TARGET 0.001
#define ROUNDS_MAX 400
#define SINGLE_LAUNCHES 200
#define SINGLE_LAUNCHES_MIN 20

/* Wall time that a replay may take beyond its device time when nothing hides on another stream. */
#define HIDDEN_NS 200e3
#define HIDDEN_SHARE 0.1

/* Peaks are datasheet figures: leave room for a boost clock, and for what stays in the L2. */
#define FLOOR_FLOPS_SLACK 0.9
#define FLOOR_BYTES_SLACK 0.6

/* Samples of one arm while they are taken. */
struct series {
    struct device_replay *replay;
    struct arm_launch launch;
    unsigned n_launches;
    double *ns;
    size_t n;
    double clock_sum;
    double least_hidden_ns;
};

struct session {
    struct device *device;
    const struct suite_case *c;
    const struct measure_policy *policy;
    struct arm *arms;
    unsigned n_arms;
    struct operands *sets;
    unsigned n_sets;
    bool cold;
    struct series series[ARMS_MAX];
    unsigned at; /* arm that is at work: the guilty one when the device reports an error */
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

const char *measure_contract(const struct device *d)
{
    return device_info(d)->kg.kind == KG_DEVICE_CUDA ? "graph-v1" : "loop-v1";
}

static double peak_flops(const struct kg_problem *p, const struct device_peaks *peaks)
{
    if (p->dtype != KG_F32)
        return peaks->fp16_flops;
    return p->flags & KG_FLAG_TF32 ? peaks->tf32_flops : peaks->fp32_flops;
}

double measure_floor_ns(const struct kg_problem *p, const struct device_peaks *peaks)
{
    double flops = peak_flops(p, peaks);
    if (flops <= 0 || peaks->bytes_per_s <= 0)
        return 0;
    return fmax(problem_flops(p) / flops, problem_bytes(p) / peaks->bytes_per_s) * 1e9;
}

/* Input sets so that one rotation touches three times the L2; 1 when they do not fit. */
static unsigned wanted_sets(const struct device *d, const struct kg_problem *p)
{
    const struct device_info *info = device_info(d);
    double bytes = problem_bytes(p);
    double wanted = ceil(L2_MULTIPLE * (double)info->kg.l2_bytes / bytes);
    double fit = SETS_MEMORY_SHARE * (double)info->memory_free_bytes / bytes;
    if (wanted <= 1 || wanted > SETS_MAX || wanted > fit)
        return 1;
    return (unsigned)wanted;
}

static void free_sets(struct session *s, unsigned from)
{
    for (unsigned i = from; i < s->n_sets; i++)
        operands_free(s->device, &s->sets[i]);
    s->n_sets = from;
}

static enum gate_status make_sets(struct session *s, uint64_t seed, struct gate_error *err)
{
    unsigned wanted = wanted_sets(s->device, &s->c->problem);
    s->sets = calloc(wanted, sizeof *s->sets);
    if (!s->sets)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    while (s->n_sets < wanted) {
        struct operands *o = &s->sets[s->n_sets];
        enum gate_status status = operands_alloc(s->device, &s->c->problem, o, err);
        if (status)
            return status;
        s->n_sets++;
        status = operands_fill(s->device, s->c, o, operands_seed(seed, s->n_sets - 1), err);
        if (!status)
            status = operands_poison(s->device, o, 0xff, err);
        if (status)
            return status;
    }
    return GATE_OK;
}

static enum gate_status record(struct session *s, struct series *x, unsigned n_launches,
                               struct gate_error *err)
{
    device_replay_free(s->device, x->replay);
    x->replay = NULL;
    x->n_launches = n_launches;
    return device_replay_record(s->device, arm_launch, &x->launch, n_launches, &x->replay, err);
}

/* Time per launch of the second replay of `n` launches; the first one warms up. */
static enum gate_status estimate_launch_ns(struct session *s, struct series *x, unsigned n,
                                           double *ns, struct gate_error *err)
{
    struct device_time t;
    enum gate_status status = record(s, x, n, err);
    for (int i = 0; i < 2 && !status; i++)
        status = device_replay_run(s->device, x->replay, &t, err);
    if (!status)
        *ns = fmax(t.device_ns / n, 1.0);
    return status;
}

/* A whole number of rotations that lasts about REPLAY_NS. */
static unsigned launches_per_sample(double launch_ns, unsigned n_sets)
{
    double rotations = round(REPLAY_NS / (launch_ns * n_sets));
    double n = fmax(rotations, 1) * n_sets;
    return n > LAUNCHES_MAX && n_sets < LAUNCHES_MAX ? LAUNCHES_MAX / n_sets * n_sets : (unsigned)n;
}

/* Decides how many sets rotate and how many launches make a sample, arm by arm. */
static enum gate_status plan(struct session *s, struct gate_error *err)
{
    double launch_ns[ARMS_MAX];
    bool too_long = false;
    for (unsigned i = 0; i < s->n_arms; i++) {
        struct series *x = &s->series[i];
        s->at = i;
        x->launch = (struct arm_launch){&s->arms[i], &s->c->problem, s->sets, 1};
        enum gate_status status = estimate_launch_ns(s, x, 1, &launch_ns[i], err);
        if (status)
            return status;
        too_long |= launch_ns[i] * s->n_sets > ROTATION_MAX_NS;
    }
    if (too_long)
        free_sets(s, 1);
    double bytes = problem_bytes(&s->c->problem) * s->n_sets;
    s->cold = bytes >= L2_MULTIPLE * (double)device_info(s->device)->kg.l2_bytes;
    for (unsigned i = 0; i < s->n_arms; i++) {
        struct series *x = &s->series[i];
        s->at = i;
        x->launch.n_sets = s->n_sets;
        /* One launch alone carries the fixed cost of a replay: estimate again over a rotation. */
        unsigned n = launches_per_sample(launch_ns[i], s->n_sets);
        enum gate_status status = estimate_launch_ns(s, x, n, &launch_ns[i], err);
        unsigned better = launches_per_sample(launch_ns[i], s->n_sets);
        if (!status && better != n)
            status = record(s, x, better, err);
        if (status)
            return status;
    }
    return GATE_OK;
}

static enum gate_status take_sample(struct session *s, struct series *x, struct gate_error *err)
{
    struct device_time t;
    enum gate_status status = device_replay_run(s->device, x->replay, &t, err);
    if (status)
        return status;
    x->ns[x->n++] = t.device_ns / x->n_launches;
    x->clock_sum += t.sm_clock_mhz;
    /* The least over the samples: an interrupted host looks the same as hidden work in one. */
    double hidden = t.host_ns - t.device_ns - HIDDEN_SHARE * t.device_ns;
    if (x->n == 1 || hidden < x->least_hidden_ns)
        x->least_hidden_ns = hidden;
    return GATE_OK;
}

/* One sample of each arm forth, one of each back. Rests stand between rounds, so that the two
 * halves of a round see the same chip, unless the samples alone are long. */
static enum gate_status take_round(struct session *s, struct gate_error *err)
{
    double work_ns = 0;
    for (unsigned i = 0; i < 2 * s->n_arms; i++) {
        s->at = i < s->n_arms ? i : 2 * s->n_arms - 1 - i;
        struct series *x = &s->series[s->at];
        enum gate_status status = take_sample(s, x, err);
        if (status)
            return status;
        double sample_ns = x->ns[x->n - 1] * x->n_launches;
        work_ns += sample_ns;
        bool last = i + 1 == 2 * s->n_arms;
        if (sample_ns > LONG_SAMPLE_NS || (last && work_ns > WORK_IN_A_ROW_NS)) {
            status = device_rest(s->device, fmin(work_ns, REST_MAX_NS), err);
            if (status)
                return status;
            work_ns = 0;
        }
    }
    return GATE_OK;
}

static enum gate_status warm_up(struct session *s, struct gate_error *err)
{
    double start = now_ns();
    enum gate_status status = GATE_OK;
    for (int i = 0; i < 2 || (now_ns() - start < WARM_NS && i < 50); i++) {
        status = take_round(s, err);
        for (unsigned a = 0; a < s->n_arms; a++) {
            s->series[a].n = 0;
            s->series[a].clock_sum = 0;
        }
        if (status)
            break;
    }
    return status;
}

/* Pairs sample j of the candidate with sample j of the arm: both of the same half of a round. */
static enum gate_status paired_ratio(const struct series *candidate, const struct series *x,
                                     struct estimate *out, struct gate_error *err)
{
    double *ratios = malloc(x->n * sizeof *ratios);
    if (!ratios)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t j = 0; j < x->n; j++)
        ratios[j] = candidate->ns[j] / x->ns[j];
    stats_sort(ratios, x->n);
    *out = stats_median(ratios, x->n, MEASURE_CONFIDENCE);
    free(ratios);
    return GATE_OK;
}

static enum gate_status median_of(const struct series *x, struct estimate *p50, double *p90,
                                  struct gate_error *err)
{
    double *sorted = malloc(x->n * sizeof *sorted);
    if (!sorted)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t j = 0; j < x->n; j++)
        sorted[j] = x->ns[j];
    stats_sort(sorted, x->n);
    *p50 = stats_median(sorted, x->n, MEASURE_CONFIDENCE);
    *p90 = stats_quantile(sorted, x->n, 0.9);
    free(sorted);
    return GATE_OK;
}

/* Is every interval narrow enough? With several arms the ratios count, else p50 itself. */
static enum gate_status is_sharp(struct session *s, bool *sharp, struct gate_error *err)
{
    *sharp = true;
    for (unsigned i = s->n_arms > 1 ? 1 : 0; i < s->n_arms && *sharp; i++) {
        struct estimate e;
        double p90;
        enum gate_status status = i ? paired_ratio(&s->series[0], &s->series[i], &e, err)
                                    : median_of(&s->series[0], &e, &p90, err);
        if (status)
            return status;
        *sharp = stats_half_width(e) < HALF_WIDTH_TARGET;
    }
    return GATE_OK;
}

static enum gate_status take_rounds(struct session *s, struct gate_error *err)
{
    for (unsigned i = 0; i < s->n_arms; i++) {
        s->series[i].ns = malloc(2 * ROUNDS_MAX * sizeof(double));
        if (!s->series[i].ns)
            return gate_fail(err, GATE_INTERNAL, "out of memory");
    }
    enum gate_status status = warm_up(s, err);
    double start = now_ns();
    bool sharp = false;
    for (unsigned round = 1; round <= ROUNDS_MAX && !status && !sharp; round++) {
        status = take_round(s, err);
        if (status || round < MEASURE_ROUNDS)
            continue;
        if (now_ns() - start > s->policy->budget_ns)
            break;
        status = is_sharp(s, &sharp, err);
    }
    return status;
}

/* Cold launches, one by one, the arms in turn and the candidate last of each turn. */
static enum gate_status take_singles(struct session *s, struct gate_error *err)
{
    double *ns = malloc(s->n_arms * SINGLE_LAUNCHES * sizeof *ns);
    if (!ns)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    double start = now_ns();
    enum gate_status status = GATE_OK;
    size_t n = 0;
    while (n < SINGLE_LAUNCHES && !status) {
        if (n >= SINGLE_LAUNCHES_MIN && now_ns() - start > s->policy->single_budget_ns)
            break;
        for (unsigned i = s->n_arms; i-- > 0 && !status;) {
            s->at = i;
            status = device_single_run(s->device, arm_launch, &s->series[i].launch, (unsigned)n,
                                       &ns[i * SINGLE_LAUNCHES + n], err);
        }
        n++;
    }
    for (unsigned i = 0; i < s->n_arms && !status; i++) {
        struct measurement *m = &s->arms[i].measurement;
        stats_sort(&ns[i * SINGLE_LAUNCHES], n);
        m->n_single = n;
        m->single_p50_ns = stats_quantile(&ns[i * SINGLE_LAUNCHES], n, 0.5);
        m->single_p90_ns = stats_quantile(&ns[i * SINGLE_LAUNCHES], n, 0.9);
    }
    free(ns);
    return status;
}

/* A time that cannot be is an error, not a success. */
static enum gate_status check_plausible(const struct session *s, const struct arm *arm,
                                        const struct series *x, struct gate_error *err)
{
    const struct kg_problem *p = &s->c->problem;
    const struct device_peaks *peaks = &device_info(s->device)->peaks;
    double p50 = arm->measurement.p50_ns.value;
    double flops_ns = peak_flops(p, peaks) > 0 ? problem_flops(p) / peak_flops(p, peaks) * 1e9 : 0;
    double bytes_ns =
        peaks->bytes_per_s > 0 && s->cold ? problem_bytes(p) / peaks->bytes_per_s * 1e9 : 0;
    if (p50 < FLOOR_FLOPS_SLACK * flops_ns || p50 < FLOOR_BYTES_SLACK * bytes_ns)
        return gate_fail(err, GATE_WRONG,
                         "kernel '%s' seems to take %.3g us, less than this chip can: %.3g us of "
                         "arithmetic, %.3g us of memory traffic",
                         arm->kernel->name, p50 / 1e3, flops_ns / 1e3, bytes_ns / 1e3);
    if (x->least_hidden_ns > HIDDEN_NS)
        return gate_fail(err, GATE_WRONG,
                         "the device works at least %.3g us beyond the timed span of kernel '%s': "
                         "work hides on another stream",
                         x->least_hidden_ns / 1e3, arm->kernel->name);
    return GATE_OK;
}

static enum gate_status summarise(struct session *s, unsigned i, struct gate_error *err)
{
    struct series *x = &s->series[i];
    struct measurement *m = &s->arms[i].measurement;
    enum gate_status status = median_of(x, &m->p50_ns, &m->p90_ns, err);
    if (!status && i > 0)
        status = paired_ratio(&s->series[0], x, &m->ratio, err);
    if (status)
        return status;
    m->n_samples = x->n;
    m->launches_per_sample = x->n_launches;
    m->input_sets = s->n_sets;
    m->cold = s->cold;
    m->sm_clock_mhz = x->clock_sum / (double)x->n;
    s->at = i;
    status = check_plausible(s, &s->arms[i], x, err);
    s->arms[i].timed = !status;
    return status;
}

/* The candidate's recorded launches once more, into poisoned outputs: what was timed is what is
 * handed out for the last look. */
static enum gate_status replay_for_check(struct session *s, struct operands *first,
                                         struct gate_error *err)
{
    struct device_time unused;
    s->at = 0;
    enum gate_status status = operands_poison(s->device, &s->sets[0], 0xff, err);
    if (!status)
        status = device_replay_run(s->device, s->series[0].replay, &unused, err);
    if (status)
        return status;
    *first = s->sets[0];
    s->sets[0] = (struct operands){0};
    return GATE_OK;
}

enum gate_status measure_arms(struct device *d, const struct suite_case *c, uint64_t seed,
                              const struct measure_policy *policy, struct arm *arms, unsigned n,
                              struct operands *first, struct gate_error *err)
{
    struct session s = {.device = d, .c = c, .policy = policy, .arms = arms, .n_arms = n};
    enum gate_status status = make_sets(&s, seed, err);
    if (!status)
        status = plan(&s, err);
    if (!status)
        status = take_rounds(&s, err);
    if (!status)
        status = take_singles(&s, err);
    for (unsigned i = 0; i < n && !status; i++)
        status = summarise(&s, i, err);
    for (unsigned i = 0; i < n; i++)
        arms[i].measurement.samples_ns = s.series[i].ns;
    if (!status)
        status = replay_for_check(&s, first, err);
    if (status == GATE_WRONG) {
        struct verification *v = &arms[s.at].verification;
        v->ok = false;
        snprintf(v->message, sizeof v->message, "%.500s", err->message);
    }
    for (unsigned i = 0; i < n; i++)
        device_replay_free(d, s.series[i].replay);
    free_sets(&s, 0);
    free(s.sets);
    return status;
}
