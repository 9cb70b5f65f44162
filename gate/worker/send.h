/* SPDX-License-Identifier: Apache-2.0 */
/* send.h: a line of the protocol, from the worker to the supervisor. */
#ifndef GATE_WORKER_SEND_H
#define GATE_WORKER_SEND_H

#include <stdio.h>

#include "gate/worker/message.h"

/* A message that is longer than PROTOCOL_LINE_MAX is not written. */
void send_message(FILE *out, const struct shape *shape, const void *message);

/* What begins, with which provider's kernel ("": no provider's), and on what ("": the problem
 * itself). */
void send_phase(FILE *out, const char *phase, const char *provider, const char *on);

#endif
