/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_scenarios.c: plays tests/scenarios/watch.txt, which says what its words mean.
 *
 * not sanitized: it plays months of runs
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "tests/unit/unit.h"
#include "tests/unit/watch_history.h"

#define FILE_NAME "tests/scenarios/watch.txt"
#define LEVEL_NS 20000.0 /* that of level 1 */
#define DAY_MS INT64_C(86400000)
#define FIRST_DAY_MS INT64_C(1760000000000) /* of baselines */
#define MAX_WORD 100
#define MAX_NAMES 32

/* One scenario on its way. */
struct play {
    const char *name, *at;
    struct history h;
    bool pairs;
    double vendor_sd;
    char word[MAX_WORD];
    char names[MAX_NAMES][MAX_WORD]; /* of epochs, commits and so on, which the history points at */
    size_t n_names;
    struct seen seen; /* at the last arrow */
    size_t n_expected;
    bool any;
};

#define COMPLAIN(p, ...) complain(p, (p)->name, (p)->word, __VA_ARGS__)

__attribute__((noreturn, format(printf, 4, 5))) static void
complain(const struct play *p, const char *name, const char *word, const char *format, ...)
{
    char text[300], rest[60];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(rest, sizeof rest, "%s", p->at);
    fail_msg("scenario '%s', at '%s', before '%s': %s", name, word, rest, text);
    abort();
}

/* ---- words ---- */

/* A word, or a text in quotes, into p->word; false at the end. */
static bool next_word(struct play *p)
{
    size_t n;
    p->at += strspn(p->at, " \n");
    bool quoted = *p->at == '"';
    n = quoted ? 1 + strcspn(p->at + 1, "\"") : strcspn(p->at, " \n");
    if (n == 0 || n >= MAX_WORD)
        return false;
    snprintf(p->word, sizeof p->word, "%.*s", (int)n, p->at);
    p->at += n + quoted;
    return true;
}

static double number_of(struct play *p, const char **text)
{
    char *end;
    double value = strtod(*text, &end);
    if (end == *text)
        COMPLAIN(p, "a number is missing");
    *text = end;
    return value;
}

static const char *keep(struct play *p, const char *text)
{
    for (size_t i = 0; i < p->n_names; i++) {
        if (!strcmp(p->names[i], text))
            return p->names[i];
    }
    if (p->n_names == MAX_NAMES)
        COMPLAIN(p, "too many names");
    snprintf(p->names[p->n_names], MAX_WORD, "%s", text);
    return p->names[p->n_names++];
}

/* Forty hex digits that stand for a name; "#60": the commit of run 60. */
static void commit_of(const char *name, char out[41])
{
    size_t n = 0;
    char parent[41];
    if (name[0] == '#') {
        history_commit((int)strtol(name + 1, NULL, 10), out, parent);
        return;
    }
    for (; *name && n < 40; n += 2, name++)
        snprintf(out + n, 3, "%02x", (unsigned char)*name);
    memset(out + n, '0', 40 - n);
    out[40] = '\0';
}

static const char *keep_commit(struct play *p, const char *name)
{
    char commit[41];
    commit_of(name, commit);
    return keep(p, commit);
}

/* ---- steps ---- */

static void add_runs(struct play *p)
{
    struct history *h = &p->h;
    struct spec *spec = &h->spec;
    const char *text = p->word;
    int n = (int)number_of(p, &text);
    if (*text++ != '@')
        COMPLAIN(p, "is no step");
    double level = number_of(p, &text), ratio = 0, sd = h->sd, vendor = spec->vendor_ratio;
    bool is_pair = p->pairs;
    if (*text == '/') {
        text++;
        ratio = number_of(p, &text);
        is_pair = false;
    }
    spec->verdict = *text == ':' ? keep(p, text + 1) : "pass";
    if (is_pair)
        h->sd = 0.007;
    for (int i = 0; i < n; i++) {
        spec->ratio = is_pair ? level * exp(0.0005 * rng_normal(&h->rng)) : ratio;
        if (p->vendor_sd > 0)
            spec->vendor_ratio = vendor * exp(p->vendor_sd * rng_normal(&h->rng));
        history_add(h, 1, LEVEL_NS * level);
    }
    h->sd = sd;
    spec->vendor_ratio = vendor;
}

