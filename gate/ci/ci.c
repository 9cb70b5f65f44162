/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/ci/ci.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "gate/base/utf8.h"
#include "gate/base/json.h"

#define EVENT_MAX ((size_t)32 << 20) /* GitHub cuts what would be larger than 25 MB */
#define NAMES_MAX 2

static const char *variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && value[0] ? value : NULL;
}

static const char *first_of(const char *const names[NAMES_MAX])
{
    const char *value = variable(names[0]);
    return value ? value : variable(names[1]);
}

/* ---- what is taken is what it should be, or nothing ---- */

static void take_commit(const char *text, char out[41])
{
    if (text && hex_is(text, 40))
        memcpy(out, text, 41);
}

/* A branch by its name or as "refs/heads/NAME"; another reference is no branch. */
static void take_branch(const char *text, char *out, size_t size)
{
    if (!text || (!strncmp(text, "refs/", 5) && strncmp(text, "refs/heads/", 11) != 0))
        return;
    text += strncmp(text, "refs/heads/", 11) != 0 ? 0 : 11;
    if (strlen(text) < size)
        memcpy(out, text, strlen(text) + 1);
}

/* A number, or an address that ends with it. */
static void take_change(const char *text, char *out, size_t size)
{
    const char *slash = text ? strrchr(text, '/') : NULL;
    text = slash ? slash + 1 : text;
    if (text && text[0] && text[0] != '0' && strspn(text, "0123456789") == strlen(text) &&
        strlen(text) < size)
        memcpy(out, text, strlen(text) + 1);
}

/* A fork's branch "main" is not this repository's. */
static void name_owner(const char *owner, struct ci_job *j)
{
    char branch[sizeof j->branch];
    if (!owner || !j->branch[0])
        return;
    memcpy(branch, j->branch, sizeof branch);
    int n = snprintf(j->branch, sizeof j->branch, "%s:%s", owner, branch);
    if (n < 0 || (size_t)n >= sizeof j->branch)
        j->branch[0] = '\0';
}

/* ---- what one system has of its own ---- */

enum gate_status ci_github_event(cJSON **out, struct gate_error *err)
{
    const char *path = variable("GITHUB_EVENT_PATH");
    RELEASED_BY(buf_release) struct buf text = buf_of(EVENT_MAX);
    if (!path)
        return gate_fail(err, GATE_USAGE,
                         "no $GITHUB_EVENT_PATH names the event that this job was started for");
    TRY(file_read(path, &text, err));
    return json_parse(path, text.data, text.len, GATE_IO, out, err);
}

static void read_github(struct ci_job *j)
{
    RELEASED_BY(json_delete_at) cJSON *event = NULL;
    const char *server = variable("GITHUB_SERVER_URL"), *repository = variable("GITHUB_REPOSITORY"),
               *run = variable("GITHUB_RUN_ID");
    take_branch(variable("GITHUB_REF"), j->branch, sizeof j->branch);
    if (server && repository && run)
        snprintf(j->job, sizeof j->job, "%s/%s/actions/runs/%s", server, repository, run);
    const cJSON *change = ci_github_event(&event, NULL) ? NULL : json_member(event, "pull_request");
    if (!change)
        return;
    const cJSON *head = json_member(change, "head"), *base = json_member(change, "base");
    const char *from = json_string(json_member(head, "repo"), "full_name", "?"),
               *into = json_string(json_member(base, "repo"), "full_name", "");
    const char *name = variable("GITHUB_EVENT_NAME");
    char number[24];
    take_commit(json_string(head, "sha", NULL), j->head);
    /* Only this event has the temporary merge in $GITHUB_SHA. */
    if (!name || strcmp(name, "pull_request") != 0)
        memcpy(j->checkout, j->head, sizeof j->checkout);
    take_branch(json_string(head, "ref", NULL), j->branch, sizeof j->branch);
    take_branch(json_string(base, "ref", NULL), j->base, sizeof j->base);
    snprintf(number, sizeof number, "%lld", (long long)json_integer(change, "number", 0));
    take_change(number, j->change, sizeof j->change);
    if (strcmp(from, into) != 0)
        name_owner(json_string(json_member(head, "user"), "login", "fork"), j);
}

static void read_gitlab(struct ci_job *j)
{
    const char *from = variable("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"),
               *into = variable("CI_MERGE_REQUEST_PROJECT_PATH");
    if (j->change[0] && (!from || !into || strcmp(from, into) != 0))
        name_owner(from ? from : "fork", j);
}

/* "OWNER/NAME" of an address, be it "https://HOST/OWNER/NAME.git" or "git@HOST:OWNER/NAME"; "": it
 * has none. */
static void take_repository(const char *url, char *out, size_t size)
{
    size_t n = url ? strlen(url) : 0, at, parts = 0;
    while (n > 0 && url[n - 1] == '/')
        n--;
    if (n > 4 && !strncmp(url + n - 4, ".git", 4))
        n -= 4;
    for (at = n; at > 0; at--)
        if (strchr("/:", url[at - 1]) && ++parts == 2)
            break;
    snprintf(out, size, "%.*s", parts == 2 && n - at < size ? (int)(n - at) : 0,
             url ? url + at : "");
}

