/* SPDX-License-Identifier: Apache-2.0 */
/* test_workspace_zones.c: who writes beside the workspace that it was given is told so. */
#include <stdlib.h>
#include <string.h>

#include "gate/launch/arm.h"
#include "tests/unit/unit.h"

#define LARGEST 1000 /* workspace of the arms */
#define BYTES (LARGEST + 2 * OPERANDS_RED_ZONE)

/* What is said where the byte at `offset` of the begin of a workspace of `given` bytes was written;
 * "": nothing. */
static const char *said_of(int64_t offset, uint64_t given)
{
    static char text[200];
    struct device *d = NULL;
    struct device_memory memory;
    struct gate_error err = {0};
    assert_int_equal(device_open("host", &d, &err), GATE_OK);
    assert_int_equal(device_alloc(d, BYTES, &memory, &err), GATE_OK);
    memset(memory.data, POISON_LARGE, BYTES);
    ((unsigned char *)memory.data)[OPERANDS_RED_ZONE + offset] = 1;
    assert_int_equal(operands_check_around(d, (char *)memory.data + OPERANDS_RED_ZONE, given,
                                           "the workspace", POISON_LARGE, text, sizeof text, &err),
                     GATE_OK);
    device_free(d, &memory);
    device_close(d);
    return text;
}

TEST(what_is_given_may_be_written)
{
    assert_string_equal(said_of(0, LARGEST), "");
    assert_string_equal(said_of(LARGEST - 1, LARGEST), "");
}

TEST(what_lies_beside_may_not)
{
    static const int64_t before[] = {-1, -OPERANDS_RED_ZONE}, behind[] = {LARGEST, LARGEST + 4095};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(
            said_of(before[i], LARGEST),
            "wrote where it must not: 1 bytes of the red zone before the workspace");
        assert_string_equal(
            said_of(behind[i], LARGEST),
            "wrote where it must not: 1 bytes of the red zone behind the workspace");
    }
}

/* Where another arm needs more, an arm's zone begins behind its own. */
TEST(the_zone_is_that_of_the_arm)
{
    assert_string_equal(said_of(299, 300), "");
    assert_non_null(strstr(said_of(300, 300), "behind the workspace"));
}
