/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_transplant.c: which node carries a slowdown, on the host device whose launches are recorded
 * as nodes here: functions of known lengths, which are really called.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/cases/problem.h"
#include "gate/worker/worker.h"
#include "tests/unit/noise.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/scripted_device.h"
#include "tests/unit/unit.h"

enum { M = 8, NODES_MAX = 4, CANDIDATE = 0, BASELINE = 1 };

#define NODE_NS 1000.0

struct node {
    void (*run)(const struct node *n);
    struct kg_args args;
    double ns;
    unsigned side, at; /* its number in the launch */
    float factor;      /* what goes from node to node is multiplied by it, and divided at the end */
};

struct device_replay {
    struct node *nodes;
    size_t n;
    unsigned each;
    bool is_hybrid;
};

/* What the launches of a side are made of. */
static struct {
    unsigned n;
    double ns[NODES_MAX];
    bool is_fill[NODES_MAX];
    float factor;
    bool own_scratch; /* what goes from node to node is not in the workspace */
} sides[2];

static struct {
    struct device_replay *recording;
    unsigned refused; /* node that fits nowhere; from 1 */
    bool dies;        /* a hybrid does, and the device with it */
    double noise;
    unsigned hybrid_runs, looks;
    struct rng rng;
} script;

static float scratch[2][M];

/* ---- the kernels: y = A x with A[M,1] and x[1] ---- */

static float *between(const struct node *n)
{
    return sides[n->side].own_scratch ? scratch[n->side] : n->args.workspace;
}

static void multiply(const struct node *n)
{
    const float *a = n->args.in[0].data, *x = n->args.in[1].data;
    for (int i = 0; i < M; i++)
        between(n)[i] = a[i] * x[0] * n->factor;
}

static void nothing(const struct node *)
{
}

static void write_out(const struct node *n)
{
    float *y = n->args.out[0].data;
    for (int i = 0; i < M; i++)
        y[i] = between(n)[i] / n->factor;
}

static enum kg_status launch_side(unsigned side, const struct kg_args *args)
{
    struct device_replay *r = script.recording;
    unsigned n = sides[side].n;
    if (!r)
        return KG_LAUNCH_FAILED;
    for (unsigned i = 0; i < n; i++)
        r->nodes[r->n++] = (struct node){.run = i == 0      ? multiply
                                                : i + 1 < n ? nothing
                                                            : write_out,
                                         .args = *args,
                                         .ns = sides[side].ns[i],
                                         .side = side,
                                         .at = i,
                                         .factor = sides[side].factor};
    r->each = n;
    return KG_OK;
}

static enum kg_status launch_candidate(const struct kg_problem *, const struct kg_args *args)
{
    return launch_side(CANDIDATE, args);
}

static enum kg_status launch_baseline(const struct kg_problem *, const struct kg_args *args)
{
    return launch_side(BASELINE, args);
}

/* ---- the device ---- */

static enum gate_status record(struct device *, device_launch_fn launch, void *context, unsigned n,
                               bool, struct device_replay **out, struct gate_error *)
{
    struct device_replay *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->nodes = malloc(n * NODES_MAX * sizeof *r->nodes);
    assert_non_null(r->nodes);
    script.recording = r;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(launch(context, i, NULL), KG_OK);
    script.recording = NULL;
    *out = r;
    return GATE_OK;
}

static enum gate_status replay(struct device *, struct device_replay *r, struct device_time *out,
                               struct gate_error *err)
{
    double ns = 0;
    script.hybrid_runs += r->is_hybrid;
    if (r->is_hybrid && script.dies)
        return gate_fail(err, GATE_WRONG, "the device is gone");
    for (size_t i = 0; i < r->n; i++) {
        r->nodes[i].run(&r->nodes[i]);
        ns += r->nodes[i].ns;
    }
    ns *= exp(script.noise * rng_normal(&script.rng));
    *out = (struct device_time){ns, ns, 0};
    return GATE_OK;
}

static enum gate_status nodes_of(struct device *, struct device_replay *r, unsigned launches,
                                 struct device_nodes *out, struct gate_error *)
{
    static const char *const names[2][NODES_MAX] = {{"one", "two", "three", "four"},
                                                    {"eins", "zwei", "drei", "vier"}};
    assert_int_equal(r->n, launches * r->each);
    for (out->n = 0; out->n < r->each; out->n++) {
        unsigned side = r->nodes[0].side;
        out->name[out->n] = names[side][out->n];
        out->is_kernel[out->n] = !sides[side].is_fill[out->n];
    }
    return GATE_OK;
}

