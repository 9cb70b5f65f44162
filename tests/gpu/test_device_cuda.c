/*
 * test_device_cuda.c: the CUDA backend on a GPU.
 *
 * Without arguments it runs the tests. With one it is a child of a test: `break` provokes an
 * illegal access, `open` opens the device; both print what the device said and exit with the
 * status. `time` times the two largest references instead of testing.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../gate/device.h"
#include "../../kernels/reference/reference.h"
#include "../unit/problem_tensors.h"
#include "device_kernels.h"
#include "tap.h"

static struct device *device;
static const char *program;

static bool is_ok(enum gate_status status, const struct gate_error *err)
{
    if (status != GATE_OK)
        printf("# status %d: %s\n", (int)status, err->message);
    return status == GATE_OK;
}

static struct device_memory new_memory(size_t bytes)
{
    struct device_memory m = {0};
    struct gate_error err;
    if (!is_ok(device_alloc(device, bytes, &m, &err), &err))
        exit(GATE_ENVIRONMENT);
    return m;
}

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

static int child_break(void)
{
    struct gate_error err = {0};
    if (device_open("cuda:0", &device, &err) != GATE_OK) {
        printf("%s\n", err.message);
        return GATE_INTERNAL;
    }
    enum gate_status status = device_launch_checked(device, launch_illegal, NULL, 7, &err);
    printf("%s\n", err.message);
    enum gate_status later = device_synchronize(device, &err);
    device_close(device);
    return status == later ? (int)status : (int)GATE_INTERNAL;
}

static void test_illegal_access_is_wrong(void)
{
    struct child child = run_child("break");
    printf("# %s", child.text);
    CHECK(child.status == GATE_WRONG);
    CHECK(strstr(child.text, "cudaErrorIllegalAddress") != NULL);
    CHECK(strstr(child.text, "launch 7") != NULL);
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
    CHECK(is_ok(device_fill_normal(device, m.data, dtype, count, seed, &err), &err));
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

/* ---- the reference ---- */

static struct kg_tensor upload_tensor(const struct kg_tensor *host, struct device_memory *memory)
{
    struct kg_tensor t = *host;
    struct gate_error err;
    *memory = new_memory(tensor_bytes(host));
    CHECK(is_ok(device_upload(device, memory->data, host->data, memory->bytes, &err), &err));
    t.data = memory->data;
    return t;
}

static bool same_number(double x, double y)
{
    return fabs(x - y) <= 1e-12 + 1e-11 * fabs(y) || (isnan(x) && isnan(y)) || x == y;
}

static bool same_output(const struct device_memory *on_device, const double *expected)
{
    struct gate_error err;
    const size_t n = on_device->bytes / sizeof(double);
    double *got = malloc(on_device->bytes);
    bool same = is_ok(device_download(device, got, on_device->data, on_device->bytes, &err), &err);
    for (size_t i = 0; i < n && same; i++) {
        same = same_number(got[i], expected[i]);
        if (!same)
            printf("# element %zu is %.17g, expected %.17g\n", i, got[i], expected[i]);
    }
    free(got);
    return same;
}

/* Computes `p` by both references from the same inputs. */
static void check_reference(const struct kg_problem *p, const struct kg_tensor *in,
                            const struct kg_signature *s)
{
    struct gate_error err;
    struct kg_tensor on_device[KG_MAX_TENSORS];
    struct device_memory in_memory[KG_MAX_TENSORS], out_memory[KG_MAX_TENSORS];
    double *expected[KG_MAX_TENSORS], *out[KG_MAX_TENSORS];
    for (uint32_t i = 0; i < s->n_in; i++)
        on_device[i] = upload_tensor(&in[i], &in_memory[i]);
    for (uint32_t i = 0; i < s->n_out; i++) {
        const size_t bytes = (size_t)kg_shape_elements(&s->out[i]) * sizeof(double);
        out_memory[i] = new_memory(bytes);
        out[i] = out_memory[i].data;
        expected[i] = malloc(bytes);
        CHECK(is_ok(device_fill_bytes(device, out[i], 0xff, bytes, &err), &err));
    }
    bool good = CHECK(kg_reference_host(p, in, s->n_in, expected, 1) == KG_OK);
    good &= CHECK(is_ok(device_reference(device, p, on_device, out, &err), &err));
    for (uint32_t i = 0; i < s->n_out; i++)
        good &= CHECK(same_output(&out_memory[i], expected[i]));
    if (!good)
        printf(
            "# op %u dtype %u flags %u: m %lld n %lld k %lld, heads %lld/%lld, seqlen %lld/%lld, "
            "dim %lld\n",
            p->op, p->dtype, p->flags, (long long)p->m, (long long)p->n, (long long)p->k,
            (long long)p->heads, (long long)p->kv_heads, (long long)p->seqlen_q,
            (long long)p->seqlen_kv, (long long)p->head_dim);
    for (uint32_t i = 0; i < s->n_in; i++)
        device_free(device, &in_memory[i]);
    for (uint32_t i = 0; i < s->n_out; i++) {
        device_free(device, &out_memory[i]);
        free(expected[i]);
    }
}

