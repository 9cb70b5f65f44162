/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/message.h"

#include <inttypes.h>
#include <stdio.h>

#include "gate/base/alloc.h"
#include "gate/document/fields_table.h"

#define MESSAGE_MAX 4000 /* characters: what is longer than its reader's room is cut there */

static const char *const refusals[] = {"busy", "environment", "usage", "io", "wrong", NULL};
const enum gate_status message_refusal_status[] = {GATE_ENVIRONMENT, GATE_ENVIRONMENT, GATE_USAGE,
                                                   GATE_IO, GATE_WRONG};
static const char *const protocols[] = {MESSAGE_HELLO, NULL};
const char *const message_tasks[] = {"serve",   "verify",     "measure", "calibrate",
                                     "profile", "transplant", NULL};
const char *const message_outcomes[] = {"measured",    "verified", "wrong", "unsupported",
                                        "environment", "provider", NULL};

#define OF message_refusal
static const struct field refusal_fields[] = {
    WORD(refuse, REQUIRED, refusals),
    TEXT(message, 0, MESSAGE_MAX),
};
const struct shape message_refusal_shape = SHAPE_OF(refusal);
#undef OF

#define OF message_greeting
static const struct field greeting_fields[] = {
    CHOICE(hello, REQUIRED, protocols),
    PART(device, document_device),
    FORMED(contract, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    SHARE(control_ns, NULLABLE),
    YES_NO(users_checked),
    YES_NO(launch_order_checked),
    LIST(libraries, REQUIRED, 1, DOCUMENT_LIBRARIES_MAX, document_library),
    LIST(absent, REQUIRED, 0, 16, document_absent),
};
const struct shape message_greeting_shape = SHAPE_OF(greeting);
#undef OF

#define OF message_ceilings
static const struct field told_fields[] = {PART(ceilings, document_ceilings)};
const struct shape message_ceilings_shape = SHAPE_OF(told);
#undef OF

#define OF message_task
static const struct field task_fields[] = {
    WORD(task, REQUIRED, message_tasks),
    {.key = "case",
     .kind = FIELD_OBJECT,
     .flags = REQUIRED,
     .beside = FIELD_NOWHERE,
     .offset = offsetof(struct OF, file),
     .shape = &case_file_shape},
    FORMED(seed, REQUIRED, FORM_SEED, TEXT_MAX),
    TEXT(nonce, 0, TEXT_MAX),
    TEXTS(skip, 0, 16, NAME_MAX_CHARACTERS),
    SHARE(budget_ms, 0),
    SIZE(input_sets, 0),
    TEXT(baseline, 0, TEXT_MAX),
    YES_NO(verify),
    YES_NO(first),
    TEXT(tier, 0, TEXT_MAX),
    YES_NO(providers),
    YES_NO(swap),
    TEXTS(fingerprints, 0, VERIFY_SEEDS, 16),
    NUMBERS(shares, 0, PROTOCOL_SHARES_MAX),
};
const struct shape message_task_shape = SHAPE_OF(task);
#undef OF

#define OF message_phase
static const struct field phase_fields[] = {
    TEXT(phase, 0, MESSAGE_MAX),
    TEXT(provider, 0, MESSAGE_MAX),
    TEXT(on, 0, MESSAGE_MAX),
};
const struct shape message_phase_shape = SHAPE_OF(phase);
#undef OF

#define OF message_answer
static const struct field answer_fields[] = {
    WORD(outcome, REQUIRED, message_outcomes),
    TEXT(done, REQUIRED, MESSAGE_MAX),
    TEXT(nonce, REQUIRED, MESSAGE_MAX),
    TEXT(message, 0, MESSAGE_MAX),
    YES_NO(spoiled),
    NUMBERS(log_ratio, 0, PROTOCOL_SHARES_MAX),
    TEXTS(fingerprints, 0, VERIFY_SEEDS, 16),
    MAYBE(blame, 0, document_blame),
    LIST(arms, 0, 0, 8, document_arm),
};
const struct shape message_answer_shape = SHAPE_OF(answer);
#undef OF

size_t message_put_fingerprints(const struct fingerprints *f, struct message_fingerprints *out)
{
    for (unsigned i = 0; i < VERIFY_SEEDS && f->known; i++) {
        snprintf(out->digits[i], sizeof out->digits[i], "%016" PRIx64, f->of[i]);
        out->texts[i] = out->digits[i];
    }
    return f->known ? VERIFY_SEEDS : 0;
}

struct fingerprints message_fingerprints(const char *const *texts, size_t n)
{
    struct fingerprints f = {.known = n == VERIFY_SEEDS};
    for (unsigned i = 0; i < VERIFY_SEEDS && f.known; i++)
        f.known = sscanf(texts[i], "%16" SCNx64, &f.of[i]) == 1;
    return f;
}

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
