/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify_state.c: the state of the device and of the process, before and after kernels. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/verify/verify_state.h"
#include "tests/unit/unit.h"

static struct verification after_change(size_t at)
{
    struct device_state before = {.memory_free_bytes = 1 << 30}, now = before;
    struct gate_error err;
    struct verification v = {.ok = true};
    now.memory_free_bytes /= 2; /* of which others take as well */
    now.current += at == 1;
    now.malloc_heap_bytes += at == 2;
    now.printf_bytes += at == 3;
    now.persisting_l2_bytes += at == 4;
    now.l2_fetch_bytes += at == 5;
    now.wait_flags += at == 6;
    now.cache_preference += at == 7;
    now.pool_keeps += at == 8;
    assert_int_equal(state_compare_device(&before, &now, &v, &err), GATE_OK);
    return v;
}

TEST(a_device_is_as_it_was)
{
    static const char *const says[] = {
        "",           "current device",    "heap",       "printf() buffer",
        "the L2",     "fetch granularity", "calls wait", "preference",
        "memory pool"};
    assert_true(after_change(0).ok);
    for (size_t i = 1; i < sizeof says / sizeof says[0]; i++) {
        struct verification v = after_change(i);
        assert_false(v.ok);
        assert_non_null(strstr(v.message, says[i]));
    }
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
static bool is_changed(const char *what, const struct state *before)
{
    struct state now;
    struct verification v = {.ok = true};
    state_read(&now);
    state_compare(before, &now, STATE_MORE_ANY, &v);
    return !v.ok && strstr(v.message, what);
}

/* The first one, with which the C library begins to handle signals of its own. */
TEST(a_thread_is_no_change)
{
    pthread_t thread;
    struct state before;
    state_read(&before);
    assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(is_changed("signals", &before));
}

TEST(many_open_files_are_one)
{
    int files[STATE_MORE_ON_GPU + 1];
    struct state before, now;
    struct verification few = {.ok = true}, many = {.ok = true};
    state_read(&before);
    for (unsigned i = 0; i < STATE_MORE_ON_GPU; i++)
        assert_true((files[i] = dup(STDERR_FILENO)) >= 0);
    state_read(&now);
    state_compare(&before, &now, STATE_MORE_ON_GPU, &few);
    assert_true((files[STATE_MORE_ON_GPU] = dup(STDERR_FILENO)) >= 0);
    state_read(&now);
    state_compare(&before, &now, STATE_MORE_ON_GPU, &many);
    for (unsigned i = 0; i <= STATE_MORE_ON_GPU; i++)
        close(files[i]);
    assert_true(few.ok);
    assert_false(many.ok);
    assert_non_null(strstr(many.message, "the number of open files"));
}

TEST(a_signal_handler_is_one)
{
    struct state before;
    state_read(&before);
    void (*previous)(int) = signal(SIGUSR2, SIG_IGN);
    assert_true(is_changed("handling of signals", &before));
    signal(SIGUSR2, previous);
    assert_false(is_changed("handling of signals", &before));
}

TEST(the_mask_and_the_environment_are_some)
{
    struct state before;
    sigset_t one, previous;
    state_read(&before);
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