/* `poison`: the last element of the last input is a NaN. */
static void check_problem(const struct kg_problem *p, enum layout layout, bool poison)
{
    static uint64_t random = 88172645463325252u;
    struct kg_signature s;
    struct kg_tensor in[KG_MAX_TENSORS];
    if (!CHECK(kg_signature_of(p, &s)))
        return;
    for (uint32_t i = 0; i < s.n_in; i++) {
        in[i] = tensor_new(&s.in[i], p->dtype, layout, 0xff);
        tensor_fill_normal(&in[i], &random);
    }
    if (poison)
        tensor_set(&in[s.n_in - 1], tensor_elements(&in[s.n_in - 1]) - 1, NAN);
    check_reference(p, in, &s);
    for (uint32_t i = 0; i < s.n_in; i++)
        free(in[i].data);
}

static void check_everywhere(struct kg_problem p, bool poison)
{
    for (p.dtype = KG_F16; p.dtype <= KG_F32; p.dtype++)
        for (int layout = 0; layout < N_LAYOUTS; layout++)
            check_problem(&p, (enum layout)layout, poison);
}

static void test_reference_of_the_gemm_family(void)
{
    static const int64_t sizes[][3] = {
        {1, 1, 1}, {3, 5, 7}, {64, 64, 16}, {65, 63, 17}, {1, 130, 40}, {131, 70, 33},
    };
    static const enum kg_op ops[] = {KG_OP_GEMM, KG_OP_GEMV, KG_OP_LINEAR_RELU,
                                     KG_OP_LINEAR_RELU_BWD};
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            const int64_t n = ops[o] == KG_OP_GEMV ? 0 : sizes[i][1];
            check_everywhere(gemm_like(ops[o], KG_F16, sizes[i][0], n, sizes[i][2]), false);
        }
    check_everywhere(gemm_like(KG_OP_LINEAR_RELU, KG_F16, 5, 9, 6), true);
}

static void test_reference_of_attention(void)
{
    static const struct {
        int64_t heads, kv_heads, seqlen_q, seqlen_kv, head_dim;
    } sizes[] = {
        {1, 1, 1, 1, 1},    {2, 1, 3, 5, 8},     {4, 2, 64, 64, 16}, {2, 2, 65, 129, 40},
        {3, 1, 70, 33, 64}, {2, 2, 5, 200, 130}, {6, 2, 1, 77, 128},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t flags = 0; flags <= KG_FLAG_CAUSAL; flags += KG_FLAG_CAUSAL) {
            struct kg_problem p =
                attention(KG_F16, flags, sizes[i].heads, sizes[i].kv_heads, sizes[i].seqlen_q,
                          sizes[i].seqlen_kv, sizes[i].head_dim);
            p.batch = 2;
            check_everywhere(p, false);
            check_everywhere(p, true);
        }
}

/* ---- comparison ---- */

enum { COMPARED = 300007 };

static struct device_comparison compared(const float *values, const double *reference,
                                         enum kg_dtype dtype)
{
    struct device_comparison result = {0};
    struct gate_error err;
    const size_t bytes = COMPARED * kg_dtype_bytes(dtype);
    char *raw = malloc(bytes);
    for (int64_t i = 0; i < COMPARED; i++)
        kg_store_float(raw, dtype, i, values[i]);
    struct device_memory value = new_memory(bytes);
    struct device_memory expected = new_memory(COMPARED * sizeof(*reference));
    const struct kg_tensor t = {value.data, dtype, 1, {COMPARED}, {1}};
    CHECK(is_ok(device_upload(device, value.data, raw, bytes, &err), &err));
    CHECK(is_ok(device_upload(device, expected.data, reference, expected.bytes, &err), &err));
    CHECK(is_ok(device_compare(device, &t, expected.data, &result, &err), &err));
    device_free(device, &value);
    device_free(device, &expected);
    free(raw);
    return result;
}

