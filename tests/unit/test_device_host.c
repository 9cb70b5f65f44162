/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_host.c: the host as a device, through device.h alone. */
#include <math.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/device/device.h"
#include "kernels/ops/half.h"
#include "tests/unit/scripted_device.h"
#include "tests/unit/unit.h"

/* A sanitizer ends a program that asks for too much memory, unless it is told to refuse it as the C
 * library does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static int open_host(void **state)
{
    *state = scripted_open();
    return 0;
}

/* ---- launches ---- */

enum { MAX_LAUNCHES = 64 };

/* Notes what is launched in which order; launch number `fails` is refused. */
struct launches {
    unsigned order[MAX_LAUNCHES];
    unsigned n, fails;
};

static enum kg_status note_launch(void *context, unsigned index, void *stream)
{
    struct launches *l = context;
    assert_null(stream);
    assert_true(l->n < MAX_LAUNCHES);
    l->order[l->n++] = index;
    return index == l->fails ? KG_LAUNCH_FAILED : KG_OK;
}

static struct launches no_launches(void)
{
    return (struct launches){.fails = UINT32_MAX};
}

static struct device_replay *record(struct device *d, struct launches *l, unsigned n, bool delayed)
{
    struct device_replay *r = NULL;
    struct gate_error err;
    assert_int_equal(device_replay_record(d, note_launch, l, n, delayed, &r, &err), GATE_OK);
    return r;
}

TEST(replay_runs_launches_in_order)
{
    enum { N = 5, RUNS = 3 };
    struct device *d = *state;
    struct launches l = no_launches();
    struct device_time time = {-1, -1, -1};
    struct gate_error err;
    struct device_replay *r = record(d, &l, N, false);
    assert_int_equal(l.n, 0); /* recording runs nothing */
    for (int run = 0; run < RUNS; run++) {
        assert_int_equal(device_replay_run(d, r, &time, &err), GATE_OK);
        assert_true(time.device_ns >= 0 && time.host_ns == time.device_ns);
        assert_true(time.sm_clock_mhz == 0);
    }
    assert_int_equal(l.n, N * RUNS);
    for (unsigned i = 0; i < l.n; i++)
        assert_int_equal(l.order[i], i % N);
    device_replay_free(d, r);
}

TEST(delay_adds_at_least_its_time)
{
    static const double delays[] = {0, 1, 20000.5, 3e6, 0};
    struct device *d = *state;
    struct launches l = no_launches();
    struct device_time time;
    struct gate_error err;
    struct device_replay *r = record(d, &l, 2, true);
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        assert_int_equal(device_replay_delay(d, r, delays[i], &err), GATE_OK);
        assert_int_equal(device_replay_run(d, r, &time, &err), GATE_OK);
        assert_true(time.device_ns >= delays[i]);
        assert_true(time.host_ns == time.device_ns);
        assert_int_equal(l.n, 2 * (i + 1));
    }
    device_replay_free(d, r);
}

TEST(delay_is_refused_where_it_has_no_meaning)
{
    static const double senseless[] = {-1, 1e10, INFINITY, NAN};
    struct device *d = *state;
    struct launches l = no_launches();
    struct gate_error err = {0};
    struct device_replay *r = record(d, &l, 1, false);
    assert_int_equal(device_replay_delay(d, r, 0, &err), GATE_INTERNAL);
    assert_non_null(strstr(err.message, "without a delay"));
    device_replay_free(d, r);
    r = record(d, &l, 1, true);
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++)
        assert_int_equal(device_replay_delay(d, r, senseless[i], &err), GATE_INTERNAL);
    device_replay_free(d, r);
}

TEST(refused_launch_is_wrong)
{
    struct device *d = *state;
    struct launches l = no_launches();
    struct device_time time;
    struct gate_error err = {0};
    double ns;
    l.fails = 2;
    assert_int_equal(device_launch_checked(d, note_launch, &l, 1, &err), GATE_OK);
    assert_int_equal(device_launch_checked(d, note_launch, &l, 2, &err), GATE_WRONG);
    assert_non_null(strstr(err.message, "launch failed"));
    assert_int_equal(device_single_run(d, note_launch, &l, 2, &ns, &err), GATE_WRONG);

    struct device_replay *r = record(d, &l, 5, false);
    l.n = 0;
    assert_int_equal(device_replay_run(d, r, &time, &err), GATE_WRONG);
    assert_int_equal(l.n, 3); /* nothing is launched after the one that failed */
    device_replay_free(d, r);
}

