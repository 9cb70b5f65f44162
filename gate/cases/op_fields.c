/* SPDX-License-Identifier: Apache-2.0 */
/* op_fields.c: what the file of a user's op may hold, as gate/formats/op.schema.json says it. */
#include "gate/cases/op_file.h"
#include "gate/document/fields_table.h"

#define OP_NAME_MAX 32
#define KEY_MAX 12
#define EXPRESSION_MAX 200

static const char *const schemas[] = {"gate-op/1", NULL};
static const char *const kinds[] = {"length", "count", "given", NULL};
static const char *const roles[] = {"in", "out", NULL};
static const char *const fills[] = {"normal",   "any",      "uniform", "integers",
                                    "positive", "constant", NULL};

#define OF op_file_size
static const struct field size_fields[] = {
    FORMED(name, REQUIRED, FORM_NAME, KEY_MAX),
    WORD(kind, REQUIRED, kinds),
    {AT(least), .kind = FIELD_COUNT, .least = 1, .most = (double)OP_SIZE_MAX},
    {AT(most), .kind = FIELD_COUNT, .least = 1, .most = (double)OP_SIZE_MAX},
    {AT(values), .kind = FIELD_NUMBERS, .beside = offsetof(struct OF, n_values), .most = 16,
     .each = (double)OP_SIZE_MAX},
};
SHAPE(size);
#undef OF

#define OF op_file_parameter
static const struct field parameter_fields[] = {
    FORMED(name, REQUIRED, FORM_NAME, KEY_MAX),
    ANY(usual, REQUIRED),
    ANY(least, REQUIRED),
    ANY(most, REQUIRED),
};
SHAPE(parameter);
#undef OF

#define OF op_file_flag
static const struct field flag_fields[] = {
    FORMED(name, REQUIRED, FORM_NAME, KEY_MAX),
    FORMED(yes, REQUIRED, FORM_NAME, KEY_MAX),
    FORMED(no, REQUIRED, FORM_NAME, KEY_MAX),
};
SHAPE(flag);
#undef OF

#define OF op_file_tensor
static const struct field tensor_fields[] = {
    FORMED(name, REQUIRED, FORM_NAME, KEY_MAX),
    WORD(role, REQUIRED, roles),
    TEXTS(axes, REQUIRED, KG_MAX_RANK, KEY_MAX),
    FORMED(dtype, 0, FORM_NAME, KEY_MAX),
    TEXTS(whole, 0, OP_SIZES_MAX, KEY_MAX),
    WORD(fill, 0, fills),
    ANY(least, 0),
    ANY(most, 0),
    ANY(value, 0),
};
SHAPE(tensor);
#undef OF

#define OF op_file_limits
#define LIMIT(member) NUMBER(member, ABOVE, 0, 1)
static const struct field limits_fields[] = {LIMIT(fp16), LIMIT(bf16), LIMIT(fp32), LIMIT(tf32)};
SHAPE(limits);
#undef OF

#define OF op_file
static const struct field op_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    FORMED(name, REQUIRED, FORM_NAME, OP_NAME_MAX),
    TEXT(description, 0, TEXT_MAX),
    WORDS(reference, REQUIRED, REASON_MAX),
    LIST(sizes, REQUIRED, 1, OP_SIZES_MAX, size),
    TEXTS(constraints, 0, OWN_CONSTRAINTS_MAX, EXPRESSION_MAX),
    MAYBE(parameter, 0, parameter),
    MAYBE(flag, 0, flag),
    LIST(tensors, REQUIRED, 2, OP_TENSORS_MAX, tensor),
    WORDS(flops, REQUIRED, EXPRESSION_MAX),
    TEXTS(id, 0, OP_SIZES_MAX, KEY_MAX),
    YES_NO(multilinear),
    MAYBE(error_limits, 0, limits),
};
const struct shape op_file = SHAPE_OF(op);
#undef OF