static void test_compare(void)
{
    float *value = malloc(COMPARED * sizeof(*value));
    double *reference = malloc(COMPARED * sizeof(*reference));
    double squares = 0.0;
    for (int i = 0; i < COMPARED; i++) {
        value[i] = (float)(i % 17 - 8);
        reference[i] = value[i];
        squares += reference[i] * reference[i];
    }
    for (int dtype = KG_F16; dtype <= KG_F32; dtype++) {
        struct device_comparison r = compared(value, reference, (enum kg_dtype)dtype);
        CHECK(r.elements == COMPARED && r.nonfinite == 0 && r.first_bad == -1);
        CHECK(r.reference_sq == squares && r.error_sq == 0.0 && r.max_abs == 0.0);
        CHECK(r.over_1e2 == 0 && r.over_1e3 == 0);
    }

    /* One element off by 0.5 from 2, one by 0.005 from 0. */
    const int far = 34 * 5000 + 10, near = 17 * 3 + 8;
    value[far] = 2.5f;
    value[near] = 0.005f;
    struct device_comparison r = compared(value, reference, KG_F32);
    CHECK(r.first_bad == far && r.first_bad_value == 2.5 && r.first_bad_reference == 2.0);
    CHECK(r.over_1e2 == 1 && r.over_1e3 == 2 && r.nonfinite == 0 && r.max_abs == 0.5);
    CHECK(fabs(r.error_sq - 0.250025) < 1e-8);

    /* What is not finite counts everywhere but in the distances. */
    value[COMPARED - 1] = NAN;
    value[1000] = INFINITY;
    value[900] = -INFINITY;
    r = compared(value, reference, KG_F16);
    CHECK(r.nonfinite == 3 && r.first_bad == 900 && isinf(r.first_bad_value));
    CHECK(r.over_1e2 == 4 && r.over_1e3 == 5 && r.max_abs == 0.5);
    CHECK(r.reference_sq == squares && isfinite(r.error_sq));

    /* Where the reference is not finite, only its like will do. */
    reference[COMPARED - 1] = NAN;
    reference[1000] = INFINITY;
    reference[900] = INFINITY;
    r = compared(value, reference, KG_F32);
    CHECK(r.nonfinite == 0 && r.first_bad == 900 && r.over_1e2 == 2 && r.over_1e3 == 3);
    CHECK(isfinite(r.reference_sq) && isfinite(r.error_sq));

    struct device_comparison again = compared(value, reference, KG_F32);
    CHECK(memcmp(&r, &again, offsetof(struct device_comparison, first_bad_value)) == 0);
    free(value);
    free(reference);
}

/* ---- hashes ---- */

enum { HASHED = (8 << 20) + 5 };

