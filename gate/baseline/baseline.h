/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.h: the stored baselines of one device model, baselines/<device-model>.json
 * (baseline.schema.json).
 *
 * The file is reviewed like code: one line a case, sorted by id, and a log that only grows. Times
 * are in ns per launch where the name ends in _ns, in ms since 1970 where it ends in _ms.
 */
#ifndef GATE_BASELINE_BASELINE_H
#define GATE_BASELINE_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/error.h"
#include "gate/decide/stats.h"
#include "gate/document/document.h"
#include "gate/decide/decide.h"

struct baseline;

/*
 * A baseline, as its file has it. Members have the names of their keys, and an unknown value is as
 * in document.h. One that is not read from a file begins with baseline_clear().
 */
/* clang-format off */
#define MEMBER_POSITIVE(member, flag) double member;
#define MEMBER_ID_TEXT(member, key) const char *member;
#define BASELINE_ENTRY(F) \
    F(POSITIVE, p50_ns, REQUIRED) \
    F(POSITIVE, p50_lo_ns, REQUIRED) \
    F(POSITIVE, p50_hi_ns, REQUIRED) \
    F(POSITIVE, p90_ns, REQUIRED) \
    F(POSITIVE, control_ns, REQUIRED) /* of the control kernel when it was measured */ \
    /* For a baseline without its library: SD over processes of ln(p50 / control), or what a \
     * process knows its p50 within, whichever is more. */ \
    F(SHARE, spread, REQUIRED) \
    F(FORMED, kernel, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS) \
    F(SIZE, input_sets, 0) /* that its samples rotated over */ \
    F(FORMED, commit, REQUIRED, FORM_COMMIT, TEXT_MAX) \
    F(FORMED, run_uuid, REQUIRED, FORM_UUID, TEXT_MAX) \
    F(SIZE, time_ms, REQUIRED) /* start of the run that measured it */ \
    F(TEXT, epoch, REQUIRED, TEXT_MAX) /* of the run, "" when it named none */ \
    F(FORMED, library_sha256, REQUIRED, FORM_SHA256, TEXT_MAX) \
    F(FORMED, code_sha256, 0, FORM_SHA256, TEXT_MAX) /* machine_code_of_file() of it */ \
    F(FORMED, op_sha256, 0, FORM_SHA256, TEXT_MAX) /* of a user's op; NULL: it is built in */ \
    F(TEXT, launches, 0, LAUNCHES_TEXT_MAX) /* what its launch() runs: revision.h */ \
    F(YES_NO, dirty) /* built with changes that were not committed */ \
    F(SHARE, rel_fro, 0) /* its error in that run: the worst of all outputs, */ \
    F(NAMED, outputs, 0, DOCUMENT_OUTPUTS_MAX, document_output) /* of each of several, */ \
    F(FORMED, vendor, 0, FORM_NAME, NAME_MAX_CHARACTERS) \
    F(POSITIVE, vendor_ratio, 0) /* and over the vendor's on the same inputs */ \
    /* Names of those that it was taken in; to be stored: those of the measurement, which are \
     * added to the ones that are there. */ \
    F(TEXTS, suites, 0, BASELINE_SUITES_MAX, NAME_MAX_CHARACTERS)

struct baseline_entry {
    const char *device_model, *contract, *case_id; /* in listings alone */
    BASELINE_ENTRY(FIELD_MEMBER)
};
/* clang-format on */

struct baseline_case {
    const char *id;
    struct baseline_entry entry;
};

#define BASELINE_SUITES_MAX 64

/*
 * A run of a trend: what several runs in a row found that may move the baseline of a case
 * (see below). It is kept here, because the history of a runner may be gone tomorrow.
 */
struct baseline_evidence {
    int64_t time_ms; /* start of the run */
    const char *run_uuid, *commit;
    struct estimate ratio; /* candidate over baseline */
    double
        again; /* the baseline's own library over its record, where that is off; NAN: it is not */
};

#define BASELINE_TREND_MAX 8

struct baseline_trend {
    const char *id;                 /* of the case */
    struct baseline_evidence *runs; /* oldest first */
    size_t n_runs;
};

enum baseline_action {
    BASELINE_ACCEPT_NEW, /* the case had none */
    BASELINE_ACCEPT,     /* someone decided; the one way to a slower baseline */
    BASELINE_RATCHET,    /* a confirmed improvement lowered it */
    BASELINE_TREND,      /* small improvements, one run after the other, lowered it */
    BASELINE_EPOCH,      /* the same library was measured anew: its record is of another epoch */
    BASELINE_RETIRE,     /* someone decided that the case is measured no more */
};

