/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of kernels: one for each problem, given to each launch of it, freed once. */
#include "gate/launch/arm.h"
#include "tests/unit/problem_tensors.h"
#include "tests/unit/unit.h"

static int plans[2];
static unsigned prepared, released[2];
static bool leaves_none;
static enum kg_status answer;
static void *launched_with;

static enum kg_status prepare(const struct kg_problem *p, const struct kg_device *, void **plan)
{
    assert_null(*plan);
    prepared++;
    *plan = leaves_none ? NULL : &plans[kg_size(p, "k") == 2];
    return answer;
}

static uint64_t workspace_bytes(const struct kg_problem *, const struct kg_device *, void *plan)
{
    return plan == &plans[1] ? 200 : plan ? 100 : 1;
}

static enum kg_status launch(const struct kg_problem *, const struct kg_args *args)
{
    launched_with = args->plan;
    return KG_OK;
}

static void release(void *plan)
{
    released[plan == &plans[1]]++;
}

static const struct kg_kernel kernel = {.prepare = prepare,
                                        .workspace_bytes = workspace_bytes,
                                        .launch = launch,
                                        .release = release},
                              other = {.prepare = prepare, .launch = launch};

static int begin(void **)
{
    plan_release_all();
    prepared = released[0] = released[1] = 0;
    leaves_none = false;
    answer = KG_OK;
    return 0;
}

TEST_WITHIN(a_plan_for_each_problem, begin, NULL)
{
    const struct kg_problem one = gemm_like("gemm", KG_F16, 1, 1, 1),
                            two = gemm_like("gemm", KG_F16, 1, 1, 2);
    const struct kg_device where = {0};
    assert_null(plan_of(&kernel, &one));
    assert_int_equal(plan_workspace_bytes(&kernel, &one, &where), 1);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(plan_prepare(&kernel, &one, &where), KG_OK);
        assert_int_equal(plan_prepare(&kernel, &two, &where), KG_OK);
    }
    assert_int_equal(prepared, 2);
    assert_ptr_equal(plan_of(&kernel, &one), &plans[0]);
    assert_ptr_equal(plan_of(&kernel, &two), &plans[1]);
    assert_null(plan_of(&other, &one));
    assert_int_equal(plan_workspace_bytes(&kernel, &two, &where), 200);
    assert_int_equal(plan_workspace_bytes(&other, &two, &where), 0);
    plan_release_all();
    assert_true(released[0] == 1 && released[1] == 1);
    assert_null(plan_of(&kernel, &one));
}

TEST_WITHIN(a_launch_gets_its_plan, begin, NULL)
{
    const struct kg_problem two = gemm_like("gemm", KG_F16, 1, 1, 2);
    const struct kg_device where = {0};
    const struct arm arm = {.kernel = &kernel};
    const struct operands set = {.args = {.n_in = 2, .n_out = 1}};
    assert_int_equal(plan_prepare(&kernel, &two, &where), KG_OK);
    struct arm_launch launched =
        arm_launch_of(&arm, &kernel, &two, &set, (struct device_memory){0});
    assert_int_equal(arm_launch(&launched, 0, NULL), KG_OK);
    assert_ptr_equal(launched_with, &plans[1]);
}

/* A kernel without plans is asked each time: what it does may have been undone. */
TEST_WITHIN(no_plan_is_no_memory, begin, NULL)
{
    const struct kg_problem one = gemm_like("gemm", KG_F16, 1, 1, 1);
    const struct kg_device where = {0};
    leaves_none = true;
    assert_int_equal(plan_prepare(&kernel, &one, &where), KG_OK);
    assert_int_equal(plan_prepare(&kernel, &one, &where), KG_OK);
    assert_int_equal(prepared, 2);
    leaves_none = false;
    answer = KG_UNSUPPORTED;
    assert_int_equal(plan_prepare(&kernel, &one, &where), KG_UNSUPPORTED);
    assert_null(plan_of(&kernel, &one));
    plan_release_all();
    assert_int_equal(released[0], 0);
}
