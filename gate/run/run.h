/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h: one run of a suite: verify and measure every case in as many processes as its verdict
 * takes, and write down what was seen.
 *
 * The first process verifies each case and times candidate, baseline and providers; the further
 * ones time candidate and baseline alone, with the roles swapped in every other one. A case leaves
 * when decide.h is done with it; what looks slower is measured again in a sequence of fresh
 * processes after a pause. Nothing here judges: it fetches what decide() asks for.
 */
#ifndef GATE_RUN_RUN_H
#define GATE_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/baseline/baseline.h"
#include "gate/decide/decide.h"
#include "gate/baseline/origin.h"
#include "gate/baseline/revision.h"
#include "gate/cases/suite.h"
#include "gate/run/supervisor.h"
#include "gate/base/buf.h"
#include "gate/document/document.h"

/* ---- shard.c: a suite in parts that are measured apart, by several GPUs or runners, and these
 * as one run ---- */

#define SHARDS_MAX 1000

struct shard {
    size_t index, count; /* 1 to count; count 0: the suite is whole */
    size_t n_cases;      /* of the whole suite */
    char suite_sha256[65];
    size_t *positions; /* of this part's cases in the suite */
};

/* "2/4". False: no such part. */
bool shard_parse(void *out, const char *text);

/*
 * Keeps this part's cases. The cases are dealt out by falling FLOPs, to and fro, so that the parts
 * have equally many and take about as long. GATE_USAGE: there are fewer cases than parts.
 */
enum gate_status shard_select(struct shard *s, struct suite *suite, struct gate_error *err);
void shard_release(struct shard *s);

/*
 * Appends the document of the whole run. The same parts give the same document, uuid and all.
 *
 * GATE_USAGE: a document is no part, or they are parts of different suites, commits, libraries or
 * policies. GATE_NO_VERDICT: a part is missing, or there twice. GATE_ENVIRONMENT: they were
 * measured on different device models, in different epochs or by different contracts.
 */
enum gate_status merge_documents(const struct document *parts, size_t n, struct buf *out,
                                 struct gate_error *err);

#define RUN_PROCESSES_MAX DOCUMENT_PROCESSES_MAX /* of one sequence */

/* ---- how long each case of a process is sampled for ----
 *
 * Eight rounds (four, where these leave no doubt) are enough for most kernels; in a few,
 * neighbouring samples differ so much that the process itself does not know its d to 0.1 %. More
 * rounds help these and are lost on the others, so the time that a process may spend beyond its
 * eight rounds is one pot, which goes where the process before saw the widest intervals: all are
 * brought down to one level, the lowest that the pot pays for.
 */

#define EFFORT_POT_MS 400.0  /* of a process, for all cases of the suite; a part has its share */
#define EFFORT_CASE_MS 300.0 /* of it, for one case */

/* What a process saw of a case. */
struct effort {
    double half_width; /* of the interval of the ratio, over it; 0: not known */
    double samples;    /* of an arm */
    double replay_ns;  /* how long one lasts */
};

/* Time that eight rounds take, with the rests between them. */
double effort_rounds_ms(const struct effort *e);

/* Time beyond them after which the half-width would be `level`, since it shrinks by the root of the
 * samples; at most EFFORT_CASE_MS. */
double effort_wanted_ms(const struct effort *e, double level);

/* The lowest level, MEASURE_HALF_WIDTH or more, that this pot brings all of these to, within 1 %;
 * infinite where even 100 % is too much: then nothing is wanted. */
double effort_level(const struct effort *efforts, size_t n, double pot_ms);

/* ---- what the device reaches at best in this run, by a worker of its own after the
 * verdicts, and how much of it each case reaches ---- */

/* What a document has of it. */
struct run_ceilings {
    bool asked;
    struct document_ceilings document;
    char message[400];
};

/* Only of a GPU; what cannot be had is said in the document. No other worker may be at work. */
void run_ceilings_measure(const struct supervisor_options *options,
                          const struct document_device *device, struct run_ceilings *out);

/* The share of these ceilings that a case of this dtype reaches; NaN: not known. Memory is held to
 * the faster of reading and copying, and fp32 to three TF32 products where that is faster. */
double run_ceilings_share(const struct document_ceilings *c, const char *dtype,
                          const struct document_timing *timing);

/* ---- memory.c: what earlier runs found and need not be found again ---- */

