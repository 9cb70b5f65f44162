/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: `gate worker`, which the supervisor starts; see PROTOCOL.md. One task of the protocol:
 * a case is verified, timed, calibrated, and what came of it is said.
 */
#ifndef GATE_WORKER_WORKER_H
#define GATE_WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gate/cases/suite.h"
#include "gate/launch/arm.h"
#include "gate/worker/message.h"
#include "gate/verify/verify_state.h"
#include "gate/verify/verify.h"

#define LIBRARIES_MAX 16

/* A provider that was asked for and is not on this machine. */
struct absent_provider {
    char name[64], reason[400];
};

/* The process, from its first task to its last. */
struct worker {
    FILE *out; /* the protocol; standard output itself belongs to whatever kernels print */
    struct device *device;
    struct library libraries[LIBRARIES_MAX]; /* the candidate first */
    struct library
        second_copies[LIBRARIES_MAX]; /* second copies of the candidate and the baselines */
    enum document_role roles[LIBRARIES_MAX];
    unsigned n_libraries;
    double control_ns;
    struct absent_provider absent[LIBRARIES_MAX];
    unsigned n_absent;
};

/* Read from a message, which must stay until the task was run. */
struct task {
    struct suite_case c;
    uint64_t seed;
    double budget_ns;
    enum task_kind kind;
    bool verify, first;
    enum verify_tier tier;
    const struct message_task *message;
    double d[PROTOCOL_SHARES_MAX]; /* calibration: of each of the message's shares */
    struct arm arms[ARMS_MAX];
    unsigned n_arms;
    struct surroundings before; /* anything was asked of a library */
    struct device_memory memory, workspace;
    struct operands operands;
    struct reference reference;
    struct transplant *found; /* by the transplant; NULL: nothing */
    char said[900];           /* the message of its answer */
    bool spoiled;
};

/* GATE_USAGE: none that this worker knows. */
enum gate_status task_read(const struct message_task *message, struct task *t,
                           struct gate_error *err);

/* Runs it, says its phases and its end, and releases what it took. */
void task_run(struct worker *w, struct task *t);

/* As the commands of cli/commands.h: returns the exit code. */
int cmd_worker(int argc, char **argv);

#endif
