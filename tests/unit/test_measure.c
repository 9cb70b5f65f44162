/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_measure.c: measuring by a device whose clock tells what the test wants, so that every figure
 * is known. Memory is the host's; nothing is launched.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/worker/worker.h"
#include "gate/cases/problem.h"
#include "gate/worker/message.h"
#include "tests/unit/noise.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/scripted_device.h"
#include "tests/unit/unit.h"

#define LAUNCH_NS 1000.0

struct device_replay {
    unsigned arm, n;
    const struct arm_launch *launch;
};

/* What the clock tells of the arms: a launch takes LAUNCH_NS times `factor`, with noise. */
static struct script {
    double factor[3], noise;
    double call_ns[2]; /* that a call of launch() takes on the host */
    unsigned calls[2]; /* that there were */
    unsigned bad_from; /* replays of arm 1 from this one on take `bad_ns`; 0: none do */
    double bad_ns;
    double sm_clock_mhz;
    double single_ns;                      /* of a launch by itself */
    double tenth;                          /* what one in ten of the candidate's takes longer */
    bool by_baseline[2 * MEASURE_SINGLES]; /* whose single launches there were */
    unsigned singles;
    unsigned replays[3];
    unsigned readings; /* of the sensors */
    bool in_place;
    unsigned room[3], most; /* launches of a replay: that there is room for, and that there were */
    struct rng rng;
} script;

static unsigned arm_of(const struct arm_launch *l)
{
    return l->arm->role == ROLE_PROVIDER ? 2 : l->arm->role == ROLE_BASELINE;
}

/* What is updated in place begins as its input, and is another one afterwards. */
static void update(const struct arm_launch *l, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n && script.in_place; i++) {
        const struct operands *o = &l->sets[i % l->n_sets];
        const size_t bytes = problem_tensor_bytes(&o->out[0]);
        assert_memory_equal(o->args.out[0].data, o->args.in[1].data, bytes);
        memset(o->args.out[0].data, 0x5a, bytes);
    }
}

static enum gate_status record(struct device *, device_launch_fn, void *context, unsigned n, bool,
                               struct device_replay **out, struct gate_error *)
{
    const struct arm_launch *l = context;
    struct device_replay *r = malloc(sizeof *r);
    assert_non_null(r);
    *r = (struct device_replay){arm_of(l), n, l};
    script.most = n > script.most ? n : script.most;
    *out = r;
    return GATE_OK;
}

static struct device_kernels no_kernels(struct device_replay *)
{
    return (struct device_kernels){0};
}

static unsigned room(const struct device_replay *r)
{
    return script.room[r->arm];
}

static enum gate_status replay(struct device *, struct device_replay *r, struct device_time *out,
                               struct gate_error *)
{
    unsigned count = ++script.replays[r->arm];
    double ns =
        LAUNCH_NS * r->n * script.factor[r->arm] * exp(script.noise * rng_normal(&script.rng));
    update(r->launch, 0, r->n);
    if (r->arm == 1 && script.bad_from && count >= script.bad_from)
        ns = script.bad_ns * r->n;
    *out = (struct device_time){ns, ns, script.sm_clock_mhz};
    return GATE_OK;
}

static enum gate_status delay(struct device *, struct device_replay *, double, struct gate_error *)
{
    return GATE_OK;
}

static void replay_free(struct device *, struct device_replay *r)
{
    free(r);
}

static enum gate_status rest(struct device *, double, struct gate_error *)
{
    return GATE_OK;
}

static enum gate_status single(struct device *, device_launch_fn, void *context, unsigned index,
                               double *ns, struct gate_error *)
{
    const struct arm_launch *l = context;
    bool baseline = l->arm->role == ROLE_BASELINE;
    update(l, index, 1);
    if (script.singles < 2 * MEASURE_SINGLES)
        script.by_baseline[script.singles++] = baseline;
    *ns = script.single_ns * (!baseline && index % 10 == 7 ? 1 + script.tenth : 1);
    return GATE_OK;
}

static enum gate_status calls(struct device *, device_launch_fn, void *context,
                              struct device_calls calls, double *host_ns, struct gate_error *)
{
    const struct arm_launch *l = context;
    unsigned arm = l->arm->role == ROLE_BASELINE;
    update(l, calls.first, calls.n);
    script.calls[arm] += calls.n;
    *host_ns = script.call_ns[arm] * calls.n;
    return GATE_OK;
}

