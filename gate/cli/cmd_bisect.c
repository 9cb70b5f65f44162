/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bisect.c: gate bisect. */
#include "gate/cli/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/interrupt.h"
#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/baseline/revision.h"
#include "gate/bisect/commits.h"
#include "gate/bisect/findings.h"
#include "gate/bisect/measure.h"
#include "gate/bisect/search.h"
#include "gate/cli/run_request.h"
#include "gate/cli/run_setup.h"
#include "gate/library/machine_code.h"

#define TRIES_MAX 3 /* of a commit that gets no verdict */

struct bisect_request {
    struct run_request run;
    const char *case_id, *good, *bad;
    bool restart;
};

#define ARGUMENTS struct bisect_request

static const struct option_def options[] = {
    OPTION(TEXT, "case", "ID", case_id, "the case"),
    OPTION(TEXT, "good", "COMMIT", good, "a commit that was fast and right"),
    OPTION(TEXT, "bad", "COMMIT", bad, "a later commit that is not", .fallback = "HEAD"),
    OPTION(NUMBER, "pause", "SECONDS", run.policy.pause_s,
           "wait before a suspicion is measured again", .most = 3600, .fallback = "5"),
    FLAG("restart", restart, "discard the results of earlier calls"),
    {0},
};

const struct command command_bisect = {
    .name = "bisect",
    .operands = "--case ID --good COMMIT [--bad COMMIT]",
    .summary = "find the commit that made a case slower or wrong",
    .about =
        "Builds commits between the good and the bad one, and compares each with the good one in "
        "the same processes, until one is left: the first commit that has over half of the "
        "slowdown, or that is wrong. It skips commits that do not build or get no verdict in three "
        "runs, and treats commits with equal machine code as one. It follows first parents, so a "
        "merge counts as one commit. Results are kept in the cache: after an interruption, the "
        "same command continues. The runs are stored in a separate database.\n",
    .groups = {{request_device_options, offsetof(struct bisect_request, run)},
               {request_options, offsetof(struct bisect_request, run)},
               {request_measure_options, offsetof(struct bisect_request, run)},
               {request_library_options, offsetof(struct bisect_request, run)},
               {request_build_options, offsetof(struct bisect_request, run)},
               {options, 0}},
    .ending = "Exit codes: 0 one commit was found and confirmed, 3 several are left, or the bad "
              "commit is not worse than the good one on this machine; otherwise as 'gate run'.\n",
    .main = cmd_bisect,
};

/* Everything of one search; `library` of a commit is built when it is asked for. */
struct bisect_hunt {
    const struct bisect_request *request;
    struct measure_options how;
    struct rebuild_recipe recipe;
    struct commits commits;
    struct finding *findings;
    struct journal journal;
    bool by_speed;
    double halfway; /* ln of the ratio between good and bad */
    size_t n_measured;
};

/* ---- one commit ---- */

/* Its library, and the hashes by which another commit's is the same. */
static enum gate_status build(struct bisect_hunt *h, size_t i, struct revision *out,
                              struct gate_error *err)
{
    enum gate_status status = revision_resolve(h->commits.id[i], &h->recipe, out, err);
    if (status)
        return status;
    if (machine_code_of_file(out->path, h->findings[i].code, NULL))
        snprintf(h->findings[i].code, sizeof h->findings[i].code, "%s", out->sha256);
    return GATE_OK;
}

static bool is_judged(const struct finding *f)
{
    return f->state == SEARCH_GOOD || f->state == SEARCH_BAD;
}

/* A commit of equal code is equally good. */
static bool take_over(struct bisect_hunt *h, size_t i)
{
    struct finding *f = &h->findings[i];
    for (size_t k = 0; k < h->commits.n; k++) {
        const struct finding *other = &h->findings[k];
        if (k == i || !is_judged(other) || strcmp(other->code, f->code) != 0)
            continue;
        f->state = other->state;
        f->log_ratio = other->log_ratio;
        snprintf(f->reason, sizeof f->reason, "its machine code is that of %.12s",
                 h->commits.id[k]);
        return true;
    }
    return false;
}

static enum search_state judge(const struct bisect_hunt *h, const struct comparison *m)
{
    if (!h->by_speed) {
        if (m->verdict == VERDICT_WRONG || m->verdict == VERDICT_REGRESSION)
            return SEARCH_BAD;
        return m->verdict == VERDICT_PASS || m->verdict == VERDICT_IMPROVEMENT ? SEARCH_GOOD
                                                                               : SEARCH_UNKNOWN;
    }
    if (m->verdict == VERDICT_WRONG)
        return SEARCH_SKIPPED; /* what is wrong has no speed */
    if (m->verdict == VERDICT_ENVIRONMENT || !(m->ratio.value > 0))
        return SEARCH_UNKNOWN;
    if (log(m->ratio.lo) > h->halfway)
        return SEARCH_BAD;
    return log(m->ratio.hi) < h->halfway ? SEARCH_GOOD : SEARCH_UNKNOWN;
}