/* "1.05,2": a level, and the day on which it became the baseline. */
static void set_baseline(struct play *p, const char *value)
{
    struct spec *spec = &p->h.spec;
    const char *day = strchr(value, ',');
    spec->baseline_ns = *value == '-'            ? 0
                        : !strcmp(value, "none") ? -1
                                                 : LEVEL_NS * strtod(value, NULL);
    spec->baseline_ms =
        day && day[1] != '-' ? FIRST_DAY_MS + DAY_MS * strtol(day + 1, NULL, 10) : 0;
}

static void set_figure(struct play *p, const char *name, const char *value)
{
    struct spec *spec = &p->h.spec;
    bool none = !strcmp(value, "none");
    double number = none ? 0 : number_of(p, &value);
    if (!strcmp(name, "at"))
        spec->index = (int)number;
    else if (!strcmp(name, "sd"))
        p->h.sd = number;
    else if (!strcmp(name, "control"))
        spec->control_ns = 1e6 * number;
    else if (!strcmp(name, "error"))
        spec->rel_err = number;
    else if (!strcmp(name, "vendor"))
        spec->vendor_ratio = none ? -1 : number;
    else
        COMPLAIN(p, "is no setting");
    p->vendor_sd = *value == '~' ? strtod(value + 1, NULL) : 0;
}

static void set(struct play *p)
{
    struct spec *spec = &p->h.spec;
    char *value = strchr(p->word, '=');
    *value++ = '\0';
    bool reset = !strcmp(value, "-");
    if (!strcmp(p->word, "look"))
        p->h.watched = !strcmp(value, "on");
    else if (!strcmp(p->word, "branch"))
        spec->branch = reset ? NULL : keep(p, value);
    else if (!strcmp(p->word, "epoch"))
        spec->epoch = reset ? NULL : keep(p, value);
    else if (!strcmp(p->word, "contract"))
        spec->contract = reset ? NULL : keep(p, value);
    else if (!strcmp(p->word, "commit"))
        spec->commit = reset ? NULL : keep_commit(p, value);
    else if (!strcmp(p->word, "device"))
        spec->device = reset ? NULL : keep(p, value);
    else if (!strcmp(p->word, "case"))
        spec->case_id = reset ? NULL : keep(p, value);
    else if (!strcmp(p->word, "machine"))
        spec->machine = reset ? NULL : keep(p, value);
    else if (!strcmp(p->word, "again"))
        spec->again = reset ? 0 : 1 + (int)strtol(value, NULL, 10);
    else if (!strcmp(p->word, "parent"))
        spec->parent = reset ? NULL : keep_commit(p, value);
    else if (!strcmp(p->word, "baseline-of"))
        spec->baseline_commit = reset ? NULL : keep_commit(p, value);
    else if (!strcmp(p->word, "baseline"))
        set_baseline(p, value);
    else
        set_figure(p, p->word, value);
}

/* "ada:1:ignored" */
static void do_by_person(struct play *p)
{
    enum alert_state to;
    char *end;
    long id = strtol(p->word + 4, &end, 10);
    if (*end != ':' || !alert_state_of(end + 1, &to))
        COMPLAIN(p, "is nothing that somebody does to an alert");
    history_step(&p->h, id, to, STEP_DONE);
}

/* ---- what is to be seen ---- */

static struct seen_alert *alert_expected(struct play *p)
{
    return &p->seen.alert[p->seen.n - p->n_expected]; /* newest first */
}