/* One watt more for each replay there was. */
static struct device_sensors sensors(struct device *)
{
    script.readings++;
    return (struct device_sensors){script.replays[0] + script.replays[1], NAN};
}

static int open_scripted(void **state)
{
    struct device *d = scripted_open();
    scripted.replay_record = record;
    scripted.replay_run = replay;
    scripted.replay_delay = delay;
    scripted.replay_free = replay_free;
    scripted.replay_kernels = no_kernels;
    scripted.replay_room = room;
    scripted.rest = rest;
    scripted.sensors_read = sensors;
    scripted.single_run = single;
    scripted.calls_run = calls;
    script = (struct script){.factor = {1, 1, 1},
                             .call_ns = {3000, 3000},
                             .sm_clock_mhz = 1980,
                             .room = {UINT_MAX, UINT_MAX, UINT_MAX}};
    rng_seed(&script.rng, 8);
    *state = d;
    return 0;
}

/* Nothing is launched, so that nothing has fingerprints and nothing is looked at. */
static enum gate_status look(void *, struct arm *, const struct operands *, unsigned,
                             struct gate_error *err)
{
    return gate_fail(err, GATE_WRONG, "was looked at");
}

static double no_flops(const struct kg_problem *)
{
    return 0;
}

/* s += x, of 192 bytes. */
static struct kg_problem state_of_24(void)
{
    static const struct op_size sizes[] = {OP_SIZE(0, m, 'm')};
    static const struct op_tensor tensors[] = {
        {"x", "m", OP_INPUT, NULL}, {"s", "m", OP_INOUT, NULL}, {"s", "m", OP_OUT, .whole = ""}};
    static const struct op state = {.name = "state",
                                    .sizes = sizes,
                                    .n_sizes = 1,
                                    .tensors = tensors,
                                    .n_tensors = 3,
                                    .id = "m",
                                    .flops = no_flops};
    static const struct op *const used = &state;
    op_use(&used, 1);
    struct kg_problem p = op_problem(&state, KG_F32, 0);
    p.size[0].value = 24;
    return p;
}

static const struct measure_policy no_time = {.budget_ns = 0};

/* Candidate and baseline, and a provider if `n_arms` is 3, measured. */
struct pair {
    struct arm arm[3];
    struct gate_error err;
};

static enum gate_status measure_some(struct device *d, const struct measure_policy *policy,
                                     unsigned n_arms, struct pair *p)
{
    static const struct library library = {.file = "k.so"};
    static const struct kg_kernel kernel = {.struct_bytes = sizeof kernel, .name = "k"};
    struct suite_case c = {.id = "gemm/fp32/m4-n4-k4"};
    c.problem = script.in_place ? state_of_24() : gemm_like("gemm", KG_F32, 4, 4, 4);
    *p = (struct pair){.arm = {{.library = &library, .kernel = &kernel, .role = ROLE_CANDIDATE},
                               {.library = &library, .kernel = &kernel, .role = ROLE_BASELINE},
                               {.library = &library, .kernel = &kernel, .role = ROLE_PROVIDER}}};
    enum gate_status status = measure_arms(d, &c, 1, policy, p->arm, n_arms, look, NULL, &p->err);
    for (unsigned i = 0; i < 3; i++)
        arm_release(&p->arm[i]);
    return status;
}

static enum gate_status measure(struct device *d, const struct measure_policy *policy,
                                struct pair *p)
{
    return measure_some(d, policy, 2, p);
}

TEST_WITHIN(a_known_ratio_is_found, open_scripted, scripted_close)
{
    struct pair p;
    script.factor[0] = 1.03;
    assert_int_equal(measure(*state, &no_time, &p), GATE_OK);
    const struct document_timing *baseline = &p.arm[1].timing;
    assert_true(p.arm[0].timed && p.arm[1].timed);
    assert_true(fabs(baseline->ratio_to_candidate.value - 1.03) < 1e-9 &&
                fabs(baseline->ratio_cycles - 1.03) < 1e-9);
    assert_true(fabs(baseline->p50_ns - LAUNCH_NS) < 1e-6);
    assert_int_equal(baseline->samples, PROTOCOL_SAMPLES_MIN); /* there is no doubt */
}

