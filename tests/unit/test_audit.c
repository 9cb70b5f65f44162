/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_audit.c: kernels that change their ways once they are timed, on the host device; its clock
 * is a count of the elements that were computed, so that laziness shows to the last one.
 */
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/base/seed.h"
#include "gate/worker/worker.h"
#include "gate/cases/problem.h"
#include "gate/cases/suite.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/scripted_device.h"
#include "tests/unit/unit.h"

enum { M = 8, SETS_MAX = 64, ROUNDS = 4, LATE = 20 };

/* Threads wait for so long, and waking them takes as long as to compute that many elements. */
enum { WAITS_NS = 100000, WAKES = 200 };

/* What the kernel under test does from its `from`-th launch on. */
enum deed {
    NOTHING,
    SKIPS,
    ONE_SET,
    BY_POINTER,
    PREVIOUS,
    IF_STALE,
    LATE_STALE,
    HALF_STALE,
    EIGHTH_STALE,
    LATE_EIGHTH,
    OTHER_BITS,
    SINGLES,
    PAST_END,
    INPUT,
    SLEEPS,
};

static struct {
    enum deed deed;
    unsigned from, launches;
    unsigned computed; /* elements */
    bool replaying;
    const void *known[SETS_MAX];
    float result[SETS_MAX][M], last[M];
    unsigned n_known, stale[SETS_MAX];
    double worked_ns;
} kernel;

/* y = A x with A[M,1] and x[1]. */
static void compute_rows(const struct kg_args *args, int rows)
{
    const float *a = args->in[0].data, *x = args->in[1].data;
    float *y = args->out[0].data;
    for (int i = 0; i < rows; i++)
        y[i] = a[i] * x[0];
    kernel.computed += (unsigned)rows;
}

static void compute(const struct kg_args *args)
{
    compute_rows(args, M);
}

static unsigned find(const void *in)
{
    unsigned i = 0;
    while (i < kernel.n_known && kernel.known[i] != in)
        i++;
    return i;
}

/* Gives the result that was remembered for these pointers, and computes what is not known. */
static void by_pointer(const struct kg_args *args, bool if_stale)
{
    float *y = args->out[0].data;
    unsigned i = find(args->in[0].data);
    assert_true(i < SETS_MAX);
    if (i < kernel.n_known && (!if_stale || !memcmp(y, kernel.result[i], sizeof *kernel.result))) {
        memcpy(y, kernel.result[i], sizeof *kernel.result);
        return;
    }
    compute(args);
    kernel.known[i] = args->in[0].data;
    memcpy(kernel.result[i], y, sizeof *kernel.result);
    if (i == kernel.n_known)
        kernel.n_known++;
}

/* Does less where the result is there already, as it has been for `after` launches in a row. */
static void less_if_stale(const struct kg_args *args, int rows, unsigned after)
{
    float *y = args->out[0].data;
    unsigned i = find(y);
    assert_true(i < SETS_MAX);
    bool there = i < kernel.n_known && !memcmp(y, kernel.result[i], sizeof *kernel.result);
    kernel.stale[i] = there ? kernel.stale[i] + 1 : 0;
    compute_rows(args, kernel.stale[i] > after ? rows : M);
    kernel.known[i] = y;
    memcpy(kernel.result[i], y, sizeof *kernel.result);
    if (i == kernel.n_known)
        kernel.n_known++;
}

/* Threads that wait for a while, and then sleep. */
static void compute_awake(const struct kg_args *args)
{
    if (clock_ns() - kernel.worked_ns > WAITS_NS)
        kernel.computed += WAKES;
    compute(args);
    kernel.worked_ns = clock_ns();
}

