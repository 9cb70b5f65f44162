/* SPDX-License-Identifier: Apache-2.0 */
/* test_op_indices.c: inputs of a user's op whose elements have to fit each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/seed.h"
#include "gate/cases/problem.h"
#include "gate/launch/arm.h"
#include "kernels/ops/pattern.h"
#include "tests/unit/own_ops.h"

static const char indices[] =
    "{'schema': 'gate-op/1', 'name': 'pages', 'reference': 'r.so',\n"
    " 'sizes': [{'name': 'g', 'kind': 'count'}, {'name': 'm', 'kind': 'length'},\n"
    "  {'name': 't', 'kind': 'length'}],\n"
    " 'tensors': [{'name': 'x', 'role': 'in', 'axes': ['m', '(t + 3) / 4']},\n"
    "  {'name': 'o', 'role': 'in', 'axes': ['g + 1'], 'dtype': 'int32',\n"
    "   'fill': 'offsets', 'end': 'm'},\n"
    "  {'name': 'b', 'role': 'in', 'axes': ['g', 't'], 'dtype': 'int64',\n"
    "   'fill': 'table', 'end': 'm'},\n"
    "  {'name': 'l', 'role': 'in', 'axes': ['g'], 'dtype': 'int32',\n"
    "   'fill': 'integers', 'least': 1, 'end': '4 * t + 1'},\n"
    "  {'name': 'p', 'role': 'in', 'axes': ['g', 'm'], 'dtype': 'int32',\n"
    "   'fill': 'permutation'},\n"
    "  {'name': 'k', 'role': 'in', 'axes': ['g', 'm'], 'dtype': 'bool',\n"
    "   'fill': 'mask'},\n"
    "  {'name': 'y', 'role': 'out', 'axes': ['m'], 'whole': ['t']}], 'flops': 'm'}\n";

enum { G = 5, M = 64, T = 40, INPUTS = 6 };

/* Whose rows are apart, so that what lies between them counts as well. */
struct index_inputs {
    struct kg_tensor in[INPUTS];
    int64_t memory[INPUTS][M * M];
};

static void make_inputs(const struct kg_problem *p, struct index_inputs *x)
{
    for (unsigned i = 0; i < INPUTS; i++) {
        const struct kg_shape shape = op_shape_of(p, i);
        x->in[i] =
            (struct kg_tensor){.data = x->memory[i], .dtype = p->dtype[i], .rank = shape.rank};
        for (uint32_t r = 0; r < shape.rank; r++) {
            x->in[i].shape[r] = shape.size[r];
            x->in[i].stride[r] = r + 1 < shape.rank ? M : 1;
        }
    }
}

/* What was seen of all rows of a fill. */
struct seen {
    bool empty, one, equal, first_empty, last_empty, none, all, rising, falling, mixed, same;
};

static void look_at_offsets(const int64_t *v, int64_t n, int64_t end, struct seen *seen)
{
    bool equal = true;
    assert_int_equal(v[0], 0);
    assert_int_equal(v[n - 1], end);
    for (int64_t i = 1; i < n; i++) {
        assert_true(v[i - 1] <= v[i]);
        seen->empty |= v[i] == v[i - 1];
        seen->one |= v[i] - v[i - 1] == end;
        equal &= llabs((v[i] - v[i - 1]) * (n - 1) - end) < n;
    }
    seen->equal |= equal;
    seen->first_empty |= v[1] == 0;
    seen->last_empty |= v[n - 2] == end;
}

static void look_at_numbers(const int64_t *v, int64_t n, int64_t end, struct seen *seen)
{
    bool there[M] = {false}, rising = true, falling = true;
    for (int64_t i = 0; i < n; i++) {
        assert_true(v[i] >= 0 && v[i] < end && !there[v[i]]);
        there[v[i]] = true;
        rising &= !i || v[i] == v[i - 1] + 1;
        falling &= !i || v[i] == v[i - 1] - 1;
    }
    seen->rising |= rising;
    seen->falling |= falling;
    seen->mixed |= !rising && !falling;
}