struct memory;

/* clang-format off */
#define MEMORY_ENTRY(F) \
    F(FORMED, key, REQUIRED, FORM_SHA256, TEXT_MAX) /* SHA-256 of all that it depends on */ \
    F(FORMED, library_sha256, 0, FORM_SHA256, TEXT_MAX) /* that it is about; NULL: none */ \
    F(FORMED, run_uuid, REQUIRED, FORM_UUID, TEXT_MAX) /* of the run that found it, as its seed */ \
    F(FORMED, seed, REQUIRED, FORM_SEED, TEXT_MAX) \
    F(TEXTS, fingerprints, 0, 16, 16) /* of the candidate's outputs with that seed */ \
    F(MAYBE, ceilings, 0, document_ceilings) \
    F(LIST, arms, 0, 0, 8, document_arm)

struct memory_entry { MEMORY_ENTRY(FIELD_MEMBER) };
/* clang-format on */

/*
 * Reads the memory for a run of `library` and holds it. NULL, and why on standard error: another
 * run holds it, it cannot be read, or a hash of the library would not tell
 * all of its code, since it loads others that do not come with the system.
 */
struct memory *memory_open(const char *library);

/* Writes what was put or forgotten, if `keep`, and lets go of it. No worker may be alive. NULL is
 * fine. */
void memory_close(struct memory *m, bool keep);

/* ---- a run ---- */

struct profile;
struct instructions;

/* The processes of a stage. Only a paired case has ratios; `log_ratio` is also known of one that is
 * compared with a number. */
struct run_sequence {
    struct document_process process[DECIDE_LAST_LOOK];
    struct document_timing candidate[DECIDE_LAST_LOOK]; /* of each process, without its lists */
    struct document_timing baseline[DECIDE_LAST_LOOK];  /* p50_ns NAN: it was not timed */
    size_t n, wanted; /* processes there are, and there shall be */
    size_t
        lost; /* in which the baseline was not measured; bounded, or a case could go on forever */
};

/* What is asked besides the time. */
struct run_question {
    bool asked;
    struct decision decision;
};

struct run_case {
    const struct suite_case *about;
    /* What is known of it so far, as the document will have it. run_document() adds what follows
     * from the members below, and lends the lists. */
    struct document_case record;
    char reason[1600];         /* of the record */
    bool has_result;           /* a process has looked at it */
    struct case_result result; /* of the first process, or of the one that went wrong; its arms'
                                  times in the end are those of run_summarise() */
    struct baseline_entry baseline; /* of a record that has one */
    char opened[65]; /* the library that it is paired with: the baseline's, or a rebuild of it */
    bool other_code; /* of a rebuild: what its launch() runs must be what is stored */
    struct baseline_entry again; /* the baseline's library as this run measured it; p50_ns not above
                                    0: it did not */
    char note[1000]; /* what the user should know beside the verdict: a baseline that is not at
                       hand, or that could not be measured in some processes */
    struct run_sequence sequence[DOCUMENT_STAGES];
    bool left_out; /* not served, and not counted */
    /* What an earlier run found, and this one does not look for; NULL: it does. */
    const struct memory_entry *verified, *vendors;
    uint64_t seed;      /* of its inputs: the run's, or that of the run that verified it */
    int64_t input_sets; /* that the first process rotated over, and all others must; 0: none did */
    struct effort effort; /* what the newest process saw: how long the next one is to sample */
    struct decision decision;
    size_t
        decided_n[DOCUMENT_STAGES]; /* processes that it rests on, once it is final; 0: it is not */
    struct run_question calls, fresh;
    /* What the record's counters, instructions and blame point to. */
    struct profile *profile;
    struct instructions *instructions;
    struct case_result blamed;
    char why_not_blamed[500];
};

