/* SPDX-License-Identifier: Apache-2.0 */
/* api_parameter.c: reads the parameters of an address; see api_call.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"
#include "gate/base/utf8.h"

#define MAX_TEXT 400

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_name(const char *s, const char *more, size_t max)
{
    size_t len = 0;
    while (is_alphanumeric(s[len]) || (s[len] != '\0' && strchr(more, s[len])))
        len++;
    return len >= 1 && len <= max && s[len] == '\0' && is_alphanumeric(s[0]);
}

bool read_name(struct call *c, const char *parameter, const char *more, size_t max, bool required,
               const char **out)
{
    *out = request_parameter(c->request, parameter);
    if (!*out && required) {
        reply_problem(c->reply, 400, "The parameter '%s' is missing.", parameter);
        return false;
    }
    if (*out && !is_name(*out, more, max)) {
        reply_problem(c->reply, 400, "The parameter '%s' is not a name that can occur.", parameter);
        return false;
    }
    return true;
}

bool read_parameter(struct call *c, const char *name, bool required, const char **out)
{
    const struct rows_parameter *p = rows_parameters;
    while (strcmp(p->name, name) != 0)
        p++;
    return read_name(c, name, p->more, p->max, required, out);
}

bool read_machine(struct call *c, const char **out)
{
    *out = request_parameter(c->request, "machine");
    if (!*out || ((*out)[0] != '\0' && utf8_length(*out) <= MAX_TEXT))
        return true;
    reply_problem(c->reply, 400, "The parameter 'machine' must be a GPU's uuid, or a host.");
    return false;
}

bool read_commit(struct call *c, const char **out)
{
    *out = request_parameter(c->request, "commit");
    size_t n = *out ? strspn(*out, "0123456789abcdef") : 0;
    if (!*out || (n >= 7 && n <= 40 && (*out)[n] == '\0'))
        return true;
    reply_problem(c->reply, 400, "The parameter 'commit' must be 7 to 40 digits of a commit.");
    return false;
}

bool read_branch(struct call *c, const char **out)
{
    static const char *const words[] = {"0", "1"};
    int is_main;
    *out = request_parameter(c->request, "branch");
    if (!read_word(c, "main", words, 2, 0, &is_main))
        return false;
    if (*out && (is_main || utf8_length(*out) > MAX_TEXT)) {
        reply_problem(c->reply, 400,
                      is_main ? "The parameters 'branch' and 'main' exclude each other."
                              : "The parameter 'branch' is too long.");
        return false;
    }
    if (is_main)
        *out = c->site.main_branch;
    return true;
}

void refuse_after(struct call *c)
{
    reply_problem(c->reply, 400, "The parameter 'after' is not the 'next' of an earlier answer.");
}

int64_t parse_count(const char *s)
{
    char *stop;
    if (*s < '0' || *s > '9')
        return -1;
    errno = 0;
    long long value = strtoll(s, &stop, 10);
    return errno != 0 || *stop != '\0' ? -1 : value;
}

bool read_number(struct call *c, const char *parameter, int64_t otherwise, int64_t min, int64_t max,
                 int64_t *out)
{
    const char *text = request_parameter(c->request, parameter);
    *out = text ? parse_count(text) : otherwise;
    if (*out >= min && *out <= max)
        return true;
    reply_problem(c->reply, 400, "The parameter '%s' must be a number from %lld to %lld.",
                  parameter, (long long)min, (long long)max);
    return false;
}

bool read_word(struct call *c, const char *parameter, const char *const *words, int n,
               int otherwise, int *out)
{
    const char *text = request_parameter(c->request, parameter);
    char list[200] = "";
    size_t len = 0;
    *out = otherwise;
    if (!text)
        return true;
    for (int i = 0; i < n; i++) {
        *out = i;
        if (!strcmp(text, words[i]))
            return true;
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                i == 0       ? ""
                                : i == n - 1 ? " or "
                                             : ", ",
                                words[i]);
    }
    reply_problem(c->reply, 400, "The parameter '%s' must be %s.", parameter, list);
    return false;
}
