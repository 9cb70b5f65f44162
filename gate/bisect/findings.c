/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/bisect/findings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/json.h"

static const char *const names[] = {[SEARCH_UNKNOWN] = "unknown",
                                    [SEARCH_GOOD] = "good",
                                    [SEARCH_BAD] = "bad",
                                    [SEARCH_SKIPPED] = "skipped"};

struct findings_reader {
    const struct commits *commits;
    struct finding *findings;
};

static void read_finding(void *context, const cJSON *o)
{
    const struct findings_reader *r = context;
    const char *commit = json_string(o, "commit", ""), *state = json_string(o, "state", "");
    for (size_t i = 0; i < r->commits->n; i++) {
        if (strcmp(r->commits->id[i], commit) != 0)
            continue;
        struct finding *f = &r->findings[i];
        f->log_ratio = json_number(o, "log_ratio", NAN);
        snprintf(f->code, sizeof f->code, "%s", json_string(o, "code", ""));
        snprintf(f->reason, sizeof f->reason, "%s", json_string(o, "reason", ""));
        for (int k = SEARCH_GOOD; k <= SEARCH_SKIPPED; k++)
            if (!strcmp(names[k], state))
                f->state = (enum search_state)k;
    }
}

enum gate_status findings_open(const char *path, const char *about, bool restart,
                               const struct commits *commits, struct journal *out,
                               struct finding *findings, struct gate_error *err)
{
    struct findings_reader r = {commits, findings};
    for (size_t i = 0; i < commits->n; i++)
        findings[i] = (struct finding){.log_ratio = NAN};
    return journal_open(path, about, restart, read_finding, &r, out, err);
}

enum gate_status findings_put(struct journal *j, const char *commit, const struct finding *f,
                              struct gate_error *err)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "commit", commit);
    cJSON_AddStringToObject(o, "state", names[f->state]);
    cJSON_AddStringToObject(o, "code", f->code);
    cJSON_AddStringToObject(o, "reason", f->reason);
    if (!isnan(f->log_ratio))
        cJSON_AddNumberToObject(o, "log_ratio", f->log_ratio);
    return journal_append(j, o, err);
}
