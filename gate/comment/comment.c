/* SPDX-License-Identifier: Apache-2.0 */
/* comment.c: see comment.h. */
#include "gate/comment/comment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/utf8.h"
#include "gate/base/json.h"
#include "gate/base/term.h"
#include "gate/ci/ci.h"
#include "gate/report/report_run.h"

#define ANSWER_MAX ((size_t)64 << 20) /* 100 comments of GitHub's longest, escaped */
#define TIMEOUT_S 60
#define PER_PAGE 100
#define PAGES_MAX 50

struct posting {
    struct comment_target *t;
    const char *marker, *body;
    struct http_answer answer;
    char login[100]; /* GitHub: whose the token is; "": an application's */
    int64_t user;    /* GitLab: the same */
    int64_t comment; /* 0: there is none yet */
    char *url;
};

/* ---- what the job is about ---- */

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

static enum gate_status read_github(const struct ci_job *job, struct comment_target *out,
                                    struct gate_error *err)
{
    RELEASED_BY(json_delete_at) cJSON *event = NULL;
    TRY(ci_github_event(&event, err));
    snprintf(out->change, sizeof out->change, "%s", job->change);
    snprintf(out->head, sizeof out->head, "%s", job->change[0] ? job->head : "");
    if (!out->change[0]) {
        /* The run of another workflow, which may have been a fork's: then the event has no number
         * of a pull request, and where the run's code came from is what there is to look for. */
        const cJSON *run = json_member(event, "workflow_run");
        const char *head = json_string(run, "head_sha", "");
        snprintf(out->head, sizeof out->head, "%s", hex_is(head, 40) ? head : "");
        snprintf(out->branch, sizeof out->branch, "%s", json_string(run, "head_branch", ""));
        snprintf(out->fork, sizeof out->fork, "%s",
                 json_string(json_member(run, "head_repository"), "full_name", ""));
    }
    if (!out->change[0] && !out->head[0])
        return gate_fail(err, GATE_USAGE,
                         "the event of this job is about no pull request: give --change NUMBER");
    return GATE_OK;
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

/* ---- one question to the service ---- */

/*
 * Sends `body` (JSON; NULL: none). *out is the answer's JSON, the caller's. GATE_IO: it was
 * refused, with the service's own words, or there is no answer; answer->status is 0 then.
 */
static enum gate_status ask(const struct remote *remote, const char *method, const char *path,
                            const cJSON *body, struct http_answer *answer, cJSON **out,
                            struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(ANSWER_MAX);
    *out = NULL;
    answer->status = 0;
    if (body)
        json_write(body, false, &text);
    if (text.failed)
        return gate_fail(err, GATE_INTERNAL, "out of memory for a comment");
    const struct http_request request = {.method = method,
                                         .path = path,
                                         .type = body ? "application/json" : NULL,
                                         .body = text.data,
                                         .len = text.len,
                                         .timeout_s = TIMEOUT_S};
    TRY(http_client_ask(remote, &request, answer, err));
    bool good = answer->status == 200 || answer->status == 201;
    cJSON *said = NULL;
    enum gate_status status = json_parse("the service's answer", answer->body.data,
                                         answer->body.len, GATE_IO, &said, good ? err : NULL);
    if (good) {
        *out = said;
        return status;
    }
    buf_clear(&text);
    term_puts(json_string(said, "message", json_string(said, "error", "")), &text);
    cJSON_Delete(said);
    return gate_fail(err, GATE_IO, "%s %.300s was refused with %d%s%.200s%s", method, path,
                     answer->status, text.len ? ": " : "", text.data,
                     answer->status == 401   ? "; the token is not valid"
                     : answer->status == 403 ? "; the token may not do that"
                     : answer->status == 404 ? "; it does not exist, or the token may not read it"
                                             : "");
}

/* ---- the change ---- */

/* Looks up the number of the change, where only the fork's branch and its commit are known: the
 * open pull request that has that commit as its head. GATE_NO_VERDICT: there is none, it has moved
 * on. */
static enum gate_status find_change(struct comment_target *t, struct http_answer *answer,
                                    struct gate_error *err)
{
    char path[700], branch[400] = "";
    size_t n = 0;
    RELEASED_BY(json_delete_at) cJSON *pulls = NULL;
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
    TRY(ask(&t->remote, "GET", path, NULL, answer, &pulls, err));
    cJSON_ArrayForEach (pull, pulls) {
        const cJSON *head = json_member(pull, "head");
        if (!t->change[0] && !strcmp(json_string(head, "sha", ""), t->head) &&
            !strcmp(json_string(head, "ref", ""), t->branch) &&
            !strcmp(json_string(json_member(head, "repo"), "full_name", ""), t->fork))
            snprintf(t->change, sizeof t->change, "%lld",
                     (long long)json_integer(pull, "number", 0));
    }
    if (!is_number(t->change))
        return gate_fail(err, GATE_NO_VERDICT,
                         "no open pull request has commit %.12s of %s as its head: it has moved "
                         "on, or is closed",
                         t->head, t->fork);
    return GATE_OK;
}

/* ---- whose comments count ---- */

/* The token of a GitHub job is an application's, which has no user: then any application's comment
 * with the marker in its first line is taken for ours. */
static enum gate_status read_user(struct posting *p, struct gate_error *err)
{
    RELEASED_BY(json_delete_at) cJSON *user = NULL;
    enum gate_status status = ask(&p->t->remote, "GET", "/user", NULL, &p->answer, &user, err);
    snprintf(p->login, sizeof p->login, "%s", json_string(user, "login", ""));
    p->user = json_integer(user, "id", 0);
    if (p->t->service == COMMENT_GITHUB && p->answer.status == 403 && !p->answer.retry_after)
        return GATE_OK;
    return status;
}

static bool is_ours(const struct posting *p, const cJSON *comment)
{
    const char *body = json_string(comment, "body", "");
    size_t n = strlen(p->marker);
    if (strncmp(body, p->marker, n) != 0 || !strchr("\r\n", body[n]))
        return false;
    if (p->t->service == COMMENT_GITLAB)
        return p->user && json_integer(json_member(comment, "author"), "id", -1) == p->user;
    const cJSON *author = json_member(comment, "user");
    return p->login[0] ? !strcmp(json_string(author, "login", ""), p->login)
                       : !strcmp(json_string(author, "type", ""), "Bot");
}

/* ---- find and write ---- */

/* The address of the change's comments, or of one of them. */
static void put_path(const struct posting *p, bool one, const char *rest, char *out, size_t size)
{
    char id[32] = "";
    const struct comment_target *t = p->t;
    if (one)
        snprintf(id, sizeof id, "/%lld", (long long)p->comment);
    if (t->service == COMMENT_GITLAB)
        snprintf(out, size, "/projects/%s/merge_requests/%s/notes%s%s", t->project, t->change, id,
                 rest);
    else if (one)
        snprintf(out, size, "/repos/%s/issues/comments%s", t->project, id);
    else
        snprintf(out, size, "/repos/%s/issues/%s/comments%s", t->project, t->change, rest);
}

static enum gate_status find_comment(struct posting *p, struct gate_error *err)
{
    char path[500], rest[100];
    bool more = true;
    p->comment = 0;
    for (int page = 1; more && page <= PAGES_MAX && !p->comment; page++) {
        RELEASED_BY(json_delete_at) cJSON *comments = NULL;
        const cJSON *comment;
        snprintf(rest, sizeof rest, "?per_page=%d&page=%d%s", PER_PAGE, page,
                 p->t->service == COMMENT_GITLAB ? "&sort=asc&order_by=created_at" : "");
        put_path(p, false, rest, path, sizeof path);
        TRY(ask(&p->t->remote, "GET", path, NULL, &p->answer, &comments, err));
        cJSON_ArrayForEach (comment, comments)
            if (!p->comment && is_ours(p, comment))
                p->comment = json_integer(comment, "id", 0);
        more = cJSON_GetArraySize(comments) == PER_PAGE;
    }
    return GATE_OK;
}

static enum gate_status write_comment(struct posting *p, struct gate_error *err)
{
    char path[500];
    RELEASED_BY(json_delete_at) cJSON *body = cJSON_CreateObject();
    RELEASED_BY(json_delete_at) cJSON *said = NULL;
    bool update = p->comment > 0, hub = p->t->service == COMMENT_GITHUB;
    cJSON_AddStringToObject(body, "body", p->body);
    put_path(p, update, "", path, sizeof path);
    enum gate_status status = ask(&p->t->remote,
                                  !update ? "POST"
                                  : hub   ? "PATCH"
                                          : "PUT",
                                  path, body, &p->answer, &said, err);
    snprintf(p->url, 300, "%s", json_string(said, "html_url", ""));
    return status;
}

/* Is `head`, where it is known, still the change's newest commit? The job may be older than another
 * that has written. */
static enum gate_status check_head(struct posting *p, struct gate_error *err)
{
    const struct comment_target *t = p->t;
    char path[400];
    RELEASED_BY(json_delete_at) cJSON *change = NULL;
    bool hub = t->service == COMMENT_GITHUB;
    if (!t->head[0])
        return GATE_OK;
    snprintf(path, sizeof path, hub ? "/repos/%s/pulls/%s" : "/projects/%s/merge_requests/%s",
             t->project, t->change);
    TRY(ask(&p->t->remote, "GET", path, NULL, &p->answer, &change, err));
    const char *head = json_string(hub ? json_member(change, "head") : change, "sha", "");
    if (!hex_is(head, 40))
        return gate_fail(err, GATE_IO, "GET %s does not say the head of the change", path);
    if (strcmp(head, t->head) != 0)
        return gate_fail(err, GATE_NO_VERDICT,
                         "the report is of commit %.12s, but the head of %s %s is now %.12s: "
                         "nothing was written",
                         t->head, t->project, t->change, head);
    return GATE_OK;
}

/* From the beginning each time: a comment whose receipt was lost is found, and not written twice.
 */
static enum gate_status post(struct posting *p, struct gate_error *err)
{
    TRY(find_change(p->t, &p->answer, err));
    TRY(read_user(p, err));
    TRY(find_comment(p, err));
    TRY(check_head(p, err));
    return write_comment(p, err);
}

enum gate_status comment_post(struct comment_target *t, const char *marker, const char *body,
                              double patience_s, bool *created, char url[300],
                              struct gate_error *err)
{
    struct posting p = {.t = t, .marker = marker, .body = body, .url = url};
    const double deadline_s = clock_s() + patience_s;
    enum gate_status status = GATE_OK;
    buf_init(&p.answer.body, ANSWER_MAX);
    for (unsigned n = 1;; n++) {
        status = post(&p, err);
        const struct http_answer *said = &p.answer;
        bool may_pass = said->status == 0 || said->status == 429 || said->status >= 500 ||
                        (said->status == 403 && said->retry_after > 0);
        if (status != GATE_IO || !may_pass)
            break;
        double delay = backoff_delay(deadline_s, n, (double)p.answer.retry_after);
        if (delay < 0)
            break;
        backoff_sleep(delay);
    }
    *created = p.comment == 0;
    buf_release(&p.answer.body);
    return status;
}

#define GITHUB_MAX 10
#define GITLAB_MAX 50

static bool is_error(const struct document_case *c)
{
    return c->verdict == VERDICT_REGRESSION || c->verdict == VERDICT_WRONG;
}

/* ---- annotations of GitHub ---- */

/* A command is one line. */
static void put_value(const char *text, struct buf *out)
{
    for (; *text; text++) {
        if (*text == '%' || (unsigned char)*text < 0x20)
            buf_printf(out, "%%%02X", (unsigned char)*text);
        else
            buf_putc(out, *text);
    }
}

static void put_commands(const struct document *d, bool errors, struct buf *out)
{
    size_t n = 0;
    size_t last = out->len;
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_case *c = &d->cases[i];
        bool good = c->verdict == VERDICT_PASS || c->verdict == VERDICT_IMPROVEMENT;
        if (good || is_error(c) != errors || ++n > GITHUB_MAX)
            continue;
        buf_printf(out, "::%s title=Kernel Gate%%3A %s::", errors ? "error" : "warning",
                   verdict_name(c->verdict));
        put_value(c->id, out);
        buf_puts(out, ": ");
        put_value(c->reason, out);
        last = out->len;
        buf_putc(out, '\n');
    }
    if (n > GITHUB_MAX && !out->failed) {
        out->data[out->len = last] = '\0';
        buf_printf(out, " (and %zu more cases)\n", n - GITHUB_MAX);
    }
}