static void misbehave(const struct kg_args *args)
{
    float *y = args->out[0].data;
    switch (kernel.deed) {
    case SKIPS:
    case SINGLES:
        break;
    case ONE_SET:
        if (kernel.launches % 2)
            compute(args);
        break;
    case BY_POINTER:
    case IF_STALE:
        by_pointer(args, kernel.deed == IF_STALE);
        break;
    case LATE_STALE:
        less_if_stale(args, 0, LATE);
        break;
    case HALF_STALE:
        less_if_stale(args, M / 2 + 1, 0);
        break;
    case EIGHTH_STALE:
        less_if_stale(args, M - 1, 0);
        break;
    case LATE_EIGHTH:
        less_if_stale(args, M - 1, 5);
        break;
    case PAST_END:
        compute(args);
        y[M] = 1;
        break;
    case INPUT:
        compute(args);
        if (kernel.launches == kernel.from + 1)
            ((float *)args->in[0].data)[2] = 1;
        break;
    case PREVIOUS:
        memcpy(y, kernel.last, sizeof kernel.last);
        break;
    case SLEEPS:
        compute_awake(args);
        break;
    case OTHER_BITS:
        compute(args);
        y[M - 1] *= 1 + 0x1p-20f;
        break;
    default:
        compute(args);
    }
}

static enum kg_status launch(const struct kg_problem *, const struct kg_args *args)
{
    const float *a = args->in[0].data, *x = args->in[1].data;
    bool timed = kernel.launches++ >= kernel.from;
    if (kernel.deed == SINGLES ? timed && !kernel.replaying : timed && kernel.deed != NOTHING)
        misbehave(args);
    else
        compute(args);
    for (int i = 0; i < M; i++)
        kernel.last[i] = a[i] * x[0];
    return KG_OK;
}

/* A right one. */
static enum kg_status launch_baseline(const struct kg_problem *, const struct kg_args *args)
{
    compute(args);
    return KG_OK;
}

/* One for which a rotation takes too long. */
enum { SLOW_WORK = 2000 };

static enum kg_status launch_slowly(const struct kg_problem *p, const struct kg_args *args)
{
    kernel.computed += SLOW_WORK;
    return launch_baseline(p, args);
}

/* ---- the device ---- */

static bool clock_stands;

static enum gate_status replay(struct device *d, struct device_replay *r, struct device_time *out,
                               struct gate_error *err)
{
    unsigned before = kernel.computed;
    kernel.replaying = true;
    enum gate_status status = real->replay_run(d, r, out, err);
    kernel.replaying = false;
    out->device_ns = out->host_ns = 500 + 1000.0 * (kernel.computed - before);
    if (clock_stands)
        out->device_ns = 0;
    return status;
}

static enum gate_status fill_bytes(struct device *d, void *to, unsigned char byte, size_t bytes,
                                   struct gate_error *err)
{
    if (kernel.deed == SLEEPS)
        clock_spin(1.5 * WAITS_NS);
    return real->fill_bytes(d, to, byte, bytes, err);
}

static int open_device(void **state)
{
    struct device *d = scripted_open();
    scripted.replay_run = replay;
    scripted.fill_bytes = fill_bytes;
    d->info.kg.l2_bytes = 200; /* three times as much is some sets of this problem */
    *state = d;
    return 0;
}

/* ---- an audit ---- */

struct trial {
    struct device *device;
    struct suite_case c;
    struct kg_kernel k, baseline_k;
    struct arm arm[2];
    bool beside_baseline, baseline_writes; /* the deed is the baseline's */
    bool beside_provider;                  /* a right one, which takes part of a rotation */
    bool on_cuda;                          /* by its name */
    unsigned guilty;
    bool clock_stops; /* when the audit begins */
    double ratio; /* of the candidate's samples over the baseline's; 0: they are not looked at */
    unsigned looks;
    struct gate_error err;
};

static enum gate_status look(void *context, struct arm *arm, const struct operands *,
                             unsigned content, struct gate_error *err)
{
    struct trial *t = context;
    assert_true(content < VERIFY_SEEDS);
    t->looks++;
    if (arm->kernel->flags & KG_KERNEL_NONDETERMINISTIC)
        return GATE_OK;
    return gate_fail(err, GATE_WRONG, "other bits");
}

