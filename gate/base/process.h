/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h: a child process that reads and writes lines of text, and can be killed safely.
 */
#ifndef GATE_BASE_PROCESS_H
#define GATE_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"

#define PROCESS_LINE_MAX ((size_t)16 << 20)
#define PROCESS_COMPLAINT_MAX 2048

struct process {
    pid_t pid;            /* 0: none; also the id of its process group */
    int to, from, errors; /* -1: no pipe */
    int end;              /* readable when the process itself has ended; -1: not known */
    struct buf input;     /* read, not yet handed out */
    size_t searched;      /* bytes of it that hold no newline */
    char complaint[PROCESS_COMPLAINT_MAX]; /* the end of its standard error, terminated */
    size_t complaint_len;
    bool out_of_time; /* it was killed, and had reached the limit of processor time */
};

enum process_event {
    PROCESS_LINE,        /* a line is in *line */
    PROCESS_END,         /* it ended, or closed its output */
    PROCESS_SILENCE,     /* the time is over */
    PROCESS_FLOOD,       /* a line over PROCESS_LINE_MAX */
    PROCESS_INTERRUPTED, /* this program is to end: see interrupt_catch() */
};

/* Starts argv[0] (looked up in PATH unless it has a slash) with pipes on its standard streams; it
 * dies with its parent. GATE_ENVIRONMENT when it cannot be started. */
enum gate_status process_start(struct process *p, char *const *argv, struct gate_error *err);

/* The same without the variables that scrub_environment() removes. */
enum gate_status process_start_scrubbed(struct process *p, char *const *argv,
                                        struct gate_error *err);

/* The same with an empty standard input, and both outputs to an open file. */
enum gate_status process_start_logged(struct process *p, char *const *argv, int log,
                                      struct gate_error *err);

/* Writes bytes to its standard input; false if it does not accept them. */
bool process_write(struct process *p, const char *bytes, size_t n);

/* Waits for the next line (without its newline), at most timeout_s; a pause of this process does
 * not count. */
enum process_event process_read_line(struct process *p, double timeout_s, struct buf *line);

/*
 * From now on, a descendant whose parent ends becomes a child of this process, so that none escapes
 * by leaving its process group. process_end_orphans() kills and reaps all children except those
 * that existed at the last call: no process that the caller started itself may run at that time.
 */
void process_adopt_orphans(void);
void process_end_orphans(void);

/* Waits for it to end by itself; false if it still runs after this time. */
bool process_wait(const struct process *p, double seconds);

/* Kills the process group and waits for its end; `how` says how the process ended. Returns its
 * exit code; -1: it was killed, by this or another signal. Safe on one that was never started. */
int process_kill(struct process *p, char *how, size_t how_size);

/* The end of its standard error, on one line; "" if empty. Valid until it is started again. */
const char *process_last_words(struct process *p);

/* Closes its standard input and gives it `grace_s` to end by itself before it is killed. Returns
 * its exit code; -1: it was killed, by this or another signal. */
int process_finish(struct process *p, double grace_s);

/* Removes from the environment of this process, for untrusted code, all variables that, by their
 * names, are a token, a password or a key, or that control a CI job, such as $GITHUB_ENV and
 * $CI_JOB_TOKEN. */
void scrub_environment(void);

/* Appends what would be left, sorted, each variable with a NUL behind it: all by which code that
 * gets this environment could tell one run from another. Left out is what only says from which
 * shell or for which build a program was started ($PWD, $SHLVL, $BUILD_NUMBER). */
void scrub_list(struct buf *out);

/* ---- git.c: what git says of the repository that this program is called in ---- */

/* Runs git with these words, the last of which is NULL, and copies the first line of its output.
 * False: there is none, or no git. */
bool git_line(char *out, size_t size, ...) __attribute__((sentinel));

/* Receives one line; false ends the reading. */
typedef bool (*git_line_fn)(void *context, const char *line);
/* The same for each line of the output. False: git failed, and there may have been more lines. */
bool git_lines(git_line_fn fn, void *context, ...) __attribute__((sentinel));

#define GIT_WHY_SIZE 200

/* The one commit that git answers with, 40 digits. False: it is none, and `why`, unless that is
 * NULL, has what git said, or nothing. */
bool git_commit(char commit[41], char why[GIT_WHY_SIZE], ...) __attribute__((sentinel));

/* ---- interrupt.c: records SIGINT, SIGTERM and SIGHUP instead of ending at once, so that finished
 * measurements can be kept ---- */

/*
 * Until interrupt_catch(), one of these signals ends the program as usual, but first prints
 * "gate COMMAND: interrupted: SENTENCE".
 */
void interrupt_announce(const char *command, const char *sentence);

/*
 * From now on the first of these signals is recorded, and functions that wait for a worker return.
 * A second one of the same kind ends the program as usual. A signal that is ignored,
 * as under nohup and in a shell's background jobs, stays ignored.
 */
enum gate_status interrupt_catch(struct gate_error *err);

/* The signal that came last; 0: none. */
int interrupt_signal(void);

/* The exit code of a command that a signal has ended. */
enum gate_status interrupt_status(void);

/* Readable from the first signal on, for poll(); -1 unless signals are caught. */
int interrupt_fd(void);

#endif
