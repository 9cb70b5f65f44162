/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/answer.h"

#include <stdio.h>
#include <string.h>

#include "gate/decide/decide_input.h"

static bool read_outcome(const char *name, enum case_outcome *out)
{
    static const struct {
        const char *name;
        enum case_outcome outcome;
    } names[] = {{"measured", CASE_MEASURED},
                 {"verified", CASE_VERIFIED},
                 {"wrong", CASE_WRONG},
                 {"unsupported", CASE_UNSUPPORTED},
                 {"environment", CASE_ENVIRONMENT}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i].name, name)) {
            *out = names[i].outcome;
            return true;
        }
    return false;
}

/* The arm that was timed with fewer samples than a median can rest on; NULL: none. */
static const struct document_arm *hasty_arm(const struct case_result *r)
{
    for (size_t i = 0; i < r->n_arms; i++)
        if (r->arms[i].has_timing && r->arms[i].timing.samples < PROTOCOL_SAMPLES_MIN)
            return &r->arms[i];
    return NULL;
}

/* A measured case must have a timed candidate in front, verified if that was asked for. */
static bool measured_candidate(const struct case_task *task, const struct case_result *r)
{
    const struct document_arm *first = r->arms;
    return r->n_arms && first->role == ROLE_CANDIDATE &&
           (!task->verify || (first->has_verify && first->verify.ok)) &&
           (task->n_shares || first->has_timing == !task->verify_only);
}

bool answer_is_good(enum case_outcome outcome)
{
    return outcome == CASE_MEASURED || outcome == CASE_VERIFIED;
}

static bool read_injected(const struct case_task *task, const struct message_answer *answer,
                          struct case_result *out)
{
    if (answer->n_log_ratio != task->n_shares)
        return false;
    for (unsigned i = 0; i < task->n_shares; i++) {
        if (!decide_is_measured(answer->log_ratio[i]))
            return false;
        out->d[i] = answer->log_ratio[i];
    }
    return true;
}

bool answer_read(const struct case_task *task, struct message_answer *answer,
                 struct case_result *out, char *message, size_t size)
{
    if (!answer->done || strcmp(answer->done, task->c->id) != 0) {
        snprintf(message, size, "talked nonsense: it answered for case '%.160s'",
                 answer->done ? answer->done : "");
        return false;
    }
    out->arms = answer->arms;
    out->n_arms = answer->n_arms;
    answer->arms = NULL;
    answer->n_arms = 0;
    out->has_blame = answer->has_blame;
    out->blame = answer->blame;
    answer->blame = (struct document_blame){.nodes = NULL};
    if (!read_outcome(answer->outcome ? answer->outcome : "", &out->outcome) ||
        (answer_is_good(out->outcome) &&
         ((out->outcome == CASE_VERIFIED) != task->verify_only || !measured_candidate(task, out) ||
          !read_injected(task, answer, out)))) {
        snprintf(message, size, "talked nonsense: its outcome does not fit its record");
        return false;
    }
    const struct document_arm *hasty = hasty_arm(out);
    if (hasty) {
        snprintf(message, size,
                 "talked nonsense: it took %lld samples of '%.64s', at least %d count",
                 (long long)hasty->timing.samples, hasty->provider, PROTOCOL_SAMPLES_MIN);
        return false;
    }
    snprintf(out->message, sizeof out->message, "%s", answer->message ? answer->message : "");
    out->fingerprints = message_fingerprints(answer->fingerprints, answer->n_fingerprints);
    return true;
}
