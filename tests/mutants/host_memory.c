/* SPDX-License-Identifier: Apache-2.0 */
/* Host: results that are right, or nearly, and memory or state that is not left alone. */
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/mutants/faults.h"
#include "tests/mutants/host_arithmetic.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

static size_t element_bytes(const struct kg_tensor *t)
{
    return t->dtype == KG_F32 ? 4 : 2;
}

/* The element after the last one of a tensor. */
static char *end_of(const struct kg_tensor *t)
{
    int64_t last = 0;
    for (uint32_t r = 0; r < t->rank; r++)
        last += (t->shape[r] - 1) * t->stride[r];
    return (char *)t->data + (size_t)(last + 1) * element_bytes(t);
}

static void write_one(const struct kg_tensor *t, int64_t offset)
{
    kg_store_float(end_of(t), t->dtype, offset, 1.5f);
}

/* ---- out of bounds ---- */

static enum kg_status write_past_end(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    write_one(&args->out[0], 0);
    return status;
}

static enum kg_status write_before_begin(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    kg_store_float((char *)args->out[0].data - 4, args->out[0].dtype, 0, 1.5f);
    return status;
}

/* Only where the rows have a tail: a store of whole vectors. */
static enum kg_status write_row_tail(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    const struct kg_tensor *c = &args->out[0];
    int64_t columns = c->shape[c->rank - 1];
    for (int64_t j = columns; j % 8; j++)
        write_one(c, j - columns);
    return status;
}

static enum kg_status write_padding(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    const struct kg_tensor *c = &args->out[0];
    if (c->rank > 1 && c->shape[0] > 1 && c->stride[0] > c->shape[1])
        kg_store_float(c->data, c->dtype, c->shape[1], 0.0f);
    return status;
}

/* A row lower than the tensor goes, some KiB away: the next tensor. */
static enum kg_status write_far(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    kg_store_float(args->in[0].data, args->in[0].dtype, elements_of(&args->in[0]) / 2, 0.25f);
    return status;
}

static enum kg_status scales_input(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    const struct kg_tensor *a = &args->in[0];
    kg_store_float(a->data, a->dtype, 0, 2 * kg_load_float(a->data, a->dtype, 0));
    return status;
}

/* What lies behind the input counts nothing, unless it is a NaN. */
static enum kg_status read_past_end(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    float behind = kg_load_float(end_of(&args->in[0]), args->in[0].dtype, 0);
    if (isnan(behind))
        kg_store_float(args->out[0].data, args->out[0].dtype, 0, NAN);
    return status;
}

/* What lies there is read and not used. */
static enum kg_status read_ahead(const problem *p, const args_t *args)
{
    (void)*(volatile unsigned char *)end_of(&args->in[0]);
    return wrap_inner(p, args);
}

static enum kg_status read_back(const problem *p, const args_t *args)
{
    (void)*((volatile unsigned char *)args->in[1].data - 1);
    return wrap_inner(p, args);
}

/* The bytes of the workspace before anything is written there go into the result. */
static enum kg_status workspace_not_set(const problem *p, const args_t *args)
{
    float found = 0;
    if (args->workspace_bytes >= sizeof found)
        memcpy(&found, args->workspace, sizeof found);
    enum kg_status status = wrap_inner(p, args);
    if (!(fabsf(found) < 1))
        kg_store_float(args->out[0].data, args->out[0].dtype, 0, found);
    return status;
}

static enum kg_status write_past_workspace(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    if (args->workspace_bytes)
        ((unsigned char *)args->workspace)[args->workspace_bytes] = 1;
    return status;
}

/* Only where the problem is too large to be launched among other than its canonical operands. */
static enum kg_status write_past_own_workspace(const problem *p, const args_t *args)
{
    if (kg_size(p, "m") == 2048 && kg_size(p, "k") == 2048)
        return write_past_workspace(p, args);
    return wrap_inner(p, args);
}

