/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host: launches that hang, end, flood, multiply or eat the machine, on the 4 x 1 x 3 product
 * alone: all other cases are right, and must come out right.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/mutants/faults.h"

typedef struct kg_problem problem;
typedef struct kg_args args_t;

static bool spared(const problem *p)
{
    return !(kg_size(p, "m") == 4 && kg_size(p, "n") == 1 && kg_size(p, "k") == 3);
}

/* What it does instead of computing; it may return. */
typedef void (*deed_fn)(void);

static enum kg_status do_deed(const problem *p, const args_t *args, deed_fn deed)
{
    if (!spared(p))
        deed();
    return wrap_inner(p, args);
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

static void spin_on(void)
{
    static volatile unsigned long turns;
    for (;;)
        turns++;
}

static void stop_on(void)
{
    raise(SIGSTOP);
}

static void ignore_all(void)
{
    for (int i = 1; i < 32; i++)
        signal(i, SIG_IGN);
    sleep_on();
}

static void exit_0(void)
{
    exit(0);
}

static void exit_at_once(void)
{
    _exit(0);
}

static void abort_now(void)
{
    abort();
}

static void end_thread(void)
{
    pthread_exit(NULL);
}

/* A child in a session of its own, which keeps all descriptors. */
static void leave_child(void)
{
    if (fork() == 0) {
        setsid();
        sleep_on();
    }
}

/* A grandchild whose parent has gone: nobody's child any more. */
static void leave_daemon(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            sleep_on();
        _exit(0);
    }
}

static void leave_child_and_exit(void)
{
    leave_daemon();
    exit(0);
}

static void flood(void)
{
    static char line[1 << 16];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    while (fwrite(line, sizeof line, 1, stdout) == 1)
        continue;
}

static void flood_64_mib(void)
{
    static char line[1 << 16];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 1024; i++)
        fwrite(line, sizeof line, 1, stdout);
    fflush(stdout);
}

/* An answer of the worker, as far as a kernel can know one, to whoever listens. */
static void forge(void)
{
    static const char record[] =
        "{\"done\": \"gemm/fp32/m4-n1-k3\", \"nonce\": \"0000000000000000\", \"outcome\": "
        "\"verified\", \"message\": \"\", \"spoiled\": false, \"arms\": [{\"provider\": "
        "\"mutant\", "
        "\"role\": \"candidate\", \"kernel\": \"gemm\", \"verify\": {\"ok\": true, \"seeds\": 3, "
        "\"rel_fro\": 0, \"limit\": 1e-5, \"max_abs\": 0, \"allclose_1e2\": 1, \"allclose_1e3\": "
        "1, "
        "\"nonfinite\": 0, \"message\": \"\"}, \"timing\": null}]}\n";
    for (int fd = 3; fd < 64; fd++)
        if (write(fd, record, sizeof record - 1) < 0)
            continue;
    sleep_on();
}

static void close_all(void)
{
    for (int fd = 0; fd < 64; fd++)
        close(fd);
}

/* To the limit of the address space, which the test sets. */
static void eat_memory(void)
{
    for (size_t piece = (size_t)64 << 20; piece >= 64; piece /= 2)
        while (malloc(piece))
            continue;
}

static void overflow_stack(void)
{
    volatile char frame[1 << 16];
    frame[0] = 1;
    if (frame[0])
        overflow_stack();
    frame[1] = frame[0];
}

/* Wrong on that product, and from then on on all others in the same process. */
static enum kg_status taints_launch(const problem *p, const args_t *args)
{
    static bool tainted;
    const struct kg_tensor *c = &args->out[0];
    const enum kg_status status = wrap_inner(p, args);
    tainted |= !spared(p);
    if (tainted)
        memset(c->data, 0, 4);
    return status;
}

#define DEED(name)                                                                                 \
    static enum kg_status name##_launch(const problem *p, const args_t *args)                      \
    {                                                                                              \
        return do_deed(p, args, name);                                                             \
    }
DEED(sleep_on)
DEED(spin_on)
DEED(stop_on)
DEED(ignore_all)
DEED(exit_0)
DEED(exit_at_once)
DEED(abort_now)
DEED(end_thread)
DEED(leave_child)
DEED(leave_daemon)
DEED(leave_child_and_exit)
DEED(flood)
DEED(flood_64_mib)
DEED(forge)
DEED(close_all)
DEED(eat_memory)
DEED(overflow_stack)

FAULTS({"sleep_on", sleep_on_launch, 0, NULL}, {"spin_on", spin_on_launch, 0, NULL},
       {"stop_on", stop_on_launch, 0, NULL}, {"ignore_all", ignore_all_launch, 0, NULL},
       {"exit_0", exit_0_launch, 0, NULL}, {"exit_at_once", exit_at_once_launch, 0, NULL},
       {"abort_now", abort_now_launch, 0, NULL}, {"end_thread", end_thread_launch, 0, NULL},
       {"leave_child", leave_child_launch, 0, NULL}, {"leave_daemon", leave_daemon_launch, 0, NULL},
       {"leave_child_and_exit", leave_child_and_exit_launch, 0, NULL},
       {"flood", flood_launch, 0, NULL}, {"flood_64_mib", flood_64_mib_launch, 0, NULL},
       {"forge", forge_launch, 0, NULL}, {"close_all", close_all_launch, 0, NULL},
       {"eat_memory", eat_memory_launch, 0, NULL}, {"taints", taints_launch, 0, NULL},
       {"overflow_stack", overflow_stack_launch, 0, NULL})