static void look_at_mask(const int64_t *v, int64_t n, struct seen *seen)
{
    int64_t ones = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_true(v[i] == 0 || v[i] == 1);
        ones += v[i];
    }
    seen->none |= ones == 0;
    seen->all |= ones == n;
    seen->mixed |= ones && ones < n;
}

static void look(const struct index_inputs *x, struct seen seen[INPUTS])
{
    int64_t v[2][M];
    for (unsigned i = 1; i < INPUTS; i++) {
        const struct kg_tensor *t = &x->in[i];
        const int64_t n = t->shape[t->rank - 1], elements = pattern_elements(t);
        for (int64_t at = 0; at < elements; at++) {
            const int64_t row = at / n % 2;
            v[row][at % n] = (int64_t)pattern_get(t, at);
            if (at % n < n - 1)
                continue;
            seen[i].same |= at > n && !memcmp(v[0], v[1], (size_t)n * sizeof **v);
            if (i == 1)
                look_at_offsets(v[row], n, M, &seen[i]);
            else if (i == 5)
                look_at_mask(v[row], n, &seen[i]);
            else if (i != 3)
                look_at_numbers(v[row], n, M, &seen[i]);
            for (int64_t k = 0; k < n && i == 3; k++) {
                assert_true(v[row][k] >= 1 && v[row][k] <= 4 * T);
                seen[i].one |= v[row][k] == 1;
                seen[i].all |= v[row][k] == 4 * T;
            }
        }
    }
}

static struct own_op *use_indices(struct kg_problem *p)
{
    struct own_op *own = use_op(indices);
    *p = op_problem(&own->op, KG_F32, 0);
    for (unsigned i = 0; i < 3; i++)
        op_set_size(p, &own->op.sizes[i], (const int64_t[]){G, M, T}[i]);
    return own;
}

TEST(indices_are_all_that_is_allowed_and_nothing_else)
{
    struct kg_problem p;
    struct own_op *own = use_indices(&p);
    static struct index_inputs x;
    struct seen seen[INPUTS] = {0};
    make_inputs(&p, &x);
    assert_int_equal(x.in[0].shape[1], T / 4);
    assert_int_equal(x.in[1].shape[0], G + 1);
    for (uint64_t seed = 0; seed < 40; seed++)
        for (int probe = 0; probe < PROBES; probe++) {
            if (!probe_applies((enum probe)probe, &p))
                continue;
            probe_fill((enum probe)probe, &p, x.in, seed);
            look(&x, seen);
            for (uint64_t i = 0; i < INPUTS; i++)
                probe_change((enum probe)probe, &p, x.in, seed + i);
            look(&x, seen);
            own->op.fill(&p, 2, &x.in[2], (G - 1) * M + T, NULL, seed);
            look(&x, seen);
        }
    const struct seen *o = &seen[1], *b = &seen[2], *l = &seen[3], *k = &seen[5];
    assert_true(o->empty && o->one && o->equal && o->first_empty && o->last_empty);
    assert_true(b->rising && b->falling && b->mixed && b->same);
    assert_true(seen[4].rising && seen[4].falling && seen[4].mixed);
    assert_true(l->one && l->all);
    assert_true(k->none && k->all && k->mixed);
    end(own);
}

/* The usual ones: groups of which hardly one is empty, numbers that no other row has. */
TEST(indices_that_are_timed_are_usual)
{
    struct kg_problem p;
    struct own_op *own = use_indices(&p);
    static struct index_inputs x;
    bool there[M] = {false};
    op_set_size(&p, &own->op.sizes[2], M / G);
    make_inputs(&p, &x);
    for (unsigned i = 1; i < INPUTS; i++)
        own->op.fill(&p, i, &x.in[i], pattern_elements(&x.in[i]), "an id", 1);
    for (int64_t at = 0; at < pattern_elements(&x.in[2]); at++) {
        bool *number = &there[(int64_t)pattern_get(&x.in[2], at)];
        assert_false(*number);
        *number = true;
    }
    end(own);
}

