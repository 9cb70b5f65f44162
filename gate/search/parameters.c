/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/search/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define VALUE CAPITALS DIGITS "abcdefghijklmnopqrstuvwxyz.+-_"

static enum gate_status bad(const char *text, const char *why, struct gate_error *err)
{
    return gate_fail(err, GATE_USAGE,
                     "'%.100s' is not a parameter: %s. Write TILE=32,64,128 or STAGES=2..6", text,
                     why);
}

static bool add_value(struct parameter *p, const char *text, size_t n)
{
    if (!n || n > PARAMETER_CHARACTERS_MAX || strspn(text, VALUE) < n ||
        p->n == PARAMETER_VALUES_MAX)
        return false;
    snprintf(p->value[p->n++], sizeof p->value[0], "%.*s", (int)n, text);
    return true;
}

static bool add_range(struct parameter *p, const char *text)
{
    long from, to;
    int used = 0;
    char value[24];
    if (sscanf(text, "%6ld..%6ld%n", &from, &to, &used) != 2 || text[used] || from > to)
        return false;
    for (long i = from; i <= to; i++)
        if (!add_value(p, value, (size_t)snprintf(value, sizeof value, "%ld", i)))
            return false;
    return true;
}

static bool add_list(struct parameter *p, const char *text)
{
    for (;; text++) {
        size_t n = strcspn(text, ",");
        if (!add_value(p, text, n))
            return false;
        text += n;
        if (!*text)
            return true;
    }
}

enum gate_status parameters_add(struct parameters *p, const char *text, struct gate_error *err)
{
    size_t n = strspn(text, CAPITALS DIGITS "_");
    if (!n || !strchr(CAPITALS, text[0]) || text[n] != '=' || n > PARAMETER_CHARACTERS_MAX)
        return bad(text, "its name is not of capitals, digits and '_'", err);
    if (p->n == PARAMETERS_MAX)
        return bad(text, "there are too many", err);
    struct parameter *to = &p->list[p->n];
    *to = (struct parameter){.n = 0};
    snprintf(to->name, sizeof to->name, "%.*s", (int)n, text);
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->list[i].name, to->name))
            return bad(text, "it comes twice", err);
    text += n + 1;
    if (!(strstr(text, "..") ? add_range(to, text) : add_list(to, text)))
        return bad(text, "it has 1 to 64 values of letters, digits, '.', '+', '-' and '_'", err);
    p->n++;
    return GATE_OK;
}

size_t parameters_combinations(const struct parameters *p)
{
    size_t n = p->n > 0;
    for (size_t i = 0; i < p->n && n <= COMBINATIONS_MAX; i++)
        n *= p->list[i].n;
    return n <= COMBINATIONS_MAX ? n : COMBINATIONS_MAX + 1;
}

void parameters_combination(const struct parameters *p, size_t i, size_t choice[PARAMETERS_MAX])
{
    for (size_t k = p->n; k-- > 0;) {
        choice[k] = i % p->list[k].n;
        i /= p->list[k].n;
    }
}

static bool find_value(const struct parameter *p, const cJSON *item, size_t *out)
{
    char number[PARAMETER_CHARACTERS_MAX + 1] = "";
    const char *text = cJSON_IsString(item) ? item->valuestring : number;
    if (cJSON_IsNumber(item))
        snprintf(number, sizeof number, "%.15g", item->valuedouble);
    for (*out = 0; *out < p->n; ++*out)
        if (!strcmp(p->value[*out], text))
            return true;
    return false;
}

bool parameters_read(const struct parameters *p, const cJSON *object, size_t choice[PARAMETERS_MAX])
{
    if (!cJSON_IsObject(object) || (size_t)cJSON_GetArraySize(object) != p->n)
        return false;
    for (size_t k = 0; k < p->n; k++)
        if (!find_value(&p->list[k], cJSON_GetObjectItemCaseSensitive(object, p->list[k].name),
                        &choice[k]))
            return false;
    return true;
}

void parameters_text(const struct parameters *p, const size_t choice[PARAMETERS_MAX],
                     char out[COMBINATION_TEXT_MAX])
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t k = 0; k < p->n; k++)
        at += (size_t)snprintf(out + at, COMBINATION_TEXT_MAX - at, "%s%s=%s", k ? " " : "",
                               p->list[k].name, p->list[k].value[choice[k]]);
}

void parameters_export(const struct parameters *p, const size_t choice[PARAMETERS_MAX])
{
    for (size_t k = 0; k < p->n; k++)
        setenv(p->list[k].name, p->list[k].value[choice[k]], 1);
}