static enum gate_status transplant(struct device *, const struct device_transplant *t,
                                   struct device_replay **out, struct gate_error *err)
{
    if (script.refused == t->node + 1)
        return gate_fail(err, GATE_USAGE, "it does not fit");
    struct device_replay *r = calloc(1, sizeof *r);
    assert_non_null(r);
    *r = *t->into;
    r->is_hybrid = true;
    r->nodes = malloc(r->n * sizeof *r->nodes);
    assert_non_null(r->nodes);
    assert_int_equal(t->into->n, t->from->n);
    memcpy(r->nodes, t->into->nodes, r->n * sizeof *r->nodes);
    for (size_t i = t->node; i < r->n; i += r->each)
        r->nodes[i] = t->from->nodes[i];
    *out = r;
    return GATE_OK;
}

static void free_replay(struct device *, struct device_replay *r)
{
    free(r->nodes);
    free(r);
}

static int open_device(void **state)
{
    struct device *d = scripted_open();
    scripted.replay_record = record;
    scripted.replay_run = replay;
    scripted.replay_nodes = nodes_of;
    scripted.replay_transplant = transplant;
    scripted.replay_free = free_replay;
    d->info.kg.l2_bytes = 200; /* three times as much is some sets of this problem */
    memset(&script, 0, sizeof script);
    rng_seed(&script.rng, 20);
    for (unsigned side = 0; side < 2; side++) {
        memset(&sides[side], 0, sizeof sides[side]);
        sides[side].n = 3;
        sides[side].factor = 1;
        for (unsigned i = 0; i < NODES_MAX; i++)
            sides[side].ns[i] = NODE_NS;
    }
    *state = d;
    return 0;
}

/* ---- an operation ---- */

static enum gate_status look(void *, struct arm *arm, const struct operands *o, unsigned,
                             struct gate_error *err)
{
    const float *a = o->args.in[0].data, *x = o->args.in[1].data, *y = o->args.out[0].data;
    script.looks++;
    for (int i = 0; i < M; i++)
        if (!(y[i] == a[i] * x[0])) {
            arm->verification.ok = false;
            return gate_fail(err, GATE_WRONG, "other bits");
        }
    return GATE_OK;
}

static void notice(void *, const char *)
{
}

static enum gate_status operate(void **state, struct transplant *out, struct gate_error *err)
{
    const struct kg_kernel candidate = {.name = "k", .launch = launch_candidate};
    const struct kg_kernel baseline = {.name = "k", .launch = launch_baseline};
    struct arm arms[TRANSPLANT_ARMS] = {
        {.kernel = &candidate, .second_copy = &candidate, .workspace_bytes = 64},
        {.kernel = &baseline,
         .second_copy = &baseline,
         .role = ROLE_BASELINE,
         .workspace_bytes = 64}};
    struct suite_case c = {.problem = gemm_like("gemv", KG_F32, M, 0, 1)};
    arms[2] = arms[0];
    arms[2].role = ROLE_PROVIDER;
    memset(out, 0, sizeof *out);
    return transplant_run(
        &(struct transplant_job){
            .device = *state, .c = &c, .seed = 7, .arms = arms, .check = look, .notice = notice},
        out, err);
}

static bool holds(const struct estimate *e, double value)
{
    return e->lo <= value && value <= e->hi;
}

/* The intervals miss one value in a hundred, and which samples are drawn depends on the time that a
 * warm-up takes: so the estimate is looked at, to five times its error. */
static bool is_near(const struct estimate *e, double value)
{
    return fabs(log(e->value / value)) < 0.005 && e->lo <= e->value && e->value <= e->hi;
}

TEST_WITHIN(the_slow_node_carries_the_slowdown, open_device, scripted_close)
{
    static const double slower[] = {0.05, 0.2};
    for (unsigned at = 0; at < 3; at++)
        for (size_t k = 0; k < 2; k++) {
            struct transplant t;
            script.noise = 0.002;
            sides[CANDIDATE].ns[at] = NODE_NS * (1 + 3 * slower[k]);
            assert_int_equal(operate(state, &t, NULL), GATE_OK);
            sides[CANDIDATE].ns[at] = NODE_NS;
            assert_null(t.document.message);
            assert_int_equal(t.document.n_nodes, 3);
            assert_string_equal(t.document.nodes[2].name, "three");
            assert_true(is_near(&t.document.slowdown, 1 + slower[k]));
            for (unsigned i = 0; i < 3; i++) {
                const struct estimate *e = &t.document.nodes[i].carries;
                assert_true(t.document.nodes[i].has_carries);
                assert_true(is_near(e, i == at ? 1 + slower[k] : 1));
                assert_true(e->hi - e->lo < 0.01);
            }
        }
}

