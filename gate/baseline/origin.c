/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/origin.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/process.h"
#include "gate/base/utf8.h"
#include "gate/ci/ci.h"

/* A name that holds an e-mail address is left out. */
static void set_author(const char *name, struct origin *o)
{
    size_t len = strlen(name);
    if (len < sizeof o->author && !strchr(name, '@'))
        memcpy(o->author, name, len + 1);
}

struct commit_lines {
    struct origin *o;
    int n;
};

static bool take_commit_line(void *context, const char *line)
{
    struct commit_lines *l = context;
    struct origin *o = l->o;
    if (l->n == 0 && !hex_is(line, 40))
        return true; /* log.showSignature */
    const int n = l->n++;
    if (n < 2) /* of several parents the first */
        snprintf(n == 0 ? o->commit : o->parent, sizeof o->commit, "%.40s", line);
    else if (n == 2)
        set_author(line, o);
    else
        snprintf(o->subject, sizeof o->subject, "%.*s", (int)sizeof o->subject - 1, line);
    return n < 3;
}

/* A commit's parent, subject and author; false when git does not know it here. */
static bool read_commit(const char *revision, struct origin *o)
{
    struct commit_lines lines = {o, 0};
    o->commit[0] = o->parent[0] = o->subject[0] = o->author[0] = '\0';
    git_lines(take_commit_line, &lines, "log", "-1", "--format=%H%n%P%n%aN%n%s", revision, NULL);
    return lines.n > 0;
}

static bool note_line(void *context, const char *)
{
    *(bool *)context = true;
    return false;
}

/* The stored baselines are no part of what is measured, and a run may itself have changed them:
 * they are left out if their folder lies in the tree that is checked out here, and is not its top.
 * A tree that git cannot tell of is not called clean.
 */
static bool is_dirty(const char *baselines)
{
    char here[4096], there[4096], prefix[4096];
    bool changed = false;
    bool below =
        baselines && git_line(here, sizeof here, "rev-parse", "--show-toplevel", NULL) &&
        git_line(there, sizeof there, "-C", baselines, "rev-parse", "--show-toplevel", NULL) &&
        git_line(prefix, sizeof prefix, "-C", baselines, "rev-parse", "--show-prefix", NULL) &&
        !strcmp(here, there) && prefix[0];
    return !git_lines(note_line, &changed, "-C", below ? baselines : ".", "status", "--porcelain",
                      "--untracked-files=no", "--", ":/", below ? ":(exclude,glob)*.json" : NULL,
                      NULL) ||
           changed;
}

/* Of a shallow clone, git may not know the commit: then its hash is all there is. */
static void set_commit(const char *commit, struct origin *o)
{
    if (!strcmp(commit, o->commit))
        return;
    read_commit(commit, o);
    snprintf(o->commit, sizeof o->commit, "%s", commit);
}

/* The job's variables are about the commit that it checked out, and about no other tree in which
 * the gate is called. */
static void set_job(const struct ci_job *job, struct origin *o)
{
    snprintf(o->job, sizeof o->job, "%s", job->job);
    bool known = o->commit[0] && job->checkout[0];
    if (known && strcmp(o->commit, job->checkout) != 0 && strcmp(o->commit, job->head) != 0)
        return;
    if (job->head[0])
        set_commit(job->head, o);
    if (!o->author[0] && !strcmp(o->commit, job->checkout))
        set_author(job->author, o);
    if (job->branch[0])
        memcpy(o->branch, job->branch, sizeof o->branch);
    memcpy(o->base, job->base, sizeof o->base);
    memcpy(o->change, job->change, sizeof o->change);
}

/* A line is "HASH SECONDS". */
static bool add_first_parent(void *context, const char *line)
{
    struct origin *o = context;
    struct origin_commit *c = &o->first_parents[o->n_first_parents];
    long long seconds = 0;
    if (sscanf(line, "%40[0-9a-f] %lld", c->commit, &seconds) != 2 || !hex_is(c->commit, 40) ||
        seconds < 0 || seconds > 1LL << 40)
        return false;
    c->time_ms = seconds * 1000;
    return ++o->n_first_parents < ORIGIN_FIRST_PARENTS_MAX;
}