/* Half of the slowdown, as far as a threshold goes: a kernel may be ten times as slow. */
static double threshold_of(const struct bisect_hunt *h)
{
    return h->by_speed ? fmin(expm1(h->halfway), 1) : h->request->run.policy.threshold;
}

static enum gate_status measure(struct bisect_hunt *h, size_t i, const struct revision *library,
                                const struct revision *good, struct gate_error *err)
{
    struct finding *f = &h->findings[i];
    struct comparison m = {0};
    double threshold = threshold_of(h);
    for (int try = 0; try < TRIES_MAX && f->state == SEARCH_UNKNOWN; try++) {
        enum gate_status status =
            measure_pair(&h->how, library->path, h->commits.id[i], good->path, threshold, &m, err);
        if (status)
            return status;
        h->n_measured++;
        f->state = judge(h, &m);
    }
    f->log_ratio = m.ratio.value > 0 ? log(m.ratio.value) : NAN;
    snprintf(f->reason, sizeof f->reason, "%s", m.reason);
    if (f->state == SEARCH_UNKNOWN)
        f->state = SEARCH_SKIPPED;
    return GATE_OK;
}

static enum gate_status look_at(struct bisect_hunt *h, size_t i, const struct revision *good,
                                struct gate_error *err)
{
    struct finding *f = &h->findings[i];
    struct revision library;
    enum gate_status status = build(h, i, &library, err);
    if (status == GATE_ENVIRONMENT) {
        f->state = SEARCH_SKIPPED;
        utf8_print(f->reason, sizeof f->reason, "%.299s", err->message);
    } else if (status) {
        return status;
    } else if (!take_over(h, i)) {
        status = measure(h, i, &library, good, err);
        if (status)
            return status;
    }
    command_note(&command_bisect, "%.12s is %s%s%.300s", h->commits.id[i],
                 f->state == SEARCH_GOOD  ? "good"
                 : f->state == SEARCH_BAD ? "bad"
                                          : "skipped",
                 f->reason[0] ? ": " : "", f->reason);
    /* A build may fail for what is mended later, as a full disk: the next call tries it again. */
    return status ? GATE_OK : findings_put(&h->journal, h->commits.id[i], f, err);
}

/* ---- the two ends ---- */

/* The bad end sets what is looked for: half of its slowdown, or what makes it wrong. */
static enum gate_status open_ends(struct bisect_hunt *h, struct revision *good,
                                  struct gate_error *err)
{
    size_t last = h->commits.n - 1;
    struct finding *bad = &h->findings[last];
    struct revision library;
    struct comparison m;
    enum gate_status status = build(h, 0, good, err);
    if (!status)
        status = build(h, last, &library, err);
    if (status)
        return status;
    h->findings[0].state = SEARCH_GOOD;
    h->findings[0].log_ratio = 0;
    if (bad->state != SEARCH_BAD) {
        status = measure_pair(&h->how, library.path, h->commits.id[last], good->path,
                              h->request->run.policy.threshold, &m, err);
        if (status)
            return status;
        h->n_measured++;
        if (m.verdict == VERDICT_NO_VERDICT || m.verdict == VERDICT_ENVIRONMENT)
            return gate_fail(
                err, m.verdict == VERDICT_ENVIRONMENT ? GATE_ENVIRONMENT : GATE_NO_VERDICT,
                "this machine does not tell whether %.12s is worse than %.12s; the "
                "same command tries again: %s, %.300s",
                h->commits.id[last], h->commits.id[0], verdict_name(m.verdict), m.reason);
        if (m.verdict != VERDICT_REGRESSION && m.verdict != VERDICT_WRONG)
            return gate_fail(err, GATE_NO_VERDICT,
                             "%.12s is not worse than %.12s on this machine, so there is nothing "
                             "to find: %s, %.300s",
                             h->commits.id[last], h->commits.id[0], verdict_name(m.verdict),
                             m.reason);
        bool slow = m.verdict == VERDICT_REGRESSION &&
                    m.ratio.lo > 1 + h->request->run.policy.threshold / 2;
        bad->state = SEARCH_BAD;
        bad->log_ratio = slow ? log(m.ratio.value) : NAN;
        snprintf(bad->reason, sizeof bad->reason, "%s", m.reason);
        status = findings_put(&h->journal, h->commits.id[last], bad, err);
    }
    h->by_speed = !isnan(bad->log_ratio);
    h->halfway = bad->log_ratio / 2;
    return status;
}

