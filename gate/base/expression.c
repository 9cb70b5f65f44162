/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/expression.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 32 /* of parentheses and signs */

/* ---- operators ---- */

static bool add(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static bool subtract(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}

static bool multiply(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static bool divide(int64_t a, int64_t b, int64_t *out)
{
    if (a == INT64_MIN && b == -1)
        return false;
    *out = a / b;
    return true;
}

static bool rest(int64_t a, int64_t b, int64_t *out)
{
    *out = b == -1 ? 0 : a % b;
    return true;
}

#define HOLDS(name, operator)                                                                      \
    static bool name(int64_t a, int64_t b, int64_t *out)                                           \
    {                                                                                              \
        *out = a operator b;                                                                       \
        return true;                                                                               \
    }
HOLDS(equal, ==)
HOLDS(differ, !=)
HOLDS(at_most, <=)
HOLDS(at_least, >=)
HOLDS(less, <)
HOLDS(more, >)
HOLDS(both, &&)
HOLDS(either, ||)
#undef HOLDS

/* Those of two characters before those that begin like them; `rank`: the higher binds. */
static const struct operation {
    const char *text;
    unsigned rank;
    bool divides;
    bool (*apply)(int64_t a, int64_t b, int64_t *out);
} operators[] = {
    {"||", 1, false, either},  {"&&", 2, false, both},    {"==", 3, false, equal},
    {"!=", 3, false, differ},  {"<=", 3, false, at_most}, {">=", 3, false, at_least},
    {"<", 3, false, less},     {">", 3, false, more},     {"+", 4, false, add},
    {"-", 4, false, subtract}, {"*", 5, false, multiply}, {"/", 5, true, divide},
    {"%", 5, true, rest},
};

#define OPERATORS (sizeof operators / sizeof operators[0])
#define RANK_MINUS 6

enum { EQUAL = 2, SUBTRACT = 9, REST = 12 }; /* places in the table */

/* ---- parsing ---- */

struct parser {
    const char *text, *at;
    const char *const *sizes;
    unsigned n_sizes, depth;
    struct expression *out;
    struct gate_error *err;
};

static bool fail(struct parser *p, const char *what)
{
    char found[24];
    snprintf(found, sizeof found, *p->at ? "'%.16s'" : "the end", p->at);
    gate_fail(p->err, GATE_USAGE, "at character %d: %s, here is %s", (int)(p->at - p->text) + 1,
              what, found);
    return false;
}

static void skip_spaces(struct parser *p)
{
    p->at += strspn(p->at, " \t");
}

static bool put(struct parser *p, enum expression_step_kind kind, int64_t value)
{
    if (p->out->n == EXPRESSION_STEPS)
        return fail(p, "the expression is too long");
    p->out->step[p->out->n++] = (struct expression_step){kind, value};
    return true;
}

static bool parse_number(struct parser *p)
{
    int64_t value = 0;
    const char *at = p->at;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!multiply(value, 10, &value) || !add(value, *at - '0', &value))
            return fail(p, "the number does not fit in 63 bits");
    p->at = at;
    return put(p, STEP_NUMBER, value);
}

static bool parse_size(struct parser *p)
{
    const size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    for (unsigned i = 0; i < p->n_sizes; i++)
        if (strlen(p->sizes[i]) == length && !strncmp(p->sizes[i], p->at, length)) {
            p->at += length;
            return put(p, STEP_SIZE, i);
        }
    return fail(p, "no size has this name");
}

static bool parse_above(struct parser *p, unsigned rank);

static bool parse_nested(struct parser *p)
{
    if (*p->at == '-') {
        p->at++;
        return put(p, STEP_NUMBER, 0) && parse_above(p, RANK_MINUS) &&
               put(p, STEP_OPERATOR, SUBTRACT);
    }
    p->at++;
    if (!parse_above(p, 1))
        return false;
    if (*p->at != ')')
        return fail(p, "expected ')'");
    p->at++;
    return true;
}

static bool parse_operand(struct parser *p)
{
    bool good = false;
    skip_spaces(p);
    if (*p->at >= '0' && *p->at <= '9') {
        good = parse_number(p);
    } else if (*p->at >= 'a' && *p->at <= 'z') {
        good = parse_size(p);
    } else if (*p->at != '-' && *p->at != '(') {
        good = fail(p, "expected a number, a size or '('");
    } else if (p->depth == DEPTH_MAX) {
        good = fail(p, "the expression is nested too deeply");
    } else {
        p->depth++;
        good = parse_nested(p);
        p->depth--;
    }
    skip_spaces(p);
    return good;
}

/* The operator here; OPERATORS: none. */
static size_t operator_at(const char *at)
{
    size_t i = 0;
    while (i < OPERATORS && strncmp(operators[i].text, at, strlen(operators[i].text)) != 0)
        i++;
    return i;
}

/* Operands that operators of this rank or a higher one connect, from left to right. */
static bool parse_above(struct parser *p, unsigned rank)
{
    if (!parse_operand(p))
        return false;
    for (;;) {
        const size_t found = operator_at(p->at);
        if (found == OPERATORS || operators[found].rank < rank)
            return true;
        p->at += strlen(operators[found].text);
        if (!parse_above(p, operators[found].rank + 1) || !put(p, STEP_OPERATOR, (int64_t)found))
            return false;
    }
}

enum gate_status expression_parse(const char *text, const char *const *sizes, unsigned n_sizes,
                                  struct expression *out, struct gate_error *err)
{
    struct gate_error unused;
    struct parser p = {.text = text,
                       .at = text,
                       .sizes = sizes,
                       .n_sizes = n_sizes,
                       .out = out,
                       .err = err ? err : &unused};
    out->n = 0;
    if (!parse_above(&p, 1))
        return GATE_USAGE;
    if (*p.at)
        fail(&p, "expected an operator");
    return *p.at ? GATE_USAGE : GATE_OK;
}

/* ---- values ---- */

bool expression_value(const struct expression *e, const int64_t *sizes, int64_t *value,
                      const char **why)
{
    int64_t stack[EXPRESSION_STEPS];
    unsigned n = 0;
    for (unsigned i = 0; i < e->n; i++) {
        const struct expression_step *s = &e->step[i];
        if (s->kind != STEP_OPERATOR) {
            stack[n++] = s->kind == STEP_NUMBER ? s->value : sizes[s->value];
            continue;
        }
        const struct operation *o = &operators[s->value];
        n--;
        *why = o->divides && !stack[n] ? "it divides by zero" : "its value does not fit in 63 bits";
        if ((o->divides && !stack[n]) || !o->apply(stack[n - 1], stack[n], &stack[n - 1]))
            return false;
    }
    *value = stack[0];
    return true;
}

bool expression_is_multiple(const struct expression *e, unsigned *size, struct expression_step *of)
{
    const struct expression_step *s = e->step;
    if (e->n != 5 || s[0].kind != STEP_SIZE || s[1].kind == STEP_OPERATOR ||
        s[2].kind != STEP_OPERATOR || s[2].value != REST || s[3].kind != STEP_NUMBER ||
        s[3].value != 0 || s[4].kind != STEP_OPERATOR || s[4].value != EQUAL)
        return false;
    *size = (unsigned)s[0].value;
    *of = s[1];
    return s[1].kind == STEP_SIZE || s[1].value > 0;
}
