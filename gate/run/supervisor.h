/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervisor.h: starts workers, gives them tasks, and replaces those that fail.
 *
 * The supervisor never opens a device or a kernel library. It starts worker processes (each in a
 * process group of its own), gives them one case at a time by the protocol of
 * gate/worker/PROTOCOL.md, and kills and replaces those that hang, die, spoil their device or talk
 * nonsense. Such an end costs the case that was at work and no other one.
 */
#ifndef GATE_RUN_SUPERVISOR_H
#define GATE_RUN_SUPERVISOR_H

#include <stdint.h>
#include <sys/types.h>

#include "gate/document/document.h"
#include "gate/worker/message.h"
#include "gate/cases/suite.h"
#include "gate/verify/verify.h"
#include "gate/launch/arm.h"
#include "gate/base/paths.h"

#define SUPERVISOR_WRAPPER_MAX 16

struct supervisor_options {
    const char *worker; /* program; NULL: this program's own "worker" command */
    const char *const
        *wrapper;        /* program and arguments that the worker is started by; NULL: none */
    unsigned n_wrapper;  /* at most SUPERVISOR_WRAPPER_MAX */
    const char *device;  /* "host" or "cuda:N" */
    const char *library; /* the candidate; NULL: the worker measures the ceilings alone */
    const char *const *providers;
    unsigned n_providers;
    double timeout_s; /* longest silence of a worker before it is killed */
    bool untimed;     /* nothing is to be timed */
};

/* What a worker is to do with a case. */
struct case_task {
    const struct suite_case *c;
    enum task_kind kind;
    uint64_t seed;
    double budget_ms;          /* for its samples */
    int64_t input_sets;        /* that its first process rotated over; 0: this is the first */
    const char *baseline;      /* SHA-256 of one of the baselines, or NULL */
    bool verify;               /* before it is measured */
    bool first;                /* of its processes: cold single launches are timed as well */
    enum verify_tier tier;     /* of the verification */
    bool providers;            /* measured beside it */
    bool swap;                 /* the baseline is recorded and started first */
    const char **fingerprints; /* of the candidate, as another process told them */
    size_t n_fingerprints;
    const double *shares; /* calibration: of the candidate's time, to be added; NULL */
    unsigned n_shares;
};

/* A worker's answer, and what else is known of the case. */
struct case_result {
    MESSAGE_ANSWER(FIELD_MEMBER) /* no arms when the worker died */
    char *texts;                 /* those of the answer; NULL: there is none */
    char said[1000];             /* in place of its message */
    bool
        while_measuring; /* the phase that it ended in: what is wrong need not show when verified */
};

/* What a worker said of itself; its texts NULL: nothing yet. */
struct greeting {
    struct fields_taken taken;
    struct message_greeting m;
};

struct supervisor {
    struct greeting greeting; /* of the first worker, or the first that opened the baselines */
    double control_ns;        /* time of the control in the worker that measured last */
    bool without_providers;   /* workers that are started from now on do not open them: that takes
                                 time, and at most a case's first process measures them */
    unsigned findings;        /* workers that were retired and did not end with 0 under a wrapper */

    /* The rest is the supervisor's own. */
    const struct supervisor_options *options;
    struct process process;
    struct greeting providers; /* of one that opened the providers, where that one did not */
    struct document_ceilings ceilings; /* of a worker without a library */
    char *baselines[PROTOCOL_BASELINES_MAX];
    unsigned n_baselines;
    char fault[900];  /* what the last worker that failed did instead of answering */
    char excuse[200]; /* why that is not the kernel's; "": it may be */
};

/*
 * Starts the first worker and reads its greeting. GATE_ENVIRONMENT: the device is missing or busy.
 * GATE_USAGE, GATE_WRONG: what the worker says of the library. The options must outlive *out.
 */
enum gate_status supervisor_start(const struct supervisor_options *options, struct supervisor **out,
                                  struct gate_error *err);
void supervisor_stop(struct supervisor *s); /* NULL is fine */

/* What a worker measures that does nothing else (PROTOCOL.md). */
enum gate_status supervisor_ceilings(const struct supervisor_options *options,
                                     struct document_ceilings *out, struct gate_error *err);

/* The process of a worker (target.c). */
enum gate_status worker_start(const struct supervisor_options *o, const char *const *baselines,
                              unsigned n_baselines, bool with_providers, struct process *out,
                              struct gate_error *err);

/* From now on workers also open these libraries (at most PROTOCOL_BASELINES_MAX), for cases to be
 * compared with; a fresh worker is started at once and its greeting taken. Copies the paths. */
enum gate_status supervisor_open_baselines(struct supervisor *s, const char *const *paths,
                                           unsigned n, struct gate_error *err);

void case_result_release(struct case_result *r);

/* The greeting of the first worker that opened the providers. */
const struct message_greeting *supervisor_providers(const struct supervisor *s);

/* Runs one case; starts a worker when there is none. Fails only when no worker can be had. */
enum gate_status supervisor_run_case(struct supervisor *s, const struct case_task *task,
                                     struct case_result *out, struct gate_error *err);

/* Ends the worker, so that the next case gets a fresh process. */
void supervisor_retire_worker(struct supervisor *s);

/* ---- target.c: which device, which kernel libraries on it, and the command that looks at them
 * again ---- */

struct target {
    char device[32];
    char library[PATHS_MAX];
    char provider_paths[ARMS_MAX][PATHS_MAX];
    const char *providers[ARMS_MAX];
    struct supervisor_options options; /* points into this struct */
};

/*
 * Fills *t from what the user said, where NULL and 0 are what he said nothing of: the device
 * ("auto" is cuda:0 where the system has a GPU node, else the host, which is said on standard
 * error), our own library for it, and, with `vendors`, theirs as providers on a GPU where no other
 * is named. *t must not be moved afterwards.
 */
enum gate_status target_resolve(const struct supervisor_options *choice, bool vendors,
                                struct target *t, struct gate_error *err);

/* Is a GPU on this machine, by its device nodes? It is not opened. */
bool target_has_gpu(void);

/* What a run or a verification was asked for; NULL: the default. */
struct reproduce {
    const char *device, *suite, *library;
    uint64_t seed; /* of the run */
    enum verify_tier tier;
};

/* `gate verify ...` for one case, with the same inputs; `timed`: `gate run ...`. */
void reproduce_command(const struct reproduce *r, const char *case_id, bool timed, char *text,
                       size_t size);

/* ---- starved.c: did a silent worker hang, or did it get no processor, or was it stopped? ----
 *
 * The kernel counts for each thread how long it ran, and how long it could have run and waited for
 * a processor (/proc/PID/task/TID/schedstat). A thread that sleeps or is stuck in a lock does
 * neither. A wait is counted when it ends: one that has not ended is known by the thread's state.
 */

/* Of all threads of a process; 0 where the system does not say. */
struct processor_time {
    double ran_s, waited_s;
    unsigned ready;   /* threads that run or could run, now */
    unsigned stopped; /* by a signal or a debugger, until somebody lets them go on */
};

struct processor_time processor_time_of(pid_t pid);

/* From one reading to the next, `silence_s` apart: it waited most of the time, and had at most a
 * quarter of what it wanted. An endless loop has more, unless the machine is as busy as that. */
bool processor_was_missing(struct processor_time before, struct processor_time now,
                           double silence_s);

/* Why the silence between two readings is not the kernel's, in words; "" where it may be. */
void excuse_silence(struct processor_time before, struct processor_time now, double silence_s,
                    char *out, size_t size);

#endif
