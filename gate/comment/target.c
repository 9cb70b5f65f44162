/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/comment/comment.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/hex.h"
#include "gate/base/json.h"
#include "gate/ci/ci.h"

static bool is_number(const char *text)
{
    size_t n = strlen(text);
    return n && n < 16 && text[0] != '0' && strspn(text, "0123456789") == n;
}

/* "OWNER/NAME", or with more folders: a part of an address as it is. */
static bool is_path(const char *text)
{
    for (size_t n_parts = 0;; n_parts++) {
        size_t n = strspn(text, COMMENT_LETTERS), dots = strspn(text, ".");
        if (!n || n > 255 || (n < 3 && dots == n) || (text[n] && text[n] != '/'))
            return false;
        if (!text[n])
            return n_parts > 0;
        text += n + 1;
    }
}

static const char *either(const char *option, const char *variable)
{
    const char *value = option ? option : getenv(variable);
    return value && value[0] ? value : NULL;
}

static enum gate_status read_project(const char *text, struct comment_target *out,
                                     struct gate_error *err)
{
    size_t n = 0;
    if (!text)
        return gate_fail(err, GATE_USAGE, "no project is known: give --project OWNER/NAME%s",
                         out->service == COMMENT_GITLAB ? " or its number" : "");
    bool number = out->service == COMMENT_GITLAB && is_number(text);
    if (strlen(text) > 200 || (!number && !is_path(text)))
        return gate_fail(err, GATE_USAGE, "--project '%.200s' is not OWNER/NAME", text);
    for (const char *at = text; *at && n + 4 < sizeof out->project; at++) {
        bool escaped = *at == '/' && out->service == COMMENT_GITLAB;
        n += (size_t)snprintf(out->project + n, sizeof out->project - n, escaped ? "%%2F" : "%c",
                              *at);
    }
    return GATE_OK;
}

/* ---- what the job is about ---- */

static enum gate_status read_github(const struct ci_job *job, struct comment_target *out,
                                    struct gate_error *err)
{
    cJSON *event = NULL;
    enum gate_status status = ci_github_event(&event, err);
    snprintf(out->change, sizeof out->change, "%s", job->change);
    snprintf(out->head, sizeof out->head, "%s", job->change[0] ? job->head : "");
    if (!status && !out->change[0]) {
        /* The run of another workflow, which may have been a fork's: then the event has no number
         * of a pull request, and where the run's code came from is what there is to look for. */
        const cJSON *run = json_member(event, "workflow_run");
        const char *head = json_string(run, "head_sha", "");
        snprintf(out->head, sizeof out->head, "%s", hex_is(head, 40) ? head : "");
        snprintf(out->branch, sizeof out->branch, "%s", json_string(run, "head_branch", ""));
        snprintf(out->fork, sizeof out->fork, "%s",
                 json_string(json_member(run, "head_repository"), "full_name", ""));
    }
    cJSON_Delete(event);
    if (!status && !out->change[0] && !out->head[0])
        status = gate_fail(err, GATE_USAGE,
                           "the event of this job is about no pull request: give --change NUMBER");
    return status;
}

enum gate_status comment_target_read(const struct target_options *o, struct comment_target *out,
                                     struct gate_error *err)
{
    static const char *const github[] = {"GATE_COMMENT_TOKEN", "GITHUB_TOKEN", NULL},
                             *const gitlab[] = {"GATE_COMMENT_TOKEN", "GITLAB_TOKEN", NULL};
    struct ci_job job;
    ci_read(&job);
    bool hub = o->service ? !strcmp(o->service, "github") : job.system == CI_GITHUB;
    if (!hub && !(o->service ? !strcmp(o->service, "gitlab") : job.system == CI_GITLAB))
        return gate_fail(
            err, GATE_USAGE,
            "this is not a job of GitHub or GitLab: give --service github or --service gitlab");
    *out = (struct comment_target){.service = hub ? COMMENT_GITHUB : COMMENT_GITLAB};
    const char *api = either(o->api, hub ? "GITHUB_API_URL" : "CI_API_V4_URL");
    if (!api)
        api = hub ? "https://api.github.com" : "https://gitlab.com/api/v4";
    TRY(read_project(either(o->project, hub ? "GITHUB_REPOSITORY" : "CI_PROJECT_ID"), out, err));
    if (o->change && !is_number(o->change))
        return gate_fail(err, GATE_USAGE, "--change '%.40s' is not the number of a change",
                         o->change);
    if (o->change)
        snprintf(out->change, sizeof out->change, "%s", o->change);
    else if (hub)
        TRY(read_github(&job, out, err));
    else if (job.system != CI_GITLAB || !job.change[0])
        return gate_fail(err, GATE_USAGE,
                         "this job is about no merge request: give --change NUMBER");
    if (!hub && !o->change) {
        snprintf(out->change, sizeof out->change, "%s", job.change);
        snprintf(out->head, sizeof out->head, "%s", job.head);
    }
    TRY(remote_take(api, &o->remote, hub ? github : gitlab, &out->remote, err));
    if (!out->remote.token[0])
        return gate_fail(err, GATE_USAGE, "no token: give --token-file FILE or set %s",
                         hub ? "GATE_COMMENT_TOKEN or GITHUB_TOKEN"
                             : "GATE_COMMENT_TOKEN or GITLAB_TOKEN, with the scope api");
    return GATE_OK;
}

/* ---- a fork's pull request ---- */

enum gate_status comment_target_find(struct comment_target *t, struct http_answer *answer,
                                     struct gate_error *err)
{
    char path[700], branch[400] = "";
    size_t n = 0;
    cJSON *pulls = NULL;
    const cJSON *pull;
    if (t->change[0])
        return GATE_OK;
    const char *at = t->branch;
    for (; *at && n + 4 < sizeof branch; at++)
        n += (size_t)snprintf(branch + n, sizeof branch - n,
                              strchr(COMMENT_LETTERS, *at) ? "%c" : "%%%02X", (unsigned char)*at);
    if (!is_path(t->fork) || *at)
        return gate_fail(err, GATE_USAGE,
                         "the event of this job names no repository and branch that its run was "
                         "of: give --change NUMBER");
    snprintf(path, sizeof path, "/repos/%s/pulls?state=open&per_page=100&head=%.*s:%s", t->project,
             (int)strcspn(t->fork, "/"), t->fork, branch);
    enum gate_status status = comment_ask(&t->remote, "GET", path, NULL, answer, &pulls, err);
    cJSON_ArrayForEach (pull, pulls) {
        const cJSON *head = json_member(pull, "head");
        if (!t->change[0] && !strcmp(json_string(head, "sha", ""), t->head) &&
            !strcmp(json_string(head, "ref", ""), t->branch) &&
            !strcmp(json_string(json_member(head, "repo"), "full_name", ""), t->fork))
            snprintf(t->change, sizeof t->change, "%lld",
                     (long long)json_integer(pull, "number", 0));
    }
    cJSON_Delete(pulls);
    if (!status && !is_number(t->change))
        status = gate_fail(err, GATE_NO_VERDICT,
                           "no open pull request has commit %.12s of %s as its head: it has moved "
                           "on, or is closed",
                           t->head, t->fork);
    return status;
}
