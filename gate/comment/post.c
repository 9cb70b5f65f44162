/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/comment/post.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/backoff.h"
#include "gate/base/json.h"
#include "gate/comment/ask.h"

#define PER_PAGE 100
#define PAGES_MAX 50

struct posting {
    struct comment_target *t;
    const char *marker, *body;
    struct http_client *client;
    struct http_answer answer;
    char login[100]; /* GitHub: whose the token is; "": an application's */
    int64_t user;    /* GitLab: the same */
    int64_t comment; /* 0: there is none yet */
    char *url;
};

size_t comment_max(enum comment_service service)
{
    return service == COMMENT_GITHUB ? 65000 : 999000;
}

bool comment_marker(const char *name, char *out, size_t size)
{
    size_t n = strlen(name);
    if (!n || n > COMMENT_NAME_MAX ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != n ||
        strstr(name, "--")) /* would end an HTML comment */
        return false;
    return snprintf(out, size, "<!-- kernel-gate: %s -->", name) < (int)size;
}

/* ---- whose comments count ---- */

/* The token of a GitHub job is an application's, which has no user: then any application's comment
 * with the marker in its first line is taken for ours. */
static enum gate_status read_user(struct posting *p, struct gate_error *err)
{
    cJSON *user = NULL;
    enum gate_status status = comment_ask(p->client, "GET", "/user", NULL, &p->answer, &user, err);
    snprintf(p->login, sizeof p->login, "%s", json_string(user, "login", ""));
    p->user = json_integer(user, "id", 0);
    cJSON_Delete(user);
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

static enum gate_status find(struct posting *p, struct gate_error *err)
{
    char path[500], rest[100];
    enum gate_status status = GATE_OK;
    bool more = true;
    p->comment = 0;
    for (int page = 1; more && page <= PAGES_MAX && !status && !p->comment; page++) {
        cJSON *comments = NULL;
        const cJSON *comment;
        snprintf(rest, sizeof rest, "?per_page=%d&page=%d%s", PER_PAGE, page,
                 p->t->service == COMMENT_GITLAB ? "&sort=asc&order_by=created_at" : "");
        put_path(p, false, rest, path, sizeof path);
        status = comment_ask(p->client, "GET", path, NULL, &p->answer, &comments, err);
        cJSON_ArrayForEach (comment, comments)
            if (!p->comment && is_ours(p, comment))
                p->comment = json_integer(comment, "id", 0);
        more = cJSON_GetArraySize(comments) == PER_PAGE;
        cJSON_Delete(comments);
    }
    return status;
}

static enum gate_status write_comment(struct posting *p, struct gate_error *err)
{
    char path[500];
    cJSON *body = cJSON_CreateObject(), *said = NULL;
    bool update = p->comment > 0, hub = p->t->service == COMMENT_GITHUB;
    cJSON_AddStringToObject(body, "body", p->body);
    put_path(p, update, "", path, sizeof path);
    enum gate_status status = comment_ask(p->client,
                                          !update ? "POST"
                                          : hub   ? "PATCH"
                                                  : "PUT",
                                          path, body, &p->answer, &said, err);
    snprintf(p->url, 300, "%s", json_string(said, "html_url", ""));
    cJSON_Delete(said);
    cJSON_Delete(body);
    return status;
}

/* From the beginning each time: a comment whose receipt was lost is found, and not written twice.
 */
static enum gate_status post_once(struct posting *p, struct gate_error *err)
{
    enum gate_status status = comment_target_find(p->t, p->client, &p->answer, err);
    if (!status)
        status = read_user(p, err);
    if (!status)
        status = find(p, err);
    if (!status)
        status = comment_target_check(p->t, p->client, &p->answer, err);
    return status ? status : write_comment(p, err);
}

enum gate_status comment_post(struct comment_target *t, const char *marker, const char *body,
                              double patience_s, bool *created, char url[300],
                              struct gate_error *err)
{
    struct posting p = {.t = t, .marker = marker, .body = body, .url = url};
    struct backoff backoff = backoff_start(patience_s);
    enum gate_status status = http_client_open(&t->remote, &p.client, err);
    if (status)
        return status;
    http_answer_init(&p.answer, COMMENT_ANSWER_MAX);
    for (unsigned n = 1;; n++) {
        status = post_once(&p, err);
        if (status != GATE_IO || !comment_may_pass(&p.answer))
            break;
        double delay = backoff_delay(&backoff, n, (double)p.answer.retry_after);
        if (delay < 0)
            break;
        backoff_sleep(delay);
    }
    *created = p.comment == 0;
    http_answer_release(&p.answer);
    http_client_close(p.client);
    return status;
}
