/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h: records SIGINT, SIGTERM and SIGHUP instead of ending at once, so that finished
 * measurements can be kept.
 */
#ifndef GATE_BASE_INTERRUPT_H
#define GATE_BASE_INTERRUPT_H

#include "gate/base/error.h"

/*
 * Until interrupt_catch(), one of these signals ends the program as usual, but first prints
 * "gate COMMAND: interrupted: SENTENCE".
 */
void interrupt_announce(const char *command, const char *sentence);

/*
 * From now on the first of these signals is recorded, and functions that wait for a worker return
 * (process.h). A second one of the same kind ends the program as usual. A signal that is ignored,
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
