/* SPDX-License-Identifier: Apache-2.0 */
/* test_machine.c: a machine that leaves the level of its model is named, and no other. */
#include <math.h>
#include <stdio.h>

#include "gate/store/store_machine.h"
#include "tests/unit/unit.h"

static struct store_machine machine(const char *model, double control_ns, double scatter,
                                    size_t n_levels)
{
    struct store_machine m = {.level = log(control_ns), .scatter = scatter, .n_levels = n_levels};
    snprintf(m.device_model, sizeof m.device_model, "%s", model);
    return m;
}

TEST(the_one_that_is_far_is_named)
{
    struct store_machine list[] = {
        machine("h200", 1000, 0.002, 20), machine("h200", 1003, 0.002, 20),
        machine("h200", 998, 0.002, 20),  machine("h200", 1030, 0.002, 20),
        machine("h100", 1500, 0.002, 20), /* another model, alone */
    };
    machines_compare(list, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(list[i].is_off, i == 3);
    assert_true(fabs(list[3].off - (1030 / sqrt(1000 * 1003.0) - 1)) < 1e-9);
    assert_true(list[0].spread >= 0.002 && list[0].spread < 0.01);
    assert_true(list[4].spread == 0);
}

TEST(what_scatters_as_much_is_not)
{
    struct store_machine list[] = {
        machine("h200", 1000, 0.02, 20),
        machine("h200", 1003, 0.02, 20),
        machine("h200", 1030, 0.02, 20),
    };
    machines_compare(list, 3);
    for (size_t i = 0; i < 3; i++)
        assert_false(list[i].is_off);
    /* Of equal ones one may be off by 0.3 %. */
    list[0] = list[1] = machine("h200", 1000, 0, 20);
    list[2] = machine("h200", 1002.9, 0, 20);
    machines_compare(list, 3);
    assert_false(list[2].is_off);
    list[2] = machine("h200", 1003.1, 0, 20);
    machines_compare(list, 3);
    assert_true(list[2].is_off);
}

TEST(too_few_runs_or_machines_say_nothing)
{
    struct store_machine list[] = {
        machine("h200", 1000, 0, 20),
        machine("h200", 1000, 0, 20),
        machine("h200", 1100, 0, MACHINE_LEAST - 1),
    };
    machines_compare(list, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(list[i].spread == 0 && !list[i].is_off);
}
