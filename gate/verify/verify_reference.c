/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/verify/verify_reference.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/library/library.h"
#include "kernels/ops/rows.h"
#include "kernels/ops/storage.h"

#define SLOW_MS 1000
#define NO_MEMORY "no memory for the reference of op '%s'"

/* Exit codes of the process, see on_fault(). */
enum { EXIT_PAST_OUTPUT = 101, EXIT_WROTE_INPUT = 102 };

/* Tensors are one after the other in memory that both processes have, each from a page on. */
struct request {
    struct kg_problem problem; /* its texts are where they were when the process was forked */
    size_t offset[KG_MAX_TENSORS], inputs_bytes, bytes;
};

struct mapping {
    unsigned char *at; /* NULL: there is none */
    size_t bytes;
};

static struct mapping map_shared(int fd, size_t bytes, int protection)
{
    void *at = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    return (struct mapping){at == MAP_FAILED ? NULL : at, bytes};
}

static void unmap(struct mapping *m)
{
    if (m->at)
        munmap(m->at, m->bytes);
    m->at = NULL;
}

static bool is_in(const struct mapping *m, const unsigned char *at)
{
    return m->at && at >= m->at && at < m->at + m->bytes;
}

static size_t up_to_page(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* ---- the process of the reference ---- */

enum { FD_TALK = 3, FD_MEMORY, FD_OTHERS };

/* An output: nothing is mapped around it, and what lies between is filled. */
struct room {
    struct mapping map;
    size_t inner, bytes;
    double *data;
};

static struct room rooms[KG_MAX_TENSORS];
static struct mapping inputs;

/* Says where the reference went that it must not. */
static void on_fault(int number, siginfo_t *info, void *)
{
    const unsigned char *at = info->si_addr;
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        if (is_in(&rooms[i].map, at))
            _exit(EXIT_PAST_OUTPUT);
    if (is_in(&inputs, at))
        _exit(EXIT_WROTE_INPUT);
    signal(number, SIG_DFL); /* and once more */
}

static bool make_room(struct room *r, size_t bytes, bool at_end, unsigned char poison)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = up_to_page(bytes);
    unsigned char *map =
        mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return false;
    const size_t before = at_end ? (inner - bytes) / 16 * 16 : 0;
    *r = (struct room){{map, inner + 2 * page}, inner, bytes, (void *)(map + page + before)};
    if (mprotect(map + page, inner, PROT_READ | PROT_WRITE))
        return false;
    memset(map + page, poison, inner);
    return true;
}

static bool is_intact(const struct room *r, unsigned char poison)
{
    const unsigned char *from = (const unsigned char *)r->data,
                        *begin = r->map.at + (r->map.bytes - r->inner) / 2;
    for (const unsigned char *at = begin; at < begin + r->inner; at++)
        if ((at < from || at >= from + r->bytes) && *at != poison)
            return false;
    return true;
}

/* One launch into outputs of its own. */
static enum gate_status launch_once(const struct kg_kernel *k, const struct request *r, bool again,
                                    const char *id, struct gate_error *err)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    struct kg_args args = {.struct_bytes = sizeof args};
    const unsigned n = problem_tensors(&r->problem, tensors);
    const unsigned char poison = again ? 0x5a : 0xff;
    for (unsigned i = 0; i < n; i++) {
        const size_t bytes = (size_t)problem_tensor_elements(&tensors[i]) * sizeof(double);
        if (tensors[i].is_output && !make_room(&rooms[args.n_out], bytes, !again, poison))
            return gate_fail(err, GATE_ENVIRONMENT, NO_MEMORY, r->problem.op);
        struct kg_tensor view =
            problem_dense(&tensors[i], tensors[i].is_output ? (void *)rooms[args.n_out].data
                                                            : (void *)(inputs.at + r->offset[i]));
        view.dtype = KG_F64;
        *(tensors[i].is_output ? &args.out[args.n_out++] : &args.in[args.n_in++]) = view;
    }
    const enum kg_status returned = k->launch(&r->problem, &args);
    if (returned != KG_OK)
        return gate_fail(err, GATE_USAGE, "returned '%s' for %s", library_status_name(returned),
                         id);
    for (unsigned out = 0; out < args.n_out; out++)
        if (!is_intact(&rooms[out], poison))
            return gate_fail(err, GATE_USAGE, "wrote beside its output '%s' of %s",
                             tensors[args.n_in + out].name, id);
    return GATE_OK;
}