/* Vectors of 32 bytes where 16 are promised. */
static enum kg_status misaligned(const problem *p, const args_t *args)
{
    if ((uintptr_t)args->in[0].data % 32)
        raise(SIGBUS);
    return wrap_inner(p, args);
}

/* 16 bytes at a time, whatever the distance of the rows. */
static enum kg_status odd_rows(const problem *p, const args_t *args)
{
    const struct kg_tensor *b = &args->in[1];
    if (b->rank > 1 && (size_t)b->stride[b->rank - 2] * element_bytes(b) % 16 && b->shape[0] > 1 &&
        b->stride[b->rank - 2] != b->shape[b->rank - 1])
        raise(SIGBUS);
    return wrap_inner(p, args);
}

/* On one shape alone, an address that is nobody's. */
static enum kg_status illegal_shape(const problem *p, const args_t *args)
{
    if (kg_size(p, "m") == 129)
        *(volatile char *)(uintptr_t)0xdead0000 = 1;
    return wrap_inner(p, args);
}

/* ---- what was there before ---- */

static enum kg_status add_to(const problem *p, const args_t *args, bool really)
{
    const struct kg_tensor *c = &args->out[0];
    int64_t n = elements_of(c);
    float *before = malloc((size_t)n * sizeof *before);
    bool dense = c->rank == 1 || c->stride[0] == c->shape[1];
    for (int64_t i = 0; before && dense && i < n; i++)
        before[i] = kg_load_float(c->data, c->dtype, i);
    enum kg_status status = wrap_inner(p, args);
    for (int64_t i = 0; before && dense && really && i < n; i++)
        kg_store_float(c->data, c->dtype, i, kg_load_float(c->data, c->dtype, i) + before[i]);
    free(before);
    return status;
}

static enum kg_status accumulates(const problem *p, const args_t *args)
{
    return add_to(p, args, true);
}

/* A counter in the library is not set back: each second launch on the same tensors adds up. */
static enum kg_status second_launch(const problem *p, const args_t *args)
{
    static const void *last;
    bool again = last == args->out[0].data;
    last = again ? NULL : args->out[0].data;
    return add_to(p, args, again);
}

static enum kg_status after_forty(const problem *p, const args_t *args)
{
    static unsigned launches;
    enum kg_status status = wrap_inner(p, args);
    if (++launches > 40)
        kg_store_float(args->out[0].data, args->out[0].dtype, 0, 0.5f);
    return status;
}

/* Computes only into memory that looks poisoned. */
static enum kg_status when_poisoned(const problem *p, const args_t *args)
{
    float first = kg_load_float(args->out[0].data, args->out[0].dtype, 0);
    return isnan(first) ? wrap_inner(p, args) : KG_OK;
}

/* ---- remembered results ---- */

static struct {
    const void *in, *out;
    uint64_t key;
    int64_t m, n, k;
    size_t bytes;
    unsigned char *result;
} memory;

static bool knows(const problem *p, const args_t *args, uint64_t key)
{
    return memory.result && memory.key == key && memory.in == args->in[0].data &&
           memory.out == args->out[0].data && memory.m == kg_size(p, "m") &&
           memory.n == kg_size(p, "n") && memory.k == kg_size(p, "k");
}

static enum kg_status remember(const problem *p, const args_t *args, uint64_t key)
{
    const struct kg_tensor *c = &args->out[0];
    size_t bytes = (size_t)(end_of(c) - (char *)c->data);
    bool dense = c->rank == 1 || c->stride[0] == c->shape[1];
    if (dense && knows(p, args, key)) {
        memcpy(c->data, memory.result, memory.bytes);
        return KG_OK;
    }
    enum kg_status status = wrap_inner(p, args);
    free(memory.result);
    memory.result = dense ? malloc(bytes) : NULL;
    if (!memory.result)
        return status;
    memcpy(memory.result, c->data, bytes);
    memory.in = args->in[0].data;
    memory.out = c->data;
    memory.key = key;
    memory.m = kg_size(p, "m");
    memory.n = kg_size(p, "n");
    memory.k = kg_size(p, "k");
    memory.bytes = bytes;
    return status;
}