TEST(single_run)
{
    struct device *d = *state;
    struct launches l = no_launches();
    struct gate_error err;
    for (unsigned i = 0; i < 2; i++) {
        double ns = -1;
        assert_int_equal(device_single_run(d, note_launch, &l, 7 + i, &ns, &err), GATE_OK);
        assert_true(ns >= 0);
        assert_int_equal(l.n, i + 1);
        assert_int_equal(l.order[i], 7 + i);
    }
}

TEST(control_takes_time)
{
    struct device *d = *state;
    struct gate_error err;
    for (int i = 0; i < 2; i++) {
        struct device_time time = {-1, -1, -1};
        assert_int_equal(device_control_run(d, &time, &err), GATE_OK);
        assert_true(time.device_ns > 0 && time.host_ns == time.device_ns);
        assert_true(time.sm_clock_mhz == 0);
    }
}

/* ---- memory ---- */

TEST(memory_is_aligned_and_copied)
{
    struct device *d = *state;
    struct device_memory m = {0};
    struct gate_error err;
    const char text[] = "0123456789";
    char back[sizeof text] = "";
    assert_int_equal(device_alloc(d, 1001, &m, &err), GATE_OK);
    assert_int_equal(m.bytes, 1001);
    assert_int_equal((uintptr_t)m.data % 256, 0);
    assert_int_equal(device_fill_bytes(d, m.data, 'x', m.bytes, &err), GATE_OK);
    assert_int_equal(device_upload(d, m.data, text, 5, &err), GATE_OK);
    assert_int_equal(device_download(d, back, m.data, 8, &err), GATE_OK);
    assert_string_equal(back, "01234xxx");
    device_free(d, &m);
    assert_null(m.data);
    assert_int_equal(m.bytes, 0);
}

/* The last one is so large that rounding it up to the alignment overflows. */
TEST(memory_shortage_is_the_environment)
{
    static const size_t absurd[] = {SIZE_MAX / 16, SIZE_MAX / 2, SIZE_MAX - 1};
    struct device *d = *state;
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        struct device_memory m = {0};
        struct gate_error err = {0};
        assert_int_equal(device_alloc(d, absurd[i], &m, &err), GATE_ENVIRONMENT);
        assert_non_null(strstr(err.message, "memory"));
        assert_null(m.data);
    }
}

/* ---- random numbers ---- */

static const struct op_spread usual = {0, 1};

static float *filled(struct device *d, enum kg_dtype dtype, int64_t count, uint64_t seed)
{
    struct gate_error err;
    char *raw = malloc((size_t)count * kg_dtype_bytes(dtype));
    float *values = malloc((size_t)count * sizeof *values);
    assert_true(raw && values);
    assert_int_equal(device_fill_normal(d, raw, dtype, count, usual, seed, &err), GATE_OK);
    for (int64_t i = 0; i < count; i++)
        values[i] = kg_load_float(raw, dtype, i);
    free(raw);
    return values;
}

TEST(fill_has_the_spread_that_is_asked_for)
{
    enum { N = 100 };
    const struct op_spread spread = {2, 0.25};
    struct device *d = *state;
    struct gate_error err;
    float spread_out[N], *plain = filled(d, KG_F32, N, 7);
    assert_int_equal(device_fill_normal(d, spread_out, KG_F32, N, spread, 7, &err), GATE_OK);
    for (int i = 0; i < N; i++)
        assert_true(fabsf(spread_out[i] - (2 + plain[i] / 4)) < 1e-6f);
    free(plain);
}

static int below(const float *x, int n, double edge)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += (double)x[i] < edge;
    return count;
}

/* The seed is fixed, so this either always holds or never; the bounds are six standard errors. The
 * far edges lie in the tail, which is drawn in another way. */
