/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h: notes SIGINT, SIGTERM and SIGHUP instead of ending by them, so that what was
 * measured by then can be kept.
 */
#ifndef GATE_BASE_INTERRUPT_H
#define GATE_BASE_INTERRUPT_H

#include "gate/base/error.h"

/*
 * From now on, and until interrupt_catch(), one of these signals ends the program as ever, but
 * prints "gate COMMAND: interrupted: SENTENCE" before.
 */
void interrupt_announce(const char *command, const char *sentence);

/*
 * From now on the first of these signals is noted, and whatever waits for a worker stops waiting
 * (process.h). Another one of the same kind ends the program as ever. A signal that is ignored, as
 * nohup and a shell's background jobs have it, stays so.
 */
enum gate_status interrupt_catch(struct gate_error *err);

/* The signal that came last; 0: none. */
int interrupt_signal(void);

/* The exit code of a command that it has ended. */
enum gate_status interrupt_status(void);

/* Readable from the first signal on, for poll(); -1 unless signals are caught. */
int interrupt_fd(void);

#endif
