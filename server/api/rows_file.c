/* SPDX-License-Identifier: Apache-2.0 */
/* rows_file.c: what a file of queries says, and the parameters that it may have; see rows.h. */
#include "server/api/rows.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/embed.h"
#include "server/api/api_call.h"

const char *const rows_type_names[ROWS_TYPES] = {"text",    "integer", "number", "boolean",
                                                 "verdict", "role",    "json"};

#define MAX_SEARCH 160
#define MAX_WORDS 8

/* Words in any order, apart by spaces. */
static bool read_search(struct call *c, const char **out)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_./+- ";
    int n = 0;
    *out = request_parameter(c->request, "q");
    if (*out && (strlen(*out) > MAX_SEARCH || (*out)[strspn(*out, good)] != '\0')) {
        reply_problem(c->reply, 400, "The parameter 'q' has characters that no name can have.");
        return false;
    }
    for (const char *at = *out; at && *at; at++)
        n += *at != ' ' && (at == *out || at[-1] == ' ');
    if (n > MAX_WORDS)
        reply_problem(c->reply, 400, "The parameter 'q' has more than %d words.", MAX_WORDS);
    return n <= MAX_WORDS;
}

const struct rows_parameter rows_parameters[] = {
    {.name = "device", .more = "_.+-", .max = 64, .doc = "only this device model"},
    {.name = "case", .more = "_./+-", .max = 160, .doc = "only this case"},
    {.name = "provider", .more = "_.+-", .max = 64, .doc = "only this provider"},
    {.name = "contract", .more = "_.+-", .max = 64, .doc = "only this contract"},
    {.name = "op", .more = "_.-", .max = 64, .doc = "only cases of this op"},
    {.name = "dtype", .more = "_", .max = 64, .doc = "only cases of this dtype"},
    {.name = "run", .more = "-", .max = 36, .doc = "only this run, by its whole uuid"},
    {.name = "change", .more = "_.-", .max = 32, .doc = "only runs of this merge request"},
    {.name = "sort",
     .words = "name worst p50 time change vendor ceiling -name -worst -p50 -time -change -vendor "
              "-ceiling",
     .otherwise = "name",
     .doc = "the order: worst first, longest p50, newest, slowest against the baseline or another "
            "library, lowest share of the ceiling; with '-' the other way round"},
    {.name = "spark", .words = "1 0", .otherwise = "1", .doc = "0: without `spark`"},
    {.name = "branch",
     .read = read_branch,
     .schema = "\"minLength\":0,\"maxLength\":400",
     .doc = "only runs of this branch"},
    {.name = "commit",
     .read = read_commit,
     .schema = "\"pattern\":\"^[0-9a-f]{7,40}$\"",
     .doc = "only runs of this commit: 7 to 40 of its digits"},
    {.name = "verdict",
     .words = "pass regression improvement wrong no-verdict environment foreign",
     .doc = "only these"},
    {.name = "machine",
     .read = read_machine,
     .schema = "\"minLength\":1,\"maxLength\":400",
     .doc = "only runs on this GPU, by its uuid, or on this host"},
    {.name = "q",
     .read = read_search,
     .schema = "\"pattern\":\"^[a-z0-9_./+ -]*$\",\"minLength\":0,\"maxLength\":160",
     .doc = "words, each of which is in the name of the case or of the device"},
    {.name = "state", .words = "new acknowledged accepted fixed ignored", .doc = "only these"},
    {.name = "kind", .words = "regression improvement error wrong", .doc = "only these"},
    {.name = "groups",
     .words = "0 1",
     .otherwise = "0",
     .doc = "1: whole groups, of each at most its newest 1000: a page ends with the group that "
            "reaches `limit`"},
    {.name = NULL},
};

/* ---- files ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c >= 'A' && c <= 'Z');
}

/* Cuts the next word of a comment off; false: there is none before its end, or before a colon. */
static bool next_word(const char **at, const char *end, char out[24])
{
    size_t n = 0;
    while (*at < end && **at == ' ')
        ++*at;
    while (*at < end && **at != ' ' && **at != ':' && n < 23)
        out[n++] = *(*at)++;
    out[n] = '\0';
    return n > 0;
}

/* What a comment says of its column; false: it is no such comment. */
static bool read_comment(const char *at, const char *end, struct rows_column *out)
{
    char word[24];
    int type = ROWS_TYPES;
    if (!next_word(&at, end, word))
        return false;
    while (type-- > 0 && strcmp(word, rows_type_names[type]) != 0)
        ;
    if (type < 0)
        return false;
    out->type = (enum rows_type)type;
    if (out->type == ROWS_JSON)
        next_word(&at, end, out->schema);
    while (at < end && *at != ':' && next_word(&at, end, word)) {
        if (!strcmp(word, "null"))
            out->is_nullable = true;
        else if (!strcmp(word, "hidden"))
            out->is_hidden = true;
        else if (!strcmp(word, "extra"))
            out->is_extra = true;
        else if (!strcmp(word, "more"))
            out->is_more = true;
        else if (!strcmp(word, "whole"))
            out->is_whole = true;
        else if (!strncmp(word, "key", 3) && word[3] >= '1' && word[3] <= '0' + ROWS_MAX_KEYS)
            out->key = word[3] - '0';
        else
            return false;
    }
    if (at + 2 > end || *at != ':')
        return false;
    out->doc = at + 2;
    out->doc_len = (int)(end - out->doc);
    return true;
}

