/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.h: a run document (gate/formats/run.schema.json), the record of one run. `gate run`
 * writes it; the history stores it, reports read it, and `gate push` sends it to the server.
 *
 * Members have the names of their keys. A value that is not known is NAN (numbers), -1 (counts),
 * NULL (texts) or UNKNOWN (yes or no); a part that may be missing has a `has_` member. Times that
 * end in _ms are since 1970 (UTC); ratios are candidate / other.
 */
#ifndef GATE_DOCUMENT_DOCUMENT_H
#define GATE_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"
#include "gate/base/error.h"
#include "gate/decide/stats.h"
#include "gate/document/fields.h"
#include "gate/decide/decide.h"

enum document_device_kind { DEVICE_HOST, DEVICE_CUDA };
enum document_role { ROLE_CANDIDATE, ROLE_BASELINE, ROLE_PROVIDER };
enum document_mode { MODE_UNKNOWN = -1, MODE_PAIRED, MODE_NUMBER, MODE_NONE };
enum document_stage { STAGE_FIRST, STAGE_CONFIRMATION, DOCUMENT_STAGES };

extern const char *const document_roles[], *const document_modes[], *const document_stages[];

#define DOCUMENT_FIRST_PARENTS_MAX 256
#define DOCUMENT_LIBRARIES_MAX 16
#define DOCUMENT_PROCESSES_MAX 64 /* of a case */
#define DOCUMENT_OUTPUTS_MAX 12   /* of an op */
#define DOCUMENT_KERNELS_MAX 16
#define DOCUMENT_KERNEL_NAME_SIZE 1001 /* of a name that is longer the beginning is kept */
#define DOCUMENT_NODES_MAX 16
#define DOCUMENT_OPCODE_SIZE 24
#define LAUNCHES_TEXT_MAX 4000

/* clang-format off */
#define F(kind, ...) MEMBER_##kind(__VA_ARGS__)
#define ASIDE(members) members
#define BEGIN struct MEMBERS_OF {
#define END };
#include "gate/document/document_members.h"
/* clang-format on */

/*
 * Reads a document from a text, of which it keeps no part. If run.schema.json does not allow it,
 * returns false with the first fault, as fields_take() does. out->taken.bytes is set even then.
 * Release the document if the result is true.
 */
bool document_take(const char *text, size_t len, struct document *out, struct field_fault *fault);

/* The same for a text that begins on line `first_line` of the file `name`. Returns `status` with
 * "NAME:LINE:COLUMN: /pointer: fault" if it does not fit. */
enum gate_status document_parse(const char *name, unsigned first_line, const char *text, size_t len,
                                enum gate_status status, struct document *out,
                                struct gate_error *err);

/* The same for a file. GATE_IO: it cannot be read, or does not fit. */
enum gate_status document_load(const char *path, struct document *out, struct gate_error *err);
void document_release(struct document *d);

/*
 * Did another tool measure the case (gate/foreign)? Nothing was verified, and there is no verdict.
 * The contract of such a run is "foreign-TOOL", its cases are "foreign/TOOL/...".
 */
#define DOCUMENT_FOREIGN "foreign"
bool document_case_is_foreign(const struct document_case *c);

/* The first arm with that role; NULL if none has, for example after the worker died. */
const struct document_arm *document_find_arm(const struct document_arm *arms, size_t n,
                                             enum document_role role);
const struct document_arm *document_candidate(const struct document_case *c);

/* The old kernel to compare with the i-th new one: the one with its name, or the only one if both
 * sides have a single kernel. NULL if there is none. */
const struct document_kernel *document_kernel_of(const struct document_timing *old,
                                                 const struct document_timing *new, size_t i);

/* The document, and the parts that also occur elsewhere. */
extern const struct shape document_shape, document_output_shape, document_device_shape,
    document_library_shape, document_absent_shape, document_arm_shape, document_blame_shape,
    document_calibrated_shape, document_case_shape, document_ceilings_shape, document_covered_shape,
    document_covered_layouts_shape, document_covered_values_shape, document_verify_shape,
    document_process_shape, document_timing_shape;

/* Adds to a count that is not there rather than 0; or to the one whose key is a name, with '_' for
 * its spaces. */
static inline void document_count(int64_t *n, int64_t more)
{
    if (more > 0)
        *n = *n > 0 ? *n + more : more;
}
void document_count_named(const struct shape *s, void *counts, const char *name);

/* Removes all cases with other ids, also from the calibration. */
void document_keep_case(struct document *d, const char *id);

/* Limits of a plausible clock: one that was never set shows 1970. */
#define DOCUMENT_AHEAD_MS ((int64_t)24 * 3600 * 1000)
#define DOCUMENT_FIRST_MS 1420070400000 /* 2015-01-01: no run is older */

/*
 * Checks that a document from elsewhere is consistent. The reader checks the form; this checks the
 * claims. False, with the first fault, for a document that
 *   - begins before DOCUMENT_FIRST_MS, or more than DOCUMENT_AHEAD_MS after `now_ms` (ms since
 *     1970), or has a baseline that is from so far ahead;
 *   - has neither a case nor a calibration, or a duplicate case;
 *   - has a verdict or an exit code that does not follow from its cases (or its calibration);
 *   - judges the speed of a case whose candidate was not verified and timed;
 *   - has an interval that does not contain its value, or lacks one, and no other tool measured it;
 *   - mixes cases of another tool with those of the gate, or judges them;
 *   - passes a case whose interval reaches the threshold without a confirmation, or whose error
 *     jumped; or calls a case a regression although its ratio is below the threshold and its error
 *     did not jump.
 */
bool document_check(const struct document *d, int64_t now_ms, struct field_fault *fault);

/* Appends the document as JSON on one line, with a newline. */
void document_write(const struct document *d, struct buf *out);

#endif
