/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device_cuda.c: how the CUDA backend opens a GPU, and what it does with memory: random
 * numbers, copies, comparisons and hashes.
 *
 * Without arguments it runs the tests. With one it is a child of a test: `break` provokes an
 * illegal access, `break-and-fail` one in a launch that says that it failed, `read-behind` and
 * `read-before` read beside guarded memory, `open` opens the device; all print what the device said
 * and exit with the status.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/ops/half.h"
#include "tests/gpu/device_kernels.h"
#include "tests/gpu/gpu_device.h"

static const char *program;

/* ---- children: before this process opens the device, which would then be busy ---- */

struct child {
    int status; /* exit status; -1: killed */
    char text[2048];
};

static struct child run_child(const char *argument)
{
    struct child child = {.status = -1};
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0)
        return child;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, argument, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], child.text + used, sizeof(child.text) - 1 - used)) != 0;) {
        if (n < 0 && errno != EINTR)
            break;
        used += n > 0 ? (size_t)n : 0;
    }
    close(ends[0]);
    int status;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
        child.status = WEXITSTATUS(status);
    return child;
}

static int child_open(void)
{
    struct gate_error err = {0};
    enum gate_status status = device_open("cuda:0", &device, &err);
    printf("%s\n", err.message);
    device_close(device);
    return (int)status;
}

static int child_break(device_launch_fn launch)
{
    struct gate_error err = {0};
    if (device_open("cuda:0", &device, &err) != GATE_OK) {
        printf("%s\n", err.message);
        return GATE_INTERNAL;
    }
    enum gate_status status = device_launch_checked(device, launch, NULL, 7, &err);
    printf("%s\n", err.message);
    enum gate_status later = device_synchronize(device, &err);
    device_close(device);
    return status == later ? (int)status : (int)GATE_INTERNAL;
}

static const struct device_pieces one_piece = {1, 5000, 0};

/* The first and the last byte of guarded memory may be read, and the one beside it is nobody's. */
static int child_read(bool behind)
{
    struct gate_error err = {0};
    struct device_memory m;
    enum gate_status status = device_open("cuda:0", &device, &err);
    if (status == GATE_OK)
        status = device_alloc_apart(device, &one_piece, "a", &m, &err);
    if (status == GATE_OK)
        status = device_launch_checked(device, launch_read, m.data, 0, &err);
    if (status == GATE_OK)
        status = device_launch_checked(device, launch_read, (char *)m.data + m.bytes - 1, 1, &err);
    if (status != GATE_OK) {
        printf("%s\n", err.message);
        return GATE_INTERNAL;
    }
    char *beside = behind ? (char *)m.data + m.bytes : (char *)m.data - 1;
    status = device_launch_checked(device, launch_read, beside, 2, &err);
    printf("%s\n", err.message);
    device_free(device, &m);
    device_close(device);
    return (int)status;
}

static void test_nothing_is_mapped_beside_guarded_memory(void)
{
    static const char *const sides[] = {"read-behind", "read-before"};
    for (int i = 0; i < 2; i++) {
        struct child child = run_child(sides[i]);
        printf("# %s", child.text);
        CHECK(child.status == GATE_WRONG);
        CHECK(strstr(child.text, "cudaErrorIllegalAddress") != NULL);
    }
}

static void test_illegal_access_is_wrong(void)
{
    struct child child = run_child("break");
    printf("# %s", child.text);
    CHECK(child.status == GATE_WRONG);
    CHECK(strstr(child.text, "cudaErrorIllegalAddress") != NULL);
    CHECK(strstr(child.text, "launch 7") != NULL);
}

/* A launch that only says that it failed: the device knows why. */
static void test_what_the_device_says_is_added(void)
{
    struct child child = run_child("break-and-fail");
    printf("# %s", child.text);
    CHECK(child.status == GATE_WRONG);
    CHECK(strstr(child.text, "launch 7 returned 'launch failed'; the device says: ") != NULL);
    CHECK(strstr(child.text, "cudaErrorIllegalAddress") != NULL);
}

