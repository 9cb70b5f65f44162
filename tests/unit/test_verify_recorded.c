/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verify_recorded.c: a kernel that is right when it is launched, and something else where its
 * recording is replayed, as it can be on a GPU. On the host device a recording only calls launch(),
 * so here the device tells the kernel that it is replayed.
 */
#include <math.h>
#include <string.h>

#include "kernels/ops/rows.h"
#include "gate/verify/verify.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/scripted_device.h"
#include "tests/unit/unit.h"

enum fault { NONE, IDLE, OTHER_BITS, OUT_OF_BOUNDS, INPUT };

static enum fault fault;
static bool replayed;

static enum gate_status replay_run(struct device *d, struct device_replay *r,
                                   struct device_time *out, struct gate_error *err)
{
    replayed = true;
    enum gate_status status = real->replay_run(d, r, out, err);
    replayed = false;
    return status;
}

static int supports(const struct kg_problem *p, const struct kg_device *)
{
    return kg_is_op(p, "gemm") && kg_size(p, "m") == 4 && kg_size(p, "n") == 4 &&
           kg_size(p, "k") == 4 && kg_dtype(p) == KG_F32;
}

static enum kg_status launch(const struct kg_problem *p, const struct kg_args *args)
{
    float *c = args->out[0].data;
    if (args->out[0].stride[0] != 4)
        return KG_UNSUPPORTED;
    if (replayed && fault == IDLE)
        return KG_OK;
    for (int64_t i = 0; i < 16; i++)
        c[i] = (float)op_of(p)->element(p, args->in, 0, i);
    if (replayed && fault == OTHER_BITS)
        c[5] = nextafterf(c[5], 100);
    if (replayed && fault == OUT_OF_BOUNDS)
        c[16] = 1;
    if (replayed && fault == INPUT)
        *(float *)args->in[0].data += 1;
    return KG_OK;
}

static void notice(void *, const struct arm *, const char *)
{
}

/* What the verification says of the kernel with this fault; "": it is right. */
static const char *verify(enum fault f, uint32_t flags)
{
    static struct arm arm;
    const struct kg_kernel kernel = {.struct_bytes = sizeof kernel,
                                     .op = "gemm",
                                     .name = "k",
                                     .flags = flags,
                                     .supports = supports,
                                     .launch = launch};
    const struct kg_kernel *kernels[] = {&kernel};
    const struct kg_library table = {.provider = "unit", .kernels = kernels, .n_kernels = 1};
    const struct library library = {.table = &table};
    const struct suite_case c = {.id = "c", .problem = gemm_like("gemm", KG_F32, 4, 4, 4)};
    struct device_memory memory;
    struct reference reference = {.memory = {0}};
    struct gate_error err = {0};
    struct device *d = scripted_open();
    scripted.replay_run = replay_run;
    fault = f;
    arm = (struct arm){
        .library = &library, .kernel = &kernel, .verification = verification_start(&c.problem)};
    assert_int_equal(device_alloc(d, operands_bytes(&c.problem, operands_red_zones), &memory, &err),
                     GATE_OK);
    struct operands o = operands_at(d, &c.problem, memory.data, operands_red_zones);
    assert_int_equal(reference_reserve(d, o.out, o.args.n_out, &reference, &err), GATE_OK);
    const struct verify_job job = {.device = d,
                                   .c = &c,
                                   .seed = 1,
                                   .operands = &o,
                                   .reference = &reference,
                                   .arms = &arm,
                                   .n_arms = 1,
                                   .notice = notice};
    assert_int_equal(verify_arms(&job, &err), GATE_OK);
    assert_int_equal(arm.verification.ok, !arm.verification.message[0]);
    device_free(d, &reference.memory);
    device_free(d, &memory);
    device_close(d);
    return arm.verification.message;
}

TEST(who_does_the_same_is_right)
{
    assert_string_equal(verify(NONE, 0), "");
}

TEST(who_does_nothing_is_found)
{
    assert_non_null(strstr(verify(IDLE, 0), "right when launched, wrong when replayed"));
    assert_non_null(strstr(verify(IDLE, KG_KERNEL_NONDETERMINISTIC), "wrong when replayed"));
}

TEST(other_bits_are_found_unless_they_are_declared)
{
    assert_non_null(strstr(verify(OTHER_BITS, 0), "a replayed recording gave different bits"));
    assert_string_equal(verify(OTHER_BITS, KG_KERNEL_NONDETERMINISTIC), "");
}

TEST(what_else_it_writes_is_found)
{
    assert_non_null(strstr(verify(OUT_OF_BOUNDS, 0), "red zone behind tensor 'c'"));
    assert_non_null(strstr(verify(INPUT, 0), "an input changed"));
}