/* clang-format off */
#define BASELINE_CHANGE(F) \
    F(SIZE, time_ms, REQUIRED) \
    F(ID_TEXT, case_id, "case") \
    F(WORD, action, REQUIRED, field_actions) /* enum baseline_action */ \
    F(POSITIVE, from_ns, REQUIRED | NULLABLE) /* NAN: there was none */ \
    F(POSITIVE, to_ns, REQUIRED | NULLABLE) /* NAN: there is none now */ \
    F(WORDS, reason, REQUIRED, REASON_MAX) \
    F(WORDS, author, REQUIRED, TEXT_MAX) \
    F(FORMED, commit, REQUIRED, FORM_COMMIT, TEXT_MAX) \
    F(FORMED, run_uuid, REQUIRED, FORM_UUID, TEXT_MAX)

struct baseline_change {
    const char *device_model; /* in listings alone */
    BASELINE_CHANGE(FIELD_MEMBER)
};

/* Cases are sorted by id, like the trends; the log's oldest change comes first. */
#define BASELINE_FILE(F) \
    F(CHOICE, schema, REQUIRED, schemas) \
    F(FORMED, device_model, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS) \
    F(FORMED, contract, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS) /* "" of an empty set */ \
    F(MAP, cases, REQUIRED, baseline_case) \
    F(MAP, trends, 0, baseline_trend) \
    F(LIST, log, REQUIRED, 0, 1000000, baseline_change)

struct baseline_file { BASELINE_FILE(FIELD_MEMBER) };
/* clang-format on */

/* listed_...: with the members that only listings have. */
extern const struct shape baseline_file_shape, baseline_listed_entry_shape,
    baseline_listed_change_shape;

void baseline_clear(struct baseline_entry *entry);

struct baseline_note {
    enum baseline_action action;
    const char *reason; /* not empty */
    const char *author; /* not empty */
    int64_t time_ms;    /* of the decision */
};

/* DIR/DEVICE-MODEL.json; free(). */
char *baseline_path(const char *folder, const char *device_model);

/*
 * Reads a file; one that does not exist is an empty set. GATE_IO with "FILE:LINE:COLUMN: ..." for a
 * file that is truncated, does not fit the schema or is of another device model; `device_model`
 * NULL takes the file's. *out is the caller's (baseline_free).
 */
enum gate_status baseline_load(const char *path, const char *device_model, struct baseline **out,
                               struct gate_error *err);
void baseline_free(struct baseline *b); /* NULL is fine */

/* What is stored. The texts stay until baseline_free(), whatever is stored later. */
const struct baseline_file *baseline_stored(const struct baseline *b);

/* Was it measured of the op as it is defined now? NULL: of a built-in one. */
bool baseline_is_of_op(const struct baseline_entry *entry, const char *op_sha256);

/* The baseline of a case; false when there is none under this contract. */
bool baseline_find(const struct baseline *b, const char *case_id, const char *contract,
                   struct baseline_entry *out);

/*
 * Stores a baseline and appends to the log. All baselines of a file have one contract, so
 * GATE_USAGE when `contract` is not the file's, and when a text is empty or too long.
 * GATE_INTERNAL, since a program asks for what it must not: accept-new for a case that has a
 * baseline of the same op, a ratchet or trend that does not lower one, and an epoch of another
 * library. Ends the case's trend. Copies all strings.
 */
enum gate_status baseline_set(struct baseline *b, const char *case_id, const char *contract,
                              const struct baseline_entry *entry, const struct baseline_note *note,
                              struct gate_error *err);

/* Removes the baseline of a case and says so in the log, so that a run of its suites does not miss
 * it any more. GATE_USAGE: it has none, or a text of the note is empty or too long. */
enum gate_status baseline_retire(struct baseline *b, const char *case_id,
                                 const struct baseline_note *note, struct gate_error *err);

/* The newest runs of a case's trend; NULL: it has none. */
struct baseline_trend *baseline_trend(const struct baseline *b, const char *case_id);

/* Forgets the oldest run beyond BASELINE_TREND_MAX. GATE_INTERNAL: the case has no baseline. Copies
 * the strings. */
enum gate_status baseline_trend_add(struct baseline *b, const char *case_id,
                                    const struct baseline_evidence *e, struct gate_error *err);

bool baseline_trend_end(struct baseline *b, const char *case_id); /* false: there was none */

/* Makes the folder if it is missing, waits until no other process holds it, then holds it until *fd
 * is closed: from baseline_load() to baseline_save(), so that what two commands change at once is
 * not lost. */
enum gate_status baseline_lock(const char *folder, int *fd, struct gate_error *err);

/* Writes the file whole or not at all. An empty set has no contract and is refused. */
enum gate_status baseline_save(const struct baseline *b, const char *path, struct gate_error *err);