/* ---- opening ---- */

static void test_open_describes_the_device(void)
{
    struct gate_error err;
    if (!CHECK(is_ok(device_open("cuda:0", &device, &err), &err)))
        exit(1);
    const struct device_info *info = device_info(device);
    printf("# %s, %s, %s, capability %s, driver %s, runtime %s\n", info->name, info->model,
           info->uuid, info->capability, info->driver, info->runtime);
    printf("# %d SMs, L2 %lld B, shared %lld B, memory %lld B, %lld free, %lld mW, %lld MHz\n",
           (int)info->kg.sm_count, (long long)info->kg.l2_bytes,
           (long long)info->kg.shared_bytes_optin, (long long)info->memory_bytes,
           (long long)info->memory_free_bytes, (long long)info->power_limit_mw,
           (long long)info->sm_clock_max_mhz);
    printf("# peaks: fp16 %g, tf32 %g, fp32 %g FLOP/s, %g B/s\n", info->peaks.fp16_flops,
           info->peaks.tf32_flops, info->peaks.fp32_flops, info->peaks.bytes_per_s);
    CHECK(info->kg.struct_bytes == sizeof(info->kg) && info->kg.kind == KG_DEVICE_CUDA);
    CHECK(info->kg.cc_major >= 8 && info->kg.sm_count > 0 && info->kg.l2_bytes > 0);
    CHECK(info->kg.shared_bytes_optin >= 48 << 10);
    CHECK(strncmp(info->uuid, "GPU-", 4) == 0 && strlen(info->uuid) == 40);
    CHECK(strncmp(info->model, "nvidia-", 7) == 0);
    CHECK(info->memory_free_bytes > 0 && info->memory_free_bytes <= info->memory_bytes);
    CHECK(info->driver[0] != '\0' && info->runtime[0] != '\0');
}

/* Not all drivers, and few containers, tell whose memory it is; what is told must be true. */
static void test_own_memory_is_told_or_unknown(void)
{
    const size_t taken = (size_t)256 << 20;
    struct device_state before = {0}, now = {0};
    struct device_memory m = {0};
    struct gate_error err;
    CHECK(is_ok(device_state_read(device, &before, &err), &err));
    CHECK(is_ok(device_alloc(device, taken, &m, &err), &err));
    CHECK(is_ok(device_state_read(device, &now, &err), &err));
    device_free(device, &m);
    printf("# this process has %zu B, then %zu B (0: not told)\n", before.memory_own_bytes,
           now.memory_own_bytes);
    CHECK(!before.memory_own_bytes == !now.memory_own_bytes);
    CHECK(!now.memory_own_bytes || now.memory_own_bytes >= before.memory_own_bytes + taken);
    CHECK(before.memory_free_bytes >= now.memory_free_bytes + taken);
}

static void test_own_process_is_not_busy(void)
{
    struct device *second = NULL;
    struct gate_error err;
    CHECK(is_ok(device_open("cuda:0", &second, &err), &err));
    device_close(second);
    CHECK(is_ok(device_synchronize(device, &err), &err));
}

static void test_other_process_is_busy(void)
{
    char self[64];
    struct child child = run_child("open");
    printf("# %s", child.text);
    if (child.status == GATE_OK) {
        tap_skip("the driver does not name processes by the numbers that they have here");
        return;
    }
    snprintf(self, sizeof(self), "process %ld (", (long)getpid());
    CHECK(child.status == GATE_ENVIRONMENT);
    CHECK(strstr(child.text, self) != NULL);
}

static void test_missing_device_is_refused(void)
{
    struct device *d = NULL;
    struct gate_error err = {0};
    CHECK(device_open("cuda:999", &d, &err) == GATE_ENVIRONMENT);
    CHECK(strstr(err.message, "cuda:999") != NULL);
}