/* Each run times the same work, on other numbers. */
TEST(what_says_how_much_work_there_is_follows_from_the_id)
{
    struct suite_case c = {.id = "pages/1"};
    struct own_op *own = use_indices(&c.problem);
    struct device *d;
    struct device_memory memory;
    uint64_t hash[3][INPUTS];
    assert_int_equal(device_open("host", &d, NULL), GATE_OK);
    assert_int_equal(device_alloc(d, operands_bytes(&c.problem, operands_gaps), &memory, NULL),
                     GATE_OK);
    struct operands o = operands_at(d, &c.problem, memory.data, operands_gaps);
    for (unsigned run = 0; run < 3; run++) {
        c.id[6] = run < 2 ? '1' : '2';
        assert_int_equal(operands_fill(d, &c, &o, run, NULL), GATE_OK);
        for (unsigned i = 0; i < INPUTS; i++)
            hash[run][i] = seed_hash(SEED_HASH, o.args.in[i].data, problem_tensor_bytes(&o.in[i]));
    }
    for (unsigned i = 0; i < INPUTS; i++) {
        assert_int_equal(hash[0][i] == hash[1][i], i > 0);
        assert_true(hash[1][i] != hash[2][i]);
    }
    device_free(d, &memory);
    device_close(d);
    end(own);
}

/* So are the offsets of a built-in op; those that verification draws have empty groups, and are no
 * integers as the factors are. */
TEST(offsets_of_groups_follow_from_the_id)
{
    struct suite_case c = {.id = "grouped/1"};
    c.problem = op_problem(op_by_name("grouped_gemm"), KG_F16, 0);
    for (unsigned i = 0; i < c.problem.n_sizes; i++)
        c.problem.size[i].value = 40;
    struct device *d;
    struct device_memory memory;
    int32_t timed[3][41];
    bool empty = false;
    assert_int_equal(device_open("host", &d, NULL), GATE_OK);
    assert_int_equal(device_alloc(d, operands_bytes(&c.problem, operands_gaps), &memory, NULL),
                     GATE_OK);
    struct operands o = operands_at(d, &c.problem, memory.data, operands_gaps);
    const struct kg_tensor *offsets = &o.args.in[2];
    for (unsigned run = 0; run < 3; run++) {
        c.id[8] = run < 2 ? '1' : '2';
        assert_int_equal(operands_fill(d, &c, &o, run, NULL), GATE_OK);
        memcpy(timed[run], offsets->data, sizeof timed[run]);
    }
    assert_memory_equal(timed[0], timed[1], sizeof *timed);
    assert_memory_not_equal(timed[0], timed[2], sizeof *timed);
    for (uint64_t seed = 0; seed < 20; seed++) {
        const int32_t *at = offsets->data;
        assert_int_equal(operands_fill_input(d, &c.problem, 2, offsets, 41, true, NULL, seed, NULL),
                         GATE_OK);
        for (unsigned g = 0; g < 40; g++) {
            assert_true(at[g] <= at[g + 1]);
            empty |= at[g] == at[g + 1];
        }
        assert_true(at[0] == 0 && at[40] == 40);
    }
    assert_true(empty);
    device_free(d, &memory);
    device_close(d);
}

TEST(sizes_leave_enough_numbers_for_a_table)
{
    struct kg_problem p;
    struct own_op *own = use_indices(&p);
    struct own_broken broken;
    op_set_size(&p, &own->op.sizes[2], M + 1);
    assert_false(op_allows(&p));
    assert_true(own_op_broken(own, &p, &broken));
    assert_string_equal(broken.what, "b");
    assert_string_equal(broken.pointer, "/tensors/2/end");
    assert_string_equal(broken.why, "a row has 65 different numbers below 64");
    assert_true(op_fit(&own->op, &p));
    assert_int_equal(op_size(&p, &own->op.sizes[2]), M);
    assert_true(op_allows(&p));
    end(own);
}
