/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/expression.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 32 /* of parentheses and signs */

/* ---- operators ---- */

enum { EITHER, BOTH, EQUAL, DIFFER, AT_MOST, AT_LEAST, LESS, MORE };
enum { ADD = MORE + 1, SUBTRACT, MULTIPLY, DIVIDE, REST, OPERATORS };

/* Those of two characters before those that begin like them; `rank`: the higher binds. */
static const struct {
    const char *text;
    unsigned rank;
} operators[OPERATORS] = {
    [EITHER] = {"||", 1},  [BOTH] = {"&&", 2},     [EQUAL] = {"==", 3},   [DIFFER] = {"!=", 3},
    [AT_MOST] = {"<=", 3}, [AT_LEAST] = {">=", 3}, [LESS] = {"<", 3},     [MORE] = {">", 3},
    [ADD] = {"+", 4},      [SUBTRACT] = {"-", 4},  [MULTIPLY] = {"*", 5}, [DIVIDE] = {"/", 5},
    [REST] = {"%", 5},
};

#define RANK_MINUS 6

/* NULL, or why it has no value. */
static const char *apply(size_t o, int64_t a, int64_t b, int64_t *out)
{
    const bool holds[] = {
        [EITHER] = a || b,    [BOTH] = a && b,       [EQUAL] = (a == b), [DIFFER] = (a != b),
        [AT_MOST] = (a <= b), [AT_LEAST] = (a >= b), [LESS] = (a < b),   [MORE] = (a > b)};
    bool overflows = false;
    if ((o == DIVIDE || o == REST) && b == 0)
        return "it divides by zero";
    if (o == ADD)
        overflows = __builtin_add_overflow(a, b, out);
    else if (o == SUBTRACT)
        overflows = __builtin_sub_overflow(a, b, out);
    else if (o == MULTIPLY || (o == DIVIDE && b == -1)) /* the least number has no negative */
        overflows = __builtin_mul_overflow(a, b, out);
    else
        *out = o == DIVIDE ? a / b : o == REST ? (b == -1 ? 0 : a % b) : holds[o];
    return overflows ? "its value does not fit in 63 bits" : NULL;
}

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

static bool parse_above(struct parser *p, unsigned rank);

/* A number, the name of a size, a negative, or what parentheses hold. */
static bool parse_operand(struct parser *p)
{
    const size_t length = strspn(p->at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    int64_t value = 0;
    if (*p->at >= '0' && *p->at <= '9') {
        const char *at = p->at;
        for (; *at >= '0' && *at <= '9'; at++)
            if (apply(MULTIPLY, value, 10, &value) || apply(ADD, value, *at - '0', &value))
                return fail(p, "the number does not fit in 63 bits");
        p->at = at;
        return put(p, STEP_NUMBER, value);
    }
    if (*p->at >= 'a' && *p->at <= 'z') {
        for (unsigned i = 0; i < p->n_sizes; i++)
            if (strlen(p->sizes[i]) == length && !strncmp(p->sizes[i], p->at, length)) {
                p->at += length;
                return put(p, STEP_SIZE, i);
            }
        return fail(p, "no size has this name");
    }
    if (*p->at != '-' && *p->at != '(')
        return fail(p, "expected a number, a size or '('");
    if (p->depth == DEPTH_MAX)
        return fail(p, "the expression is nested too deeply");
    p->depth++;
    if (*p->at++ == '-') {
        if (!put(p, STEP_NUMBER, 0) || !parse_above(p, RANK_MINUS) ||
            !put(p, STEP_OPERATOR, SUBTRACT))
            return false;
    } else {
        if (!parse_above(p, 1))
            return false;
        if (*p->at != ')')
            return fail(p, "expected ')'");
        p->at++;
    }
    p->depth--;
    return true;
}

/* Operands that operators of this rank or a higher one connect, from left to right. */
static bool parse_above(struct parser *p, unsigned rank)
{
    skip_spaces(p);
    if (!parse_operand(p))
        return false;
    skip_spaces(p);
    for (;;) {
        size_t found = 0;
        while (found < OPERATORS &&
               strncmp(operators[found].text, p->at, strlen(operators[found].text)) != 0)
            found++;
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
    struct parser p = {
        .text = text, .at = text, .sizes = sizes, .n_sizes = n_sizes, .out = out, .err = err};
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
        n--;
        if ((*why = apply((size_t)s->value, stack[n - 1], stack[n], &stack[n - 1])))
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