static void test_memory_shortage_leaves_the_device_usable(void)
{
    struct device_memory m = {0};
    struct gate_error err = {0};
    CHECK(device_alloc(device, (size_t)1 << 50, &m, &err) == GATE_ENVIRONMENT);
    CHECK(m.data == NULL);
    CHECK(is_ok(device_synchronize(device, &err), &err));
}

/* ---- random numbers ---- */

static float *filled(enum kg_dtype dtype, int64_t count, uint64_t seed)
{
    struct gate_error err;
    const size_t bytes = (size_t)count * kg_dtype_bytes(dtype);
    struct device_memory m = new_memory(bytes);
    void *raw = malloc(bytes);
    float *values = malloc((size_t)count * sizeof(*values));
    if (!raw || !values)
        abort();
    CHECK(is_ok(
        device_fill_normal(device, m.data, dtype, count, (struct op_spread){0, 1}, seed, &err),
        &err));
    CHECK(is_ok(device_download(device, raw, m.data, bytes, &err), &err));
    for (int64_t i = 0; i < count; i++)
        values[i] = kg_load_float(raw, dtype, i);
    free(raw);
    device_free(device, &m);
    return values;
}

/* Bounds are over six standard errors, so a good generator does not fail by chance. */
static void test_fill_has_the_moments_of_a_normal(void)
{
    enum { N = 1 << 22 };
    double sum[5] = {0}, neighbours = 0.0, largest = 0.0;
    float *x = filled(KG_F32, N, 12345);
    for (int i = 0; i < N; i++) {
        double power = 1.0;
        for (int p = 1; p <= 4; p++)
            sum[p] += power *= x[i];
        neighbours += i > 0 ? (double)x[i] * x[i - 1] : 0.0;
        largest = fmax(largest, fabs(x[i]));
    }
    printf("# moments %g %g %g %g, neighbours %g, largest %g\n", sum[1] / N, sum[2] / N, sum[3] / N,
           sum[4] / N, neighbours / N, largest);
    CHECK(fabs(sum[1] / N) < 0.003);
    CHECK(fabs(sum[2] / N - 1.0) < 0.005);
    CHECK(fabs(sum[3] / N) < 0.013);
    CHECK(fabs(sum[4] / N - 3.0) < 0.03);
    CHECK(fabs(neighbours / N) < 0.003);
    CHECK(largest > 4.5 && largest < 7.0);
    free(x);
}

static void test_fill_depends_on_seed_and_index_alone(void)
{
    enum { SHORT = 1001, LONG = 100003 };
    float *first = filled(KG_F32, SHORT, 7), *again = filled(KG_F32, LONG, 7);
    float *other = filled(KG_F32, SHORT, 8);
    float *upper = filled(KG_F32, SHORT, 7 + ((uint64_t)1 << 32));
    CHECK(memcmp(first, again, SHORT * sizeof(*first)) == 0);
    int equal = 0;
    for (int i = 0; i < SHORT; i++)
        equal += first[i] == other[i] || first[i] == upper[i];
    CHECK(equal == 0);
    free(first);
    free(again);
    free(other);
    free(upper);
}

static void test_fill_rounds_to_the_dtype(void)
{
    enum { N = 4099 };
    float *wide = filled(KG_F32, N, 99), *half = filled(KG_F16, N, 99);
    float *brain = filled(KG_BF16, N, 99);
    uint16_t stored[1];
    for (int i = 0; i < N; i++) {
        kg_store_float(stored, KG_F16, 0, wide[i]);
        if (!CHECK(half[i] == kg_load_float(stored, KG_F16, 0)))
            break;
        kg_store_float(stored, KG_BF16, 0, wide[i]);
        if (!CHECK(brain[i] == kg_load_float(stored, KG_BF16, 0)))
            break;
    }
    free(wide);
    free(half);
    free(brain);
}

/* ---- hashes ---- */

enum { HASHED = (8 << 20) + 5 };

