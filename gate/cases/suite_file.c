/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cases/suite_file.h"

#include "gate/document/fields_table.h"

#define VALUES_MAX 4096
#define VALUE_MAX 65504 /* of fp16 */

static const char *const schemas[] = {"gate-suite/1", NULL};

struct suite_file_case {
    const char *op, *dtype;
    int64_t m, n, k, b, h, kv_heads, s, sq, d;
    enum told causal;
    double scale, threshold;
};

struct suite_file {
    const char *schema, *name, *description;
    struct suite_file_case *cases;
    size_t n_cases;
};

static const struct field values = {.kind = FIELD_NUMBERS,
                                    .beside = sizeof(double *),
                                    .least = 1,
                                    .most = VALUES_MAX,
                                    .each = VALUE_MAX};

#define ELEMENTS(member)                                                                           \
    {                                                                                              \
        AT(member), .kind = FIELD_COUNT, .least = 1, .most = 1099511627776                         \
    }
#define LITERALS(name)                                                                             \
    {                                                                                              \
        .key = name, .kind = FIELD_MAP, .element = &values                                         \
    }

#define OF suite_file_case
static const struct field case_fields[] = {
    CHOICE(op, REQUIRED, field_ops),
    CHOICE(dtype, REQUIRED, field_dtypes),
    ELEMENTS(m),
    ELEMENTS(n),
    ELEMENTS(k),
    ELEMENTS(b),
    ELEMENTS(h),
    ELEMENTS(kv_heads),
    ELEMENTS(s),
    ELEMENTS(sq),
    ELEMENTS(d),
    TOLD(causal),
    NUMBER(scale, 0, -1000, 1000),
    NUMBER(threshold, ABOVE, 0, 10),
    LITERALS("inputs"),
    LITERALS("expect"),
};
static const struct shape one_case = SHAPE_OF(case);
#undef OF

#define OF suite_file
static const struct field suite_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    FORMED(name, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    TEXT(description, 0, TEXT_MAX),
    LIST(cases, REQUIRED, 1, 10000, one_case),
};
const struct shape suite_file = SHAPE_OF(suite);
#undef OF