/* Of 1000 a millisecond. The candidate has as many as the baseline, whichever of them is short. */
TEST_WITHIN(a_replay_holds_what_there_is_room_for, open_scripted, scripted_close)
{
    for (unsigned i = 0; i < 2; i++) {
        struct pair p;
        script.most = 0;
        script.room[0] = i ? 70 : UINT_MAX;
        script.room[1] = i ? UINT_MAX : 70;
        assert_int_equal(measure(*state, &no_time, &p), GATE_OK);
        assert_int_equal(script.most, 70);
        assert_int_equal(p.arm[0].timing.launches_per_sample, 70);
        assert_int_equal(p.arm[1].timing.launches_per_sample, 70);
    }
}

/* The L2 holds ten problems of 192 bytes, so that 30 sets are three times it. A provider takes part
 * in the first process alone, and must not make that one warm and the others cold. */
TEST_WITHIN(a_provider_does_not_decide_the_regime, open_scripted, scripted_close)
{
    struct device *d = *state;
    struct pair p;
    d->info.kg.l2_bytes = 1920;
    script.factor[2] = 1e3; /* a rotation of it takes 30 ms */
    assert_int_equal(measure_some(d, &no_time, 3, &p), GATE_OK);
    const struct document_timing *ours = &p.arm[0].timing, *other = &p.arm[2].timing;
    assert_int_equal(ours->input_sets, 30);
    assert_true(ours->cold && p.arm[1].timing.cold);
    assert_in_range(other->launches_per_sample, 9, 10); /* part of a rotation, and said to be */
    assert_int_equal(other->input_sets, other->launches_per_sample);
    assert_false(other->cold);
    script.factor[2] = 1;
    script.factor[0] = script.factor[1] = 1e3; /* the two alone decide */
    assert_int_equal(measure_some(d, &no_time, 3, &p), GATE_OK);
    assert_int_equal(p.arm[0].timing.input_sets, 1);
    assert_false(p.arm[0].timing.cold);
}

/* Each sample launches each set once, and begins as the first one; so do single launches, and
 * calls. A rotation over 30 sets that takes too long gives way to what a millisecond has room for.
 */
TEST_WITHIN(what_is_updated_in_place_is_restored, open_scripted, scripted_close)
{
    static const struct {
        double factor;
        unsigned kept, sets;
        bool cold;
    } cases[] = {{1, 0, 30, true}, {1, 20, 20, false}, {400, 0, 2, false}, {4000, 0, 1, false}};
    struct device *d = *state;
    struct device_memory m;
    script.single_ns = 1e3;
    script.in_place = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct measure_policy policy = {.single_budget_ns = 1e6, .input_sets = cases[i].kept};
        struct pair p;
        d->info.kg.l2_bytes = 1920;
        script.factor[0] = script.factor[1] = cases[i].factor;
        assert_int_equal(measure(d, &policy, &p), GATE_OK);
        assert_int_equal(p.arm[0].timing.input_sets, cases[i].sets);
        assert_int_equal(p.arm[0].timing.launches_per_sample, cases[i].sets);
        assert_int_equal(p.arm[0].timing.cold, cases[i].cold);
        assert_true(script.singles && script.calls[0]);
    }
    struct suite_case c = {.problem = state_of_24()};
    assert_int_equal(device_alloc(d, operands_bytes(&c.problem, operands_gaps), &m, NULL), GATE_OK);
    struct operands o = operands_at(d, &c.problem, m.data, operands_gaps);
    assert_int_equal(operands_fill(d, &c, &o, 1, NULL), GATE_OK);
    update(&(struct arm_launch){.sets = &o, .n_sets = 1}, 0, 1);
    assert_int_equal(operands_poison(d, &o, POISON_NAN, NULL), GATE_OK);
    update(&(struct arm_launch){.sets = &o, .n_sets = 1}, 0, 1);
    device_free(d, &m);
    op_use(NULL, 0);
}

