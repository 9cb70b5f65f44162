/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_launch_cuda.c: what the CUDA backend launches, records, replays, delays and times.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/clock.h"
#include "tests/gpu/device_kernels.h"
#include "tests/gpu/gpu_device.h"

/* ---- recordings ---- */

static uint64_t spin_ns = 50000;

static void test_launch_errors_are_told_apart(void)
{
    struct gate_error err = {0};
    CHECK(is_ok(device_launch_checked(device, launch_spin, &spin_ns, 0, &err), &err));
    CHECK(device_launch_checked(device, launch_failing, &spin_ns, 3, &err) == GATE_WRONG);
    CHECK(strstr(err.message, "launch 3") && strstr(err.message, "launch failed"));
    CHECK(!strstr(err.message, "the device says"));
    CHECK(device_launch_checked(device, launch_misconfigured, &spin_ns, 4, &err) == GATE_WRONG);
    CHECK(strstr(err.message, "when it was enqueued") != NULL);
    CHECK(is_ok(device_launch_checked(device, launch_spin, &spin_ns, 0, &err), &err));
}

static double replayed_ns(unsigned n)
{
    struct device_replay *replay = NULL;
    struct device_time time = {0};
    struct gate_error err;
    if (!CHECK(is_ok(device_replay_record(device, launch_spin, &spin_ns, n, false, &replay, &err),
                     &err)))
        return 0.0;
    for (int i = 0; i < 3; i++)
        CHECK(is_ok(device_replay_run(device, replay, &time, &err), &err));
    printf("# %u launches of %g us: device %g us, host %g us, SM clock %g MHz\n", n,
           1e-3 * (double)spin_ns, 1e-3 * time.device_ns, 1e-3 * time.host_ns, time.sm_clock_mhz);
    CHECK(time.host_ns > time.device_ns);
    CHECK(time.sm_clock_mhz > 100.0 && time.sm_clock_mhz < 4000.0);
    device_replay_free(device, replay);
    return time.device_ns;
}

/* A launch cannot be faster than what it spins for; a factor of 2 covers any gap between them. */
static void test_replay_time_scales_with_the_launches(void)
{
    const double few = replayed_ns(8), many = replayed_ns(40);
    CHECK(few >= 8.0 * 0.98 * (double)spin_ns && few < 2.0 * 8.0 * (double)spin_ns);
    CHECK(many >= 40.0 * 0.98 * (double)spin_ns && many < 2.0 * 40.0 * (double)spin_ns);
}

static void test_replay_runs_each_launch_once(void)
{
    enum { N = 100, RUNS = 3 };
    struct device_memory m = new_memory(8);
    struct device_replay *replay = NULL;
    struct device_time time;
    struct gate_error err;
    int64_t sum = 0;
    CHECK(is_ok(device_fill_bytes(device, m.data, 0, 8, &err), &err));
    CHECK(is_ok(device_replay_record(device, launch_add, m.data, N, true, &replay, &err), &err));
    CHECK(is_ok(device_download(device, &sum, m.data, 8, &err), &err));
    CHECK(sum == 0); /* recording ran nothing */
    for (int i = 0; i < RUNS; i++)
        CHECK(is_ok(device_replay_run(device, replay, &time, &err), &err));
    CHECK(is_ok(device_download(device, &sum, m.data, 8, &err), &err));
    CHECK(sum == RUNS * N * (N + 1) / 2);
    device_replay_free(device, replay);
    device_free(device, &m);
}

/* What recording costs is for the reader. */
static void test_many_launches_are_recorded(void)
{
    enum { N = 20000 };
    struct device_memory m = new_memory(8);
    struct device_replay *replay = NULL;
    struct device_time time;
    struct gate_error err;
    int64_t sum = 0;
    CHECK(is_ok(device_fill_bytes(device, m.data, 0, 8, &err), &err));
    const double begin = clock_s();
    CHECK(is_ok(device_replay_record(device, launch_add, m.data, N, true, &replay, &err), &err));
    printf("# %d launches are recorded in %g s\n", N, clock_s() - begin);
    CHECK(is_ok(device_replay_run(device, replay, &time, &err), &err));
    CHECK(is_ok(device_download(device, &sum, m.data, 8, &err), &err));
    CHECK(sum == (int64_t)N * (N + 1) / 2);
    device_replay_free(device, replay);
    device_free(device, &m);
}

