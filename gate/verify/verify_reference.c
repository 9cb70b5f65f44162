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
#include <sys/wait.h>
#include <unistd.h>

#include "gate/cases/problem.h"
#include "gate/library/library.h"
#include "kernels/ops/draw.h"
#include "kernels/ops/storage.h"

#define SLOW_MS 1000

enum fault { FAULT_NONE, FAULT_REFUSED, FAULT_STATUS, FAULT_DIFFERS, FAULT_PAST, FAULT_MEMORY };

/* Exit codes of the process, see on_fault(). */
enum { EXIT_PAST_OUTPUT = 101, EXIT_WROTE_INPUT = 102 };

/* Tensors are one after the other in memory that both processes have, each from a page on. */
struct request {
    struct kg_problem problem; /* its texts are where they were when the process was forked */
    size_t offset[KG_MAX_TENSORS], inputs_bytes, bytes;
};

struct reply {
    enum fault fault;
    enum kg_status returned;
    unsigned out; /* the output and its element at fault, */
    int64_t at;
    double first, second; /* and what it was */
};

/* What the process says when it has opened the library. */
struct opening {
    enum gate_status status;
    char message[900];
};

static size_t up_to_page(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static struct request request_of(const struct kg_problem *p)
{
    struct request r = {.problem = *p};
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    const unsigned n = problem_tensors(p, tensors);
    for (unsigned i = 0; i < n; i++) {
        r.offset[i] = r.bytes;
        r.bytes += up_to_page((size_t)problem_tensor_elements(&tensors[i]) * sizeof(double));
        if (!tensors[i].is_output)
            r.inputs_bytes = r.bytes;
    }
    return r;
}

/* Reads or writes all of a struct; false: the other side is gone. */
static bool transfer(int fd, void *bytes, size_t n, bool reads)
{
    for (char *at = bytes; n > 0;) {
        ssize_t some = reads ? read(fd, at, n) : write(fd, at, n);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return false;
        at += some;
        n -= (size_t)some;
    }
    return true;
}

/* ---- the process of the reference ---- */

enum { FD_REQUESTS = 3, FD_REPLIES, FD_MEMORY, FD_OTHERS };

/* An output: nothing is mapped around it, and what lies between is filled. */
struct room {
    unsigned char *map;
    size_t mapped, inner, bytes;
    double *data;
};

static struct room rooms[KG_MAX_TENSORS];
static const unsigned char *inputs;
static size_t inputs_bytes;

/* Says where the reference went that it must not. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;
    (void)context;
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        if (rooms[i].map && at >= rooms[i].map && at < rooms[i].map + rooms[i].mapped)
            _exit(EXIT_PAST_OUTPUT);
    if (inputs && at >= inputs && at < inputs + inputs_bytes)
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
    *r = (struct room){map, inner + 2 * page, inner, bytes, (void *)(map + page + before)};
    if (mprotect(map + page, inner, PROT_READ | PROT_WRITE))
        return false;
    memset(map + page, poison, inner);
    return true;
}

static bool is_intact(const struct room *r, unsigned char poison)
{
    const unsigned char *from = (const unsigned char *)r->data,
                        *begin = r->map + (r->mapped - r->inner) / 2;
    for (const unsigned char *at = begin; at < begin + r->inner; at++)
        if ((at < from || at >= from + r->bytes) && *at != poison)
            return false;
    return true;
}

/* One launch into outputs of its own. */
static enum fault launch_once(const struct kg_kernel *k, const struct request *r, bool again,
                              struct reply *reply)
{
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    struct kg_args args = {.struct_bytes = sizeof args};
    const unsigned n = problem_tensors(&r->problem, tensors);
    const unsigned char poison = again ? 0x5a : 0xff;
    for (unsigned i = 0; i < n; i++) {
        const size_t bytes = (size_t)problem_tensor_elements(&tensors[i]) * sizeof(double);
        if (tensors[i].is_output && !make_room(&rooms[args.n_out], bytes, !again, poison))
            return FAULT_MEMORY;
        struct kg_tensor view =
            problem_dense(&tensors[i], tensors[i].is_output ? (void *)rooms[args.n_out].data
                                                            : (void *)(inputs + r->offset[i]));
        view.dtype = KG_F64;
        *(tensors[i].is_output ? &args.out[args.n_out++] : &args.in[args.n_in++]) = view;
    }
    reply->returned = k->launch(&r->problem, &args);
    if (reply->returned != KG_OK)
        return FAULT_STATUS;
    for (reply->out = 0; reply->out < args.n_out; reply->out++)
        if (!is_intact(&rooms[reply->out], poison))
            return FAULT_PAST;
    return FAULT_NONE;
}

/* Takes what the first launch wrote into the memory of both, or finds what the second wrote
 * differently. */
static enum fault take(unsigned char *memory, const struct request *r, bool again,
                       struct reply *reply)
{
    for (reply->out = 0; reply->out < r->problem.n_out; reply->out++) {
        double *to = (void *)(memory + r->offset[r->problem.n_in + reply->out]);
        const double *now = rooms[reply->out].data;
        if (!again)
            memcpy(to, now, rooms[reply->out].bytes);
        for (reply->at = 0; again && (size_t)reply->at < rooms[reply->out].bytes / sizeof *to;
             reply->at++) {
            reply->first = to[reply->at];
            reply->second = now[reply->at];
            if (memcmp(&reply->first, &reply->second, sizeof *to) != 0)
                return FAULT_DIFFERS;
        }
    }
    return FAULT_NONE;
}

static enum fault compute(const struct kg_kernel *k, const struct request *r, unsigned char *memory,
                          struct reply *reply)
{
    enum fault fault = FAULT_NONE;
    for (int again = 0; again < 2 && !fault; again++) {
        fault = launch_once(k, r, again, reply);
        if (!fault)
            fault = take(memory, r, again, reply);
        for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
            if (rooms[i].map)
                munmap(rooms[i].map, rooms[i].mapped);
        memset(rooms, 0, sizeof rooms);
    }
    return fault;
}

/* The inputs can be read alone. */
static enum fault answer(const struct library *lib, const struct kg_device *where,
                         const struct request *r, struct reply *reply)
{
    const struct kg_kernel *k = library_choose(lib, &r->problem, where, NULL);
    if (!k)
        return FAULT_REFUSED;
    void *in = mmap(NULL, r->inputs_bytes, PROT_READ, MAP_SHARED, FD_MEMORY, 0);
    void *all = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, FD_MEMORY, 0);
    enum fault fault = FAULT_MEMORY;
    if (in != MAP_FAILED && all != MAP_FAILED) {
        inputs = in;
        inputs_bytes = r->inputs_bytes;
        fault = compute(k, r, all, reply);
        inputs = NULL;
    }
    if (in != MAP_FAILED)
        munmap(in, r->inputs_bytes);
    if (all != MAP_FAILED)
        munmap(all, r->bytes);
    return fault;
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

/* Only the three descriptors above, and standard error, go on. */
static bool keep_descriptors(const int fds[3])
{
    int moved[3];
    const int nothing = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        if ((moved[i] = fcntl(fds[i], F_DUPFD, 64)) < 0)
            return false;
    for (int i = 0; i < 3; i++)
        if (dup2(moved[i], FD_REQUESTS + i) < 0)
            return false;
    return dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
           !close_range(FD_OTHERS, ~0u, 0);
}

__attribute__((noreturn)) static void serve(const struct own_op *own, const char *path,
                                            const int fds[3])
{
    const struct kg_device where = {.struct_bytes = sizeof where,
                                    .kind = KG_DEVICE_HOST,
                                    .sm_count = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    struct sigaction catch = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct library lib;
    struct gate_error err = {0};
    struct opening opening = {GATE_OK, ""};
    struct request request;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!keep_descriptors(fds))
        _exit(GATE_INTERNAL);
    opening.status = open_library(own, path, &where, &lib, &err);
    snprintf(opening.message, sizeof opening.message, "%.899s", err.message);
    sigaction(SIGSEGV, &catch, NULL);
    sigaction(SIGBUS, &catch, NULL);
    bool good = transfer(FD_REPLIES, &opening, sizeof opening, false) && !opening.status;
    while (good && transfer(FD_REQUESTS, &request, sizeof request, true)) {
        struct reply reply = {.fault = FAULT_NONE};
        reply.fault = answer(&lib, &where, &request, &reply);
        good = transfer(FD_REPLIES, &reply, sizeof reply, false);
    }
    _exit(0);
}

/* ---- the process of the gate ---- */

struct process_of_op {
    const struct own_op *own;
    const char *path; /* of the library */
    pid_t pid;
    int requests, replies, memory;
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
    while (waitpid(p->pid, &how, 0) < 0 && errno == EINTR) {
    }
    p->pid = 0;
    if (WIFSIGNALED(how))
        return fail(p, err, "crashed (%s)", strsignal(WTERMSIG(how)));
    if (WEXITSTATUS(how) == EXIT_PAST_OUTPUT)
        return fail(p, err, "crashed beyond the memory of an output");
    if (WEXITSTATUS(how) == EXIT_WROTE_INPUT)
        return fail(p, err, "crashed because it wrote to an input");
    return fail(p, err, "ended its process with code %d", WEXITSTATUS(how));
}

/* Waits for what the process says; one that takes long is announced. */
static enum gate_status receive(struct process_of_op *p, void *to, size_t n, struct gate_error *err)
{
    struct pollfd ready = {.fd = p->replies, .events = POLLIN};
    const bool waits = poll(&ready, 1, SLOW_MS) == 0;
    if (waits)
        p->slow(p->context, p->own, false);
    const bool good = transfer(p->replies, to, n, true);
    if (waits)
        p->slow(p->context, p->own, true);
    return good ? GATE_OK : fail_ended(p, err);
}

static enum gate_status start(const struct own_op *own, const char *path,
                              own_reference_slow_fn slow, void *context, struct gate_error *err)
{
    struct process_of_op *p = &processes[n_processes];
    struct opening opening;
    int to[2], from[2];
    if (n_processes == 2 * OPS_OWN_MAX)
        return gate_fail(err, GATE_USAGE, "too many ops");
    *p = (struct process_of_op){.own = own, .path = path, .slow = slow, .context = context};
    p->memory = memfd_create("reference", MFD_CLOEXEC);
    if (p->memory < 0 || pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || (p->pid = fork()) < 0)
        return gate_fail(err, GATE_ENVIRONMENT, "cannot start the reference of op '%s': %s",
                         own->op.name, strerror(errno));
    if (!p->pid)
        serve(own, path, (const int[3]){to[0], from[1], p->memory});
    close(to[0]);
    close(from[1]);
    p->requests = to[1];
    p->replies = from[0];
    n_processes++;
    signal(SIGPIPE, SIG_IGN); /* one that died shows when its answer is read */
    TRY(receive(p, &opening, sizeof opening, err));
    if (!opening.status)
        return GATE_OK;
    return gate_fail(err, opening.status == GATE_IO ? GATE_IO : GATE_USAGE,
                     "the reference of op '%s', '%.300s': %.500s", own->op.name, path,
                     opening.message);
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
    int64_t last = 0;
    for (uint32_t r = 0; r < t->rank; r++)
        last += (t->shape[r] - 1) * t->stride[r];
    const size_t bytes = storage_bytes(t->dtype, last + 1);
    const int64_t elements = pattern_elements(t), columns = t->shape[t->rank - 1];
    void *stored = malloc(bytes);
    if (!stored)
        return gate_fail(err, GATE_ENVIRONMENT, "no memory for the inputs of a reference");
    enum gate_status status = device_download(d, stored, t->data, bytes, err);
    for (int64_t first = 0; first < elements && !status; first += columns) {
        const int64_t at = pattern_offset(t, first);
        for (int64_t c = 0; c < columns; c++)
            to[first + c] = storage_get(stored, t->dtype, at + c);
    }
    free(stored);
    return status;
}

static enum gate_status read_reply(const struct process_of_op *process, const struct kg_problem *p,
                                   const struct reply *r, struct gate_error *err)
{
    const struct own_op *own = process->own;
    char id[PROBLEM_ID_MAX];
    const char *name =
        r->out < p->n_out ? own->op.tensors[p->n_in + r->out].name : "an unknown output";
    problem_id(p, id);
    switch (r->fault) {
    case FAULT_NONE:
        return GATE_OK;
    case FAULT_REFUSED:
        return fail(process, err, "does not support %s, which the op allows", id);
    case FAULT_STATUS:
        return fail(process, err, "returned '%s' for %s", library_status_name(r->returned), id);
    case FAULT_PAST:
        return fail(process, err, "wrote beside its output '%s' of %s", name, id);
    case FAULT_DIFFERS:
        return fail(process, err,
                    "disagrees with itself or leaves out elements: element %lld of '%s' of %s is "
                    "%.9g in one run and %.9g in the next",
                    (long long)r->at, name, id, r->first, r->second);
    default:
        return gate_fail(err, GATE_ENVIRONMENT, "no memory for the reference of op '%s' on %s",
                         own->op.name, id);
    }
}

static enum gate_status ask(struct process_of_op *process, struct request *request,
                            struct gate_error *err)
{
    struct reply reply;
    transfer(process->requests, request, sizeof *request, false);
    TRY(receive(process, &reply, sizeof reply, err));
    return read_reply(process, &request->problem, &reply, err);
}

static enum gate_status map_memory(const struct process_of_op *process, const struct request *r,
                                   unsigned char **memory, struct gate_error *err)
{
    void *at = MAP_FAILED;
    if (!ftruncate(process->memory, (off_t)r->bytes))
        at = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, process->memory, 0);
    if (at == MAP_FAILED)
        return gate_fail(err, GATE_ENVIRONMENT, "no memory for the reference of op '%s'",
                         r->problem.op);
    *memory = at;
    return GATE_OK;
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

static enum gate_status compare(const struct process_of_op *first, const struct request *r,
                                const unsigned char *one, const unsigned char *other,
                                struct gate_error *err)
{
    struct problem_tensor t[PROBLEM_MAX_TENSORS];
    char id[PROBLEM_ID_MAX];
    const unsigned n = problem_tensors(&r->problem, t);
    problem_id(&r->problem, id);
    for (unsigned i = r->problem.n_in; i < n; i++) {
        const double *a = (const void *)(one + r->offset[i]),
                     *b = (const void *)(other + r->offset[i]);
        const int64_t at = disagreement(a, b, problem_tensor_elements(&t[i]));
        if (at >= 0)
            return fail(first, err,
                        "and the second one, '%.300s', disagree: element %lld of '%s' of %s is "
                        "%.17g in the first and %.17g in the second",
                        first[1].path, (long long)at, t[i].name, id, a[at], b[at]);
    }
    return GATE_OK;
}

/* Gives the inputs to the second reference too, if there is one. */
static enum gate_status check_by_second(struct process_of_op *first, struct request *r,
                                        const unsigned char *memory, struct gate_error *err)
{
    unsigned char *other;
    if (!*first->own->second)
        return GATE_OK;
    if (!first[1].pid)
        return gate_fail(err, GATE_USAGE, "the second reference of op '%s' does not run",
                         r->problem.op);
    TRY(map_memory(&first[1], r, &other, err));
    memcpy(other, memory, r->inputs_bytes);
    enum gate_status status = ask(&first[1], r, err);
    if (!status)
        status = compare(first, r, memory, other, err);
    munmap(other, r->bytes);
    return status;
}

static enum gate_status compute_in(struct process_of_op *process, struct device *d,
                                   struct request *request, const struct kg_tensor *in,
                                   double *const *out, unsigned char *memory,
                                   struct gate_error *err)
{
    const struct kg_problem *p = &request->problem;
    struct problem_tensor tensors[PROBLEM_MAX_TENSORS];
    problem_tensors(p, tensors);
    for (unsigned i = 0; i < p->n_in; i++)
        TRY(decode(d, &in[i], (void *)(memory + request->offset[i]), err));
    TRY(ask(process, request, err));
    TRY(check_by_second(process, request, memory, err));
    for (unsigned i = p->n_in; i < p->n_in + p->n_out; i++)
        TRY(device_upload(d, out[i - p->n_in], memory + request->offset[i],
                          (size_t)problem_tensor_elements(&tensors[i]) * sizeof(double), err));
    return GATE_OK;
}

static enum gate_status own_reference_compute(struct device *d, const struct kg_problem *p,
                                              const struct kg_tensor *in, double *const *out,
                                              struct gate_error *err)
{
    struct request request = request_of(p);
    struct process_of_op *process = processes;
    unsigned char *memory;
    while (process < processes + n_processes && &process->own->op != op_of(p))
        process++;
    if (process == processes + n_processes || !process->pid)
        return gate_fail(err, GATE_USAGE, "the reference of op '%s' does not run", p->op);
    TRY(map_memory(process, &request, &memory, err));
    enum gate_status status = compute_in(process, d, &request, in, out, memory, err);
    munmap(memory, request.bytes);
    return status;
}

/* ---- any op ---- */

enum gate_status reference_alloc(struct device *d, const struct operands *o, struct reference *out,
                                 struct gate_error *err)
{
    enum gate_status status = GATE_OK;
    *out = (struct reference){0};
    for (uint32_t i = 0; i < o->args.n_out && !status; i++)
        status = device_alloc(d, (size_t)problem_tensor_elements(&o->out[i]) * sizeof(double),
                              &out->out[i], err);
    if (status)
        reference_free(d, out);
    return status;
}

void reference_free(struct device *d, struct reference *r)
{
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        device_free(d, &r->out[i]);
}

enum gate_status reference_on(struct device *d, const struct kg_problem *p,
                              const struct kg_tensor *in, double *const *out,
                              struct gate_error *err)
{
    return op_of(p)->reference_apart ? own_reference_compute(d, p, in, out, err)
                                     : device_reference(d, p, in, out, err);
}

enum gate_status reference_compute(struct device *d, const struct kg_problem *p,
                                   const struct operands *o, struct reference *r,
                                   struct gate_error *err)
{
    double *out[KG_MAX_TENSORS];
    for (unsigned i = 0; i < KG_MAX_TENSORS; i++)
        out[i] = r->out[i].data;
    return reference_on(d, p, o->args.in, out, err);
}