TEST(fill_has_the_distribution_of_a_normal)
{
    enum { N = 1 << 22, EDGES = 41 };
    float *x = filled(*state, KG_F32, N, 2026);
    double neighbours = 0, largest = 0;
    for (int i = -EDGES; i <= EDGES; i++) {
        double edge = 0.1 * i;
        double share = 0.5 * erfc(-edge / sqrt(2));
        double error = sqrt(share * (1 - share) / N);
        assert_true(fabs((double)below(x, N, edge) / N - share) < 6 * error);
    }
    for (int i = 0; i < N; i++) {
        neighbours += i > 0 ? (double)x[i] * (double)x[i - 1] : 0;
        largest = fmax(largest, fabs((double)x[i]));
    }
    assert_true(fabs(neighbours / N) < 6 / sqrt(N));
    assert_true(largest > 4.2 && largest < 7);
    free(x);
}

TEST(fill_depends_on_seed_and_index_alone)
{
    enum { SHORT = 1001, LONG = 5003 };
    float *first = filled(*state, KG_F32, SHORT, 7), *again = filled(*state, KG_F32, LONG, 7);
    float *other = filled(*state, KG_F32, SHORT, 8);
    float *upper = filled(*state, KG_F32, SHORT, 7 + ((uint64_t)1 << 32));
    assert_memory_equal(first, again, SHORT * sizeof *first);
    for (int i = 0; i < SHORT; i++)
        assert_true(first[i] != other[i] && first[i] != upper[i]);
    free(first);
    free(again);
    free(other);
    free(upper);
}

TEST(fill_rounds_to_the_dtype)
{
    enum { N = 999 };
    float *wide = filled(*state, KG_F32, N, 99);
    for (enum kg_dtype dtype = KG_F16; dtype <= KG_BF16; dtype++) {
        float *narrow = filled(*state, dtype, N, 99);
        for (int i = 0; i < N; i++) {
            uint16_t stored;
            kg_store_float(&stored, dtype, 0, wide[i]);
            assert_true(narrow[i] == kg_load_float(&stored, dtype, 0));
        }
        free(narrow);
    }
    free(wide);
}

/* ---- bytes ---- */

TEST(copy)
{
    struct device *d = *state;
    unsigned char from[300], to[302];
    struct gate_error err;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7);
    memset(to, 0xee, sizeof to);
    assert_int_equal(device_copy(d, to + 1, from, sizeof from, &err), GATE_OK);
    assert_memory_equal(to + 1, from, sizeof from);
    assert_true(to[0] == 0xee && to[sizeof to - 1] == 0xee);
}

/* ---- guarded memory ---- */

static enum kg_status touch(void *context, unsigned, void *)
{
    (void)**(volatile char **)context;
    return KG_OK;
}

/* What a process that touches `at` in a launch says before it dies; "" when it lives. */
static void last_words(struct device *d, char *at, char *text, size_t size)
{
    int ends[2], how;
    struct gate_error err;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        _exit(device_launch_checked(d, touch, &at, 0, &err) == GATE_OK ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &how, 0), child);
    ssize_t n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    assert_true(n > 0 ? WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV : how == 0);
}

TEST(guarded_memory)
{
    static const struct device_pieces pieces[] = {{1, 8192, 0}, {1, 1, 0}, {3, 100, 1 << 20}};
    struct device *d = *state;
    struct device_memory a, b, c;
    struct sigaction before, after;
    struct gate_error err;
    char said[200], *begin;
    sigaction(SIGSEGV, NULL, &before);
    assert_int_equal(device_alloc_apart(d, &pieces[0], "a", &a, &err), GATE_OK);
    assert_int_equal(device_alloc_apart(d, &pieces[1], "b", &b, &err), GATE_OK);
    assert_int_equal(device_alloc_apart(d, &pieces[2], "c", &c, &err), GATE_OK);
    assert_true(a.bytes >= 8192 && b.bytes >= 1);
    memset(a.data, 1, a.bytes);
    begin = a.data;
    last_words(d, begin, said, sizeof said);
    assert_string_equal(said, "");
    last_words(d, begin + a.bytes - 1, said, sizeof said);
    assert_string_equal(said, "");
    last_words(d, begin + a.bytes + 2, said, sizeof said);
    assert_non_null(strstr(said, "3 bytes past the end of 'a'"));
    last_words(d, (char *)b.data - 7, said, sizeof said);
    assert_non_null(strstr(said, "7 bytes before the begin of 'b'"));
    last_words(d, (char *)c.data + (2 << 20) + 99, said, sizeof said);
    assert_string_equal(said, "");
    last_words(d, (char *)c.data + c.bytes, said, sizeof said);
    assert_non_null(strstr(said, "1 bytes past the end of 'c'"));
    device_free(d, &a);
    device_free(d, &b);
    device_free(d, &c);
    assert_null(a.data);
    for (int i = 0; i < 100; i++) { /* as many times as one likes, but for those at one time */
        assert_int_equal(device_alloc_apart(d, &pieces[2], "c", &c, &err), GATE_OK);
        device_free(d, &c);
    }
    sigaction(SIGSEGV, NULL, &after);
    assert_true(before.sa_handler == after.sa_handler);
}