/* How many launches of which half the nodes are fills a replay holds is known to be enough. */
static void test_a_replay_of_fills_has_room(void)
{
    struct device_memory m = new_memory(8);
    struct device_replay *replay = NULL;
    struct device_time time;
    struct gate_error err;
    int64_t sum = 0;
    CHECK(is_ok(device_replay_record(device, launch_add, m.data, 1, false, &replay, &err), &err));
    CHECK(device_replay_room(device, replay) == UINT_MAX);
    device_replay_free(device, replay);
    CHECK(is_ok(device_replay_record(device, launch_fill_and_add, m.data, 1, true, &replay, &err),
                &err));
    const unsigned n = device_replay_room(device, replay);
    device_replay_free(device, replay);
    CHECK(n >= 100 && n < 20000);
    CHECK(is_ok(device_replay_record(device, launch_fill_and_add, m.data, n, true, &replay, &err),
                &err));
    CHECK(is_ok(device_replay_run(device, replay, &time, &err), &err));
    CHECK(is_ok(device_download(device, &sum, m.data, 8, &err), &err));
    CHECK(sum == (int64_t)n);
    device_replay_free(device, replay);
    device_free(device, &m);
}

static void check_refused_as(device_launch_fn launch, bool delayed, const char *name)
{
    struct device_replay *replay = NULL;
    struct gate_error err = {0};
    const enum gate_status status =
        device_replay_record(device, launch, &spin_ns, 2, delayed, &replay, &err);
    printf("# %s: %s\n", name, status == GATE_OK ? "recorded" : err.message);
    CHECK(status == GATE_WRONG && replay == NULL);
    CHECK(strstr(err.message, "enqueue") != NULL);
    /* Nothing is left behind: the same device records, runs and measures. */
    CHECK(is_ok(device_launch_checked(device, launch_spin, &spin_ns, 0, &err), &err));
    CHECK(replayed_ns(4) > 0.0);
}

/* A delay node must neither hide that a launch left none nor be taken for one. */
static void check_refused(device_launch_fn launch, const char *name)
{
    check_refused_as(launch, false, name);
    check_refused_as(launch, true, name);
}

static void test_recording_refuses_what_does_more_than_enqueue(void)
{
    check_refused(launch_synchronising, "synchronising");
    check_refused(launch_allocating, "allocating");
    check_refused(launch_allocating_on_stream, "allocating on the stream");
    check_refused(launch_on_default_stream, "on the default stream");
    check_refused(launch_nothing, "nothing");
    check_refused(launch_failing, "failing");
}

/* ---- delays ---- */

enum { REPEATS = 9 };

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_replay_ns(struct device_replay *replay)
{
    struct device_time time = {0};
    struct gate_error err;
    double ns[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        CHECK(is_ok(device_replay_run(device, replay, &time, &err), &err));
        ns[i] = time.device_ns;
    }
    qsort(ns, REPEATS, sizeof(ns[0]), compare_doubles);
    return ns[REPEATS / 2];
}

/* Bounds that any GPU keeps: a node costs 1 to 2 us, and a global timer may step by 1 us. */
static void test_delay_adds_its_time(void)
{
    static const double delays[] = {0.0, 5000.0, 50000.0, 500000.0, 0.0};
    enum { LAUNCHES = 8 };
    struct device_replay *plain = NULL, *delayed = NULL;
    struct gate_error err;
    if (!CHECK(is_ok(
            device_replay_record(device, launch_spin, &spin_ns, LAUNCHES, false, &plain, &err),
            &err)) ||
        !CHECK(is_ok(
            device_replay_record(device, launch_spin, &spin_ns, LAUNCHES, true, &delayed, &err),
            &err)))
        return;
    const double plain_ns = median_replay_ns(plain), zero_ns = median_replay_ns(delayed);
    printf("# %d launches: %g us, with a delay node %g us\n", LAUNCHES, 1e-3 * plain_ns,
           1e-3 * zero_ns);
    CHECK(fabs(zero_ns - plain_ns) < 3000.0);
    for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
        CHECK(is_ok(device_replay_delay(device, delayed, delays[i], &err), &err));
        const double added_ns = median_replay_ns(delayed) - zero_ns;
        printf("# a delay of %g us adds %g us\n", 1e-3 * delays[i], 1e-3 * added_ns);
        CHECK(fabs(added_ns - delays[i]) < 1500.0);
    }
    device_replay_free(device, plain);
    device_replay_free(device, delayed);
}