/* Takes what the first launch wrote into the memory of both, or finds what the second wrote
 * differently. */
static enum gate_status take(unsigned char *memory, const struct request *r, bool again,
                             const char *id, struct gate_error *err)
{
    for (unsigned out = 0; out < r->problem.n_out; out++) {
        double *to = (void *)(memory + r->offset[r->problem.n_in + out]);
        const double *now = rooms[out].data;
        if (!again)
            memcpy(to, now, rooms[out].bytes);
        for (size_t at = 0; at < rooms[out].bytes / sizeof *to; at++)
            if (memcmp(&to[at], &now[at], sizeof *to) != 0)
                return gate_fail(err, GATE_USAGE,
                                 "disagrees with itself or leaves out elements: element %zu of "
                                 "'%s' of %s is %.9g in one run and %.9g in the next",
                                 at, op_of(&r->problem)->tensors[r->problem.n_in + out].name, id,
                                 to[at], now[at]);
    }
    return GATE_OK;
}

/* The inputs can be read alone. */
static enum gate_status answer(const struct library *lib, const struct kg_device *where,
                               const struct request *r, struct gate_error *err)
{
    const struct kg_kernel *k = library_choose(lib, &r->problem, where, NULL);
    char id[PROBLEM_ID_MAX];
    problem_id(&r->problem, id);
    if (!k)
        return gate_fail(err, GATE_USAGE, "does not support %s, which the op allows", id);
    RELEASED_BY(unmap) struct mapping all = map_shared(FD_MEMORY, r->bytes, PROT_READ | PROT_WRITE);
    inputs = map_shared(FD_MEMORY, r->inputs_bytes, PROT_READ);
    enum gate_status status =
        inputs.at && all.at ? GATE_OK : gate_fail(err, GATE_ENVIRONMENT, NO_MEMORY, r->problem.op);
    for (int again = 0; again < 2 && !status; again++) {
        status = launch_once(k, r, again, id, err);
        if (!status)
            status = take(all.at, r, again, id, err);
        for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
            unmap(&rooms[i].map);
    }
    unmap(&inputs);
    return status;
}

static enum gate_status open_library(const struct own_op *own, const char *path,
                                     const struct kg_device *where, struct library *lib,
                                     struct gate_error *err)
{
    bool found = false;
    TRY(library_open(path, KG_DEVICE_HOST, false, lib, err));
    for (uint32_t i = 0; i < lib->table->n_kernels; i++) {
        const struct kg_kernel *k = lib->table->kernels[i];
        if (strcmp(k->op, own->op.name) != 0)
            continue;
        found = true;
        if (k->prepare || k->workspace_bytes)
            return gate_fail(err, GATE_USAGE,
                             "its kernel '%s' has prepare() or workspace_bytes(), which a "
                             "reference has not",
                             k->name);
    }
    if (!found)
        return gate_fail(err, GATE_USAGE, "it has no kernel of this op");
    return library_start(lib, where, err) ? GATE_USAGE : GATE_OK;
}

/* Only the two descriptors above, and standard error, go on. */
static bool keep_descriptors(int talk, int memory)
{
    const int nothing = open("/dev/null", O_RDWR), first = fcntl(talk, F_DUPFD, 64),
              second = fcntl(memory, F_DUPFD, 64);
    return dup2(first, FD_TALK) >= 0 && dup2(second, FD_MEMORY) >= 0 &&
           dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
           !close_range(FD_OTHERS, ~0u, 0);
}

