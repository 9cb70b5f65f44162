/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/message.h"

#include <stdio.h>

#include "gate/base/alloc.h"
#include "gate/document/fields_table.h"

static const char *const refusals[] = {"busy", "environment", "usage", "io", "wrong", NULL};
const enum gate_status message_refusal_status[] = {GATE_ENVIRONMENT, GATE_ENVIRONMENT, GATE_USAGE,
                                                   GATE_IO, GATE_WRONG};
static const char *const protocols[] = {MESSAGE_HELLO, NULL};
const char *const message_tasks[] = {"serve",   "verify",     "measure", "calibrate",
                                     "profile", "transplant", NULL};
const char *const message_outcomes[] = {"measured",    "verified", "wrong", "unsupported",
                                        "environment", "provider", NULL};

#define CASE(member)                                                                               \
    {                                                                                              \
        .key = "case", .kind = FIELD_OBJECT, .flags = REQUIRED, .beside = FIELD_NOWHERE,           \
        .offset = offsetof(struct OF, member), .shape = &case_file_shape                           \
    }

#define OF message_refusal
SHAPE_BY(MESSAGE_REFUSAL);
#undef OF
#define OF message_greeting
SHAPE_BY(MESSAGE_GREETING);
#undef OF
#define OF message_ceilings
SHAPE_BY(MESSAGE_CEILINGS);
#undef OF
#define OF message_task
SHAPE_BY(MESSAGE_TASK);
#undef OF
#define OF message_phase
SHAPE_BY(MESSAGE_PHASE);
#undef OF
#define OF message_answer
SHAPE_BY(MESSAGE_ANSWER);
#undef OF

void send_message(FILE *out, const struct shape *shape, const void *message)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(PROTOCOL_LINE_MAX);
    fields_write(shape, message, &line);
    buf_putc(&line, '\n');
    if (!line.failed) {
        fwrite(line.data, 1, line.len, out);
        fflush(out);
    }
}

/* What began last. */
static struct {
    char phase[16], provider[64], on[1000];
} last_phase;

static void write_phase(FILE *out, const char *phase, const char *provider, const char *on)
{
    send_message(
        out, &message_phase_shape,
        &(struct message_phase){.phase = phase, .provider = provider, .on = *on ? on : NULL});
}

void send_phase(FILE *out, const char *phase, const char *provider, const char *on)
{
    snprintf(last_phase.phase, sizeof last_phase.phase, "%s", phase);
    snprintf(last_phase.provider, sizeof last_phase.provider, "%s", provider);
    snprintf(last_phase.on, sizeof last_phase.on, "%s", on);
    write_phase(out, phase, provider, on);
}

void send_phase_aside(FILE *out, const char *reference)
{
    if (reference)
        write_phase(out, MESSAGE_REFERENCE, "", reference);
    else
        write_phase(out, last_phase.phase, last_phase.provider, last_phase.on);
}
