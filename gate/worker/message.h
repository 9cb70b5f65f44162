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
#include "gate/launch/arm.h"

/* Limits that both sides keep. */
#define PROTOCOL_LINE_MAX PROCESS_LINE_MAX
#define PROTOCOL_BASELINES_MAX 6
#define PROTOCOL_SHARES_MAX 16
#define PROTOCOL_SAMPLES_MIN 8 /* of an arm that is timed: four rounds */

#define MESSAGE_MAX 4000 /* characters: what is longer than its reader's room is cut there */

#define MESSAGE_HELLO "gate-worker/2"

/* The worker's first message: one of the two. */
enum refusal { REFUSAL_BUSY, REFUSAL_ENVIRONMENT, REFUSAL_USAGE, REFUSAL_IO, REFUSAL_WRONG };

extern const enum gate_status message_refusal_status[];

/* clang-format off */
#define MESSAGE_REFUSAL(F) \
    F(WORD, refuse, REQUIRED, refusals) /* enum refusal */ \
    F(TEXT, message, 0, MESSAGE_MAX)

#define MESSAGE_GREETING(F) \
    F(CHOICE, hello, REQUIRED, protocols) \
    F(PART, device, document_device) \
    F(FORMED, contract, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS) \
    F(SHARE, control_ns, NULLABLE) \
    F(YES_NO, users_checked) \
    F(YES_NO, launch_order_checked) \
    F(LIST, libraries, REQUIRED, 1, DOCUMENT_LIBRARIES_MAX, document_library) \
    F(LIST, absent, REQUIRED, 0, 16, document_absent)

/* In place of a greeting, of a worker that is started with --ceilings. */
#define MESSAGE_CEILINGS(F) F(PART, ceilings, document_ceilings)

struct message_refusal { MESSAGE_REFUSAL(FIELD_MEMBER) };
struct message_greeting { MESSAGE_GREETING(FIELD_MEMBER) };
struct message_ceilings { MESSAGE_CEILINGS(FIELD_MEMBER) };
/* clang-format on */

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

/* clang-format off */
/* To the worker. `file` is the key "case". */
#define MEMBER_CASE(member) struct case_file member;
#define MESSAGE_TASK(F) \
    F(WORD, task, REQUIRED, message_tasks) /* enum task_kind */ \
    F(CASE, file) \
    F(FORMED, seed, REQUIRED, FORM_SEED, TEXT_MAX) \
    F(TEXT, nonce, 0, TEXT_MAX) \
    F(TEXTS, skip, 0, 16, NAME_MAX_CHARACTERS) /* arms that take no part */ \
    F(SHARE, budget_ms, 0) \
    F(SIZE, input_sets, 0) /* missing: the worker decides */ \
    F(TEXT, baseline, 0, TEXT_MAX) \
    F(YES_NO, verify) /* before the arms are timed; missing: yes */ \
    /* Of the case's processes: single launches, sensors, audits in full; missing: as `verify`. */ \
    F(YES_NO, first) \
    F(TEXT, tier, 0, TEXT_MAX) \
    F(YES_NO, providers) /* missing: yes */ \
    F(YES_NO, swap) \
    F(TEXTS, fingerprints, 0, VERIFY_SEEDS, 16) \
    F(NUMBERS, shares, 0, PROTOCOL_SHARES_MAX)

/* What begins, with which provider's kernel ("": none), and on what (NULL: the problem itself). */
#define MESSAGE_PHASE(F) \
    F(TEXT, phase, 0, MESSAGE_MAX) \
    F(TEXT, provider, 0, MESSAGE_MAX) \
    F(TEXT, on, 0, MESSAGE_MAX)

/* What came of a task. */
#define MESSAGE_ANSWER(F) \
    F(WORD, outcome, REQUIRED, message_outcomes) /* enum case_outcome */ \
    F(TEXT, done, REQUIRED, MESSAGE_MAX) \
    F(TEXT, nonce, REQUIRED, MESSAGE_MAX) \
    F(TEXT, message, 0, MESSAGE_MAX) \
    F(YES_NO, spoiled) \
    F(NUMBERS, log_ratio, 0, PROTOCOL_SHARES_MAX) \
    F(TEXTS, fingerprints, 0, VERIFY_SEEDS, 16) \
    F(MAYBE, blame, 0, document_blame) \
    F(LIST, arms, 0, 0, 8, document_arm)

struct message_task { MESSAGE_TASK(FIELD_MEMBER) };
struct message_phase { MESSAGE_PHASE(FIELD_MEMBER) };
struct message_answer { MESSAGE_ANSWER(FIELD_MEMBER) };
/* clang-format on */

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

extern const struct shape message_refusal_shape, message_greeting_shape, message_ceilings_shape,
    message_task_shape, message_phase_shape, message_answer_shape;

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