__attribute__((noreturn)) static void serve(const struct own_op *own, const char *path, int talk,
                                            int memory)
{
    const struct kg_device where = {.struct_bytes = sizeof where,
                                    .kind = KG_DEVICE_HOST,
                                    .sm_count = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    struct sigaction catch = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct library lib;
    struct gate_error err = {0};
    struct request request;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!keep_descriptors(talk, memory))
        _exit(GATE_INTERNAL);
    err.status = open_library(own, path, &where, &lib, &err);
    const bool opened = !err.status;
    sigaction(SIGSEGV, &catch, NULL);
    sigaction(SIGBUS, &catch, NULL);
    /* The library may have a timer whose signals interrupt. */
    while (TEMP_FAILURE_RETRY(send(FD_TALK, &err, sizeof err, MSG_NOSIGNAL)) > 0 && opened &&
           TEMP_FAILURE_RETRY(recv(FD_TALK, &request, sizeof request, 0)) > 0) {
        err = (struct gate_error){0};
        err.status = answer(&lib, &where, &request, &err);
    }
    _exit(0);
}

/* ---- the process of the gate ---- */

struct process_of_op {
    const struct own_op *own;
    const char *path; /* of the library */
    pid_t pid;
    int talk, memory;
    own_reference_slow_fn slow;
    void *context;
};

static struct process_of_op processes[2 * OPS_OWN_MAX]; /* a second one is behind its first */
static unsigned n_processes;

__attribute__((format(printf, 3, 4))) static enum gate_status
fail(const struct process_of_op *p, struct gate_error *err, const char *format, ...)
{
    char what[600];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return gate_fail(err, GATE_USAGE,
                     "the reference of op '%s', '%.300s', %s: the kernel was not judged",
                     p->own->op.name, p->path, what);
}

static enum gate_status fail_ended(struct process_of_op *p, struct gate_error *err)
{
    int how = 0;
    (void)TEMP_FAILURE_RETRY(waitpid(p->pid, &how, 0));
    p->pid = 0;
    if (WIFSIGNALED(how))
        return fail(p, err, "crashed (%s)", strsignal(WTERMSIG(how)));
    if (WEXITSTATUS(how) == EXIT_PAST_OUTPUT)
        return fail(p, err, "crashed beyond the memory of an output");
    if (WEXITSTATUS(how) == EXIT_WROTE_INPUT)
        return fail(p, err, "crashed because it wrote to an input");
    return fail(p, err, "ended its process with code %d", WEXITSTATUS(how));
}

/* Waits for what the process says, which is a status and a message; one that takes long is
 * announced. */
static enum gate_status receive(struct process_of_op *p, struct gate_error *said,
                                struct gate_error *err)
{
    struct pollfd ready = {.fd = p->talk, .events = POLLIN};
    const bool waits = poll(&ready, 1, SLOW_MS) == 0;
    if (waits)
        p->slow(p->context, p->own, false);
    const ssize_t got = TEMP_FAILURE_RETRY(recv(p->talk, said, sizeof *said, 0));
    if (waits)
        p->slow(p->context, p->own, true);
    said->message[sizeof said->message - 1] = '\0';
    return got == sizeof *said ? GATE_OK : fail_ended(p, err);
}

static enum gate_status start(const struct own_op *own, const char *path,
                              own_reference_slow_fn slow, void *context, struct gate_error *err)
{
    struct process_of_op *p = &processes[n_processes];
    struct gate_error said;
    int talk[2];
    if (n_processes == 2 * OPS_OWN_MAX)
        return gate_fail(err, GATE_USAGE, "too many ops");
    *p = (struct process_of_op){.own = own, .path = path, .slow = slow, .context = context};
    p->memory = memfd_create("reference", MFD_CLOEXEC);
    if (p->memory < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk) ||
        (p->pid = fork()) < 0)
        return gate_fail(err, GATE_ENVIRONMENT, "cannot start the reference of op '%s': %s",
                         own->op.name, strerror(errno));
    if (!p->pid)
        serve(own, path, talk[1], p->memory);
    close(talk[1]);
    p->talk = talk[0];
    n_processes++;
    TRY(receive(p, &said, err));
    return said.status ? gate_fail(err, said.status == GATE_IO ? GATE_IO : GATE_USAGE,
                                   "the reference of op '%s', '%.300s': %.500s", own->op.name, path,
                                   said.message)
                       : GATE_OK;
}

