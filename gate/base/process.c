/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/base/clock.h"

/* A process in uninterruptible sleep (a broken driver) is left behind after this long. */
#define REAP_S 20.0
#define EXEC_FAILED 127
#define LAST_WORDS 400
#define COMPLAINT_CHUNKS 64 /* taken at a time */
#define SPARED_MAX 64
#define ORPHANS_ROUNDS 1000 /* killing a process may make others our children */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* In the child: becomes the program, or ends. */
static void become(char *const *argv, bool trusted, int in, int out, int errors, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXEC_FAILED); /* the parent died before the line above */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(errors, STDERR_FILENO) < 0)
        _exit(EXEC_FAILED);
    if (!trusted)
        scrub_environment();
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "cannot run '%s': %s\n", argv[0], strerror(errno));
    _exit(EXEC_FAILED);
}

/* Starts it on these descriptors; `given` are the parent's ends of its pipes, -1: none. */
static enum gate_status start(struct process *p, char *const *argv, bool trusted,
                              const int streams[3], const int given[3], struct gate_error *err)
{
    pid_t parent = getpid(), pid = -1;
    if (streams[0] >= 0 && streams[1] >= 0 && streams[2] >= 0)
        pid = fork();
    if (pid == 0)
        become(argv, trusted, streams[0], streams[1], streams[2], parent);
    if (pid < 0)
        return gate_fail(err, GATE_ENVIRONMENT, "cannot start '%s': %s", argv[0], strerror(errno));
    setpgid(pid, pid); /* here too: whoever comes first */
    *p = (struct process){.pid = pid,
                          .to = given[0],
                          .from = given[1],
                          .errors = given[2],
                          .end = pidfd_open(pid, 0)};
    for (int i = 0; i < 3; i++)
        if (given[i] >= 0)
            fcntl(given[i], F_SETFL, O_NONBLOCK);
    buf_init(&p->input, PROCESS_LINE_MAX);
    return GATE_OK;
}

static enum gate_status start_with_pipes(struct process *p, char *const *argv, bool trusted,
                                         struct gate_error *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, errors[2] = {-1, -1};
    if (!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC))
        (void)!pipe2(errors, O_CLOEXEC);
    const int streams[] = {in[0], out[1], errors[1]};
    int given[] = {in[1], out[0], errors[0]};
    enum gate_status status = start(p, argv, trusted, streams, given, err);
    for (int i = 0; i < 3; i++) {
        if (streams[i] >= 0)
            close(streams[i]);
        if (status)
            close_fd(&given[i]);
    }
    return status;
}

enum gate_status process_start(struct process *p, char *const *argv, struct gate_error *err)
{
    return start_with_pipes(p, argv, true, err);
}

enum gate_status process_start_scrubbed(struct process *p, char *const *argv,
                                        struct gate_error *err)
{
    return start_with_pipes(p, argv, false, err);
}

enum gate_status process_start_logged(struct process *p, char *const *argv, int log,
                                      struct gate_error *err)
{
    const int none[] = {-1, -1, -1},
              streams[] = {open("/dev/null", O_RDONLY | O_CLOEXEC), log, log};
    enum gate_status status = start(p, argv, true, streams, none, err);
    if (streams[0] >= 0)
        close(streams[0]);
    return status;
}

bool process_write(struct process *p, const char *bytes, size_t n)
{
    while (n) {
        ssize_t written = write(p->to, bytes, n);
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
            continue;
        }
        if (written < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        struct pollfd fd = {.fd = p->to, .events = POLLOUT};
        if (poll(&fd, 1, 10000) == 0)
            return false;
    }
    return true;
}

/* Keeps the last part of what the process complains of. A bounded piece of it at a time: one that
 * complains without end must not keep its supervisor from looking at the clock. */