static void test_delay_is_refused_where_it_has_no_meaning(void)
{
    static const double senseless[] = {-1.0, 1e10, INFINITY, NAN};
    struct device_replay *replay = NULL;
    struct gate_error err = {0};
    if (!CHECK(is_ok(device_replay_record(device, launch_spin, &spin_ns, 1, false, &replay, &err),
                     &err)))
        return;
    CHECK(device_replay_delay(device, replay, 1000.0, &err) == GATE_INTERNAL);
    CHECK(strstr(err.message, "without a delay") != NULL);
    device_replay_free(device, replay);
    if (!CHECK(is_ok(device_replay_record(device, launch_spin, &spin_ns, 1, true, &replay, &err),
                     &err)))
        return;
    for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++)
        CHECK(device_replay_delay(device, replay, senseless[i], &err) == GATE_INTERNAL);
    CHECK(median_replay_ns(replay) < 2.0 * (double)spin_ns);
    device_replay_free(device, replay);
}

/* ---- the control ---- */

/* Its spread is for the reader: what is steady depends on the machine. */
static void test_control(void)
{
    struct device_time time[REPEATS] = {{0}};
    struct gate_error err;
    double ns[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        CHECK(is_ok(device_control_run(device, &time[i], &err), &err));
        CHECK(time[i].host_ns > time[i].device_ns);
        CHECK(time[i].sm_clock_mhz > 100.0 && time[i].sm_clock_mhz < 4000.0);
        ns[i] = time[i].device_ns;
    }
    qsort(ns, REPEATS, sizeof(ns[0]), compare_doubles);
    printf("# control: %g us (%g to %g), spread %.3f %%, SM clock %g MHz\n", 1e-3 * ns[REPEATS / 2],
           1e-3 * ns[0], 1e-3 * ns[REPEATS - 1],
           100.0 * (ns[REPEATS - 1] - ns[0]) / ns[REPEATS / 2], time[REPEATS - 1].sm_clock_mhz);
    CHECK(ns[REPEATS / 2] > 0.2e6 && ns[REPEATS / 2] < 5e6);
}

/* ---- single launches ---- */

static void test_single_run(void)
{
    double ns = 0.0;
    struct gate_error err;
    for (int i = 0; i < 3; i++)
        CHECK(is_ok(device_single_run(device, launch_spin, &spin_ns, 0, &ns, &err), &err));
    printf("# single launch of %g us: %g us\n", 1e-3 * (double)spin_ns, 1e-3 * ns);
    CHECK(ns >= 0.98 * (double)spin_ns && ns < 2.0 * (double)spin_ns);
}

static void test_single_run_refuses_a_launch_that_waits(void)
{
    double ns = 0.0;
    struct gate_error err = {0};
    CHECK(device_single_run(device, launch_synchronising, &spin_ns, 0, &ns, &err) ==
          GATE_ENVIRONMENT);
    CHECK(is_ok(device_single_run(device, launch_spin, &spin_ns, 0, &ns, &err), &err));
}

/* ---- what a replay is made of ---- */

static struct device_kernels kernels_of(device_launch_fn launch, struct device_replay **replay)
{
    struct gate_error err = {0};
    CHECK(is_ok(launch(&spin_ns, 0, device->stream) == KG_OK && !device_synchronize(device, &err)
                    ? GATE_OK
                    : GATE_WRONG,
                &err));
    if (!CHECK(is_ok(device_replay_record(device, launch, &spin_ns, 4, false, replay, &err), &err)))
        return (struct device_kernels){0};
    return device_replay_kernels(device, *replay);
}