enum gate_status own_reference_start(const struct own_op *own, own_reference_slow_fn slow,
                                     void *context, struct gate_error *err)
{
    TRY(start(own, own->reference, slow, context, err));
    return *own->second ? start(own, own->second, slow, context, err) : GATE_OK;
}

/* Dense numbers of an input that may lie anywhere, in any layout. */
static enum gate_status decode(struct device *d, const struct kg_tensor *t, double *to,
                               struct gate_error *err)
{
    struct kg_tensor here = *t;
    const size_t bytes = storage_span(t);
    RELEASED_BY(free_at) void *stored = here.data = malloc(bytes);
    if (!stored)
        return gate_fail(err, GATE_ENVIRONMENT, "no memory for the inputs of a reference");
    TRY(device_download(d, stored, t->data, bytes, err));
    rows_decode(&here, to);
    return GATE_OK;
}

static enum gate_status ask(struct process_of_op *process, struct request *request,
                            struct gate_error *err)
{
    struct gate_error said;
    /* One that died shows when its answer is read. */
    (void)TEMP_FAILURE_RETRY(send(process->talk, request, sizeof *request, MSG_NOSIGNAL));
    TRY(receive(process, &said, err));
    return said.status == GATE_USAGE ? fail(process, err, "%.590s", said.message)
           : said.status             ? gate_fail(err, said.status, "%s", said.message)
                                     : GATE_OK;
}

static enum gate_status map_memory(const struct process_of_op *process, const struct request *r,
                                   struct mapping *out, struct gate_error *err)
{
    if (!ftruncate(process->memory, (off_t)r->bytes))
        *out = map_shared(process->memory, r->bytes, PROT_READ | PROT_WRITE);
    return out->at ? GATE_OK : gate_fail(err, GATE_ENVIRONMENT, NO_MEMORY, r->problem.op);
}

/* Two formulas in fp64 are no further from each other than this, relative to the whole output: far
 * less than any limit of a kernel's error. */
#define SECOND_LIMIT 1e-9

/* The element that is furthest off where the two outputs disagree; -1: they agree. */
static int64_t disagreement(const double *first, const double *second, int64_t n)
{
    double off = 0, all = 0, most = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < n; i++) {
        const double by = first[i] == second[i] || (isnan(first[i]) && isnan(second[i]))
                              ? 0
                              : fabs(first[i] - second[i]);
        off += by * by;
        all += isfinite(first[i]) ? first[i] * first[i] : 0;
        if (by > most || (isnan(by) && most < INFINITY)) {
            most = isnan(by) ? INFINITY : by;
            at = i;
        }
    }
    return off <= SECOND_LIMIT * SECOND_LIMIT * all ? -1 : at;
}

/* Gives the inputs to the second reference too, if there is one, and compares what it makes. */
static enum gate_status check_by_second(struct process_of_op *first, struct request *r,
                                        const struct problem_tensor *tensors,
                                        const unsigned char *memory, struct gate_error *err)
{
    char id[PROBLEM_ID_MAX];
    RELEASED_BY(unmap) struct mapping other = {NULL, 0};
    if (!*first->own->second)
        return GATE_OK;
    if (!first[1].pid)
        return gate_fail(err, GATE_USAGE, "the second reference of op '%s' does not run",
                         r->problem.op);
    TRY(map_memory(&first[1], r, &other, err));
    memcpy(other.at, memory, r->inputs_bytes);
    TRY(ask(&first[1], r, err));
    problem_id(&r->problem, id);
    for (unsigned i = r->problem.n_in; i < r->problem.n_in + r->problem.n_out; i++) {
        const double *a = (const void *)(memory + r->offset[i]),
                     *b = (const void *)(other.at + r->offset[i]);
        const int64_t at = disagreement(a, b, problem_tensor_elements(&tensors[i]));
        if (at >= 0)
            return fail(first, err,
                        "and the second one, '%.300s', disagree: element %lld of '%s' of %s is "
                        "%.17g in the first and %.17g in the second",
                        first[1].path, (long long)at, tensors[i].name, id, a[at], b[at]);
    }
    return GATE_OK;
}

