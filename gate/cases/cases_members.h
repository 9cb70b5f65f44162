/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases_members.h: the members of the files of suites and of a user's ops, and their limits, as
 * gate/formats/suite.schema.json and op.schema.json publish them; see document_members.h.
 * op_file.h makes structs of them, op_file.c the tables by which they are read.
 */
/* clang-format off */

/* ---- suites ---- */

/* Literal values of a tensor. */
#define MEMBERS_OF case_values
BEGIN
    ASIDE(const char *tensor;)
    F(NUMBERS_TO, values, 0, 1, VALUES_MAX, VALUE_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF case_file
BEGIN
    F(FORMED, op, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(FORMED, dtype, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(FRACTION, threshold)
    F(MAP, inputs, 0, case_values)
    F(MAP, expect, 0, case_values)
    F(OTHERS, settings) /* sizes, parameters and flags of the op */
END
#undef MEMBERS_OF

#define MEMBERS_OF suite_file
BEGIN
    F(CHOICE, schema, REQUIRED, suite_schemas)
    F(FORMED, name, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(TEXT, description, 0, TEXT_MAX)
    /* files of ops of the user's, as seen from the suite's folder */
    F(TEXTS, ops, 0, OPS_OWN_MAX, REASON_MAX)
    F(LIST, cases, REQUIRED, 1, 10000, case_file)
END
#undef MEMBERS_OF

/* ---- ops ---- */

#define MEMBERS_OF op_file_size
BEGIN
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX)
    F(WORD, kind, REQUIRED, kinds) /* enum op_size_kind */
    F(COUNT_FROM, least, 0, 1, (double)OP_SIZE_MAX)
    F(COUNT_FROM, most, 0, 1, (double)OP_SIZE_MAX)
    F(NUMBERS_TO, values, 0, 0, 16, (double)OP_SIZE_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF op_file_parameter
BEGIN
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX)
    F(ANY, usual, REQUIRED)
    F(ANY, least, REQUIRED)
    F(ANY, most, REQUIRED)
END
#undef MEMBERS_OF

#define MEMBERS_OF op_file_flag
BEGIN
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX)
    F(FORMED, yes, REQUIRED, FORM_NAME, KEY_MAX)
    F(FORMED, no, REQUIRED, FORM_NAME, KEY_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF op_file_tensor
BEGIN
    F(FORMED, name, REQUIRED, FORM_NAME, KEY_MAX)
    F(WORD, role, REQUIRED, roles) /* enum op_file_role */
    F(TEXTS, axes, REQUIRED, KG_MAX_RANK, AXIS_MAX)
    F(FORMED, dtype, 0, FORM_NAME, KEY_MAX) /* NULL: the case's */
    F(TEXTS, whole, 0, OP_SIZES_MAX, KEY_MAX)
    F(WORD, fill, 0, own_fill_names)
    F(ANY, least, 0)
    F(ANY, most, 0)
    F(ANY, value, 0)
    F(WORDS, end, 0, EXPRESSION_MAX)
    F(YES_NO, nan) /* may it have NaN? */
END
#undef MEMBERS_OF

#define MEMBERS_OF op_file_dtype
BEGIN
    ASIDE(const char *tensor;)
    F(FORMED, dtype, REQUIRED, FORM_NAME, KEY_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF op_file_variant
BEGIN
    ASIDE(const char *name;)
    F(MAP, dtypes, REQUIRED, op_file_dtype) /* of all tensors that have none of their own */
END
#undef MEMBERS_OF

#define MEMBERS_OF op_file_limit
BEGIN
    ASIDE(const char *dtype;) /* of a case */
    F(NUMBER, limit, ABOVE, 0, 1)
END
#undef MEMBERS_OF

#define MEMBERS_OF op_file
BEGIN
    F(CHOICE, schema, REQUIRED, op_schemas)
    F(FORMED, name, REQUIRED, FORM_NAME, OP_NAME_MAX)
    F(TEXT, description, 0, TEXT_MAX)
    F(WORDS, reference, REQUIRED, REASON_MAX)
    F(WORDS, second_reference, 0, REASON_MAX)
    F(LIST, sizes, REQUIRED, 1, OP_SIZES_MAX, op_file_size)
    F(TEXTS, constraints, 0, OWN_CONSTRAINTS_MAX, EXPRESSION_MAX)
    F(MAYBE, parameter, 0, op_file_parameter)
    F(MAYBE, flag, 0, op_file_flag)
    F(LIST, tensors, REQUIRED, 2, OP_TENSORS_MAX, op_file_tensor)
    F(WORDS, flops, REQUIRED, EXPRESSION_MAX)
    F(TEXTS, id, 0, OP_SIZES_MAX, KEY_MAX)
    F(YES_NO, multilinear)
    F(MAP, variants, 0, op_file_variant)
    F(MAP, error_limits, 0, op_file_limit)
END
#undef MEMBERS_OF

#undef F
#undef ASIDE
#undef BEGIN
#undef END