/* Four launches of two kernels each, of one code on one argument. */
static void test_the_order_of_kernels_is_part_of_what_they_are(void)
{
    struct device_replay *turn = NULL, *again = NULL, *side = NULL;
    const struct device_kernels a = kernels_of(launch_two_in_turn, &turn);
    const struct device_kernels b = kernels_of(launch_two_in_turn, &again);
    const struct device_kernels c = kernels_of(launch_two_side_by_side, &side);
    CHECK(a.n == 1 && b.n == 1 && c.n == 1);
    CHECK(a.sequence != 0 && a.sequence == b.sequence);
    CHECK(c.sequence != 0 && c.sequence != a.sequence);
    CHECK(median_replay_ns(turn) > 1.5 * median_replay_ns(side));
    device_replay_free(device, turn);
    device_replay_free(device, again);
    device_replay_free(device, side);
    if (device_info(device)->kg.cc_major < 9) {
        tap_skip("kernels start early since capability 9.0");
        return;
    }
    struct device_replay *early = NULL;
    const struct device_kernels e = kernels_of(launch_two_early, &early);
    CHECK(e.n == 1 && e.sequence != 0 && e.sequence != a.sequence && e.order != a.order);
    device_replay_free(device, early);
}

/* The device's work is not in it. */
static void test_calls_are_timed_on_the_host(void)
{
    const struct device_calls calls = {0, 4};
    double ns = 0.0;
    struct gate_error err = {0};
    for (int i = 0; i < 3; i++)
        CHECK(is_ok(device_calls_run(device, launch_spin, &spin_ns, calls, &ns, &err), &err));
    printf("# 4 calls of a launch of %g us: %g us\n", 1e-3 * (double)spin_ns, 1e-3 * ns);
    CHECK(ns > 0.0 && ns < 2.0 * (double)spin_ns);
    CHECK(device_calls_run(device, launch_failing, &spin_ns, calls, &ns, &err) == GATE_WRONG);
    CHECK(is_ok(device_calls_run(device, launch_spin, &spin_ns, calls, &ns, &err), &err));
}

static void test_rest_and_throttle(void)
{
    struct gate_error err;
    CHECK(is_ok(device_rest(device, 2e6, &err), &err));
    const struct device_throttle throttle = device_throttle_read(device);
    printf("# throttled in all: power %lld ns, thermal %lld ns\n", (long long)throttle.power_ns,
           (long long)throttle.thermal_ns);
    CHECK(throttle.power_ns >= 0 && throttle.thermal_ns >= 0);
    const struct device_sensors sensors = device_sensors_read(device);
    printf("# sensors: %g W, %g degrees Celsius\n", sensors.power_w, sensors.temperature_c);
    CHECK(!(sensors.power_w <= 0) && !(sensors.temperature_c <= 0)); /* NaN: not told */
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"launch errors are told apart", test_launch_errors_are_told_apart},
        {"replay time scales with the launches", test_replay_time_scales_with_the_launches},
        {"replay runs each launch once", test_replay_runs_each_launch_once},
        {"many launches are recorded", test_many_launches_are_recorded},
        {"a replay of fills has room", test_a_replay_of_fills_has_room},
        {"recording refuses more than enqueueing",
         test_recording_refuses_what_does_more_than_enqueue},
        {"a delay adds its time", test_delay_adds_its_time},
        {"a delay is refused where it has no meaning",
         test_delay_is_refused_where_it_has_no_meaning},
        {"control", test_control},
        {"single run", test_single_run},
        {"single run refuses a launch that waits", test_single_run_refuses_a_launch_that_waits},
        {"the order of kernels is part of what they are",
         test_the_order_of_kernels_is_part_of_what_they_are},
        {"calls are timed on the host", test_calls_are_timed_on_the_host},
        {"rest and throttle", test_rest_and_throttle},
    };
    return run_on_device(tests, sizeof(tests) / sizeof(tests[0]));
}
