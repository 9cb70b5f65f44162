/* SPDX-License-Identifier: Apache-2.0 */
/* test_launches.c: what differs between two builds of a commit is said. */
#include "gate/baseline/revision.h"

#include <string.h>

#include "tests/unit/unit.h"

#define ONE "launches 1 code aa grid 132x1x1 block 384x1x1 shared 1024; "
#define TWO "launches 2 code bb grid 8x1x1 block 128x1x1 shared 0; "

TEST(the_part_that_differs_is_named)
{
    static const struct {
        const char *now, *why;
    } cases[] = {
        {ONE TWO "order 01", ""},
        {ONE TWO "order 02", "the order of its launches, their clusters"},
        {ONE "launches 2 code bc grid 8x1x1 block 128x1x1 shared 0; order 01",
         "kernel 2 of 2 has other device code"},
        {"launches 1 code aa grid 66x1x1 block 384x1x1 shared 1024; " TWO "order 01",
         "kernel 1 of 2 has grid 66x1x1, and the stored one 132x1x1"},
        {ONE "launches 2 code bb grid 8x1x1 block 128x1x1 shared 16; order 01",
         "kernel 2 of 2 has shared 16, and the stored one 0"},
        {ONE "launches 20 code bb grid 8x1x1 block 128x1x1 shared 0; order 01",
         "kernel 2 of 2 has launches 20, and the stored one 2"},
        {ONE "order 01", "a launch runs 1 different kernels, and the stored one 2"},
        {"", "a launch runs 0 different kernels"},
        {ONE TWO, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[200] = "";
        bool equal = launches_are_equal(ONE TWO "order 01", cases[i].now, why, sizeof why);
        assert_int_equal(equal, i == 0);
        assert_non_null(strstr(why, cases[i].why));
    }
}
