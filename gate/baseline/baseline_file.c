/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/baseline_file.h"

#include "gate/document/fields_table.h"

#define POSITIVE(member, flag) NUMBER(member, (flag) | ABOVE, 0, INFINITY)

static const char *const schemas[] = {"gate-baseline/1", NULL};

struct file_outputs {
    double dx, dw, db;
};

struct file_entry {
    double p50_ns, p50_lo_ns, p50_hi_ns, p90_ns, control_ns, spread;
    const char *kernel, *commit, *run_uuid;
    int64_t time_ms;
    const char *epoch, *library_sha256, *code_sha256;
    enum told dirty;
    double rel_fro;
    bool has_outputs;
    struct file_outputs outputs;
    const char *vendor;
    double vendor_ratio;
};

struct file_evidence {
    int64_t time_ms;
    const char *run_uuid, *commit;
    double ratio, lo, hi, again;
};

struct file_change {
    int64_t time_ms;
    const char *case_id, *action;
    double from_ns, to_ns;
    const char *reason, *author, *commit, *run_uuid;
};

struct baseline_file {
    const char *schema, *device_model, *contract;
    struct file_change *log;
    size_t n_log;
};

#define OF file_outputs
static const struct field outputs_fields[] = {SHARE(dx, 0), SHARE(dw, 0), SHARE(db, 0)};
SHAPE(outputs);
#undef OF

#define OF file_entry
static const struct field entry_fields[] = {
    POSITIVE(p50_ns, REQUIRED),
    POSITIVE(p50_lo_ns, REQUIRED),
    POSITIVE(p50_hi_ns, REQUIRED),
    POSITIVE(p90_ns, REQUIRED),
    POSITIVE(control_ns, REQUIRED),
    SHARE(spread, REQUIRED),
    FORMED(kernel, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX),
    FORMED(run_uuid, REQUIRED, FORM_UUID, TEXT_MAX),
    SIZE(time_ms, REQUIRED),
    TEXT(epoch, REQUIRED, TEXT_MAX),
    FORMED(library_sha256, REQUIRED, FORM_SHA256, TEXT_MAX),
    FORMED(code_sha256, 0, FORM_SHA256, TEXT_MAX),
    TOLD(dirty),
    SHARE(rel_fro, 0),
    MAYBE(outputs, 0, outputs),
    FORMED(vendor, 0, FORM_NAME, NAME_MAX_CHARACTERS),
    POSITIVE(vendor_ratio, 0),
};
SHAPE(entry);
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

#define OF file_change
static const struct field change_fields[] = {
    SIZE(time_ms, REQUIRED),
    {.key = "case",
     .kind = FIELD_TEXT,
     .flags = REQUIRED,
     .offset = offsetof(struct OF, case_id),
     .least = 1,
     .most = ID_MAX},
    CHOICE(action, REQUIRED, field_actions),
    POSITIVE(from_ns, REQUIRED | NULLABLE),
    POSITIVE(to_ns, REQUIRED),
    WORDS(reason, REQUIRED, REASON_MAX),
    WORDS(author, REQUIRED, TEXT_MAX),
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX),
    FORMED(run_uuid, REQUIRED, FORM_UUID, TEXT_MAX),
};
SHAPE(change);
#undef OF

static const struct field one_entry = {
    .kind = FIELD_OBJECT, .beside = FIELD_NOWHERE, .shape = &entry};
static const struct field one_trend = {
    .kind = FIELD_LIST, .beside = sizeof(void *), .least = 1, .most = 8, .shape = &evidence};

#define OF baseline_file
static const struct field file_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    FORMED(device_model, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    FORMED(contract, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    {.key = "cases", .kind = FIELD_MAP, .flags = REQUIRED, .element = &one_entry},
    {.key = "trends", .kind = FIELD_MAP, .element = &one_trend},
    LIST(log, REQUIRED, 0, 1000000, change),
};
const struct shape baseline_file = SHAPE_OF(file);
#undef OF