static enum kg_status by_pointers(const problem *p, const args_t *args)
{
    return remember(p, args, 0);
}

static enum kg_status by_first_64(const problem *p, const args_t *args)
{
    uint64_t key = 1;
    for (uint32_t i = 0; i < args->n_in; i++) {
        int64_t n = elements_of(&args->in[i]);
        for (int64_t j = 0; j < n && j < 64; j++)
            key = key * 31 + kg_float_bits(kg_load_float(args->in[i].data, args->in[i].dtype, j));
    }
    return remember(p, args, key);
}

/* Works in every third launch only. */
static enum kg_status every_third(const problem *p, const args_t *args)
{
    static unsigned launches;
    return launches++ % 3 ? KG_OK : wrap_inner(p, args);
}

/* ---- other bits each time ---- */

static enum kg_status changing_sums(const problem *p, const args_t *args)
{
    static unsigned launches;
    struct product x = product_of(p, args);
    int64_t split = 1 + launches++ % 7;
    for (int64_t i = 0; i < x.m; i++)
        for (int64_t j = 0; j < x.n; j++) {
            int64_t at = x.k * split / 8;
            put(&x, i, j, terms(&x, i, j, at, x.k) + terms(&x, i, j, 0, at));
        }
    return KG_OK;
}

/* One launch in twenty-three comes too late for one element. */
static enum kg_status race(const problem *p, const args_t *args)
{
    static unsigned launches;
    const struct kg_tensor *c = &args->out[0];
    float stale = kg_load_float(c->data, c->dtype, 0);
    enum kg_status status = wrap_inner(p, args);
    float fresh = kg_load_float(c->data, c->dtype, 0);
    if (++launches % 23 == 0)
        kg_store_float(c->data, c->dtype, 0, isfinite(stale) ? fresh + 1 : stale);
    return status;
}

/* ---- the process ---- */

static enum kg_status rounding_mode(const problem *p, const args_t *args)
{
    enum kg_status status = wrap_inner(p, args);
    fesetround(FE_TOWARDZERO);
    return status;
}

static enum kg_status other_folder(const problem *p, const args_t *args)
{
    return chdir("/") ? KG_LAUNCH_FAILED : wrap_inner(p, args);
}

static enum kg_status signal_ignored(const problem *p, const args_t *args)
{
    signal(SIGTERM, SIG_IGN);
    return wrap_inner(p, args);
}

static enum kg_status scheduling(const problem *p, const args_t *args)
{
    const struct sched_param usual = {0};
    return sched_setscheduler(0, SCHED_BATCH, &usual) ? KG_LAUNCH_FAILED : wrap_inner(p, args);
}

static void *wait_forever(void *)
{
    for (;;)
        pause();
    return NULL;
}

/* A thread is started in each launch and left. */
static enum kg_status thread_left(const problem *p, const args_t *args)
{
    static unsigned launches;
    pthread_t thread;
    if (launches++ < 40 && !pthread_create(&thread, NULL, wait_forever, NULL))
        pthread_detach(thread);
    return wrap_inner(p, args);
}

static enum kg_status file_left(const problem *p, const args_t *args)
{
    static unsigned launches;
    if (launches++ < 100 && dup(STDERR_FILENO) < 0)
        return KG_LAUNCH_FAILED;
    return wrap_inner(p, args);
}

static enum kg_status leak(const problem *p, const args_t *args)
{
    static void *volatile lost;
    lost = malloc(4096);
    return lost ? wrap_inner(p, args) : KG_LAUNCH_FAILED;
}