/* What the user asks of a run. */
struct run_policy {
    double threshold;
    double host_threshold; /* of what launch() takes on the host; 0: twice as long and 20 us */
    double budget_ms; /* for the samples of one case in the first process; effort_level() gives the
                         others */
    double pause_s;   /* before the confirmation */
    bool accept_new;  /* what has no baseline is measured in DECIDE_FIRST_LOOK processes as well */
    bool allow_dirty; /* a tree with changes that were not committed may give baselines */
    bool ratchet;     /* the baselines may move: see ratchet.c */
    bool full;        /* what runs the baseline's machine code is measured as all else, and
                         nothing is remembered */
    bool vendors;     /* what they take, and the device's ceilings, are not remembered */
    const char *against; /* "baseline", or what --against named */
    const char *base;    /* the branch of which that is the merge base; NULL: it is none */
    const char
        *warn_against; /* what is compared with besides, and decides nothing; NULL: nothing */
    const char *const *changed; /* thresholds that differ from those of the merge base */
    size_t n_changed;
    const char *other; /* what reasons and errors call it: "the baseline", "B" */
};

struct run {
    const struct suite *suite;
    const struct suite *whole; /* the same without filter and shard; NULL: nothing may be missing */
    const char *filter;        /* the pattern that cases had to match; NULL: none */
    const struct shard *shard; /* which part of it; NULL: the whole */
    bool no_baselines;         /* their folder does not exist */
    const struct baseline *baseline; /* NULL: all cases are compared with the library below */
    const char *against_path, *against_sha256;
    const char *library;          /* the candidate's file */
    struct rebuild_recipe recipe; /* for baselines whose library is not at hand */
    bool own_suite; /* made for this library: what it does not serve is incomplete coverage */
    struct run_policy policy;
    struct origin origin;
    char author[400]; /* of changes of the baselines: origin_author() */
    uint64_t seed;
    char seed_text[17];         /* of the document */
    struct reproduce reproduce; /* how a wrong case is shown again; its seed is the run's */
    int64_t start_ms, end_ms;
    const struct message_greeting *greeting;  /* the supervisor's, of the worker */
    const struct message_greeting *providers; /* the same of one that opened the providers */
    struct memory *memory;                    /* of earlier runs; NULL: there is none */
    char candidate_code[65];                  /* of what its library runs; "": not known */
    struct document_library libraries[DOCUMENT_LIBRARIES_MAX]; /* of the document */
    char epoch[200];                                           /* driver/runtime/power limit */
    struct run_case *cases;
    struct document_case *missing; /* with a baseline from the suite, which lacks them now */
    size_t n_missing;
    const struct run *warning; /* the same cases compared with something else; NULL: they are not */
    size_t n_processes;
    bool samples; /* some case needs more processes than the first, which a tenth of those joins
                     that do not */
    double control_ns[DOCUMENT_STAGES][RUN_PROCESSES_MAX]; /* of each process of a sequence */
    size_t n_controls[DOCUMENT_STAGES];
    size_t counts[VERDICT_COUNT];
    struct run_ceilings ceilings;
};

/* Called before each case is given to a worker; `done` cases of `n` of this process are behind. */
typedef void (*run_progress_fn)(const struct run *run, const struct suite_case *c,
                                enum document_stage stage, size_t done, size_t n);

/*
 * Opens the libraries of the baselines that the suite needs in s's workers (a case whose
 * baseline's library is not at hand is compared with the number on record, and says so), and looks
 * up each case's baseline. GATE_ENVIRONMENT: a library has another hash than the baseline names.
 */
enum gate_status run_start(struct run *run, struct supervisor *s, struct gate_error *err);

/* How many missing cases this run reports: of the parts of a suite the first one does, so that each
 * case is there once when they are merged. */
size_t run_missing_here(const struct run *run);

/* The baseline cannot be measured: the case is compared with the number on record where that is of
 * this epoch, else with nothing, and says why. */
void run_fall_back(const struct run *run, struct run_case *c, const char *why);

/* Measures until every case is decided; fills cases, counts and times. A case for which no worker
 * can be had any more is of verdict `environment`; the others keep what they have. */
enum gate_status run_measure(struct run *run, struct supervisor *s, run_progress_fn progress,
                             struct gate_error *err);

/*
 * Changes the baselines as far as the policy lets it: new cases that are right are taken (their
 * verdict turns to pass), and the ratchet moves others. Standard error says how many new ones have
 * a p50 that is not known within half of the threshold. The candidate's file is kept as an artifact
 * when it is a baseline now. *changed: the set is to be saved.
 */
enum gate_status run_keep_baselines(struct run *run, struct baseline *baseline, bool *changed,
                                    struct gate_error *err);

/* Keeps the candidate's file as an artifact: any case that was measured may be accepted as a
 * baseline later. That it cannot be kept is said on standard error. */
