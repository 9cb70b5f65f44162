/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h: a worker's answer to a task, checked against the task. */
#ifndef GATE_RUN_ANSWER_H
#define GATE_RUN_ANSWER_H

#include "gate/run/supervisor.h"
#include "gate/worker/message.h"

/* Is the case measured or verified, and its kernel right? */
bool answer_is_good(enum case_outcome outcome);

/* Turns an answer, whose arms are the result's then, into a result; false, with a message, when it
 * is nonsense. */
bool answer_read(const struct case_task *task, struct message_answer *answer,
                 struct case_result *out, char *message, size_t size);

#endif
