/* report_run.c: see report_run.h. */
#include "gate/report/report_run.h"

#include <math.h>
#include <string.h>

#include "gate/base/json.h"
#include "gate/report/report_units.h"

static const cJSON *object_member(const cJSON *object, const char *key)
{
    const cJSON *value = json_member(object, key);
    return cJSON_IsObject(value) ? value : NULL;
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
    left_out_add(&run->left_out, json_string(one_case, "id", ""),
                 report_verify(report_candidate(one_case)));
    run->n_cases++;
    run->counts[report_verdict(one_case)]++;
    run->n_unresolved += report_is_unresolved(run, one_case);
    run->warm |= timing && !json_bool(timing, "cold", true);
    cJSON_ArrayForEach (arm, json_member(one_case, "arms")) {
        if (strcmp(json_string(arm, "role", ""), "provider") == 0)
            note_provider(run, json_string(arm, "provider", ""));
    }
}

void report_run_read(const cJSON *document, struct report_run *out)
{
    const cJSON *one_case;
    *out = (struct report_run){.document = document,
                               .git = json_member(document, "git"),
                               .device = json_member(document, "device"),
                               .cases = json_member(document, "cases"),
                               .calibration = object_member(document, "calibration"),
                               .threshold =
                                   json_number(json_member(document, "policy"), "threshold", 0)};
    cJSON_ArrayForEach (one_case, out->cases) {
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

bool report_is_told(const cJSON *one_case)
{
    return report_verdict(one_case) != VERDICT_PASS ||
           json_bool(object_member(one_case, "baseline"), "off", false);
}

/* Its place among those that are alike, where it has one; NULL: what is said of it is its own. */
static struct report_reason *find_reason(struct report_reasons *r, const cJSON *one_case, bool add)
{
    enum verdict v = report_verdict(one_case);
    const char *reason = json_string(one_case, "reason", "");
    if (v != VERDICT_NO_VERDICT && v != VERDICT_ENVIRONMENT)
        return NULL;
    for (size_t i = 0; i < r->n; i++)
        if (r->of[i].verdict == v && !strcmp(r->of[i].reason, reason))
            return &r->of[i];
    if (!add || r->n == REPORT_REASONS_MAX)
        return NULL;
    r->of[r->n] = (struct report_reason){.verdict = v, .reason = reason};
    return &r->of[r->n++];
}

void report_reasons_count(const struct report_run *run, struct report_reasons *out)
{
    const cJSON *one_case;
    out->n = 0;
    cJSON_ArrayForEach (one_case, run->cases) {
        struct report_reason *reason = find_reason(out, one_case, true);
        if (reason)
            reason->n_cases++;
    }
}

size_t report_reasons_take(struct report_reasons *r, const cJSON *one_case)
{
    struct report_reason *reason = find_reason(r, one_case, false);
    if (!reason)
        return 1;
    size_t n = reason->n_cases;
    reason->n_cases = 0;
    return n;
}

void report_not_served(const struct report_run *run, struct buf *out)
{
    const cJSON *list = json_member(run->document, "not_served"), *one;
    int n = cJSON_GetArraySize(list), shown = 0;
    if (!n)
        return;
    buf_printf(out, "not served, and not counted: %d of the suite's %zu cases: ", n,
               run->n_cases + (size_t)n);
    cJSON_ArrayForEach (one, list) {
        if (shown++ == REPORT_NOT_SERVED_MAX)
            break;
        buf_printf(out, "%s%s", shown > 1 ? ", " : "", json_string(one, "id", ""));
    }
    if (n > REPORT_NOT_SERVED_MAX)
        buf_printf(out, " and %d more", n - REPORT_NOT_SERVED_MAX);
}

int report_severity(enum verdict v)
{
    static const int severity[VERDICT_COUNT] = {
        [VERDICT_PASS] = 0,        [VERDICT_IMPROVEMENT] = 1, [VERDICT_NO_VERDICT] = 2,
        [VERDICT_ENVIRONMENT] = 3, [VERDICT_REGRESSION] = 4,  [VERDICT_WRONG] = 5,
    };
    return severity[v];
}

const cJSON *report_candidate(const cJSON *one_case)
{
    return json_find(json_member(one_case, "arms"), "role", "candidate");
}

const cJSON *report_provider(const cJSON *one_case, const char *provider)
{
    const cJSON *arm;
    cJSON_ArrayForEach (arm, json_member(one_case, "arms")) {
        if (strcmp(json_string(arm, "role", ""), "provider") == 0 &&
            strcmp(json_string(arm, "provider", ""), provider) == 0)
            return arm;
    }
    return NULL;
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
    return json_number(object_member(one_case, "ratio"), "value", 0);
}

double report_half_width(const cJSON *one_case)
{
    const cJSON *ratio = object_member(one_case, "ratio");
    return ratio ? fabs(json_number(ratio, "hi", 0) - json_number(ratio, "lo", 0)) / 2 : -1;
}

double report_baseline_ns(const cJSON *one_case, bool *stored)
{
    const cJSON *timing =
        report_timing(json_find(json_member(one_case, "arms"), "role", "baseline"));
    *stored = !timing;
    return json_number(timing ? timing : object_member(one_case, "baseline"), "p50_ns", 0);
}

double report_mde(const cJSON *one_case)
{
    return json_number(one_case, "mde", -1);
}

bool report_is_unresolved(const struct report_run *run, const cJSON *one_case)
{
    return report_mde(one_case) > json_number(one_case, "threshold", run->threshold);
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

void report_conditions(const struct report_run *run, struct buf *out)
{
    char text[UNITS_MAX];
    const cJSON *drift = json_member(run->document, "control_drift");
    const char *epoch = json_string(run->document, "epoch", "");
    const char *against = json_string(json_member(run->document, "policy"), "against", "");
    int64_t n_processes = json_integer(run->document, "n_processes", 0);

    buf_printf(out, "contract %s", json_string(run->document, "contract", ""));
    if (epoch[0])
        buf_printf(out, ", epoch %s", epoch);
    if (n_processes > 0)
        buf_printf(out, ", %lld process%s", (long long)n_processes, n_processes == 1 ? "" : "es");
    if (cJSON_IsNumber(drift))
        buf_printf(out, ", control drift %s", units_percent(drift->valuedouble, text));
    if (against[0])
        buf_printf(out, ", against %s", against);
    if (!json_bool(run->document, "users_checked", true))
        buf_puts(out, ", other users of the GPU not checked");
    if (!json_bool(run->document, "launch_order_checked", true))
        buf_puts(out, ", order of launches not checked");
}

void report_policy(const struct report_run *run, struct buf *out)
{
    buf_printf(out, "threshold %.3g %%", 100 * run->threshold);
}

static bool has_evidence(const cJSON *processes, const char *stage)
{
    const cJSON *process;
    cJSON_ArrayForEach (process, processes) {
        if (strcmp(json_string(process, "stage", ""), stage) == 0 &&
            cJSON_IsNumber(json_member(process, "log_ratio")))
            return true;
    }
    return false;
}

bool report_evidence(const cJSON *one_case, const char *stage, struct buf *out)
{
    char text[UNITS_MAX];
    const cJSON *process, *processes = json_member(one_case, "processes");
    if (!has_evidence(processes, stage))
        return false;
    cJSON_ArrayForEach (process, processes) {
        const cJSON *d = json_member(process, "log_ratio");
        if (strcmp(json_string(process, "stage", ""), stage) != 0)
            continue;
        buf_puts(out, cJSON_IsNumber(d) ? units_signed_percent(expm1(d->valuedouble), text) : "-");
        buf_putc(out, ' ');
    }
    buf_putc(out, '%');
    return true;
}

bool report_p90(const cJSON *one_case, struct buf *out)
{
    char value[UNITS_MAX], lo[UNITS_MAX], hi[UNITS_MAX];
    const cJSON *ratio = object_member(one_case, "ratio_p90");
    if (!ratio)
        return false;
    buf_printf(out, "%s (%s to %s)", units_change(json_number(ratio, "value", 1), value),
               units_signed_percent(json_number(ratio, "lo", 1) - 1, lo),
               units_change(json_number(ratio, "hi", 1), hi));
    return true;
}

void report_unresolved(const struct report_run *run, report_put_fn put, struct buf *out)
{
    char text[UNITS_MAX];
    const cJSON *one_case;
    size_t n = 0;
    if (run->n_unresolved == 0)
        return;
    buf_printf(out, "%zu of %zu case%s cannot resolve the threshold here: ", run->n_unresolved,
               run->n_cases, run->n_cases == 1 ? "" : "s");
    cJSON_ArrayForEach (one_case, run->cases) {
        if (n == REPORT_MAX_UNRESOLVED)
            break;
        if (!report_is_unresolved(run, one_case))
            continue;
        buf_puts(out, n++ ? ", " : "");
        put(json_string(one_case, "id", ""), out);
        buf_printf(out, " (%s)", units_percent(report_mde(one_case), text));
    }
    if (run->n_unresolved > n)
        buf_printf(out, " and %zu more", run->n_unresolved - n);
}
