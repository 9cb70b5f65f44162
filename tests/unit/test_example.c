/* SPDX-License-Identifier: Apache-2.0 */
/* test_example.c: what `gate init --example` names on which machine. */
#include <string.h>

#include "gate/cli/commands.h"
#include "tests/unit/unit.h"

TEST(each_machine_gets_a_library_that_it_can_build_and_measure)
{
    static const struct {
        bool has_gpu, has_nvcc;
        const char *library, *options;
    } rows[] = {
        {false, false, "build/libmykernels.so", ""},
        {false, true, "build/libmykernels.so", ""},
        {true, true, "build/libmykernels_cuda.so", ""},
        {true, false, "build/libmykernels.so", " --device host"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct example e = example_choose(rows[i].has_gpu, rows[i].has_nvcc);
        assert_string_equal(e.library, rows[i].library);
        assert_string_equal(e.options, rows[i].options);
    }
}
