/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/suite_file.h"

#include "gate/document/fields_table.h"
#include "kernels/ops/op.h"

#define VALUES_MAX 4096
#define VALUE_MAX 65504 /* of fp16 */

static const char *const schemas[] = {"gate-suite/1", NULL};

#define OF case_values
static const struct field values_fields[] = {{AT(values), .kind = FIELD_NUMBERS,
                                              .beside = offsetof(struct OF, n_values), .least = 1,
                                              .most = VALUES_MAX, .each = VALUE_MAX}};
SHAPE(values);
#undef OF

#define OF case_file
static const struct field case_fields[] = {
    FORMED(op, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    FORMED(dtype, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    FRACTION(threshold),
    MAP(inputs, 0, values),
    MAP(expect, 0, values),
    OTHERS(settings),
};
const struct shape case_file = SHAPE_OF(case);
#undef OF

#define OF suite_file
static const struct field suite_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    FORMED(name, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    TEXT(description, 0, TEXT_MAX),
    TEXTS(ops, 0, OPS_OWN_MAX, REASON_MAX),
    LIST(cases, REQUIRED, 1, 10000, case_file),
};
const struct shape suite_file = SHAPE_OF(suite);
#undef OF