static void check_change(struct play *p)
{
    const char *text = p->word;
    double change = number_of(p, &text) / 100;
    if (fabs(alert_expected(p)->change - change) > 0.003)
        COMPLAIN(p, "the change is %+.2f %%", 100 * alert_expected(p)->change);
}

static void check_values(struct play *p)
{
    const char *text = strchr(p->word, '=') + 1;
    double before = number_of(p, &text);
    text++;
    double after = number_of(p, &text);
    const struct seen_alert *a = alert_expected(p);
    if (fabs(a->before / before - 1) > 0.003 || fabs(a->after / after - 1) > 0.003)
        COMPLAIN(p, "the values are %g and %g", a->before, a->after);
}

static void check_before(struct play *p)
{
    char commit[41] = "";
    if (strcmp(p->word, "before=-") != 0)
        commit_of(p->word + strlen("before="), commit);
    if (strcmp(alert_expected(p)->before_commit, commit) != 0)
        COMPLAIN(p, "it is %s", alert_expected(p)->before_commit);
}

/* "regression@60": the next alert. */
static bool check_kind(struct play *p)
{
    size_t n = strcspn(p->word, "@");
    int kind = 0;
    while (kind < ALERT_KINDS &&
           (strncmp(p->word, history_kinds[kind], n) != 0 || history_kinds[kind][n] != '\0'))
        kind++;
    if (kind == ALERT_KINDS)
        return false;
    if (++p->n_expected > p->seen.n)
        COMPLAIN(p, "there are %zu alerts", p->seen.n);
    const struct seen_alert *a = alert_expected(p);
    if (a->kind != (enum alert_kind)kind)
        COMPLAIN(p, "it is of kind %s", history_kinds[a->kind]);
    if (p->word[n] == '@' && history_index_of(a) != strtol(p->word + n + 1, NULL, 10))
        COMPLAIN(p, "it is of run %d", (int)history_index_of(a));
    if (a->state == ALERT_FIXED ? a->closed_ms <= 0 : a->state == ALERT_NEW && a->closed_ms != 0)
        COMPLAIN(p, "closed_ms does not fit the state");
    return true;
}

/* The state of the last alert; `state` is what the scenario says, or new. */
static void check_state(struct play *p, enum alert_state state)
{
    if (p->n_expected > 0 && alert_expected(p)->state != state)
        COMPLAIN(p, "alert %zu is %s (%s), and not %s", p->n_expected,
                 alert_state_name(alert_expected(p)->state), alert_expected(p)->reason,
                 alert_state_name(state));
}

static bool check_fact(struct play *p)
{
    const struct seen_alert *a = alert_expected(p);
    bool good = true;
    if (p->word[0] == '"')
        good = strstr(a->reason, p->word + 1) != NULL;
    else if (strchr("+-", p->word[0]) && strchr(p->word, '%'))
        check_change(p);
    else if (!strncmp(p->word, "value=", 6))
        check_values(p);
    else if (!strncmp(p->word, "before=", 7))
        check_before(p);
    else if (!strcmp(p->word, "confirmed"))
        good = a->confirmed && a->evidence[0] != '\0';
    else if (!strcmp(p->word, "over-now"))
        good = strstr(a->text, ", now over the threshold") != NULL;
    else if (!strcmp(p->word, "at-once"))
        good = strstr(a->text, "threshold") == NULL;
    else if (!strcmp(p->word, "by-vendor"))
        good = a->by_vendor;
    else if (!strncmp(p->word, "machine=", 8))
        good = !strcmp(a->machine, strcmp(p->word + 8, "-") ? p->word + 8 : "");
    else if (!strcmp(p->word, "no-provider"))
        good = a->provider[0] == '\0';
    else
        return false;
    if (!good)
        COMPLAIN(p, "it is not so; the reason is '%s'", a->reason);
    return true;
}