/* ---- the search ---- */

static void read_states(const struct bisect_hunt *h, enum search_state *states)
{
    for (size_t i = 0; i < h->commits.n; i++)
        states[i] = h->findings[i].state;
}

static enum gate_status look_for(struct bisect_hunt *h, const struct revision *good,
                                 struct search *out, struct gate_error *err)
{
    enum search_state *states = calloc(h->commits.n, sizeof *states);
    enum gate_status status = states ? GATE_OK : gate_fail(err, GATE_INTERNAL, "out of memory");
    size_t next;
    if (status)
        return status;
    read_states(h, states);
    while (!status && search_next(states, h->commits.n, &next)) {
        *out = search_of(states, h->commits.n);
        command_note(&command_bisect, "commits left: %zu, steps: about %.0f", out->n_unknown,
                     ceil(log2((double)out->n_unknown + 1)));
        status = look_at(h, next, good, err);
        read_states(h, states);
    }
    *out = search_of(states, h->commits.n);
    free(states);
    return status;
}

/* ---- the answer ---- */

/* The commit itself against the one before it: only what is seen here is reported. */
static enum gate_status confirm(struct bisect_hunt *h, const struct search *s,
                                struct comparison *out, struct gate_error *err)
{
    struct revision before, found;
    enum gate_status status = build(h, s->good, &before, err);
    if (!status)
        status = build(h, s->bad, &found, err);
    double threshold = threshold_of(h);
    for (int try = 0; try < TRIES_MAX && !status; try++) {
        status = measure_pair(&h->how, found.path, h->commits.id[s->bad], before.path, threshold,
                              out, err);
        if (out->verdict == VERDICT_REGRESSION || out->verdict == VERDICT_WRONG)
            break;
    }
    return status;
}

static void print_text(const struct bisect_hunt *h, const struct search *s,
                       const struct comparison *m)
{
    char subject[300];
    struct buf safe;
    size_t n_built = 0;
    buf_init(&safe, 16 * 1024);
    for (size_t i = s->good + 1; i <= s->bad; i++) {
        const struct finding *f = &h->findings[i];
        commits_subject(h->commits.id[i], subject, sizeof subject);
        buf_clear(&safe);
        term_puts(subject, &safe);
        printf("%s %s\n", h->commits.id[i], safe.data ? safe.data : "");
        buf_clear(&safe);
        term_puts(f->reason, &safe);
        if (i < s->bad)
            printf("    not known: %s\n", safe.data ? safe.data : "");
    }
    buf_clear(&safe);
    term_puts(m->reason, &safe);
    printf("\n%s: %s against %.12s: %s%s%s\n", h->how.case_id, verdict_name(m->verdict),
           h->commits.id[s->good], safe.data ? safe.data : "", m->evidence[0] ? "\n    " : "",
           m->evidence);
    for (size_t i = 0; i < h->commits.n; i++)
        n_built += h->findings[i].code[0] != '\0';
    printf("%zu commits, %zu built, %zu measurements; the runs are in %s\n", h->commits.n, n_built,
           h->n_measured, h->how.db);
    buf_release(&safe);
}

static void print_json(const struct bisect_hunt *h, const struct search *s,
                       const struct comparison *m)
{
    struct buf text;
    cJSON *o = cJSON_CreateObject(), *left = cJSON_AddArrayToObject(o, "commits");
    for (size_t i = s->good + 1; i <= s->bad; i++)
        cJSON_AddItemToArray(left, cJSON_CreateString(h->commits.id[i]));
    cJSON_AddStringToObject(o, "case", h->how.case_id);
    cJSON_AddStringToObject(o, "before", h->commits.id[s->good]);
    cJSON_AddStringToObject(o, "verdict", verdict_name(m->verdict));
    cJSON_AddStringToObject(o, "reason", m->reason);
    cJSON_AddStringToObject(o, "run", m->run);
    if (m->ratio.value > 0)
        cJSON_AddNumberToObject(o, "ratio", m->ratio.value);
    cJSON_AddNumberToObject(o, "measurements", (double)h->n_measured);
    buf_init(&text, COMMAND_MAX_OUTPUT);
    json_write(o, true, &text);
    fputs(text.data ? text.data : "", stdout);
    buf_release(&text);
    cJSON_Delete(o);
}

static int answer(const struct bisect_hunt *h, const struct search *s, const struct comparison *m)
{
    bool seen = m->verdict == VERDICT_REGRESSION || m->verdict == VERDICT_WRONG;
    if (h->request->run.json)
        print_json(h, s, m);
    else
        print_text(h, s, m);
    return seen && s->bad - s->good == 1 ? GATE_OK : GATE_NO_VERDICT;
}

/* ---- the command ---- */