static void read_stderr(struct process *p)
{
    char chunk[1024];
    ssize_t n;
    for (int i = 0; i < COMPLAINT_CHUNKS && (n = read(p->errors, chunk, sizeof chunk)) > 0; i++) {
        size_t room = sizeof p->complaint - 1, len = (size_t)n;
        if (p->complaint_len + len > room) {
            size_t drop = p->complaint_len + len - room;
            drop = drop < p->complaint_len ? drop : p->complaint_len;
            memmove(p->complaint, p->complaint + drop, p->complaint_len - drop);
            p->complaint_len -= drop;
        }
        memcpy(p->complaint + p->complaint_len, chunk, len);
        p->complaint_len += len;
        p->complaint[p->complaint_len] = '\0';
    }
}

static bool take_line(struct process *p, struct buf *line)
{
    size_t left = p->input.len - p->searched;
    char *newline = left ? memchr(p->input.data + p->searched, '\n', left) : NULL;
    p->searched = newline ? 0 : p->input.len;
    if (!newline)
        return false;
    size_t n = (size_t)(newline - p->input.data);
    buf_append(line, p->input.data, n);
    p->input.len -= n + 1;
    memmove(p->input.data, newline + 1, p->input.len + 1);
    return true;
}

/* Reads what is there; false at the end of the stream. */
static bool read_input(struct process *p)
{
    char chunk[65536];
    ssize_t n;
    while ((n = read(p->from, chunk, sizeof chunk)) > 0) {
        buf_append(&p->input, chunk, (size_t)n);
        if (p->input.failed || memchr(chunk, '\n', (size_t)n))
            return true;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

enum process_event process_read_line(struct process *p, double timeout_s, struct buf *line)
{
    /* Looks this often. Where much more time passed between two looks, this process was paused, and
     * most likely the other one, too (a container, a virtual machine): that is no silence. */
    const double look_s = timeout_s < 8 ? timeout_s / 8 : 1;
    double left = timeout_s, seen = clock_s();
    for (;;) {
        if (take_line(p, line))
            return line->failed ? PROCESS_FLOOD : PROCESS_LINE;
        double passed = clock_s() - seen;
        seen += passed;
        left -= passed < 2 * look_s ? passed : 2 * look_s;
        if (left <= 0)
            return PROCESS_SILENCE;
        struct pollfd fds[4] = {{.fd = p->from, .events = POLLIN},
                                {.fd = p->errors, .events = POLLIN},
                                {.fd = p->end, .events = POLLIN},
                                {.fd = interrupt_fd(), .events = POLLIN}};
        int wait_ms = (int)((left < look_s ? left : look_s) * 1000) + 1;
        if (poll(fds, 4, wait_ms) < 0) {
            if (errno != EINTR)
                return PROCESS_END;
            continue; /* nothing was filled in */
        }
        if (fds[3].revents)
            return PROCESS_INTERRUPTED;
        if (fds[1].revents) {
            read_stderr(p);
            if (fds[1].revents & (POLLHUP | POLLERR))
                close_fd(&p->errors);
        }
        if (fds[0].revents && !read_input(p))
            return PROCESS_END;
        /* It has ended and all is read, though a child of its own may keep the pipe open. */
        if (fds[2].revents && !fds[0].revents)
            return PROCESS_END;
        if (p->input.failed)
            return PROCESS_FLOOD;
    }
}

/* Waits up to `seconds` for the end, and leaves the process a zombie: its id, which is that of its
 * group, stays taken until waitpid(). */
static bool await_end(const struct process *p, double seconds, siginfo_t *end)
{
    double deadline = clock_s() + seconds;
    int fd = pidfd_open(p->pid, 0);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    for (double left = seconds; fd >= 0 && left > 0; left = deadline - clock_s()) {
        int got = poll(&ended, 1, left > 60 ? 60000 : (int)(left * 1000) + 1);
        if (got > 0 || (got < 0 && errno != EINTR))
            break;
    }
    if (fd >= 0)
        close(fd);
    *end = (siginfo_t){0};
    return !waitid(P_PID, (id_t)p->pid, end, WEXITED | WNOHANG | WNOWAIT) && end->si_pid == p->pid;
}

bool process_wait(const struct process *p, double seconds)
{
    siginfo_t end;
    return await_end(p, seconds, &end);
}

/* The kernel counts by ticks where `used` is exact: half of the limit is enough. */
static bool is_out_of_time(const siginfo_t *end, const struct rusage *used)
{
    struct rlimit limit;
    return end->si_code != CLD_EXITED && (end->si_status == SIGXCPU || end->si_status == SIGKILL) &&
           !getrlimit(RLIMIT_CPU, &limit) && limit.rlim_cur != RLIM_INFINITY &&
           (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec + 1) >=
               0.5 * (double)limit.rlim_cur;
}

int process_kill(struct process *p, char *how, size_t how_size)
{
    siginfo_t end;
    struct rusage used = {.ru_utime = {0}};
    if (!p->pid)
        return 0;
    /* One that has ended by itself is to be described as such. */
    if (!await_end(p, 0, &end)) {
        kill(-p->pid, SIGKILL);
        await_end(p, REAP_S, &end);
    }
    kill(-p->pid, SIGKILL); /* what is left of the group, before its id is free again */
    wait4(p->pid, NULL, WNOHANG, &used);
    p->out_of_time = is_out_of_time(&end, &used);
    if (p->errors >= 0)
        read_stderr(p);
    close_fd(&p->to);
    close_fd(&p->from);
    close_fd(&p->errors);
    close_fd(&p->end);
    buf_release(&p->input);
    p->pid = 0;
    const bool exited = end.si_pid && end.si_code == CLD_EXITED;
    if (!end.si_pid)
        snprintf(how, how_size, "does not end");
    else if (exited)
        snprintf(how, how_size, "ended with exit code %d", end.si_status);
    else
        snprintf(how, how_size, "was killed by signal %d (%s)", end.si_status,
                 strsignal(end.si_status));
    return exited ? end.si_status : -1;
}

const char *process_last_words(struct process *p)
{
    char *words = p->complaint;
    size_t n = strlen(words);
    while (n && (words[n - 1] == '\n' || words[n - 1] == ' '))
        words[--n] = '\0';
    if (n > LAST_WORDS)
        for (words += n - LAST_WORDS; ((unsigned char)*words & 0xc0) == 0x80; words++)
            ; /* the rest of a character that was cut */
    for (char *c = words; *c; c++)
        if (*c == '\n')
            *c = ' ';
    return words;
}

int process_finish(struct process *p, double grace_s)
{
    char how[96];
    if (!p->pid)
        return 0;
    close_fd(&p->to);
    process_wait(p, grace_s);
    return process_kill(p, how, sizeof how);
}

/* ---- what has left its group ---- */

/* Children that were here before: a shell that became this program may have left some. */
static pid_t spared[SPARED_MAX];
static unsigned n_spared;

/* The first of this process's children that is not spared; 0: none. With `spare` they all are from
 * now on. */
static pid_t find_child(bool spare)
{
    char path[64];
    long pid, found = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *f = fopen(path, "re");
    while (f && !found && fscanf(f, "%ld", &pid) == 1) {
        bool is_spared = false;
        if (spare && n_spared < SPARED_MAX)
            spared[n_spared++] = (pid_t)pid;
        for (unsigned i = 0; i < n_spared; i++)
            is_spared |= spared[i] == (pid_t)pid;
        found = is_spared ? 0 : pid;
    }
    if (f)
        fclose(f);
    return (pid_t)found;
}

void process_adopt_orphans(void)
{
    n_spared = 0;
    find_child(true);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void process_end_orphans(void)
{
    pid_t pid;
    for (int i = 0; i < ORPHANS_ROUNDS && (pid = find_child(false)) > 0; i++) {
        struct process orphan = {.pid = pid};
        siginfo_t end;
        kill(pid, SIGKILL);
        await_end(&orphan, REAP_S, &end);
        waitpid(pid, NULL, WNOHANG);
    }
}