/* What made the record of a case what it is, by the log; NULL: not in the log. */
const char *baseline_made_by(const struct baseline *b, const char *case_id,
                             const struct baseline_entry *entry);

typedef enum gate_status (*baseline_file_fn)(void *context, const char *device_model,
                                             const struct baseline *baseline,
                                             struct gate_error *err);

/* Calls fn for each DIR/<device-model>.json in the order of the names, or for one model alone (an
 * empty set where it has no file), until one fails. GATE_IO: as baseline_load(). */
enum gate_status baseline_files_each(const char *folder, const char *device_model,
                                     baseline_file_fn fn, void *context, struct gate_error *err);

/* ---- ratchet.c: how a run moves a stored baseline ----
 *
 * What a run is compared with is the baseline's library, so a baseline that is too slow lets
 * regressions pass, and one that is too fast (the luckiest of many measurements: the winner's
 * curse) fails unchanged code. A case's baseline moves by itself in three ways, the first two of
 * which lower it:
 *
 *   ratchet  an improvement over the threshold T, confirmed in fresh processes (decide.h);
 *   trend    RATCHET_TREND_RUNS runs in a row, each of which was judged and found the case faster
 *            with its whole interval below -T / RATCHET_TREND_PART. A run that was judged and did
 *            not find it so ends the trend. One lucky run is nothing;
 *   epoch    the same library was measured anew: under another driver, runtime or power limit, or
 *            because RATCHET_TREND_RUNS runs in a row found it off its record, all to the same
 *            side: by more than RATCHET_EPOCH_CHANGE and more than RATCHET_EPOCH_SPREADS spreads,
 *            while the control is where it was. Up or down alike, so that it has no drift. One
 *            run is not enough, for hours differ. The verdict is not touched: it rests on the
 *            pair.
 *
 * The number of a lowered baseline is the record's times the ratio that the pair gave in the
 * sequence that decided (the confirmation, or the last run of a trend): an absolute time would be
 * of this hour's clocks, and the lowest hours would stick. p50_ns and control_ns stay of one
 * moment. Simulated over 1,000 runs of unchanged code (tests/unit/test_ratchet.c): the baseline
 * does not move, and the number of one that moved is off by no more than 0.05 % in the mean.
 */

#define RATCHET_TREND_RUNS 5
#define RATCHET_TREND_PART 4
#define RATCHET_EPOCH_CHANGE 0.01
#define RATCHET_EPOCH_SPREADS 5

/*
 * What a run measured of an arm in the processes of one stage, as a baseline: the medians of p50
 * and control, the spread, and the arm's kernel and error. False: a process lacks the arm or its
 * control, or there is none.
 */
bool baseline_of_arm(struct baseline_entry *entry, const struct document_process *processes,
                     size_t n, enum document_stage stage, const struct document_arm *arm);

/* What a run found of a case that has a baseline. */
struct ratchet_run {
    struct baseline_entry candidate; /* medians over its processes, and what it is */
    struct baseline_entry again; /* the baseline's library in the same processes; p50_ns not above
                                    0: not measured with the control beside it */
    struct estimate ratio;       /* candidate over baseline, of the sequence that decided */
    double threshold;
    bool judged;        /* paired, and its verdict is pass, improvement, regression or no verdict */
    bool confirmed;     /* an improvement over the threshold, in both sequences */
    int64_t time_ms;    /* of the decision */
    const char *author; /* for the log */
};

/* What came of it. */
struct ratchet_end {
    bool changed;       /* the set: baseline or trend */
    bool lowered;       /* the baseline is the candidate now */
    bool epoch;         /* the baseline was measured anew */
    size_t faster, off; /* runs in a row, this one too, that found the candidate faster, or the
                           baseline off */
    char text[400];     /* for the user; "": nothing to say */
};

/*
 * The same library, measured `again`: is its record off? `why` gets half a sentence: "re-measures
 * 3.10 % slower than its record, the control +0.05 %". False for what was not measured. Changes of
 * driver, runtime or power limit are not looked at: a record of another epoch is known to be off.
 */
bool ratchet_is_off(const struct baseline_entry *record, const struct baseline_entry *again,
                    char *why, size_t why_size);

/* Does a run's ratio count for a trend? */
bool ratchet_counts(struct estimate ratio, double threshold);

/* Moves the baseline of a case that has one. The strings of *run must be valid and its texts fit
 * baseline_set(). */
enum gate_status ratchet_move(struct baseline *b, const char *case_id, const char *contract,
                              const struct ratchet_run *run, struct ratchet_end *out,
                              struct gate_error *err);

#endif