/* What the first process decided stays, however long a launch takes now; else there is no time. */
TEST_WITHIN(the_regime_of_the_first_process_is_kept, open_scripted, scripted_close)
{
    struct measure_policy policy = {.budget_ns = 0, .input_sets = 30};
    struct device *d = *state;
    struct pair p;
    d->info.kg.l2_bytes = 1920;
    script.factor[0] = script.factor[1] = 1e3;
    assert_int_equal(measure(d, &policy, &p), GATE_OK);
    assert_int_equal(p.arm[0].timing.input_sets, 30);
    script.factor[0] = script.factor[1] = 1;
    policy.input_sets = 1;
    assert_int_equal(measure(d, &policy, &p), GATE_OK);
    assert_int_equal(p.arm[0].timing.input_sets, 1);
    policy.input_sets = 30;
    script.room[0] = 20;
    assert_int_equal(measure(d, &policy, &p), GATE_ENVIRONMENT);
    assert_non_null(
        strstr(p.err.message, "rotated over 30 sets of inputs, and here is room for 20"));
}

/* Eight rounds in any case, though there is no time, unless the first four leave no doubt. */
TEST_WITHIN(noise_takes_more_rounds, open_scripted, scripted_close)
{
    struct pair p;
    script.noise = 0.003;
    assert_int_equal(measure(*state, &no_time, &p), GATE_OK);
    assert_int_equal(p.arm[1].timing.samples, 2 * MEASURE_ROUNDS);
}

/* 0: it stopped; less: it jumped back; NaN and years: it is broken. */
TEST_WITHIN(a_clock_that_stops_or_jumps_is_told, open_scripted, scripted_close)
{
    static const double bad[] = {0, -5, NAN, INFINITY, 1e16};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct pair p;
        script.replays[1] = 0;
        script.bad_from = 14; /* after the warm-up, in the midst of the rounds */
        script.bad_ns = bad[i];
        assert_int_equal(measure(*state, &no_time, &p), GATE_ENVIRONMENT);
        assert_non_null(strstr(p.err.message, "the clock stopped or jumped: sample "));
        assert_null(strstr(p.err.message, "sample 1 "));
        assert_false(p.arm[1].timed);
    }
}

/* From the first estimate on: without a time, nobody could say how many launches make a sample. */
TEST_WITHIN(a_clock_that_never_ran_is_told_at_once, open_scripted, scripted_close)
{
    struct pair p;
    script.bad_from = 1;
    script.bad_ns = 0;
    assert_int_equal(measure(*state, &no_time, &p), GATE_ENVIRONMENT);
    assert_non_null(strstr(p.err.message, "the clock stopped or jumped: a replay took 0 ns"));
    assert_in_range(script.replays[1], 1, 2);
}

TEST_WITHIN(a_single_launch_of_no_time_is_told, open_scripted, scripted_close)
{
    const struct measure_policy policy = {.single_budget_ns = 1};
    struct pair p;
    script.single_ns = 2 * LAUNCH_NS;
    assert_int_equal(measure(*state, &policy, &p), GATE_OK);
    assert_true(p.arm[0].timing.single_p50_ns == script.single_ns);
    script.single_ns = 0;
    assert_int_equal(measure(*state, &policy, &p), GATE_ENVIRONMENT);
    assert_non_null(strstr(p.err.message, "a single launch took 0 ns"));
}

/* A replay of a thousand launches averages over what one in ten takes longer. */
TEST_WITHIN(a_tail_shows_in_single_launches, open_scripted, scripted_close)
{
    const struct measure_policy policy = {.single_budget_ns = 60e9};
    struct pair p;
    script.single_ns = 2 * LAUNCH_NS;
    script.tenth = 0.3;
    assert_int_equal(measure(*state, &policy, &p), GATE_OK);
    const struct document_timing *ours = &p.arm[0].timing, *baseline = &p.arm[1].timing;
    assert_int_equal(baseline->single_samples, MEASURE_SINGLES);
    assert_true(baseline->single_p90_ns == script.single_ns);
    assert_true(ours->single_p90_ns > script.single_ns && ours->single_p50_ns == script.single_ns);
    assert_true(fabs(baseline->ratio_p90 - 1) < 1e-9);
    for (unsigned i = 0; i < script.singles; i += 4)
        assert_true(!script.by_baseline[i] && script.by_baseline[i + 1] &&
                    script.by_baseline[i + 2] && !script.by_baseline[i + 3]);
}