/* The fingerprints of right outputs. */
static void fingerprint(struct trial *t, uint64_t seed)
{
    struct device_memory m;
    assert_int_equal(
        device_alloc(t->device, operands_bytes(&t->c.problem, operands_gaps), &m, NULL), GATE_OK);
    struct operands o = operands_at(t->device, &t->c.problem, m.data, operands_gaps);
    for (unsigned i = 0; i < VERIFY_SEEDS; i++) {
        struct fingerprints *f = &t->arm[0].verification.fingerprints;
        assert_int_equal(operands_fill(t->device, &t->c, &o, seed_at(seed, i), NULL), 0);
        compute(&o.args);
        assert_int_equal(operands_hash_outputs(t->device, &o, 1, &f->of[i], NULL), GATE_OK);
        f->known = true;
    }
    device_free(t->device, &m);
}

/* The kernel is timed for a while, and does its deed; then it is audited. */
static enum gate_status audit(struct trial *t, enum deed deed, void **state)
{
    const uint64_t seed = 7;
    struct session s = {.device = t->device = *state,
                        .c = &t->c,
                        .arms = t->arm,
                        .n_arms = t->beside_baseline || t->beside_provider ? 2 : 1};
    memset(&kernel, 0, sizeof kernel);
    kernel.deed = deed;
    kernel.from = 40;
    if (t->on_cuda)
        t->device->info.kg.kind = KG_DEVICE_CUDA;
    t->k.struct_bytes = sizeof t->k;
    t->k.name = "k";
    t->k.launch = t->baseline_writes ? launch_baseline : launch;
    t->baseline_k = t->k;
    t->baseline_k.launch = t->baseline_writes ? launch : launch_baseline;
    t->arm[0].kernel = &t->k;
    t->arm[1].kernel = &t->baseline_k;
    t->arm[1].role = ROLE_BASELINE;
    t->c.problem = gemm_like("gemv", KG_F32, M, 0, 1);
    fingerprint(t, seed);
    if (t->beside_provider) {
        t->baseline_k.launch = launch_slowly;
        t->arm[1].role = ROLE_PROVIDER;
        t->arm[1].verification = t->arm[0].verification;
    }
    enum gate_status status = session_start(&s, seed, &t->err);
    assert_int_equal(status, GATE_OK);
    assert_true(s.n_sets > VERIFY_SEEDS);
    assert_int_equal(session_sets(&s, 1) < s.n_sets, t->beside_provider || s.n_arms < 2);
    if (kernel.deed != NOTHING)
        assert_true(kernel.launches > kernel.from);
    const struct audit a = {&s, true, look, t};
    for (unsigned i = 0; i < ROUNDS; i++)
        assert_int_equal(session_round(&s, &t->err), GATE_OK);
    session_note_copies(&s);
    clock_stands = t->clock_stops;
    status = audit_memory(&s, &t->err);
    if (!status)
        status = audit_arms(&a, &t->err);
    t->arm[1].timing.ratio_to_candidate =
        (struct estimate){t->ratio, t->ratio * 0.99, t->ratio * 1.01};
    if (!status && t->ratio > 0)
        status = audit_fresh(&a, &t->err);
    clock_stands = false;
    t->guilty = s.at;
    session_release(&s);
    return status;
}

/* Alone, by threads that sleep while its outputs are poisoned, beside a baseline, and beside a
 * provider, which gets to some of the sets. A non-deterministic one is looked at each time. */