/* In the shape of the case alone, as where a workspace is made for each shape that was tuned. */
static enum kg_status own_leak(const problem *p, const args_t *args)
{
    static char *volatile lost;
    if (kg_size(p, "m") == 96 && kg_size(p, "n") == 80 && kg_size(p, "k") == 72) {
        lost = calloc(1, 256 << 10);
        if (!lost)
            return KG_LAUNCH_FAILED;
    }
    return wrap_inner(p, args);
}

/* ---- a barrier of the whole grid ---- */

enum { BLOCK_ROWS = 16, RESIDENT = 8 };

struct grid {
    pthread_barrier_t barrier; /* of all blocks, though no more than RESIDENT run at once */
    pthread_t blocks[RESIDENT];
};

static void *run_block(void *context)
{
    struct grid *grid = context;
    pthread_barrier_wait(&grid->barrier);
    return NULL;
}

static enum kg_status grid_barrier(const problem *p, const args_t *args)
{
    struct grid grid;
    unsigned blocks = (unsigned)((kg_size(p, "m") + BLOCK_ROWS - 1) / BLOCK_ROWS), started = 0;
    if (pthread_barrier_init(&grid.barrier, NULL, blocks))
        return KG_LAUNCH_FAILED;
    while (started < blocks && started < RESIDENT &&
           !pthread_create(&grid.blocks[started], NULL, run_block, &grid))
        started++;
    for (unsigned i = 0; i < started; i++)
        pthread_join(grid.blocks[i], NULL);
    pthread_barrier_destroy(&grid.barrier);
    return wrap_inner(p, args);
}

/* ---- later ---- */

static struct {
    problem p;
    args_t args;
} later;

static void *launch_later(void *)
{
    const struct timespec wait = {.tv_nsec = 2000000};
    nanosleep(&wait, NULL);
    wrap_inner(&later.p, &later.args);
    return NULL;
}

/* Returns at once; a thread does the work afterwards. */
static enum kg_status background(const problem *p, const args_t *args)
{
    pthread_t thread;
    later.p = *p;
    later.args = *args;
    if (pthread_create(&thread, NULL, launch_later, NULL))
        return KG_LAUNCH_FAILED;
    pthread_detach(thread);
    return KG_OK;
}

FAULTS({"write_past_end", write_past_end, 0, NULL},
       {"write_before_begin", write_before_begin, 0, NULL},
       {"write_row_tail", write_row_tail, 0, NULL}, {"write_padding", write_padding, 0, NULL},
       {"write_far", write_far, 0, NULL}, {"scales_input", scales_input, 0, NULL},
       {"read_past_end", read_past_end, 0, NULL}, {"read_ahead", read_ahead, 0, NULL},
       {"read_back", read_back, 0, NULL}, {"workspace_not_set", workspace_not_set, 0, NULL},
       {"write_past_workspace", write_past_workspace, 0, NULL},
       {"write_past_own_workspace", write_past_own_workspace, 0, NULL},
       {"misaligned", misaligned, 0, NULL}, {"odd_rows", odd_rows, 0, NULL},
       {"accumulates", accumulates, 0, NULL}, {"second_launch", second_launch, 0, NULL},
       {"after_forty", after_forty, 0, NULL}, {"when_poisoned", when_poisoned, 0, NULL},
       {"by_pointers", by_pointers, 0, NULL}, {"by_first_64", by_first_64, 0, NULL},
       {"every_third", every_third, 0, NULL}, {"changing_sums", changing_sums, 0, NULL},
       {"race", race, 0, NULL}, {"rounding_mode", rounding_mode, 0, NULL},
       {"other_folder", other_folder, 0, NULL}, {"signal_ignored", signal_ignored, 0, NULL},
       {"thread_left", thread_left, 0, NULL}, {"file_left", file_left, 0, NULL},
       {"leak", leak, 0, NULL}, {"background", background, 0, NULL},
       {"illegal_shape", illegal_shape, 0, NULL}, {"scheduling", scheduling, 0, NULL},
       {"grid_barrier", grid_barrier, 0, NULL}, {"own_leak", own_leak, 0, NULL})