void run_keep_candidate(const struct run *run);

bool run_has_providers(const struct run *run);

/* Finds for each case what earlier runs found, once it is known what it is compared with. */
void run_recall(struct run *run);

/* The rates of the device, if they are known from an earlier run. */
bool run_recall_ceilings(struct run *run);

/* Puts what is remembered of a case beside what its first process found. */
void run_add_remembered(struct run_case *c);

/* Only what was verified in this very run is called faster: is this case to be verified now? */
bool run_doubts(const struct run *run, const struct run_case *c);

/* Stores what this run found. A library that was wrong in one case is not believed in any. */
void run_remember(struct run *run);

/* After each process of a case: its verdict and reason, or how many more are wanted. */
void run_decide(const struct run *run, struct run_case *c);

/* What runs the same machine code on the same arguments takes the same time: one process is a
 * control of that. On the host only the same file takes the same time. */
bool run_is_settled(const struct run *run, const struct run_case *c);

/* May its baseline move although the candidate runs its machine code? It is of another epoch, runs
 * before this one have begun to move it, or the first process finds it off its record. */
bool run_may_move(const struct run *run, const struct run_case *c);

/* Fills c->again, and says in the reason when the baseline's record is off. */
void run_remeasure_baseline(const struct run *run, struct run_case *c);

/* Of the candidate's file, as the worker loaded it. */
const char *run_candidate_sha256(const struct run *run);

/* Of the library that a case is paired with; NULL: there is none. */
const char *run_baseline_sha256(const struct run *run, const struct run_case *c);

/* The threshold of a case: its own, or that of the policy. */
double run_threshold(const struct run *run, const struct run_case *c);

/* The candidate and the library that it is paired with are one file. */
bool run_same_library(const struct run *run, const struct run_case *c);

/* The file of the library that a case is paired with. */
enum gate_status run_baseline_path(const struct run *run, const struct run_case *c,
                                   char path[PATHS_MAX], struct gate_error *err);

/* They launched the same machine code in each process. */
bool run_same_code(const struct run_case *c);

/* The arm of a case by its role, as the first process reported it; NULL: there is none. */
const struct document_arm *run_arm(const struct run_case *c, enum document_role role);

/* The candidate's error over the baseline's, verified beside it or by its record, or over what
 * rounding alone comes to where that is more; of all outputs together or of the one where it is
 * most. 0: not both are known. */
double run_error_ratio(const struct run *run, const struct run_case *c);
bool run_error_jumped(const struct run *run, const struct run_case *c);

/* Makes a case whose error jumped a regression that says so; notes where nothing is compared. */
void run_judge_error(const struct run *run, struct run_case *c);

/* What is known beside the time (what launch() takes on the host; fresh inputs) makes of a case's
 * verdict and reason. */
void run_judge_questions(struct run_case *c);

void run_count_verdicts(struct run *run);

/* Puts a second comparison of the same cases beside the first. It decides nothing, but what one of
 * the two saw to be wrong is wrong, and what counts in one of them counts. */
void run_add_warning(struct run *run, const struct run *warning);

/*
 * Puts what all processes of a case found together into the arms that the first one reported, of
 * the candidate and of the baseline: p50, p90 and clock are medians over the processes, the
 * interval of p50 is that of the median over them, and the rates follow p50. A single process, like
 * one that happened to run at another clock, would make a trend jump.
 */
void run_summarise(struct run_case *c);

/* The run's document, whose texts, libraries and arms are the run's. */
void run_document(struct run *run, struct document *out);
void run_document_release(struct document *d);

/* Relative change of the control's median from the first sequence to the confirmation; NaN when it
 * was not timed in both. Single processes differ by up to 0.7 % on an H200 that nothing disturbs
 * (where the control's memory lies), so they are not compared with each other. */
double run_control_drift(const struct run *run);
void run_release(struct run *run);

/*
 * ---- causes.c: why is a case slower? ----
 *
 * Looked for in each regression that is compared with a library, after the verdicts, which nothing
 * here changes: which node of its launch carries it, which instructions of its kernels occur more
 * or less often, and, if `profiled`, what the hardware counted. No other worker runs then, and
 * what cannot be had is said. False: there was nothing to look at.
 */
bool causes_find(struct run *run, struct supervisor *s, bool profiled,
                 void (*progress)(const char *text));

#endif
