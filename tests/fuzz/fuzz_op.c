/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_op.c: the file of an op of a user's, and the same bytes as an expression. */
#include <string.h>

#include "tests/fuzz/edits.h"
#include "gate/cases/op_file.h"
#include "gate/cases/problem.h"
#include "kernels/ops/pattern.h"

static const char good_text[] =
    "{\"schema\":\"gate-op/1\",\"name\":\"norm\",\"reference\":\"r.so\",\"sizes\":["
    "{\"name\":\"b\",\"kind\":\"count\"},{\"name\":\"h\",\"kind\":\"count\",\"most\":64},"
    "{\"name\":\"n\",\"kind\":\"length\",\"least\":8},"
    "{\"name\":\"d\",\"kind\":\"given\",\"values\":[64,128]}],"
    "\"constraints\":[\"n % 8 == 0\",\"h % b == 0\",\"n * d <= 65536 || h == 1\"],"
    "\"parameter\":{\"name\":\"eps\",\"usual\":1e-5,\"least\":0,\"most\":1},"
    "\"flag\":{\"name\":\"masked\",\"yes\":\"masked\",\"no\":\"full\"},\"tensors\":["
    "{\"name\":\"x\",\"role\":\"in\",\"axes\":[\"b\",\"n\"],\"fill\":\"any\"},"
    "{\"name\":\"i\",\"role\":\"in\",\"axes\":[\"n\"],\"dtype\":\"int32\",\"least\":0,\"most\":9},"
    "{\"name\":\"o\",\"role\":\"in\",\"axes\":[\"b\",\"h + 1\"],\"dtype\":\"int32\","
    "\"fill\":\"offsets\",\"end\":\"2 * n\"},"
    "{\"name\":\"t\",\"role\":\"in\",\"axes\":[\"h\",\"n\"],\"dtype\":\"int64\",\"fill\":\"table\","
    "\"end\":\"d + 64\"},"
    "{\"name\":\"p\",\"role\":\"in\",\"axes\":[\"n\"],\"dtype\":\"int8\",\"fill\":\"permutation\"},"
    "{\"name\":\"m\",\"role\":\"in\",\"axes\":[\"b\",\"n\"],\"dtype\":\"bool\",\"fill\":\"mask\"},"
    "{\"name\":\"q\",\"role\":\"in\",\"axes\":[\"n\",\"d\"],\"fill\":\"quantised\"},"
    "{\"name\":\"z\",\"role\":\"in\",\"axes\":[\"n\",\"d / "
    "32\"],\"dtype\":\"e8m0\",\"fill\":\"scales\","
    "\"least\":0.5,\"most\":1024,\"nan\":true},"
    "{\"name\":\"s\",\"role\":\"inout\",\"axes\":[\"b\",\"d\"]},"
    "{\"name\":\"y\",\"role\":\"out\",\"axes\":[\"b\",\"d\"],\"whole\":[\"n\"]}],"
    "\"flops\":\"8 * b * n + d\",\"id\":[\"b\",\"h\",\"n\",\"d\"],"
    "\"variants\":{\"w4\":{\"x\":\"fp16\",\"q\":\"int4\",\"s\":\"fp32\",\"y\":\"bf16\"},"
    "\"fp8\":{\"x\":\"bf16\",\"q\":\"e4m3\",\"s\":\"bf16\",\"y\":\"e5m2\"}},"
    "\"error_limits\":{\"w4\":0.001}}";

#define DRAWN_MAX 1024

/* Inputs that are small enough. */
static void draw(const struct kg_problem *p)
{
    static double memory[KG_MAX_TENSORS][DRAWN_MAX];
    struct problem_tensor t[PROBLEM_MAX_TENSORS];
    struct kg_tensor in[KG_MAX_TENSORS];
    problem_tensors(p, t);
    for (unsigned i = 0; i < p->n_in; i++) {
        const struct kg_shape shape = op_shape_of(p, i);
        const int64_t elements = kg_shape_elements(&shape);
        fuzz_expect(elements != 0, "a shape", t[i].name);
        if (elements < 0 || elements > DRAWN_MAX)
            return;
        in[i] = problem_dense(&t[i], memory[i]);
    }
    for (int probe = 0; probe < PROBES; probe++)
        if (probe_applies((enum probe)probe, p)) {
            probe_fill((enum probe)probe, p, in, 1);
            probe_change((enum probe)probe, p, in, 2);
        }
}

/* What is accepted can be asked anything. */
static void use(struct own_op *own)
{
    const struct op *const ops[] = {&own->op};
    op_use(ops, 1);
    unsigned n_rows, turn = 0;
    const struct dtype *rows = op_rows(&own->op, &n_rows);
    for (int64_t size = 1; size <= OP_SIZE_MAX; size *= 33) {
        struct kg_problem p = op_problem(&own->op, KG_F16, 0);
        char id[PROBLEM_ID_MAX];
        op_set_row(&p, own->op.rows ? &rows[turn++ % n_rows] : &rows[0]);
        for (unsigned i = 0; i < own->op.n_sizes; i++)
            op_set_size(&p, &own->op.sizes[i], size);
        if (!op_fit(&own->op, &p))
            continue;
        problem_id(&p, id);
        fuzz_expect(op_allows(&p), "the sizes that it takes to be allowed", id);
        draw(&p);
        fuzz_expect(problem_flops(&p) >= 0 && problem_error_limit(&p) > 0, "work to do", id);
    }
    op_use(NULL, 0);
}

static void use_expression(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"m", "n"};
    const int64_t sizes[] = {7, INT64_MAX};
    char text[200];
    struct expression e;
    struct gate_error err = {0};
    int64_t value;
    const char *why = NULL;
    size = size < sizeof text ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    if (expression_parse(text, names, 2, &e, &err))
        fuzz_expect(strstr(err.message, "at character ") != NULL, "a place", err.message);
    else
        fuzz_expect(expression_value(&e, sizes, &value, &why) || why, "a reason", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cJSON *good;
    struct gate_error err = {0};
    struct own_op *own;
    struct buf text;
    use_expression(data, size);
    good = good ? good : cJSON_Parse(good_text);
    buf_init(&text, (size_t)1 << 20);
    edits_text(good, data, size, &text);
    if (own_op_parse("op", text.data, text.len, &own, &err) == GATE_OK) {
        use(own);
        own_op_free(own);
    } else {
        fuzz_expect(!strncmp(err.message, "op:", 3), "a place", err.message);
    }
    buf_release(&text);
    return 0;
}