/* The device takes as long, so that its time says nothing of it. */
TEST_WITHIN(what_a_call_takes_on_the_host_is_measured, open_scripted, scripted_close)
{
    const struct measure_policy policy = {.budget_ns = 0, .swap = true};
    struct pair p;
    script.call_ns[0] = 4500;
    assert_int_equal(measure(*state, &policy, &p), GATE_OK);
    assert_true(fabs(p.arm[0].timing.call_ns - 4500) < 1e-9);
    assert_true(fabs(p.arm[1].timing.call_ns - 3000) < 1e-9);
    assert_true(fabs(p.arm[1].timing.ratio_calls - 1.5) < 1e-9);
    assert_true(fabs(p.arm[1].timing.ratio_to_candidate.value - 1) < 1e-9);
    assert_true(script.calls[0] > 0);
    assert_int_equal(script.calls[0], script.calls[1]);
    script.call_ns[1] = 0;
    assert_int_equal(measure(*state, &policy, &p), GATE_ENVIRONMENT);
    assert_non_null(strstr(p.err.message, "a call of launch() took 0 ns"));
}

/* A calibration has no summary; a stopped clock must not pass for "no difference" there. */
TEST_WITHIN(a_calibration_tells_it_too, open_scripted, scripted_close)
{
    static const struct library library = {.file = "k.so"};
    static const struct kg_kernel kernel = {.struct_bytes = sizeof kernel, .name = "k"};
    static const double shares[] = {0};
    struct suite_case c = {.id = "x"};
    struct arm arms[2] = {{.library = &library, .kernel = &kernel, .role = ROLE_CANDIDATE},
                          {.library = &library, .kernel = &kernel, .role = ROLE_BASELINE}};
    struct gate_error err = {0};
    double d = 1;
    c.problem = gemm_like("gemm", KG_F32, 4, 4, 4);
    assert_int_equal(measure_injected(*state, &c, 1, &no_time, arms, shares, 1, &d, &err), GATE_OK);
    assert_true(fabs(d) < 1e-9);
    script.replays[1] = 0;
    script.bad_from = 14;
    assert_int_equal(measure_injected(*state, &c, 1, &no_time, arms, shares, 1, &d, &err),
                     GATE_ENVIRONMENT);
    assert_non_null(strstr(err.message, "the clock stopped or jumped"));
}

/* 128 operations take this device 1000 ns; a tenth is left to a chip that is better than its
 * datasheet. */
TEST_WITHIN(who_is_faster_than_the_device_is_wrong, open_scripted, scripted_close)
{
    struct device *d = *state;
    struct pair p;
    d->info.peaks.fp32_flops = 128 / (LAUNCH_NS * 1e-9);
    script.factor[0] = 0.91;
    assert_int_equal(measure(d, &no_time, &p), GATE_OK);
    script.factor[0] = 0.89;
    assert_int_equal(measure(d, &no_time, &p), GATE_WRONG);
    assert_non_null(strstr(p.err.message, "less than this chip can"));
    assert_false(p.arm[0].verification.ok);

    /* Tensor cores that do four of three TF32 products in the time: that much faster is right. */
    d->info.peaks.tf32_flops = 4 * d->info.peaks.fp32_flops;
    script.factor[0] = 0.91 * 3 / 4;
    assert_int_equal(measure(d, &no_time, &p), GATE_OK);
    script.factor[0] = 0.89 * 3 / 4;
    assert_int_equal(measure(d, &no_time, &p), GATE_WRONG);
    d->info.peaks.tf32_flops = 0;
}

TEST_WITHIN(without_the_counter_there_are_no_cycles, open_scripted, scripted_close)
{
    struct pair p;
    script.sm_clock_mhz = 0;
    assert_int_equal(measure(*state, &no_time, &p), GATE_OK);
    assert_true(isnan(p.arm[1].timing.ratio_cycles));
}

TEST_WITHIN(sensors_are_read_around_the_rounds_of_the_first_process, open_scripted, scripted_close)
{
    struct measure_policy policy = {.budget_ns = 0};
    struct pair p;
    assert_int_equal(measure(*state, &policy, &p), GATE_OK);
    assert_int_equal(script.readings, 0);
    assert_false(p.arm[0].timing.has_power_w);
    policy.single_budget_ns = script.single_ns = 1;
    assert_int_equal(measure(*state, &policy, &p), GATE_OK);
    const struct document_timing *m = &p.arm[0].timing;
    assert_int_equal(script.readings, 2);
    assert_true(m->has_power_w && !m->has_temperature_c);
    assert_true(m->power_w.after - m->power_w.before == (double)(2 * m->samples));
    assert_false(p.arm[1].timing.has_power_w);
}