static uint64_t hash_of(const struct device_memory *m, const unsigned char *bytes, size_t n)
{
    uint64_t hash = 0;
    struct gate_error err;
    CHECK(is_ok(device_upload(device, m->data, bytes, n, &err), &err));
    const struct device_span span = {m->data, n};
    CHECK(is_ok(device_hash(device, &span, 1, &hash, &err), &err));
    return hash;
}

static void test_hash(void)
{
    static const size_t places[] = {0,       7,          8,          2047,      2048,
                                    5 << 20, HASHED - 6, HASHED - 5, HASHED - 1};
    struct device_memory m = new_memory(HASHED);
    unsigned char *bytes = malloc(HASHED), word[8];
    for (size_t i = 0; i < HASHED; i++)
        bytes[i] = (unsigned char)(i * i >> 3);
    const uint64_t hash = hash_of(&m, bytes, HASHED);
    CHECK(hash == hash_of(&m, bytes, HASHED));
    CHECK(hash != hash_of(&m, bytes, HASHED - 1));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        bytes[places[i]] ^= 1;
        CHECK(hash != hash_of(&m, bytes, HASHED));
        bytes[places[i]] ^= 1;
    }
    /* Two words change places. */
    memcpy(word, bytes + 4096, 8);
    memcpy(bytes + 4096, bytes + 8192 + 8, 8);
    memcpy(bytes + 8192 + 8, word, 8);
    CHECK(hash != hash_of(&m, bytes, HASHED));
    CHECK(hash_of(&m, bytes, 3) == hash_of(&m, bytes, 3));
    CHECK(hash_of(&m, bytes, 3) != hash_of(&m, bytes, 2));
    device_free(device, &m);
    free(bytes);
}

/* Of a span that begins or ends anywhere each byte counts, and none beside it. */
static void test_hash_of_odd_spans(void)
{
    enum { BYTES = 64 };
    unsigned char bytes[BYTES] = {1, 2, 3};
    struct gate_error err;
    struct device_memory m = new_memory(BYTES);
    for (size_t from = 0; from < 9; from++)
        for (size_t n = 1; n < 20; n++) {
            const struct device_span span = {(const char *)m.data + from, n};
            uint64_t hash, other;
            (void)hash_of(&m, bytes, BYTES);
            CHECK(is_ok(device_hash(device, &span, 1, &hash, &err), &err));
            for (size_t i = 0; i < 32; i++) {
                bytes[i] ^= 0x80;
                (void)hash_of(&m, bytes, BYTES);
                CHECK(is_ok(device_hash(device, &span, 1, &other, &err), &err));
                CHECK((hash != other) == (i >= from && i < from + n));
                bytes[i] ^= 0x80;
            }
        }
    device_free(device, &m);
}

/* On the device's stream, so that what follows sees it. */
static void test_copy(void)
{
    enum { BYTES = 3000 };
    unsigned char sent[BYTES], got[BYTES];
    struct device_memory from = new_memory(BYTES), to = new_memory(BYTES);
    struct gate_error err;
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (unsigned char)(i * 7);
    CHECK(is_ok(device_upload(device, from.data, sent, BYTES, &err), &err));
    CHECK(is_ok(device_fill_bytes(device, to.data, 0xee, BYTES, &err), &err));
    CHECK(is_ok(device_copy(device, (char *)to.data + 8, from.data, BYTES - 16, &err), &err));
    CHECK(is_ok(device_download(device, got, to.data, BYTES, &err), &err));
    CHECK(got[7] == 0xee && got[BYTES - 8] == 0xee);
    CHECK(memcmp(got + 8, sent, BYTES - 16) == 0);
    device_free(device, &from);
    device_free(device, &to);
}

/* ---- memory among unmapped addresses: a GPU that the gate is for has it ---- */

