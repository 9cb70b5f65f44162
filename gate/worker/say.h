/* SPDX-License-Identifier: Apache-2.0 */
/* say.h: a line of the protocol, from the worker to the supervisor. */
#ifndef GATE_WORKER_SAY_H
#define GATE_WORKER_SAY_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* Takes the record. One that is longer than PROTOCOL_LINE_MAX is not said. */
void say(FILE *out, cJSON *record);

/* What is begun, with whose kernel ("": nobody's), and on what ("": the problem itself). */
void say_phase(FILE *out, const char *phase, const char *provider, const char *on);

#endif
