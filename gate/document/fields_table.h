/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields_table.h: how tables of fields are written down. OF is the struct that a table is of, and
 * parts are named without the end of their shape's name:
 *
 *     #define OF document_policy
 *     static const struct field policy_fields[] = {
 *         NUMBER(threshold, REQUIRED | ABOVE, 0, 10),
 *         LIST(arms, 0, 0, 8, document_arm),
 *     };
 *     SHAPE(policy);
 *     #undef OF
 *
 * SHAPE_BY() is the shape of a list of rows that the struct is made of, too.
 */
#ifndef GATE_DOCUMENT_FIELDS_TABLE_H
#define GATE_DOCUMENT_FIELDS_TABLE_H

#include <math.h>

#include "gate/base/json.h"
#include "gate/document/fields.h"

#define SIZE_MAX_JSON JSON_MAX_SAFE_INTEGER
#define TIME_MAX_NS 1e15 /* no launch takes eleven days */
#define FACTOR_MIN 1e-6  /* a ratio beyond a million is no measurement */
#define FACTOR_MAX 1e6
#define TEXT_MAX 400
#define NAME_MAX_CHARACTERS 64
#define ID_MAX 160
#define REASON_MAX 1000

#define REQUIRED FIELD_REQUIRED
#define NULLABLE FIELD_NULLABLE
#define ABOVE FIELD_ABOVE

/* clang-format off */
#define AT(member) .key = #member, .offset = offsetof(struct OF, member)
#define TEXT(member, flag, longest) \
    {AT(member), .kind = FIELD_TEXT, .flags = flag, .most = longest}
#define WORDS(member, flag, longest) \
    {AT(member), .kind = FIELD_TEXT, .flags = flag, .least = 1, .most = longest}
#define FORMED(member, flag, shape_of_text, longest) \
    {AT(member), .kind = FIELD_TEXT, .flags = flag, .form = shape_of_text, .most = longest}
#define CHOICE(member, flag, list) {AT(member), .kind = FIELD_TEXT, .flags = flag, .words = list}
#define WORD_FROM(member, flag, first, list) \
    {AT(member), .kind = FIELD_WORD, .flags = flag, .least = first, .words = list}
#define WORD(member, flag, list) WORD_FROM(member, flag, 0, list)
#define BOOL(member) {AT(member), .kind = FIELD_BOOL, .flags = REQUIRED}
#define YES_NO(member) {AT(member), .kind = FIELD_YES_NO}
#define NUMBER(member, flag, from, to) \
    {AT(member), .kind = FIELD_NUMBER, .flags = flag, .least = from, .most = to}
#define TIME(member, flag) NUMBER(member, (flag) | ABOVE, 0, TIME_MAX_NS)
#define FACTOR(member, flag) NUMBER(member, flag, FACTOR_MIN, FACTOR_MAX)
#define FRACTION(member) \
    {AT(member), .kind = FIELD_NUMBER, .flags = ABOVE, .most = 1, .form = FORM_FRACTION}
#define SHARE(member, flag) NUMBER(member, flag, 0, INFINITY)
#define ANY(member, flag) NUMBER(member, flag, -INFINITY, INFINITY)
#define COUNT_FROM(member, flag, from, to) \
    {AT(member), .kind = FIELD_COUNT, .flags = flag, .least = from, .most = to}
#define COUNT(member, flag, to) COUNT_FROM(member, flag, 0, to)
#define SIZE(member, flag) COUNT(member, flag, SIZE_MAX_JSON)
#define PART(member, of) \
    {AT(member), .kind = FIELD_OBJECT, .flags = REQUIRED, .beside = FIELD_NOWHERE, \
     .shape = &of##_shape}
#define MAYBE(member, flag, of) \
    {AT(member), .kind = FIELD_OBJECT, .flags = flag, \
     .beside = offsetof(struct OF, has_##member), .shape = &of##_shape}
#define LIST(member, flag, from, to, of) \
    {AT(member), .kind = FIELD_LIST, .flags = flag, .least = from, .most = to, \
     .beside = offsetof(struct OF, n_##member), .shape = &of##_shape}
#define MAP(member, flag, of) \
    {AT(member), .kind = FIELD_MAP, .flags = flag, .beside = offsetof(struct OF, n_##member), \
     .shape = &of##_shape}
#define NAMED(member, flag, to, of) \
    {AT(member), .kind = FIELD_MAP, .flags = flag, .form = FORM_NAME, .most = to, \
     .each = NAME_MAX_CHARACTERS, .beside = offsetof(struct OF, n_##member), .shape = &of##_shape}
#define OTHERS(member) \
    {AT(member), .kind = FIELD_OTHERS, .beside = offsetof(struct OF, n_##member)}
#define TEXTS(member, flag, to, longest) \
    {AT(member), .kind = FIELD_TEXTS, .flags = flag, .most = to, .each = longest, \
     .beside = offsetof(struct OF, n_##member)}
#define NUMBERS_TO(member, flag, from, to, largest) \
    {AT(member), .kind = FIELD_NUMBERS, .flags = flag, .least = from, .most = to, \
     .each = largest, .beside = offsetof(struct OF, n_##member)}
#define NUMBERS(member, flag, to) NUMBERS_TO(member, flag, 0, to, 0)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define SHAPE_OF(name) \
    {JOIN(name, _fields), sizeof(JOIN(name, _fields)) / sizeof(struct field), sizeof(struct OF)}
#define FIELD_ROW(kind, ...) kind(__VA_ARGS__),
#define SHAPE_BY(list) \
    static const struct field JOIN(OF, _fields)[] = {list(FIELD_ROW)}; \
    const struct shape JOIN(OF, _shape) = SHAPE_OF(OF)
#define SHAPE(name) static const struct shape name##_shape = SHAPE_OF(name)
/* clang-format on */

/* Words that several formats share; NULL ends them. */
extern const char *const field_actions[];

#endif