TEST_WITHIN(one_that_works_passes, open_device, scripted_close)
{
    static const struct {
        enum deed deed;
        struct trial t;
    } rows[] = {{NOTHING, {.beside_baseline = false}},
                {NOTHING, {.k.flags = KG_KERNEL_NONDETERMINISTIC}},
                {SLEEPS, {.beside_baseline = false}},
                {NOTHING, {.beside_baseline = true}},
                {NOTHING, {.beside_provider = true}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trial t = rows[i].t;
        assert_int_equal(audit(&t, rows[i].deed, state), GATE_OK);
        assert_true(t.k.flags ? t.looks > 2 * VERIFY_SEEDS : !t.looks);
    }
}

#define BITS "other bits"
#define IDLE "does not work where its result is there already"
#define ELSEWHERE                                                                                  \
    "kernel 'k' wrote where it must not: 4 bytes of the red zone behind tensor 'y', when it was "  \
    "timed"
#define CHANGES "kernel 'k' changed its input 'a', when it was timed"

/* Where a result is there already each is told by its own time, and by the baseline's where that is
 * not clear; on a device a recording that idles late is told by the samples. */
TEST_WITHIN(one_that_changes_its_ways_is_wrong, open_device, scripted_close)
{
    static const struct {
        enum deed deed;
        const char *says;
        struct trial t;
    } rows[] = {{SKIPS, BITS, {.guilty = 0}},
                {ONE_SET, BITS, {.guilty = 0}},
                {BY_POINTER, BITS, {.guilty = 0}},
                {PREVIOUS, BITS, {.guilty = 0}},
                {OTHER_BITS, BITS, {.guilty = 0}},
                {SINGLES, BITS, {.guilty = 0}},
                {IF_STALE, IDLE, {.guilty = 0}},
                {PAST_END, ELSEWHERE, {.beside_baseline = true}},
                {PAST_END, ELSEWHERE, {.beside_baseline = true, .baseline_writes = true}},
                {INPUT, CHANGES, {.beside_baseline = true}},
                {IF_STALE, IDLE, {.beside_baseline = true, .on_cuda = true}},
                {LATE_STALE, IDLE, {.beside_baseline = true, .on_cuda = true}},
                {HALF_STALE, IDLE, {.beside_baseline = true, .on_cuda = true}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trial t = rows[i].t;
        assert_int_equal(audit(&t, rows[i].deed, state), GATE_WRONG);
        assert_non_null(strstr(t.err.message, rows[i].says));
        assert_int_equal(t.guilty, t.baseline_writes);
        assert_int_equal(t.looks, !strcmp(rows[i].says, BITS));
    }
}

/* An eighth is too little for that, but not to be called faster. Of one alone no baseline tells
 * what caches make of it. */
TEST_WITHIN(what_is_faster_is_timed_on_fresh_inputs, open_device, scripted_close)
{
    static const struct {
        enum deed deed;
        bool alone;
        double ratio, least, most;
    } rows[] = {{NOTHING, false, 0.9, 1, 1},
                {EIGHTH_STALE, false, 0.9, 1.13, 1.15},
                {LATE_EIGHTH, false, 0.9, 1.13, 1.15},
                {EIGHTH_STALE, false, 1, 0, 0}, /* not faster */
                {NOTHING, true, 1, 1, 1},
                {EIGHTH_STALE, true, 1, 1.13, 1.15},
                {LATE_EIGHTH, true, 1, 1.13, 1.15}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trial t = {
            .beside_baseline = !rows[i].alone, .ratio = rows[i].ratio, .on_cuda = true};
        assert_int_equal(audit(&t, rows[i].deed, state), GATE_OK);
        double fresh = t.arm[!rows[i].alone].timing.ratio_fresh;
        assert_true(fresh >= rows[i].least && fresh <= rows[i].most);
    }
}

/* No kernel is called wrong for what a clock says that cannot be. */
TEST_WITHIN(a_clock_that_stops_is_no_fault_of_the_kernel, open_device, scripted_close)
{
    struct trial t = {.clock_stops = true};
    assert_int_equal(audit(&t, NOTHING, state), GATE_ENVIRONMENT);
    assert_non_null(strstr(t.err.message, "the clock stopped or jumped: a replay of the audit "));
}

TEST_WITHIN(without_fingerprints_there_is_no_audit, open_device, scripted_close)
{
    struct session s = {.device = *state, .n_arms = 1};
    struct arm arm = {.verification.fingerprints.known = false};
    const struct audit a = {.session = &s};
    s.arms = &arm;
    assert_int_equal(audit_arms(&a, NULL), GATE_OK);
}

/* ---- the rule for who does less where its result is there already ---- */

static const struct idle_rule beside = {.limit = 1.15, .fixed_ns = 20e3};
static const struct idle_rule alone = {.limit = 2, .fixed_ns = 20e3};

static enum idle_answer ask(double timed, double stale, double fresh)
{
    return idle_ask(&(struct idle_check){timed, stale, fresh}, &beside);
}

TEST(fresh_may_take_as_long_as_stale)
{
    assert_int_equal(ask(1e6, 1e6, 1e6), IDLE_NO);
    assert_int_equal(ask(1e6, 1e6, 1.14e6), IDLE_NO);
    assert_int_equal(ask(1e6, 1e6, 1.16e6), IDLE_ASK_BASELINE);
    assert_int_equal(ask(1e6, 1e6, 2.31e6), IDLE_YES);
}

/* Whatever a busy machine did to the samples. */
TEST(samples_that_took_longer_hide_nothing)
{
    assert_int_equal(ask(5e6, 1e6, 1.16e6), IDLE_ASK_BASELINE);
}

/* What idles late, or was recorded otherwise, shows in the samples alone. */
TEST(what_the_samples_took_is_expected_of_stale_too)
{
    assert_int_equal(ask(0.5e6, 1e6, 1e6), IDLE_ASK_BASELINE);
    assert_int_equal(ask(0.1e6, 1e6, 1e6), IDLE_YES);
}

TEST(a_replay_by_itself_has_a_cost)
{
    assert_int_equal(ask(2e3, 8e3, 8e3), IDLE_NO);
    assert_int_equal(ask(2e3, 22e3, 23e3), IDLE_NO);
    assert_true(idle_rule(true, true).fixed_ns > idle_rule(false, true).fixed_ns);
}

TEST(a_microsecond_or_two_are_nothing)
{
    assert_int_equal(ask(2e3, 2e3, 3.9e3), IDLE_NO);
    assert_int_equal(ask(2e3, 2e3, 4.7e3), IDLE_YES);
}

TEST(a_baseline_excuses_what_it_has_too)
{
    const struct idle_check own = {1e6, 1e6, 1.6e6};
    assert_int_equal(idle_ask_baseline(&own, &(struct idle_check){1e6, 1e6, 1e6}, &beside),
                     IDLE_YES);
    assert_int_equal(idle_ask_baseline(&own, &(struct idle_check){2e6, 2e6, 1e6}, &beside),
                     IDLE_YES);
    assert_int_equal(idle_ask_baseline(&own, &(struct idle_check){2e6, 2e6, 3e6}, &beside),
                     IDLE_NO);
}

/* One that idles as well. */
TEST(a_baseline_does_not_excuse_everything)
{
    const struct idle_check own = {1e6, 1e6, 2.4e6}, idle = {1e3, 1e3, 1e6};
    assert_int_equal(idle_ask_baseline(&own, &idle, &beside), IDLE_YES);
    assert_int_equal(idle_ask(&(struct idle_check){1e6, 1e6, 1.9e6}, &alone), IDLE_NO);
    assert_int_not_equal(idle_ask(&(struct idle_check){1e6, 1e6, 2.1e6}, &alone), IDLE_NO);
}

TEST(rules_are_wider_where_there_is_more_noise)
{
    assert_true(idle_rule(false, true).limit < idle_rule(true, true).limit);
    assert_true(idle_rule(true, true).limit < idle_rule(true, false).limit);
    assert_true(idle_rule(false, false).limit == idle_rule(true, false).limit);
}

static int looks_until_sure(unsigned one_in)
{
    int score = IDLE_SCORE_START, looks = 0;
    while (0 < score && score < IDLE_SCORE_SURE)
        score = idle_score(score, ++looks % one_in != 0);
    return score >= IDLE_SCORE_SURE ? looks : -looks;
}

TEST(a_score_needs_many_suspicions_and_few_others)
{
    assert_int_equal(looks_until_sure(1), -2);  /* none is suspicious */
    assert_int_equal(looks_until_sure(2), -8);  /* one in two */
    assert_int_equal(looks_until_sure(10), 15); /* nine in ten */
    assert_int_equal(looks_until_sure(100), 12);
}