/* The word behind the last one that is to be seen is in p->word again; false: there is none. */
static bool check_seen(struct play *p)
{
    enum alert_state state = ALERT_NEW;
    bool more;
    p->seen = history_alerts(&p->h);
    p->n_expected = 0;
    p->any = false;
    while ((more = next_word(p))) {
        if (!strcmp(p->word, ";") || !strcmp(p->word, "none"))
            continue;
        if (!strcmp(p->word, "any")) {
            p->any = true;
        } else if (!strncmp(p->word, "changes=", 8)) {
            if (history_n_changes(&p->h) != (size_t)strtol(p->word + 8, NULL, 10))
                COMPLAIN(p, "there are %zu changes", history_n_changes(&p->h));
        } else if (!strncmp(p->word, "silences=", 9)) {
            if (history_n_silences(&p->h) != (size_t)strtol(p->word + 9, NULL, 10))
                COMPLAIN(p, "there are %zu", history_n_silences(&p->h));
        } else if (!alert_state_of(p->word, &state)) {
            if (p->n_expected > 0 && check_fact(p))
                continue;
            char kind[MAX_WORD];
            snprintf(kind, sizeof kind, "%s", p->word);
            check_state(p, state); /* of the one before */
            state = ALERT_NEW;
            if (!check_kind(p))
                break;
        }
    }
    if (!more)
        check_state(p, state);
    if (!p->any && p->n_expected != p->seen.n)
        COMPLAIN(p, "there are %zu alerts, and not %zu", p->seen.n, p->n_expected);
    return more;
}

/* ---- a scenario ---- */

static void play(struct play *p);

/* "4*[ ... ]" */
static void play_again(struct play *p)
{
    long n = strtol(p->word, NULL, 10);
    const char *begin = p->at;
    for (long i = 0; i < n; i++) {
        p->at = begin;
        play(p);
    }
}

static void step(struct play *p)
{
    if (strstr(p->word, "*["))
        play_again(p);
    else if (!strcmp(p->word, "pairs"))
        p->pairs = true;
    else if (!strcmp(p->word, "by-number"))
        p->h.spec.by_number = true;
    else if (!strcmp(p->word, "look"))
        history_watch(p->h.f, p->h.s);
    else if (!strncmp(p->word, "ada:", 4))
        do_by_person(p);
    else if (strchr(p->word, '='))
        set(p);
    else
        add_runs(p);
}

static void play(struct play *p)
{
    bool more = next_word(p);
    while (more && strcmp(p->word, "]") != 0) {
        if (!strcmp(p->word, "->")) {
            more = check_seen(p);
            continue;
        }
        step(p);
        more = next_word(p);
    }
}

static void play_scenario(const char *name, const char *text)
{
    void *state = NULL;
    struct play *p = calloc(1, sizeof *p);
    assert_non_null(p);
    assert_int_equal(store_set_up(&state), 0);
    p->name = name;
    p->at = text;
    p->h = history_begin(&state);
    play(p);
    history_end(&p->h);
    assert_int_equal(store_tear_down(&state), 0);
    free(p);
}

TEST(scenarios)
{
    struct gate_error err = {0};
    struct buf text;
    size_t n = 0;
    const char *only = getenv("SCENARIO");
    buf_init(&text, (size_t)1 << 20);
    if (file_read(FILE_NAME, &text, &err) != GATE_OK)
        fail_msg("%s", err.message);
    for (char *line = text.data; *line;) {
        char *end = line + strcspn(line, "\n");
        if (*line == '#' || *line == '\n') {
            line = end + 1;
            continue;
        }
        *end = '\0';
        char *steps = end + 1, *last = steps;
        while (*last == ' ')
            last += strcspn(last, "\n") + 1;
        char after = last[-1];
        last[-1] = '\0';
        if (!only || strstr(line, only))
            play_scenario(line, steps);
        last[-1] = after;
        line = last;
        n++;
    }
    buf_release(&text);
    assert_true(n > 50);
}