/* ---- hashes ---- */

static uint64_t hash_of(struct device *d, const void *data, size_t bytes)
{
    uint64_t hash = 0;
    struct gate_error err;
    const struct device_span span = {data, bytes};
    assert_int_equal(device_hash(d, &span, 1, &hash, &err), GATE_OK);
    return hash;
}

TEST(hashes_of_several_are_those_of_each)
{
    struct device *d = *state;
    _Alignas(8) static const unsigned char bytes[96] = {1, 2, 3};
    const struct device_span spans[] = {{bytes, 96}, {bytes + 8, 40}, {bytes, 5}};
    uint64_t hashes[3];
    assert_int_equal(device_hash(d, spans, 3, hashes, NULL), GATE_OK);
    for (size_t i = 0; i < 3; i++)
        assert_true(hashes[i] == hash_of(d, spans[i].data, spans[i].bytes));
    assert_true(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2]);
}

TEST(hash_sees_every_byte_and_its_place)
{
    _Alignas(8) unsigned char data[77];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37);
    const uint64_t hash = hash_of(*state, data, sizeof data);
    assert_true(hash == hash_of(*state, data, sizeof data));
    assert_true(hash != hash_of(*state, data, sizeof data - 1));
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] ^= 1;
        assert_true(hash != hash_of(*state, data, sizeof data));
        data[i] ^= 1;
    }
    for (size_t i = 0; i + 16 <= sizeof data; i += 8) {
        unsigned char other[sizeof data];
        memcpy(other, data, sizeof data);
        memcpy(other + i, data + i + 8, 8);
        memcpy(other + i + 8, data + i, 8);
        assert_true(hash != hash_of(*state, other, sizeof data));
    }
}

/* ---- the rest ---- */

TEST(open)
{
    struct device *d = NULL;
    struct gate_error err = {0};
    assert_int_equal(device_open("host", &d, &err), GATE_OK);
    const struct device_info *info = device_info(d);
    assert_int_equal(info->kg.struct_bytes, sizeof info->kg);
    assert_int_equal(info->kg.kind, KG_DEVICE_HOST);
    assert_true(info->kg.sm_count > 0 && info->kg.l2_bytes > 0);
    assert_int_equal(strncmp(info->model, "host-", 5), 0);
    assert_null(d->stream);
    device_close(d);
    device_close(NULL);

    static const char *const unknown[] = {"", "hosts", "cuda", "cuda:", "cuda:x", "cuda:0x", "gpu"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        d = NULL;
        assert_int_equal(device_open(unknown[i], &d, &err), GATE_USAGE);
        assert_null(d);
    }
}

TEST(rest_and_throttle)
{
    struct device *d = *state;
    struct gate_error err;
    assert_int_equal(device_rest(d, 1e6, &err), GATE_OK);
    assert_int_equal(device_synchronize(d, &err), GATE_OK);
    const struct device_throttle throttle = device_throttle_read(d);
    assert_int_equal(throttle.power_ns, 0);
    assert_int_equal(throttle.thermal_ns, 0);
    const struct device_sensors sensors = device_sensors_read(d);
    assert_true(isnan(sensors.power_w) && isnan(sensors.temperature_c));
}

TESTS_WITHIN(open_host, scripted_close)
