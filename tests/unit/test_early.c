/* SPDX-License-Identifier: Apache-2.0 */
/* test_early.c: what a library changes before its first launch, on a device that says so. */
#include <string.h>
#include <sys/stat.h>

#include "gate/verify/verify_state.h"
#include "tests/unit/unit.h"

static struct device_state shown; /* by the device */

static enum gate_status show(struct device *d, struct device_state *out, struct gate_error *err)
{
    (void)d, (void)err;
    *out = shown;
    return GATE_OK;
}

static const struct device_state usual = {.memory_free_bytes = (size_t)1 << 30,
                                          .memory_own_bytes = (size_t)1 << 28,
                                          .malloc_heap_bytes = (size_t)8 << 20,
                                          .printf_bytes = (size_t)1 << 20};

static enum gate_status last_status;

static const struct device_backend backend = {.state_read = show};
static struct device device = {.backend = &backend};

/* What is said once the device shows `now`; "": nothing. */
static const char *said_of(struct device_state now)
{
    static struct gate_error err;
    struct surroundings before;
    err = (struct gate_error){0};
    shown = usual;
    assert_int_equal(surroundings_read(&device, &before, &err), GATE_OK);
    shown = now;
    enum gate_status status = surroundings_check(&device, &before, "in prepare()", &err);
    last_status = status;
    return err.message;
}

TEST(limits_of_the_device_are_seen)
{
    struct device_state now = usual;
    assert_string_equal(said_of(now), "");
    assert_int_equal(last_status, GATE_OK);
    now.persisting_l2_bytes = (size_t)4 << 20;
    assert_string_equal(said_of(now), "in prepare(): the kernel changed the state of the device: "
                                      "the part of the L2 reserved for persisting accesses");
    assert_int_equal(last_status, GATE_WRONG);
    now = usual;
    now.malloc_heap_bytes *= 2;
    assert_non_null(strstr(said_of(now), "malloc() heap"));
    now = usual;
    now.printf_bytes *= 2;
    assert_non_null(strstr(said_of(now), "printf() buffer"));
    now = usual;
    now.current = 1;
    assert_non_null(strstr(said_of(now), "the current device"));
}

/* A library may have memory of its own, and no more of it than the gate. */
TEST(most_of_the_memory_is_too_much)
{
    struct device_state now = usual;
    now.memory_free_bytes /= 2;
    assert_string_equal(said_of(now), "");
    now.memory_free_bytes--;
    now.memory_own_bytes += ((size_t)1 << 29) + 1;
    assert_string_equal(said_of(now), "in prepare(): the kernel took 536870913 of the 1073741824 "
                                      "free bytes of device memory");
    assert_int_equal(last_status, GATE_WRONG);
}

/* No kernel is blamed for what another process took, or may have taken. */
TEST(what_others_take_is_the_environment)
{
    struct device_state now = usual;
    now.memory_free_bytes = 1;
    now.memory_own_bytes += (size_t)1 << 29;
    assert_non_null(strstr(said_of(now), "another process took"));
    assert_int_equal(last_status, GATE_ENVIRONMENT);
    now.memory_own_bytes = 0;
    assert_non_null(strstr(said_of(now), "a process that the driver does not name took"));
    assert_int_equal(last_status, GATE_ENVIRONMENT);
    now.printf_bytes *= 2; /* which is this process's, whoever took the memory */
    assert_non_null(strstr(said_of(now), "printf() buffer"));
    assert_int_equal(last_status, GATE_WRONG);
}

TEST(the_process_is_looked_at_too)
{
    struct gate_error err = {0};
    struct surroundings before;
    assert_int_equal(surroundings_read(&device, &before, &err), GATE_OK);
    mode_t usual_mask = umask(0123);
    enum gate_status status = surroundings_check(&device, &before, "when opened", &err);
    umask(usual_mask);
    assert_int_equal(status, GATE_WRONG);
    assert_non_null(strstr(err.message, "when opened: the kernel changed the state of the process: "
                                        "the file mode mask"));
}