/* The first parents, and where the branch left its base: as that is fetched, else as it is here. */
static void read_history(struct origin *o)
{
    static const char most[] = "--max-count=256";
    static const char *const places[] = {"refs/remotes/origin/", "refs/heads/"};
    char name[240];
    _Static_assert(ORIGIN_FIRST_PARENTS_MAX == 256, "as git is asked for");
    if (!o->commit[0])
        return;
    git_lines(add_first_parent, o, "log", "--first-parent", most, "--format=%H %ct", o->commit,
              NULL);
    for (size_t i = 0; i < 2 && o->base[0] && !o->merge_base[0]; i++) {
        snprintf(name, sizeof name, "%s%s", places[i], o->base);
        git_commit(o->merge_base, NULL, "merge-base", o->commit, name, NULL);
    }
}

static void read_who(struct origin *o)
{
    char host[80] = "unknown";
    const struct passwd *user = getpwuid(getuid());
    gethostname(host, sizeof host - 1);
    snprintf(o->who, sizeof o->who, "%.80s@%.80s", user ? user->pw_name : "unknown", host);
}

void origin_author(char *out, size_t size)
{
    char name[150] = "", mail[150] = "";
    struct origin o = {0};
    struct ci_job job;
    if (git_line(name, sizeof name, "config", "--get", "user.name", NULL) &&
        git_line(mail, sizeof mail, "config", "--get", "user.email", NULL) && name[0] && mail[0]) {
        snprintf(out, size, "%s <%s>", name, mail);
        return;
    }
    read_who(&o);
    ci_read(&job);
    snprintf(out, size, "%s", job.job[0] ? job.job : o.who);
}

bool origin_ignores(const char *path)
{
    char line[16];
    return git_line(line, sizeof line, "check-ignore", "--", path, NULL);
}

void origin_read(const struct origin_choice *choice, struct origin *out)
{
    struct ci_job job;
    unsigned char b[16];
    *out = (struct origin){0};
    ci_read(&job);
    if (choice->elsewhere) {
        memcpy(out->base, job.base, sizeof out->base);
        memcpy(out->job, job.job, sizeof out->job);
    } else {
        if (read_commit("HEAD", out)) {
            git_line(out->branch, sizeof out->branch, "symbolic-ref", "--short", "-q", "HEAD",
                     NULL);
            out->dirty = is_dirty(choice->baselines);
        }
        set_job(&job, out);
    }
    if (choice->commit)
        set_commit(choice->commit, out);
    const struct {
        const char *chosen;
        char *to;
        size_t size;
    } texts[] = {{choice->branch, out->branch, sizeof out->branch},
                 {choice->base, out->base, sizeof out->base},
                 {choice->change, out->change, sizeof out->change},
                 {choice->job, out->job, sizeof out->job}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].chosen)
            snprintf(texts[i].to, texts[i].size, "%s", texts[i].chosen);
    read_history(out);
    read_who(out);
    /* 16 bytes come whole, and never fail once the system has booted. */
    while (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        continue;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    char *at = out->uuid;
    for (size_t i = 0; i < sizeof b; i++)
        at += snprintf(at, 4, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

static const char *text_or_null(const char *text)
{
    return text[0] ? text : NULL;
}

struct document_git origin_document(const struct origin *o)
{
    struct document_commit *commits =
        o->n_first_parents > 0 ? xcalloc(o->n_first_parents, sizeof *commits) : NULL;
    for (size_t i = 0; i < o->n_first_parents; i++)
        commits[i] =
            (struct document_commit){o->first_parents[i].commit, o->first_parents[i].time_ms};
    return (struct document_git){.commit = o->commit,
                                 .branch = o->branch,
                                 .parent = o->parent,
                                 .subject = o->subject,
                                 .author = text_or_null(o->author),
                                 .dirty = o->dirty,
                                 .base = text_or_null(o->base),
                                 .change = text_or_null(o->change),
                                 .job = text_or_null(o->job),
                                 .merge_base = text_or_null(o->merge_base),
                                 .first_parents = commits,
                                 .n_first_parents = o->n_first_parents};
}