static void test_guarded_memory_is_offered(void)
{
    struct device_memory m;
    struct gate_error err;
    unsigned char last = 0;
    if (!CHECK(is_ok(device_alloc_apart(device, &one_piece, "a", &m, &err), &err)))
        return;
    CHECK(m.data != NULL && m.bytes >= 5000);
    CHECK(is_ok(device_fill_bytes(device, m.data, 0x5a, m.bytes, &err), &err));
    CHECK(is_ok(device_download(device, &last, (char *)m.data + m.bytes - 1, 1, &err), &err));
    CHECK(last == 0x5a);
    device_free(device, &m);
    CHECK(m.data == NULL);
}

/* Three pieces of which the third is beyond the range of an int. */
static void test_memory_far_apart_is_offered(void)
{
    const struct device_pieces pieces = {3, 3000, ((size_t)1 << 31) + 128};
    struct device_memory m;
    struct gate_error err;
    unsigned char sent[3000], got[3000];
    if (!CHECK(is_ok(device_alloc_apart(device, &pieces, "a", &m, &err), &err)))
        return;
    for (size_t i = 0; i < pieces.n; i++) {
        char *piece = (char *)m.data + i * pieces.stride;
        memset(sent, (int)i + 1, sizeof(sent));
        CHECK(is_ok(device_upload(device, piece, sent, sizeof(sent), &err), &err));
        CHECK(is_ok(device_download(device, got, piece, sizeof(got), &err), &err));
        CHECK(memcmp(sent, got, sizeof(sent)) == 0);
    }
    device_free(device, &m);
    CHECK(m.data == NULL);
}

/* More than there is: told in the driver's words, and no harm is done. */
static void test_short_guarded_memory_is_told(void)
{
    const struct device_pieces too_much = {1, (size_t)device_info(device)->memory_bytes * 2, 0};
    struct device_memory m = {0};
    struct gate_error err = {0};
    CHECK(device_alloc_apart(device, &too_much, "a", &m, &err) == GATE_ENVIRONMENT);
    CHECK(m.data == NULL && strstr(err.message, "CUDA_ERROR_") != NULL);
    printf("# %s\n", err.message);
    CHECK(is_ok(device_synchronize(device, &err), &err));
    test_guarded_memory_is_offered();
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"an illegal access is wrong and final", test_illegal_access_is_wrong},
        {"what the device says is added", test_what_the_device_says_is_added},
        {"nothing is mapped beside guarded memory", test_nothing_is_mapped_beside_guarded_memory},
        {"open describes the device", test_open_describes_the_device},
        {"its own memory is told, or not known", test_own_memory_is_told_or_unknown},
        {"the own process does not make it busy", test_own_process_is_not_busy},
        {"another process makes it busy", test_other_process_is_busy},
        {"a missing device is refused", test_missing_device_is_refused},
        {"short memory leaves it usable", test_memory_shortage_leaves_the_device_usable},
        {"fill has the moments of a normal", test_fill_has_the_moments_of_a_normal},
        {"fill depends on seed and index alone", test_fill_depends_on_seed_and_index_alone},
        {"fill rounds to the dtype", test_fill_rounds_to_the_dtype},
        {"hash", test_hash},
        {"hash_of_odd_spans", test_hash_of_odd_spans},
        {"copy", test_copy},
        {"guarded memory is offered", test_guarded_memory_is_offered},
        {"memory far apart is offered", test_memory_far_apart_is_offered},
        {"short guarded memory is told", test_short_guarded_memory_is_told},
    };
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "open") == 0)
        return child_open();
    if (argc > 1 && strcmp(argv[1], "break") == 0)
        return child_break(launch_illegal);
    if (argc > 1 && strncmp(argv[1], "read-", 5) == 0)
        return child_read(strcmp(argv[1], "read-behind") == 0);
    if (argc > 1 && strcmp(argv[1], "break-and-fail") == 0)
        return child_break(launch_illegal_failing);
    const int status = tap_run(tests, sizeof(tests) / sizeof(tests[0]));
    device_close(device);
    return status;
}