void annotations_github(const struct document *d, struct buf *out)
{
    put_commands(d, true, out);
    put_commands(d, false, out);
}

void annotations_github_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "::error title=Kernel Gate%%3A ended early (exit code %d)::", exit_code);
    put_value(message, out);
    buf_putc(out, '\n');
}

/* ---- annotations of GitLab ---- */

/* Behind `before` others; forgets the address. */
static void put_link(size_t before, const char *verdict, const char *id, struct buf *url,
                     struct buf *out)
{
    buf_printf(out, "%s\n    {\"external_link\": {\"label\": \"", before ? "," : "");
    json_escape(verdict, out);
    json_escape(id, out);
    buf_puts(out, "\", \"url\": \"");
    json_escape(url->data, out);
    buf_puts(out, "\"}}");
    buf_clear(url);
}

void annotations_gitlab(const struct document *documents, size_t n, const char *link,
                        struct buf *out)
{
    char label[80];
    size_t links = 0;
    RELEASED_BY(buf_release) struct buf url = buf_of(4096);
    buf_puts(out, "{\n  \"Kernel Gate\": [");
    for (const struct document *d = documents; d < documents + n; d++) {
        snprintf(label, sizeof label, "run %.8s: ", d->uuid);
        report_link_run(link, d->uuid, &url);
        put_link(links++, label, verdict_name(d->verdict), &url, out);
        for (size_t i = 0; i < d->n_cases && links < GITLAB_MAX; i++) {
            const struct document_case *c = &d->cases[i];
            if (!is_error(c))
                continue;
            snprintf(label, sizeof label, "%s: ", verdict_name(c->verdict));
            report_link_case(link, c->id, d->device.model, &url);
            put_link(links++, label, c->id, &url, out);
        }
    }
    buf_puts(out, "\n  ]\n}\n");
}
