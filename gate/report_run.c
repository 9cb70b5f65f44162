/* report_run.c: see report_run.h. */
#include "report_run.h"

#include <string.h>

#include "base/json.h"

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static void note_provider(struct report_run *run, const char *provider)
{
    for (size_t i = 0; i < run->n_providers; i++) {
        if (strcmp(run->providers[i], provider) == 0)
            return;
    }
    if (run->n_providers == REPORT_MAX_PROVIDERS)
        run->more_providers = true;
    else
        run->providers[run->n_providers++] = provider;
}

static void read_case(struct report_run *run, const cJSON *one_case)
{
    const cJSON *arm, *timing = report_timing(report_candidate(one_case));
    run->n_cases++;
    run->counts[report_verdict(one_case)]++;
    run->warm |= timing && !json_bool(timing, "cold", true);
    cJSON_ArrayForEach(arm, member(one_case, "arms"))
    {
        if (strcmp(json_string(arm, "role", ""), "provider") == 0)
            note_provider(run, json_string(arm, "provider", ""));
    }
}

void report_run_read(const cJSON *document, struct report_run *out)
{
    const cJSON *one_case;
    *out = (struct report_run){.document = document,
                               .git = member(document, "git"),
                               .device = member(document, "device"),
                               .cases = member(document, "cases")};
    cJSON_ArrayForEach(one_case, out->cases)
    {
        read_case(out, one_case);
    }
}

enum verdict report_verdict(const cJSON *object)
{
    const char *name = json_string(object, "verdict", "");
    for (int v = 0; v < VERDICT_COUNT; v++) {
        if (strcmp(verdict_name((enum verdict)v), name) == 0)
            return (enum verdict)v;
    }
    return VERDICT_NO_VERDICT;
}

int report_severity(enum verdict v)
{
    static const int severity[VERDICT_COUNT] = {
        [VERDICT_PASS] = 0,        [VERDICT_IMPROVEMENT] = 1, [VERDICT_NO_VERDICT] = 2,
        [VERDICT_ENVIRONMENT] = 3, [VERDICT_REGRESSION] = 4,  [VERDICT_WRONG] = 5,
    };
    return severity[v];
}

bool report_is_good(enum verdict v)
{
    return v == VERDICT_PASS || v == VERDICT_IMPROVEMENT;
}

const cJSON *report_candidate(const cJSON *one_case)
{
    const cJSON *arm;
    cJSON_ArrayForEach(arm, member(one_case, "arms"))
    {
        if (strcmp(json_string(arm, "role", ""), "candidate") == 0)
            return arm;
    }
    return NULL;
}

const cJSON *report_provider(const cJSON *one_case, const char *provider)
{
    const cJSON *arm;
    cJSON_ArrayForEach(arm, member(one_case, "arms"))
    {
        if (strcmp(json_string(arm, "role", ""), "provider") == 0 &&
            strcmp(json_string(arm, "provider", ""), provider) == 0)
            return arm;
    }
    return NULL;
}

static const cJSON *object_member(const cJSON *object, const char *key)
{
    const cJSON *value = member(object, key);
    return cJSON_IsObject(value) ? value : NULL;
}

const cJSON *report_timing(const cJSON *arm)
{
    return object_member(arm, "timing");
}

const cJSON *report_verify(const cJSON *arm)
{
    return object_member(arm, "verify");
}

double report_change(const cJSON *one_case)
{
    const cJSON *ratio = object_member(one_case, "ratio");
    const cJSON *best = object_member(one_case, "best");
    const cJSON *timing = report_timing(report_candidate(one_case));
    if (ratio)
        return json_number(ratio, "value", 0);
    return best && timing ? json_number(timing, "p50_ns", 0) / json_number(best, "p50_ns", 1) : 0;
}

double report_speed_up(const cJSON *one_case, const cJSON *provider_arm)
{
    const cJSON *ours = report_timing(report_candidate(one_case));
    const cJSON *theirs = report_timing(provider_arm);
    if (!ours || !theirs)
        return 0;
    /* From pairs of samples where there were pairs: the two p50 may be of different clocks. */
    const cJSON *ratio = object_member(theirs, "ratio_to_candidate");
    if (ratio)
        return 1 / json_number(ratio, "value", 1);
    return json_number(theirs, "p50_ns", 0) / json_number(ours, "p50_ns", 1);
}

const char *report_no_timing(const cJSON *arm)
{
    const cJSON *verify = report_verify(arm);
    if (!arm)
        return "-";
    return verify && !json_bool(verify, "ok", true) ? "wrong" : "not timed";
}

void report_counts(const struct report_run *run, struct buf *out)
{
    const char *separator = "";
    for (int severity = 0; severity < VERDICT_COUNT; severity++) {
        for (int v = 0; v < VERDICT_COUNT; v++) {
            if (report_severity((enum verdict)v) != severity || run->counts[v] == 0)
                continue;
            buf_printf(out, "%s%zu %s", separator, run->counts[v], verdict_name((enum verdict)v));
            separator = ", ";
        }
    }
    if (run->n_cases == 0)
        buf_puts(out, "no cases");
}

void report_commit(const struct report_run *run, struct buf *out)
{
    const char *commit = json_string(run->git, "commit", "");
    const char *branch = json_string(run->git, "branch", "");
    if (!commit[0]) {
        buf_puts(out, "not in git");
        return;
    }
    buf_printf(out, "%.12s", commit);
    if (json_bool(run->git, "dirty", false))
        buf_puts(out, ", changed");
    if (branch[0])
        buf_printf(out, " (%s)", branch);
}
