/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/baseline_file.h"

#include "gate/base/json.h"
#include "gate/baseline/baseline.h"
#include "gate/document/fields_table.h"

#define POSITIVE(member, flag) NUMBER(member, (flag) | ABOVE, 0, INFINITY)

#define ID_TEXT(name)                                                                              \
    {                                                                                              \
        .key = name, .kind = FIELD_TEXT, .flags = REQUIRED,                                        \
        .offset = offsetof(struct OF, case_id), .least = 1, .most = ID_MAX                         \
    }

static const char *const schemas[] = {"gate-baseline/1", NULL};

/* clang-format off */
#define ENTRY \
    POSITIVE(p50_ns, REQUIRED), \
    POSITIVE(p50_lo_ns, REQUIRED), \
    POSITIVE(p50_hi_ns, REQUIRED), \
    POSITIVE(p90_ns, REQUIRED), \
    POSITIVE(control_ns, REQUIRED), \
    SHARE(spread, REQUIRED), \
    FORMED(kernel, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS), \
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX), \
    FORMED(run_uuid, REQUIRED, FORM_UUID, TEXT_MAX), \
    SIZE(time_ms, REQUIRED), \
    TEXT(epoch, REQUIRED, TEXT_MAX), \
    FORMED(library_sha256, REQUIRED, FORM_SHA256, TEXT_MAX), \
    FORMED(code_sha256, 0, FORM_SHA256, TEXT_MAX), \
    YES_NO(dirty), \
    SHARE(rel_fro, 0), \
    MAYBE(outputs, 0, outputs), \
    FORMED(vendor, 0, FORM_NAME, NAME_MAX_CHARACTERS), \
    POSITIVE(vendor_ratio, 0), \
    TEXTS(suites, 0, BASELINE_SUITES_MAX, NAME_MAX_CHARACTERS)

#define CHANGE \
    SIZE(time_ms, REQUIRED), \
    ID_TEXT("case"), \
    WORD(action, REQUIRED, field_actions), \
    POSITIVE(from_ns, REQUIRED | NULLABLE), \
    POSITIVE(to_ns, REQUIRED | NULLABLE), \
    WORDS(reason, REQUIRED, REASON_MAX), \
    WORDS(author, REQUIRED, TEXT_MAX), \
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX), \
    FORMED(run_uuid, REQUIRED, FORM_UUID, TEXT_MAX)
/* clang-format on */

#define OF document_outputs
static const struct field outputs_fields[] = {SHARE(dx, 0), SHARE(dw, 0), SHARE(db, 0)};
SHAPE(outputs);
#undef OF

#define OF file_entry
static const struct field entry_fields[] = {ENTRY};
const struct shape baseline_entry_shape = SHAPE_OF(entry);
static const struct field listed_entry_fields[] = {
    TEXT(device_model, 0, TEXT_MAX), TEXT(contract, 0, TEXT_MAX), ID_TEXT("case"), ENTRY};
const struct shape baseline_listed_entry_shape = SHAPE_OF(listed_entry);
#undef OF

#define OF file_case
static const struct field one_case_fields[] = {PART(entry, baseline_entry_shape)};
SHAPE(one_case);
#undef OF

#define OF file_evidence
static const struct field evidence_fields[] = {
    SIZE(time_ms, REQUIRED),
    FORMED(run_uuid, REQUIRED, FORM_UUID, TEXT_MAX),
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX),
    POSITIVE(ratio, REQUIRED),
    POSITIVE(lo, REQUIRED),
    POSITIVE(hi, REQUIRED),
    POSITIVE(again, REQUIRED | NULLABLE),
};
SHAPE(evidence);
#undef OF

#define OF file_trend
static const struct field one_trend_fields[] = {LIST(runs, 0, 1, BASELINE_TREND_MAX, evidence)};
SHAPE(one_trend);
#undef OF

#define OF file_change
static const struct field change_fields[] = {CHANGE};
SHAPE(change);
static const struct field listed_change_fields[] = {TEXT(device_model, 0, TEXT_MAX), CHANGE};
const struct shape baseline_listed_change_shape = SHAPE_OF(listed_change);
#undef OF

#define OF baseline_file
static const struct field file_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    FORMED(device_model, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    FORMED(contract, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    MAP(cases, REQUIRED, one_case),
    MAP(trends, 0, one_trend),
    LIST(log, REQUIRED, 0, 1000000, change),
};
const struct shape baseline_file_shape = SHAPE_OF(file);
#undef OF

/* ---- writing ---- */

static void write_text(const char *prefix, const char *text, const char *suffix, struct buf *out)
{
    buf_puts(out, prefix);
    json_escape(text, out);
    buf_puts(out, suffix);
}

/* Only where there is one: most files have none. */
static void write_trends(const struct baseline_file *f, struct buf *out)
{
    if (!f->n_trends)
        return;
    buf_puts(out, "  \"trends\": {");
    for (size_t i = 0; i < f->n_trends; i++) {
        const struct file_trend *trend = &f->trends[i];
        write_text("\n    \"", trend->id, "\": [", out);
        for (size_t j = 0; j < trend->n_runs; j++) {
            buf_puts(out, "\n      ");
            fields_write_spaced(&evidence, &trend->runs[j], out);
            buf_puts(out, j + 1 < trend->n_runs ? "," : "\n    ]");
        }
        buf_puts(out, i + 1 < f->n_trends ? "," : "\n  },\n");
    }
}

void baseline_file_write(const struct baseline_file *f, struct buf *out)
{
    write_text("{\n  \"schema\": \"", f->schema, "\",\n", out);
    write_text("  \"device_model\": \"", f->device_model, "\",\n", out);
    write_text("  \"contract\": \"", f->contract, "\",\n  \"cases\": {", out);
    for (size_t i = 0; i < f->n_cases; i++) {
        write_text("\n    \"", f->cases[i].id, "\": ", out);
        fields_write_spaced(&baseline_entry_shape, &f->cases[i].entry, out);
        buf_puts(out, i + 1 < f->n_cases ? "," : "\n  ");
    }
    buf_puts(out, "},\n");
    write_trends(f, out);
    buf_puts(out, "  \"log\": [");
    for (size_t i = 0; i < f->n_log; i++) {
        buf_puts(out, "\n    ");
        fields_write_spaced(&change, &f->log[i], out);
        buf_puts(out, i + 1 < f->n_log ? "," : "\n  ");
    }
    buf_puts(out, "]\n}\n");
}