/* The name of a column: what its text ends with, before the comma. */
static void read_name_of(const char *line, const char *end, struct rows_column *out)
{
    while (end > line && (end[-1] == ' ' || end[-1] == ',' || end[-1] == '"'))
        end--;
    const char *at = end;
    bool is_quoted = *end == '"';
    while (at > line && (is_word(at[-1]) || (is_quoted && at[-1] != '"')))
        at--;
    for (int depth = 0; depth < ROWS_MAX_NEST && is_quoted; depth++) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        if (!dot)
            break;
        snprintf(out->group[depth], sizeof out->group[0], "%.*s", (int)(dot - at), at);
        at = dot + 1;
    }
    snprintf(out->name, sizeof out->name, "%.*s", (int)(end - at), at);
}

static void add_parameter(struct rows_query *q, const char *name, size_t len)
{
    for (const struct rows_parameter *p = rows_parameters; p->name; p++) {
        size_t i = 0;
        if (strlen(p->name) != len || strncmp(p->name, name, len) != 0)
            continue;
        while (i < q->n_parameters && q->parameters[i] != p)
            i++;
        if (i == q->n_parameters && i < ROWS_MAX_PARAMETERS)
            q->parameters[q->n_parameters++] = p;
    }
}

/* One line; `second`: of the second statement. */
static bool read_line(struct rows_query *q, const char *line, const char *end, bool second)
{
    size_t *n = second ? &q->n_members : &q->n_columns;
    struct rows_column column = {.doc = ""};
    const char *comment = memmem(line, (size_t)(end - line), "-- ", 3);
    const char *code_end = comment ? comment : end;
    for (const char *at = line; (at = memchr(at, ':', (size_t)(code_end - at))) != NULL; at++) {
        size_t len = 0;
        while (at + 1 + len < code_end && is_word(at[1 + len]))
            len++;
        add_parameter(q, at + 1, len);
    }
    if (!comment || comment == line || !read_comment(comment + 3, end, &column))
        return true;
    read_name_of(line, comment, &column);
    if (*n == ROWS_MAX_COLUMNS)
        return false;
    q->n_keys += column.key > 0;
    (second ? q->members : q->columns)[(*n)++] = column;
    return true;
}

/* "-- runs: limit 50 500" */
static bool read_head(struct rows_query *q)
{
    const char *at = q->sql, *end = strchr(q->sql, '\n');
    char word[24];
    if (!end || strncmp(at, "-- ", 3) != 0)
        return false;
    at += 3;
    if (!next_word(&at, end, q->name) || *at++ != ':')
        return false;
    if (!next_word(&at, end, word))
        return true;
    return sscanf(at, " %d %d", &q->usual, &q->most) == 2;
}

static size_t place_of(const char *file)
{
    size_t i = 0;
    while (i < embedded_queries_count && strcmp(embedded_queries[i].name, file) != 0)
        i++;
    return i;
}

const char *rows_text(const char *file)
{
    size_t i = place_of(file);
    return i < embedded_queries_count ? (const char *)embedded_queries[i].data : NULL;
}

/* False: it is no list, or not as rows.h says. */
static bool read_file(const char *sql, struct rows_query *out)
{
    *out = (struct rows_query){.sql = sql};
    if (!read_head(out))
        return false;
    bool second = false;
    const char *end;
    for (const char *line = out->sql; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (!read_line(out, line, end, second))
            return false;
        if (end > line && end[-1] == ';') {
            out->more = end + strspn(end, "\n");
            second = true;
        } else if (!second && end > line && memmem(line, (size_t)(end - line), "; --", 4)) {
            out->more = end + 1;
            second = true;
        }
    }
    return out->n_columns > 0;
}

static struct rows_query *all; /* one of each file, in its order */

static void read_all(void)
{
    all = calloc(embedded_queries_count, sizeof *all);
    for (size_t i = 0; all && i < embedded_queries_count; i++) {
        if (!read_file((const char *)embedded_queries[i].data, &all[i]))
            all[i].sql = NULL;
    }
}

const struct rows_query *rows_query(const char *file)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_all);
    size_t i = place_of(file);
    return all && i < embedded_queries_count && all[i].sql ? &all[i] : NULL;
}

bool rows_takes(const char *file, const char *parameter)
{
    const struct rows_query *q = rows_query(file);
    if (!q)
        return false;
    if (!strcmp(parameter, "format") || !strcmp(parameter, "columns"))
        return true;
    if (!strcmp(parameter, "limit"))
        return q->most > 0;
    if (!strcmp(parameter, "after"))
        return q->n_keys > 0;
    for (size_t i = 0; i < q->n_parameters; i++) {
        const char *name = q->parameters[i]->name;
        if (!strcmp(name, parameter) || (!strcmp(name, "branch") && !strcmp(parameter, "main")))
            return true;
    }
    return false;
}
