/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h: the messages of the worker's protocol (PROTOCOL.md) as structs. Members have the names
 * of their keys; what is not known is as in document.h.
 *
 * A line is read with fields_pick(), since a worker may have more to say than the gate asks, and is
 * written with fields_write().
 */
#ifndef GATE_WORKER_MESSAGE_H
#define GATE_WORKER_MESSAGE_H

#include <stdio.h>

#include "gate/base/process.h"
#include "gate/cases/suite.h"
#include "gate/document/document.h"
#include "gate/launch/operands.h"

/* Limits that both sides keep. */
#define PROTOCOL_LINE_MAX PROCESS_LINE_MAX
#define PROTOCOL_BASELINES_MAX 6
#define PROTOCOL_SHARES_MAX 16
#define PROTOCOL_SAMPLES_MIN 8 /* of an arm that is timed: four rounds */

#define MESSAGE_HELLO "gate-worker/2"

/* The worker's first message: one of the two. */
enum refusal { REFUSAL_BUSY, REFUSAL_ENVIRONMENT, REFUSAL_USAGE, REFUSAL_IO, REFUSAL_WRONG };

extern const enum gate_status message_refusal_status[];

struct message_refusal {
    int refuse; /* enum refusal */
    const char *message;
};

struct message_greeting {
    const char *hello;
    struct document_device device;
    const char *contract;
    double control_ns;
    enum yes_no users_checked, launch_order_checked;
    struct document_library *libraries;
    size_t n_libraries;
    struct document_absent *absent;
    size_t n_absent;
};

/* In place of a greeting, of a worker that is started with --ceilings. */
struct message_ceilings {
    struct document_ceilings ceilings;
};

/* What a worker is to do with a case. */
enum task_kind {
    TASK_SERVE,      /* say whether the library has a kernel for it; nothing is launched */
    TASK_VERIFY,     /* verify all arms */
    TASK_MEASURE,    /* time the arms that are right */
    TASK_CALIBRATE,  /* time two copies of the candidate, one of them made slower */
    TASK_PROFILE,    /* launch the candidate once, for the profiler around the worker */
    TASK_TRANSPLANT, /* find the node of the launch that is slower than the baseline's */
};

extern const char *const message_tasks[]; /* the names of the kinds */

/* To the worker. */
struct message_task {
    int task;              /* enum task_kind */
    struct case_file file; /* key "case" */
    const char *seed, *nonce;
    const char **skip; /* arms that take no part */
    size_t n_skip;
    double budget_ms;
    int64_t input_sets; /* missing: -1, the worker decides */
    const char *baseline, *tier;
    enum yes_no verify; /* before the arms are timed; missing: yes */
    enum yes_no first;  /* of the case's processes: single launches, sensors, audits in full;
                           missing: as `verify` */
    enum yes_no providers, swap; /* missing: yes, no */
    const char **fingerprints;
    size_t n_fingerprints;
    double *shares;
    size_t n_shares;
};

/* What begins, with which provider's kernel ("": none), and on what (NULL: the problem itself). */
struct message_phase {
    const char *phase, *provider, *on;
};

/* What came of a case; message_outcomes has the names. */
enum case_outcome {
    CASE_MEASURED,
    CASE_VERIFIED, /* right, and no time was asked for */
    CASE_WRONG,
    CASE_UNSUPPORTED,
    CASE_ENVIRONMENT,
    CASE_PROVIDER, /* another arm broke the device: the task is given again, without it */
};

extern const char *const message_outcomes[];

/* What came of a task. */
struct message_answer {
    int outcome; /* enum case_outcome */
    const char *done, *nonce, *message;
    enum yes_no spoiled;
    double *log_ratio;
    size_t n_log_ratio;
    const char **fingerprints;
    size_t n_fingerprints;
    bool has_blame;
    struct document_blame blame;
    struct document_arm *arms;
    size_t n_arms;
};

extern const struct shape message_refusal_shape, message_greeting_shape, message_ceilings_shape,
    message_task_shape, message_phase_shape, message_answer_shape;

/* A set of fingerprints as texts of 16 hex digits, which `texts` point to. */
struct message_fingerprints {
    char digits[VERIFY_SEEDS][17];
    const char *texts[VERIFY_SEEDS];
};

/* Returns their number: 0 where they are not known. */
size_t message_put_fingerprints(const struct fingerprints *f, struct message_fingerprints *out);
struct fingerprints message_fingerprints(const char *const *texts, size_t n);

/* Writes a line to the supervisor; one that is longer than PROTOCOL_LINE_MAX is not written. */
void send_message(FILE *out, const struct shape *shape, const void *message);

/* What begins, with which provider's kernel ("": no provider's), and on what ("": the problem
 * itself). */
void send_phase(FILE *out, const char *phase, const char *provider, const char *on);

/* The phase in which the worker waits for the reference of a user's op, whose name is `on`: no
 * kernel is at work. */
#define MESSAGE_REFERENCE "reference"

/* Says that this goes on meanwhile; NULL: that it is over. */
void send_phase_aside(FILE *out, const char *reference);

#endif