/* Builds take minutes: a case that is in no suite is known before them. */
static enum gate_status check_case(const struct bisect_hunt *h, struct gate_error *err)
{
    struct run_setup setup = {0};
    enum gate_status status = run_setup_suite(&h->request->run, h->how.device, &setup, err);
    bool found = false;
    for (size_t i = 0; i < setup.suite.n_cases && !found && !status; i++)
        found = !strcmp(setup.suite.cases[i].id, h->how.case_id);
    if (!status && !found)
        status = gate_fail(err, GATE_USAGE, "suite '%.300s' has no case '%.200s'",
                           setup.suite.file.name, h->how.case_id);
    suite_free(&setup.suite);
    return status;
}

/* What a journal's findings hold for. */
static void describe(const struct bisect_hunt *h, struct buf *out)
{
    const struct run_request *run = &h->request->run;
    const struct rebuild_recipe *recipe = &h->recipe;
    buf_printf(out, "%s, device %s, suite %s, threshold %g, worker %s, build %s, library %s",
               h->request->case_id, run->target.device, run->suite ? run->suite : "-",
               run->policy.threshold, run->target.worker ? run->target.worker : "-",
               recipe->command ? recipe->command : "-", recipe->library ? recipe->library : "-");
}

static enum gate_status open_journal(struct bisect_hunt *h, struct gate_error *err)
{
    char folder[PATHS_MAX], path[PATHS_MAX], name[200];
    struct buf about;
    const struct commits *c = &h->commits;
    enum gate_status status = artifact_cache_folder("bisect", folder, err);
    if (status)
        return status;
    snprintf(name, sizeof name, "%.100s", h->request->case_id);
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '_' : *at;
    int n = snprintf(path, sizeof path, "%s/%.12s-%.12s-%s.ndjson", folder, c->id[0],
                     c->id[c->n - 1], name);
    n |= snprintf(h->how.db, sizeof h->how.db, "%s/%.12s-%.12s-%s.db", folder, c->id[0],
                  c->id[c->n - 1], name);
    n |= snprintf(h->how.report, sizeof h->how.report, "%s.json", h->how.db);
    if (n < 0 || strlen(h->how.report) + 1 >= PATHS_MAX)
        return gate_fail(err, GATE_ENVIRONMENT, "the path of the artifact cache is too long");
    buf_init(&about, COMMAND_MAX_OUTPUT);
    describe(h, &about);
    status = findings_open(path, about.data, h->request->restart, c, &h->journal, h->findings, err);
    buf_release(&about);
    return status;
}

static int hunt(struct bisect_hunt *h, struct gate_error *err)
{
    const struct bisect_request *r = h->request;
    struct revision good;
    struct search search = {0};
    struct comparison m = {0};
    enum gate_status status = check_case(h, err);
    if (!status)
        status = commits_between(r->good, r->bad, &h->commits, err);
    if (!status && !(h->findings = calloc(h->commits.n, sizeof *h->findings)))
        status = gate_fail(err, GATE_INTERNAL, "out of memory");
    if (!status)
        status = open_journal(h, err);
    if (!status)
        status = open_ends(h, &good, err);
    if (!status)
        status = look_for(h, &good, &search, err);
    if (!status)
        status = confirm(h, &search, &m, err);
    return status ? command_failed(&command_bisect, err) : answer(h, &search, &m);
}

int cmd_bisect(int argc, char **argv)
{
    struct bisect_request r = {.bad = "HEAD"};
    struct target target = {0};
    struct gate_error err = {0};
    int code;
    run_request_init(&r.run);
    if (!options_read(&command_bisect, &r, 0, argc, argv, NULL, &code))
        return code;
    if (!r.case_id || !r.good)
        return command_usage(&command_bisect, "--case ID and --good COMMIT are needed");
    if (r.run.filter)
        return command_usage(&command_bisect, "--filter and --case cannot be combined");
    if (target_resolve(&r.run.target, &target, &err))
        return command_failed(&command_bisect, &err);
    r.run.target.device = target.device;
    struct bisect_hunt h = {.request = &r,
                            .journal.file = -1,
                            .recipe = run_request_recipe(&r.run, !strcmp(target.device, "host")),
                            .how = {.suite = r.run.suite,
                                    .device = target.device,
                                    .worker = r.run.target.worker,
                                    .case_id = r.case_id,
                                    .timeout_s = r.run.target.timeout_s,
                                    .budget_ms = r.run.policy.budget_ms,
                                    .pause_s = r.run.policy.pause_s,
                                    .wait_s = r.run.wait_s}};
    interrupt_announce("bisect", "the same command continues from here");
    code = hunt(&h, &err);
    journal_close(&h.journal);
    commits_release(&h.commits);
    free(h.findings);
    return code;
}