static uint64_t hash_of(const struct device_memory *m, const unsigned char *bytes, size_t n)
{
    uint64_t hash = 0;
    struct gate_error err;
    CHECK(is_ok(device_upload(device, m->data, bytes, n, &err), &err));
    CHECK(is_ok(device_hash(device, m->data, n, &hash, &err), &err));
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

/* ---- launches ---- */

static uint64_t spin_ns = 50000;

static void test_launch_errors_are_told_apart(void)
{
    struct gate_error err = {0};
    CHECK(is_ok(device_launch_checked(device, launch_spin, &spin_ns, 0, &err), &err));
    CHECK(device_launch_checked(device, launch_failing, &spin_ns, 3, &err) == GATE_WRONG);
    CHECK(strstr(err.message, "launch 3") && strstr(err.message, "launch failed"));
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

static void test_rest_and_throttle(void)
{
    struct device_throttle throttle = {-1, -1};
    struct gate_error err;
    CHECK(is_ok(device_rest(device, 2e6, &err), &err));
    CHECK(is_ok(device_throttle_read(device, &throttle, &err), &err));
    printf("# throttled since open: power %lld ns, thermal %lld ns\n", (long long)throttle.power_ns,
           (long long)throttle.thermal_ns);
    CHECK(throttle.power_ns >= 0 && throttle.thermal_ns >= 0);
}

/* ---- `time`: how long the largest references take ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void time_reference(const char *name, const struct kg_problem *p)
{
    struct kg_signature s;
    struct gate_error err;
    struct kg_tensor in[KG_MAX_TENSORS] = {0};
    struct device_memory in_memory[KG_MAX_TENSORS], out_memory;
    if (!kg_signature_of(p, &s))
        return;
    for (uint32_t i = 0; i < s.n_in; i++) {
        in[i].dtype = p->dtype;
        in[i].rank = s.in[i].rank;
        memcpy(in[i].shape, s.in[i].size, sizeof(in[i].shape));
        lay_out_tensor(&in[i], LAYOUT_DENSE);
        in_memory[i] = new_memory(tensor_bytes(&in[i]));
        in[i].data = in_memory[i].data;
        is_ok(device_fill_normal(device, in[i].data, (enum kg_dtype)p->dtype,
                                 tensor_elements(&in[i]), i, &err),
              &err);
    }
    out_memory = new_memory((size_t)kg_shape_elements(&s.out[0]) * sizeof(double));
    double *out = out_memory.data;
    is_ok(device_synchronize(device, &err), &err);
    const double begin = seconds();
    is_ok(device_reference(device, p, in, &out, &err), &err);
    printf("# %s: %.3f s\n", name, seconds() - begin);
    device_free(device, &out_memory);
    for (uint32_t i = 0; i < s.n_in; i++)
        device_free(device, &in_memory[i]);
}

static int time_references(void)
{
    struct gate_error err = {0};
    if (device_open("cuda:0", &device, &err) != GATE_OK) {
        printf("%s\n", err.message);
        return (int)err.status;
    }
    struct kg_problem gemm = gemm_like(KG_OP_GEMM, KG_F16, 8192, 8192, 8192);
    struct kg_problem gemv = gemm_like(KG_OP_GEMV, KG_F16, 8192, 0, 8192);
    struct kg_problem sdpa = attention(KG_F16, 0, 32, 32, 8192, 8192, 128);
    sdpa.batch = 2;
    time_reference("warm-up", &gemm);
    time_reference("gemm 8192^3", &gemm);
    time_reference("gemv 8192^2", &gemv);
    time_reference("attention B=2 H=32 S=8192 D=128", &sdpa);
    sdpa.flags = KG_FLAG_CAUSAL;
    time_reference("the same, causal", &sdpa);
    device_close(device);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"an illegal access is wrong and final", test_illegal_access_is_wrong},
        {"open describes the device", test_open_describes_the_device},
        {"the own process does not make it busy", test_own_process_is_not_busy},
        {"another process makes it busy", test_other_process_is_busy},
        {"a missing device is refused", test_missing_device_is_refused},
        {"short memory leaves it usable", test_memory_shortage_leaves_the_device_usable},
        {"fill has the moments of a normal", test_fill_has_the_moments_of_a_normal},
        {"fill depends on seed and index alone", test_fill_depends_on_seed_and_index_alone},
        {"fill rounds to the dtype", test_fill_rounds_to_the_dtype},
        {"reference of the GEMM family", test_reference_of_the_gemm_family},
        {"reference of attention", test_reference_of_attention},
        {"compare", test_compare},
        {"hash", test_hash},
        {"launch errors are told apart", test_launch_errors_are_told_apart},
        {"replay time scales with the launches", test_replay_time_scales_with_the_launches},
        {"copy", test_copy},
        {"replay runs each launch once", test_replay_runs_each_launch_once},
        {"recording refuses more than enqueueing",
         test_recording_refuses_what_does_more_than_enqueue},
        {"a delay adds its time", test_delay_adds_its_time},
        {"a delay is refused where it has no meaning",
         test_delay_is_refused_where_it_has_no_meaning},
        {"control", test_control},
        {"single run", test_single_run},
        {"single run refuses a launch that waits", test_single_run_refuses_a_launch_that_waits},
        {"rest and throttle", test_rest_and_throttle},
    };
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "open") == 0)
        return child_open();
    if (argc > 1 && strcmp(argv[1], "break") == 0)
        return child_break();
    if (argc > 1 && strcmp(argv[1], "time") == 0)
        return time_references();
    const int status = tap_run(tests, sizeof(tests) / sizeof(tests[0]));
    device_close(device);
    return status;
}
