/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/comment/target.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/hex.h"
#include "gate/base/json.h"
#include "gate/ci/ci.h"
#include "gate/comment/ask.h"

static bool is_number(const char *text)
{
    size_t n = strlen(text);
    return n && n < 16 && text[0] != '0' && strspn(text, "0123456789") == n;
}

/* Letters, digits and a few signs, so that it is a part of an address as it is. */
static bool is_name(const char *text)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("._-", *text))
            return false;
    return true;
}

/* "OWNER/NAME", or with more folders. */
static bool is_path(const char *text)
{
    char part[256];
    size_t n_parts = 0;
    for (const char *at = text;; n_parts++) {
        size_t n = strcspn(at, "/");
        if (!n || n >= sizeof part)
            return false;
        snprintf(part, sizeof part, "%.*s", (int)n, at);
        if (!is_name(part) || !strcmp(part, ".") || !strcmp(part, ".."))
            return false;
        if (!at[n])
            return n_parts > 0;
        at += n + 1;
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

static enum gate_status read_change(const char *text, struct comment_target *out,
                                    struct gate_error *err)
{
    if (!is_number(text))
        return gate_fail(err, GATE_USAGE, "--change '%.40s' is not the number of a change", text);
    snprintf(out->change, sizeof out->change, "%s", text);
    return GATE_OK;
}

/* ---- what the job is about ---- */

/* The run of another workflow, which may have been a fork's: then the event has no number of a pull
 * request, and where the run's code came from is what there is to look for. */
static void take_workflow_run(const cJSON *run, struct comment_target *out)
{
    const char *head = json_string(run, "head_sha", "");
    snprintf(out->head, sizeof out->head, "%s", hex_is(head, 40) ? head : "");
    snprintf(out->branch, sizeof out->branch, "%s", json_string(run, "head_branch", ""));
    snprintf(out->fork, sizeof out->fork, "%s",
             json_string(json_member(run, "head_repository"), "full_name", ""));
}

static enum gate_status read_github(struct comment_target *out, struct gate_error *err)
{
    cJSON *event = NULL;
    struct ci_job job;
    enum gate_status status = ci_github_event(&event, err);
    ci_read(&job);
    snprintf(out->change, sizeof out->change, "%s", job.change);
    snprintf(out->head, sizeof out->head, "%s", job.change[0] ? job.head : "");
    if (!status && !out->change[0])
        take_workflow_run(json_member(event, "workflow_run"), out);
    cJSON_Delete(event);
    if (!status && !out->change[0] && !out->head[0])
        status = gate_fail(err, GATE_USAGE,
                           "the event of this job is about no pull request: give --change NUMBER");
    return status;
}

static enum gate_status read_gitlab(struct comment_target *out, struct gate_error *err)
{
    struct ci_job job;
    ci_read(&job);
    if (job.system != CI_GITLAB || !job.change[0])
        return gate_fail(err, GATE_USAGE,
                         "this job is about no merge request: give --change NUMBER");
    snprintf(out->change, sizeof out->change, "%s", job.change);
    snprintf(out->head, sizeof out->head, "%s", job.head);
    return GATE_OK;
}

static enum gate_status read_service(const char *name, struct comment_target *out,
                                     struct gate_error *err)
{
    struct ci_job job;
    ci_read(&job);
    if (name ? !strcmp(name, "github") : job.system == CI_GITHUB)
        out->service = COMMENT_GITHUB;
    else if (name ? !strcmp(name, "gitlab") : job.system == CI_GITLAB)
        out->service = COMMENT_GITLAB;
    else
        return gate_fail(
            err, GATE_USAGE,
            "this is not a job of GitHub or GitLab: give --service github or --service gitlab");
    return GATE_OK;
}

enum gate_status comment_target_read(const struct target_options *o, struct comment_target *out,
                                     struct gate_error *err)
{
    static const char *const github[] = {"GATE_COMMENT_TOKEN", "GITHUB_TOKEN", NULL},
                             *const gitlab[] = {"GATE_COMMENT_TOKEN", "GITLAB_TOKEN", NULL};
    *out = (struct comment_target){0};
    enum gate_status status = read_service(o->service, out, err);
    if (status)
        return status;
    bool hub = out->service == COMMENT_GITHUB;
    const char *api = either(o->api, hub ? "GITHUB_API_URL" : "CI_API_V4_URL");
    status =
        read_project(either(o->project, hub ? "GITHUB_REPOSITORY" : "CI_PROJECT_ID"), out, err);
    if (!status && o->change)
        status = read_change(o->change, out, err);
    else if (!status)
        status = hub ? read_github(out, err) : read_gitlab(out, err);
    if (!status)
        status = remote_take(api   ? api
                             : hub ? "https://api.github.com"
                                   : "https://gitlab.com/api/v4",
                             &o->remote, hub ? github : gitlab, &out->remote, err);
    if (!status && !out->remote.token[0])
        status = gate_fail(err, GATE_USAGE, "no token: give --token-file FILE or set %s",
                           hub ? "GATE_COMMENT_TOKEN or GITHUB_TOKEN"
                               : "GATE_COMMENT_TOKEN or GITLAB_TOKEN, with the scope api");
    return status;
}

/* ---- a fork's pull request ---- */

static bool encode(const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (; *text && n + 4 < size; text++) {
        bool plain = isalnum((unsigned char)*text) || strchr("._-", *text);
        n += (size_t)snprintf(out + n, size - n, plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
    return !*text;
}

static bool is_meant(const struct comment_target *t, const cJSON *pull)
{
    const cJSON *head = json_member(pull, "head");
    return !strcmp(json_string(head, "sha", ""), t->head) &&
           !strcmp(json_string(head, "ref", ""), t->branch) &&
           !strcmp(json_string(json_member(head, "repo"), "full_name", ""), t->fork);
}

enum gate_status comment_target_find(struct comment_target *t, struct http_client *client,
                                     struct http_answer *answer, struct gate_error *err)
{
    char path[700], branch[400];
    cJSON *pulls = NULL;
    const cJSON *pull;
    if (t->change[0])
        return GATE_OK;
    if (!is_path(t->fork) || !encode(t->branch, branch, sizeof branch))
        return gate_fail(err, GATE_USAGE,
                         "the event of this job names no repository and branch that its run was "
                         "of: give --change NUMBER");
    snprintf(path, sizeof path, "/repos/%s/pulls?state=open&per_page=100&head=%.*s:%s", t->project,
             (int)strcspn(t->fork, "/"), t->fork, branch);
    enum gate_status status = comment_ask(client, "GET", path, NULL, answer, &pulls, err);
    cJSON_ArrayForEach (pull, pulls)
        if (is_meant(t, pull) && !t->change[0])
            snprintf(t->change, sizeof t->change, "%lld",
                     (long long)json_integer(pull, "number", 0));
    cJSON_Delete(pulls);
    if (!status && !is_number(t->change))
        status = gate_fail(err, GATE_NO_VERDICT,
                           "no open pull request has commit %.12s of %s as its head: it has moved "
                           "on, or is closed",
                           t->head, t->fork);
    return status;
}

/* ---- is it still the newest commit? ---- */

enum gate_status comment_target_check(const struct comment_target *t, struct http_client *client,
                                      struct http_answer *answer, struct gate_error *err)
{
    char path[400];
    cJSON *change = NULL;
    bool hub = t->service == COMMENT_GITHUB;
    if (!t->head[0])
        return GATE_OK;
    snprintf(path, sizeof path, hub ? "/repos/%s/pulls/%s" : "/projects/%s/merge_requests/%s",
             t->project, t->change);
    enum gate_status status = comment_ask(client, "GET", path, NULL, answer, &change, err);
    const char *head = json_string(hub ? json_member(change, "head") : change, "sha", "");
    if (!status && !hex_is(head, 40))
        status = gate_fail(err, GATE_IO, "GET %s does not say the head of the change", path);
    else if (!status && strcmp(head, t->head) != 0)
        status = gate_fail(err, GATE_NO_VERDICT,
                           "the report is of commit %.12s, but the head of %s %s is now %.12s: "
                           "nothing was written",
                           t->head, t->project, t->change, head);
    cJSON_Delete(change);
    return status;
}
