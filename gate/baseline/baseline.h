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

struct baseline;

#define BASELINE_OUTPUTS_MAX 4

/* How wrong one of several outputs was. */
struct baseline_output {
    char name[8];
    double rel_fro;
};

/* How wrong the baseline was in the run that measured it, by its verification. */
struct baseline_error {
    bool known;
    double rel_fro; /* the worst of all outputs */
    struct baseline_output outputs[BASELINE_OUTPUTS_MAX];
    unsigned n_outputs;  /* 0: it has but one, or was recorded before they were kept */
    double vendor_ratio; /* over the vendor's on the same inputs; 0: not known */
    char vendor[65];     /* "": no vendor's was right */
};

struct baseline_entry {
    double p50_ns, p50_lo_ns, p50_hi_ns, p90_ns;
    double control_ns; /* of the control kernel when the baseline was measured */
    double spread; /* for a baseline without its library: SD over processes of ln(p50 / control), or
                      what a process knows its p50 within, whichever is more */
    int64_t time_ms; /* start of the run that measured it */
    const char *kernel;
    const char *commit; /* 40 hex digits, or "" */
    const char *run_uuid;
    const char *library_sha256; /* 64 hex digits */
    const char *code_sha256;    /* machine_code_of_file() of it; NULL or "": not known */
    bool dirty;                 /* built with changes that were not committed */
    const char *epoch;          /* of the run, "" when it named none */
    struct baseline_error error;
    const char *const *suites; /* names of those that it was taken in; to be stored: those of the
                                  measurement, which are added to the ones that are there */
    size_t n_suites;           /* 0: not known */
};

#define BASELINE_SUITES_MAX 64

/*
 * Fills control_ns (the median) and spread (0 for a single process) from what n processes measured,
 * p50 and control of each. False, and nothing is filled, unless all of them are positive.
 */
bool baseline_control(struct baseline_entry *entry, const double *p50_ns, const double *control_ns,
                      size_t n);

/* Raises `spread` to what a process knows its p50 within: the median over n processes of half of
 * its interval. 0 of a process: not known. */
void baseline_allow_for(struct baseline_entry *entry, const double *half_width, size_t n);

struct baseline_error baseline_error_of_document(const struct document_verify *verify);

enum baseline_action {
    BASELINE_ACCEPT_NEW, /* the case had none */
    BASELINE_ACCEPT,     /* someone decided; the one way to a slower baseline */
    BASELINE_RATCHET,    /* a confirmed improvement lowered it */
    BASELINE_TREND,      /* small improvements, one run after the other, lowered it */
    BASELINE_EPOCH,      /* the same library was measured anew: its record is of another epoch */
    BASELINE_RETIRE,     /* someone decided that the case is measured no more */
    BASELINE_ACTION_COUNT
};

const char *baseline_action_name(enum baseline_action action); /* "accept-new", ..., "retire" */

struct baseline_note {
    enum baseline_action action;
    const char *reason; /* not empty */
    const char *author; /* not empty */
    int64_t time_ms;    /* of the decision */
};

struct baseline_change {
    int64_t time_ms;
    const char *case_id;
    enum baseline_action action;
    double from_ns; /* 0: there was none */
    double to_ns;   /* 0: there is none now */
    const char *reason, *author, *commit, *run_uuid;
};

/* DIR/DEVICE-MODEL.json; free(). NULL: out of memory. */
char *baseline_path(const char *folder, const char *device_model);

/*
 * Reads a file; one that does not exist is an empty set. GATE_IO with "FILE:LINE:COLUMN: ..." for a
 * file that is truncated, does not fit the schema or is of another device model; `device_model`
 * NULL takes the file's. *out is the caller's (baseline_free).
 */
enum gate_status baseline_load(const char *path, const char *device_model, struct baseline **out,
                               struct gate_error *err);
void baseline_free(struct baseline *b); /* NULL is fine */

/* "" for an empty set. Valid until baseline_set(). */
const char *baseline_contract(const struct baseline *b);

/*
 * The baseline of a case; false when there is none under this contract. The strings of *out are
 * valid until baseline_set() on the same case.
 */
bool baseline_find(const struct baseline *b, const char *case_id, const char *contract,
                   struct baseline_entry *out);

/*
 * Stores a baseline and appends to the log. All baselines of a file have one contract, so
 * GATE_USAGE when `contract` is not the file's, and when a text is empty or too long.
 * GATE_INTERNAL, since a program asks for what it must not: accept-new for a case that has a
 * baseline, a ratchet or trend that does not lower one, and an epoch of another library. Ends the
 * case's trend. Copies all strings.
 */
enum gate_status baseline_set(struct baseline *b, const char *case_id, const char *contract,
                              const struct baseline_entry *entry, const struct baseline_note *note,
                              struct gate_error *err);

/* Removes the baseline of a case and says so in the log, so that a run of its suites does not miss
 * it any more. GATE_USAGE: it has none, or a text of the note is empty or too long. */
enum gate_status baseline_retire(struct baseline *b, const char *case_id,
                                 const struct baseline_note *note, struct gate_error *err);

/*
 * The trend of a case: what the runs in a row found that may move its baseline (ratchet.h says
 * when). It is kept here, because the history of a runner may be gone tomorrow.
 */
struct baseline_evidence {
    int64_t time_ms; /* start of the run */
    const char *run_uuid, *commit;
    struct estimate ratio; /* candidate over baseline */
    double again; /* the baseline's own library over its record, where that is off; 0: it is not */
};

#define BASELINE_TREND_MAX 8

/* The newest runs of a trend, oldest first; how many there are, 0: no trend. Their strings are
 * valid until the trend changes. */
size_t baseline_trend(const struct baseline *b, const char *case_id,
                      struct baseline_evidence out[BASELINE_TREND_MAX]);

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

/* Appends a record, or a change, as a JSON object by the names of baseline.schema.json. */
void baseline_write_entry(const struct baseline *b, const char *device_model, const char *case_id,
                          const struct baseline_entry *entry, struct buf *out);
void baseline_write_change(const char *device_model, const struct baseline_change *change,
                           struct buf *out);

/* What made the record of a case what it is, by the log; NULL: not in the log. */
const char *baseline_made_by(const struct baseline *b, const char *case_id,
                             const struct baseline_entry *entry);

/* Calls fn for each case, sorted by id, and for each change, oldest first. */
typedef void (*baseline_case_fn)(void *context, const char *case_id,
                                 const struct baseline_entry *entry);
typedef void (*baseline_change_fn)(void *context, const struct baseline_change *change);
void baseline_each(const struct baseline *b, baseline_case_fn fn, void *context);
void baseline_each_change(const struct baseline *b, baseline_change_fn fn, void *context);

#endif
