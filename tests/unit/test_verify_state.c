/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_state.c: the state of the device, by one that says it, and of the process, before and
 * after kernels, and what a library changes before its first launch. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/verify/verify_state.h"
#include "tests/unit/unit.h"

static struct device_state shown; /* by the device */

static enum gate_status show(struct device *, struct device_state *out, struct gate_error *)
{
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

TEST(a_device_is_as_it_was)
{
    static const char *const says[] = {
        "",           "current device",    "malloc() heap", "printf() buffer",
        "the L2",     "fetch granularity", "calls wait",    "preference",
        "memory pool"};
    for (size_t i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct device_state now = usual;
        now.current += i == 1;
        now.malloc_heap_bytes += i == 2;
        now.printf_bytes += i == 3;
        now.persisting_l2_bytes += i == 4;
        now.l2_fetch_bytes += i == 5;
        now.wait_flags += i == 6;
        now.cache_preference += i == 7;
        now.pool_keeps += i == 8;
        assert_non_null(strstr(said_of(now), says[i]));
        assert_int_equal(last_status, i ? GATE_WRONG : GATE_OK);
        assert_true(i == 0 || strstr(said_of(now), "in prepare(): the kernel changed the state of "
                                                   "the device: "));
    }
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

/* 50 launches; `first` and `then` MiB are lost in either half; `own`: this process's own memory is
 * known, and stays what it was. */
static bool is_leak(size_t first, size_t then, bool own)
{
    const size_t all = (size_t)1 << 40, mib = (size_t)1 << 20;
    struct holdings at[3] = {{.device.memory_free_bytes = all},
                             {.device.memory_free_bytes = all - first * mib},
                             {.device.memory_free_bytes = all - first * mib - then * mib}};
    struct verification v = {.ok = true};
    for (unsigned i = 0; own && i < 3; i++)
        at[i].device.memory_own_bytes = mib;
    holdings_compare(at, 50, false, &v);
    return !v.ok;
}

TEST(device_memory_is_not_lost)
{
    assert_true(is_leak(25, 25, false) && is_leak(4, 4, false));
    assert_false(is_leak(0, 0, false) || is_leak(2, 2, false));
    assert_false(is_leak(500, 0, false) || is_leak(0, 500, false)); /* another process */
    assert_false(is_leak(25, 25, true));
}

static void *nothing(void *unused)
{
    return unused;
}

/* What else may change from outside meanwhile, as when somebody renices all that runs. */
static bool is_changed(const char *what, const struct surroundings *before)
{
    struct verification v = {.ok = true};
    assert_int_equal(surroundings_compare(&device, before, STATE_MORE_ANY, &v, NULL), GATE_OK);
    return !v.ok && strstr(v.message, what);
}

static struct surroundings surroundings(void)
{
    struct surroundings now;
    shown = usual;
    assert_int_equal(surroundings_read(&device, &now, NULL), GATE_OK);
    return now;
}

/* The first one, with which the C library begins to handle signals of its own. */
TEST(a_thread_is_no_change)
{
    pthread_t thread;
    const struct surroundings before = surroundings();
    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(is_changed("signals", &before));
}

TEST(many_open_files_are_one)
{
    int files[STATE_MORE_ON_GPU + 1];
    const struct surroundings before = surroundings();
    struct verification few = {.ok = true}, many = {.ok = true};
    for (unsigned i = 0; i < STATE_MORE_ON_GPU; i++)
        assert_true((files[i] = dup(STDERR_FILENO)) >= 0);
    surroundings_compare(&device, &before, STATE_MORE_ON_GPU, &few, NULL);
    assert_true((files[STATE_MORE_ON_GPU] = dup(STDERR_FILENO)) >= 0);
    surroundings_compare(&device, &before, STATE_MORE_ON_GPU, &many, NULL);
    for (unsigned i = 0; i <= STATE_MORE_ON_GPU; i++)
        close(files[i]);
    assert_true(few.ok);
    assert_false(many.ok);
    assert_non_null(strstr(many.message, "the number of open files"));
}

TEST(a_signal_handler_is_one)
{
    const struct surroundings before = surroundings();
    void (*previous)(int) = signal(SIGUSR2, SIG_IGN);
    assert_true(is_changed("handling of signals", &before));
    signal(SIGUSR2, previous);
    assert_false(is_changed("handling of signals", &before));
}

TEST(the_mask_and_the_environment_are_some)
{
    const struct surroundings before = surroundings();
    sigset_t one, previous;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, &previous);
    assert_true(is_changed("mask of signals", &before));
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    assert_false(is_changed("mask of signals", &before));
    setenv("GATE_TEST_OF_STATE", "1", 1);
    assert_true(is_changed("environment", &before));
    unsetenv("GATE_TEST_OF_STATE");
    assert_false(is_changed("environment", &before));
}

TEST(the_process_is_looked_at_too)
{
    struct gate_error err = {0};
    const struct surroundings before = surroundings();
    mode_t usual_mask = umask(0123);
    enum gate_status status = surroundings_check(&device, &before, "when opened", &err);
    umask(usual_mask);
    assert_int_equal(status, GATE_WRONG);
    assert_non_null(strstr(err.message, "when opened: the kernel changed the state of the process: "
                                        "the file mode mask"));
}
