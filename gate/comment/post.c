/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/comment/comment.h"

#include <stdio.h>
#include <string.h>

#include "gate/base/clock.h"
#include "gate/base/hex.h"
#include "gate/base/json.h"
#include "gate/base/term.h"

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

/* ---- one question to the service ---- */

enum gate_status comment_ask(const struct remote *remote, const char *method, const char *path,
                             const cJSON *body, struct http_answer *answer, cJSON **out,
                             struct gate_error *err)
{
    struct buf text;
    cJSON *said = NULL;
    buf_init(&text, ANSWER_MAX);
    if (body)
        json_write(body, false, &text);
    const struct http_request request = {.method = method,
                                         .path = path,
                                         .type = body ? "application/json" : NULL,
                                         .body = text.data,
                                         .len = text.len,
                                         .timeout_s = TIMEOUT_S};
    answer->status = 0;
    enum gate_status status = text.failed
                                  ? gate_fail(err, GATE_INTERNAL, "out of memory for a comment")
                                  : http_client_ask(remote, &request, answer, err);
    bool good = answer->status == 200 || answer->status == 201, answered = !status;
    if (answered)
        status = json_parse("the service's answer", answer->body.data ? answer->body.data : "",
                            answer->body.len, GATE_IO, &said, good ? err : NULL);
    if (answered && !good) {
        const char *message = json_string(said, "message", json_string(said, "error", ""));
        buf_clear(&text);
        term_puts(message, &text);
        status =
            gate_fail(err, GATE_IO, "%s %.300s was refused with %d%s%.200s%s", method, path,
                      answer->status, text.len ? ": " : "", text.len ? text.data : "",
                      answer->status == 401   ? "; the token is not valid"
                      : answer->status == 403 ? "; the token may not do that"
                      : answer->status == 404 ? "; it does not exist, or the token may not read it"
                                              : "");
    }
    if (status) {
        cJSON_Delete(said);
        said = NULL;
    }
    *out = said;
    buf_release(&text);
    return status;
}

/* ---- whose comments count ---- */

/* The token of a GitHub job is an application's, which has no user: then any application's comment
 * with the marker in its first line is taken for ours. */
static enum gate_status read_user(struct posting *p, struct gate_error *err)
{
    cJSON *user = NULL;
    enum gate_status status =
        comment_ask(&p->t->remote, "GET", "/user", NULL, &p->answer, &user, err);
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

static enum gate_status find_comment(struct posting *p, struct gate_error *err)
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
        status = comment_ask(&p->t->remote, "GET", path, NULL, &p->answer, &comments, err);
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
    enum gate_status status = comment_ask(&p->t->remote,
                                          !update ? "POST"
                                          : hub   ? "PATCH"
                                                  : "PUT",
                                          path, body, &p->answer, &said, err);
    snprintf(p->url, 300, "%s", json_string(said, "html_url", ""));
    cJSON_Delete(said);
    cJSON_Delete(body);
    return status;
}

/* Is `head`, where it is known, still the change's newest commit? The job may be older than another
 * that has written. */
static enum gate_status check_head(struct posting *p, struct gate_error *err)
{
    const struct comment_target *t = p->t;
    char path[400];
    cJSON *change = NULL;
    bool hub = t->service == COMMENT_GITHUB;
    if (!t->head[0])
        return GATE_OK;
    snprintf(path, sizeof path, hub ? "/repos/%s/pulls/%s" : "/projects/%s/merge_requests/%s",
             t->project, t->change);
    enum gate_status status =
        comment_ask(&p->t->remote, "GET", path, NULL, &p->answer, &change, err);
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

enum gate_status comment_post(struct comment_target *t, const char *marker, const char *body,
                              double patience_s, bool *created, char url[300],
                              struct gate_error *err)
{
    struct posting p = {.t = t, .marker = marker, .body = body, .url = url};
    struct backoff backoff = backoff_start(patience_s);
    char version[32];
    enum gate_status status = GATE_OK;
    TRY(http_client_version(version, err));
    buf_init(&p.answer.body, ANSWER_MAX);
    for (unsigned n = 1;; n++) {
        /* From the beginning each time: a comment whose receipt was lost is found, and not written
         * twice. */
        status = comment_target_find(p.t, &p.answer, err);
        if (!status)
            status = read_user(&p, err);
        if (!status)
            status = find_comment(&p, err);
        if (!status)
            status = check_head(&p, err);
        if (!status)
            status = write_comment(&p, err);
        const struct http_answer *said = &p.answer;
        bool may_pass = said->status == 0 || said->status == 429 || said->status >= 500 ||
                        (said->status == 403 && said->retry_after > 0);
        if (status != GATE_IO || !may_pass)
            break;
        double delay = backoff_delay(&backoff, n, (double)p.answer.retry_after);
        if (delay < 0)
            break;
        backoff_sleep(delay);
    }
    *created = p.comment == 0;
    buf_release(&p.answer.body);
    return status;
}