static void read_buildkite(struct ci_job *j)
{
    char from[200], into[200];
    take_repository(variable("BUILDKITE_PULL_REQUEST_REPO"), from, sizeof from);
    take_repository(variable("BUILDKITE_REPO"), into, sizeof into);
    if (!j->change[0] || (from[0] && !strcasecmp(from, into)))
        return;
    from[strcspn(from, "/:")] = '\0';
    name_owner(from[0] ? from : "fork", j);
}

static void read_azure(struct ci_job *j)
{
    const char *server = variable("SYSTEM_COLLECTIONURI"),
               *project = variable("SYSTEM_TEAMPROJECT"), *build = variable("BUILD_BUILDID"),
               *fork = variable("SYSTEM_PULLREQUEST_ISFORK");
    if (server && project && build)
        snprintf(j->job, sizeof j->job, "%s%s/_build/results?buildId=%s", server, project, build);
    if (fork && !strcmp(fork, "True"))
        name_owner("fork", j);
}

static void read_slurm(struct ci_job *j)
{
    const char *cluster = variable("SLURM_CLUSTER_NAME");
    snprintf(j->job, sizeof j->job, "slurm:%s/%s", cluster ? cluster : "",
             variable("SLURM_JOB_ID"));
}

/* ---- all of them ---- */

/* Names of variables; of several, the first that is set counts. */
struct variables {
    const char *marker; /* is set in each job of the system, and nowhere else */
    const char *checkout, *head, *author, *tag, *base, *fork;
    const char *branch[NAMES_MAX], *change[NAMES_MAX];
    const char *job;
    void (*further)(struct ci_job *j); /* what it has of its own; NULL: nothing */
};

static const struct variables systems[] = {
    /* The head, the base and the number of a pull request are in the event. */
    [CI_GITHUB] = {.marker = "GITHUB_ACTIONS", .checkout = "GITHUB_SHA", .further = read_github},
    [CI_GITLAB] = {.marker = "GITLAB_CI",
                   .checkout = "CI_COMMIT_SHA",
                   .head = "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA",
                   .author = "CI_COMMIT_AUTHOR",
                   .base = "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
                   .branch = {"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH"},
                   .change = {"CI_MERGE_REQUEST_IID"},
                   .job = "CI_JOB_URL",
                   .further = read_gitlab},
    [CI_JENKINS] = {.marker = "JENKINS_URL",
                    .checkout = "GIT_COMMIT",
                    .tag = "TAG_NAME",
                    .base = "CHANGE_TARGET",
                    .fork = "CHANGE_FORK",
                    .branch = {"CHANGE_BRANCH", "BRANCH_NAME"},
                    .change = {"CHANGE_ID"},
                    .job = "BUILD_URL"},
    [CI_BUILDKITE] = {.marker = "BUILDKITE",
                      .checkout = "BUILDKITE_COMMIT",
                      .author = "BUILDKITE_BUILD_AUTHOR",
                      .tag = "BUILDKITE_TAG",
                      .base = "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
                      .branch = {"BUILDKITE_BRANCH"},
                      .change = {"BUILDKITE_PULL_REQUEST"},
                      .job = "BUILDKITE_BUILD_URL",
                      .further = read_buildkite},
    [CI_AZURE] = {.marker = "TF_BUILD",
                  .checkout = "BUILD_SOURCEVERSION",
                  .head = "SYSTEM_PULLREQUEST_SOURCECOMMITID",
                  .base = "SYSTEM_PULLREQUEST_TARGETBRANCH",
                  .branch = {"SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"},
                  .change = {"SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
                             "SYSTEM_PULLREQUEST_PULLREQUESTID"},
                  .further = read_azure},
    [CI_CIRCLE] = {.marker = "CIRCLECI",
                   .checkout = "CIRCLE_SHA1",
                   .tag = "CIRCLE_TAG",
                   .branch = {"CIRCLE_BRANCH"},
                   .change = {"CIRCLE_PR_NUMBER", "CIRCLE_PULL_REQUEST"},
                   .job = "CIRCLE_BUILD_URL"},
    [CI_SLURM] = {.marker = "SLURM_JOB_ID", .further = read_slurm},
};

void ci_read(struct ci_job *out)
{
    *out = (struct ci_job){0};
    for (size_t i = CI_NONE + 1; i < sizeof systems / sizeof systems[0] && !out->system; i++)
        if (variable(systems[i].marker))
            out->system = (enum ci_system)i;
    if (!out->system)
        return;
    const struct variables *v = &systems[out->system];
    const char *job = variable(v->job);
    take_commit(variable(v->checkout), out->checkout);
    take_commit(variable(v->head), out->head);
    const char *author = variable(v->author); /* a name, or "NAME <MAIL>" */
    size_t n = author ? strcspn(author, "<") : 0;
    while (n > 0 && author[n - 1] == ' ')
        n--;
    if (n < sizeof out->author)
        snprintf(out->author, sizeof out->author, "%.*s", (int)n, author ? author : "");
    if (!variable(v->tag)) /* several systems call a tag a branch */
        take_branch(first_of(v->branch), out->branch, sizeof out->branch);
    take_branch(variable(v->base), out->base, sizeof out->base);
    take_change(first_of(v->change), out->change, sizeof out->change);
    if (job)
        snprintf(out->job, sizeof out->job, "%s", job);
    name_owner(variable(v->fork), out);
    if (v->further)
        v->further(out);
    if (!out->head[0])
        memcpy(out->head, out->checkout, sizeof out->head);
}