/* Who gains hides what another loses: each has its own figure. */
TEST_WITHIN(a_faster_node_beside_a_slower_one, open_device, scripted_close)
{
    struct transplant t;
    sides[CANDIDATE].ns[0] = 700;
    sides[CANDIDATE].ns[2] = 1600;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_true(t.document.slowdown.value > 1.09 && t.document.slowdown.value < 1.11);
    assert_true(t.document.nodes[0].carries.value < 0.95);
    assert_true(t.document.nodes[2].carries.value > 1.15);
}

/* The node is 10 % in one company and 30 % in the other. */
TEST_WITHIN(the_interval_holds_what_both_hybrids_saw, open_device, scripted_close)
{
    struct transplant t;
    sides[CANDIDATE].ns[0] = 1300;
    sides[CANDIDATE].ns[1] = sides[BASELINE].ns[1] = 0;
    sides[CANDIDATE].ns[2] = 2000;
    sides[BASELINE].ns[2] = 0;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_true(holds(&t.document.nodes[0].carries, 3300.0 / 3000 + 1e-6));
    assert_true(holds(&t.document.nodes[0].carries, 1300.0 / 1000 - 1e-6));
}

TEST_WITHIN(nodes_that_do_not_correspond_are_listed, open_device, scripted_close)
{
    struct transplant t;
    sides[BASELINE].n = 2;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_non_null(strstr(t.document.message, "do not correspond"));
    assert_int_equal(t.document.n_nodes, 3);
    assert_int_equal(t.document.n_baseline, 2);
    assert_string_equal(t.document.baseline[1], "zwei");
    sides[BASELINE].n = 3;
    sides[BASELINE].is_fill[1] = true;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_int_equal(t.document.n_baseline, 3);
    assert_int_equal(script.hybrid_runs, 0);
}

TEST_WITHIN(a_node_that_does_not_fit_says_so_and_the_others_are_timed, open_device, scripted_close)
{
    struct transplant t;
    script.refused = 1;
    sides[CANDIDATE].ns[2] = 1300;
    sides[CANDIDATE].is_fill[1] = sides[BASELINE].is_fill[1] = true;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_string_equal(t.document.nodes[0].message, "it does not fit");
    assert_string_equal(t.document.nodes[1].message, "it is no kernel");
    assert_false(t.document.nodes[0].has_carries || t.document.nodes[1].has_carries);
    assert_null(t.document.nodes[2].message);
    assert_true(t.document.nodes[2].carries.value > 1.09);
}

/* Its outputs are looked at once, and it is run no more. */
TEST_WITHIN(a_wrong_hybrid_is_not_timed, open_device, scripted_close)
{
    struct transplant t;
    sides[CANDIDATE].factor = 2;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_non_null(strstr(t.document.nodes[0].message, "gives a wrong result"));
    assert_true(t.document.nodes[1].has_carries);
    assert_non_null(strstr(t.document.nodes[2].message, "gives a wrong result"));
    sides[CANDIDATE].n = sides[BASELINE].n = 2;
    script.hybrid_runs = script.looks = 0;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_int_equal(script.hybrid_runs, 2);
    assert_int_equal(script.looks, 2);
}

/* What a node finds there is of the same kernel on other inputs. */
TEST_WITHIN(what_is_left_of_another_launch_is_wrong, open_device, scripted_close)
{
    struct device *d = *state;
    sides[CANDIDATE].own_scratch = sides[BASELINE].own_scratch = true;
    for (unsigned many = 0; many < 2; many++) {
        struct transplant t;
        d->info.kg.l2_bytes = many ? 200 : 1; /* one set of inputs, or many */
        assert_int_equal(operate(state, &t, NULL), GATE_OK);
        assert_non_null(t.document.nodes[0].message);
        assert_non_null(strstr(t.document.nodes[0].message, "gives a wrong result"));
        assert_non_null(strstr(t.document.nodes[2].message, "gives a wrong result"));
    }
}

TEST_WITHIN(a_hybrid_that_spoils_the_device_ends_it, open_device, scripted_close)
{
    struct transplant t;
    struct gate_error err = {0};
    script.dies = true;
    assert_int_equal(operate(state, &t, &err), GATE_WRONG);
    assert_string_equal(err.message, "the device is gone");
    assert_int_equal(script.hybrid_runs, 1);
}

TEST_WITHIN(a_device_without_nodes_says_so, open_device, scripted_close)
{
    static struct device_backend backend;
    struct device *d = *state;
    struct transplant t;
    backend = *d->backend;
    backend.replay_nodes = NULL;
    d->backend = &backend;
    assert_int_equal(operate(state, &t, NULL), GATE_OK);
    assert_non_null(strstr(t.document.message, "no nodes"));
    assert_int_equal(t.document.n_nodes, 0);
}