/* That of its first reference; NULL: it has none. */
static struct process_of_op *process_of(const struct kg_problem *p)
{
    for (struct process_of_op *process = processes; process < processes + n_processes; process++)
        if (&process->own->op == op_of(p))
            return process;
    return NULL;
}

static enum gate_status own_reference_compute(struct device *d, const struct kg_problem *p,
                                              const struct kg_tensor *in, double *const *out,
                                              struct gate_error *err)
{
    struct request r = {.problem = *p};
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    struct process_of_op *process = process_of(p);
    RELEASED_BY(unmap) struct mapping memory = {NULL, 0}; /* which the process has too */
    for (unsigned i = 0, n = problem_tensors(p, tensors); i < n; i++) {
        r.offset[i] = r.bytes;
        r.bytes += up_to_page((size_t)problem_tensor_elements(&tensors[i]) * sizeof(double));
        if (!tensors[i].is_output)
            r.inputs_bytes = r.bytes;
    }
    if (!process || !process->pid)
        return gate_fail(err, GATE_USAGE, "the reference of op '%s' does not run", p->op);
    TRY(map_memory(process, &r, &memory, err));
    for (unsigned i = 0; i < p->n_in; i++)
        TRY(decode(d, &in[i], (void *)(memory.at + r.offset[i]), err));
    TRY(ask(process, &r, err));
    TRY(check_by_second(process, &r, tensors, memory.at, err));
    for (unsigned i = p->n_in; i < p->n_in + p->n_out; i++)
        TRY(device_upload(d, out[i - p->n_in], memory.at + r.offset[i],
                          (size_t)problem_tensor_elements(&tensors[i]) * sizeof(double), err));
    return GATE_OK;
}

enum gate_status own_reference_asked(struct device *d, const struct look *look,
                                     const double *reference, struct gate_error *err)
{
    const struct process_of_op *process = process_of(look->problem);
    const struct device_element *first = &look->found.first_swallowed;
    char id[PROBLEM_ID_MAX], where[96];
    double wanted;
    if (!process || *process->own->second || first->at < 0 || !isfinite(first->value))
        return GATE_OK;
    TRY(device_download(d, &wanted, reference + first->at, sizeof wanted, err));
    if (isfinite(wanted)) /* too large for the output's dtype */
        return GATE_OK;
    problem_id(look->problem, id);
    compare_index(look->about, first->at, where, sizeof where);
    return fail(process, err,
                "makes %.9g of finite inputs for element [%s] of '%s' of %s, where the kernel has "
                "%.9g; a 'second_reference' could say that it is meant",
                isnan(wanted) ? NAN : wanted, where, look->about->name, id, first->value);
}

/* ---- any op ---- */

enum gate_status reference_reserve(struct device *d, const struct problem_tensor *outputs,
                                   uint32_t n, struct reference *r, struct gate_error *err)
{
    size_t elements = 0;
    for (uint32_t i = 0; i < n; i++)
        elements += (size_t)problem_tensor_elements(&outputs[i]);
    TRY(device_reserve(d, &r->memory, elements * sizeof(double), err));
    double *at = r->memory.data;
    for (uint32_t i = 0; i < n; at += problem_tensor_elements(&outputs[i++]))
        r->out[i] = at;
    return GATE_OK;
}

enum gate_status reference_compute(struct device *d, const struct kg_problem *p,
                                   const struct kg_tensor *in, const struct reference *r,
                                   struct gate_error *err)
{
    return op_of(p)->reference_apart ? own_reference_compute(d, p, in, r->out, err)
                                     : device_reference(d, p, in, r->out, err);
}
