/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_cases.h: each case on a device model with its newest result, filtered, sorted and in pages.
 */
#ifndef GATE_STORE_STORE_CASES_H
#define GATE_STORE_STORE_CASES_H

#include "gate/store/store_list.h"

#define STORE_SPARK 24

/* p50 of the candidate's newest points in the contract and branch of a result, oldest first. */
struct store_spark {
    int n;
    double ns[STORE_SPARK];
};

enum store_case_sort {
    STORE_CASES_WORST, /* wrong, regression, environment, no-verdict, those that an open alert calls
                          slower, the others; by ratio, falling */
    STORE_CASES_NAME,
    STORE_CASES_P50,    /* longest first */
    STORE_CASES_TIME,   /* newest first */
    STORE_CASES_CHANGE, /* slowest first, as compared with the baseline */
    STORE_CASES_VENDOR, /* the same, with the fastest other library */
    STORE_CASES_CEILING /* lowest share first */
};

#define STORE_MAX_WORDS 8

/* Filters are NULL for "any". */
struct store_case_query {
    const char *branch; /* "": of runs that name none */
    const char *device_model;
    const char *op;
    const char *dtype;
    const char *verdict;
    const char *words[STORE_MAX_WORDS]; /* each is in the name of the case or of the device */
    int n_words;
    enum store_case_sort sort;
    bool reversed; /* but those without the value stay last */
    bool without_spark;
    int64_t limit;
    const char *after; /* the `next` of an earlier page, or NULL */
};

struct store_case_page {
    int64_t n_peers;  /* cases with a vendor beside them, */
    double peer_mean; /* and the geometric mean of their times over the fastest one's */
    int64_t total;    /* that pass the filters */
    int64_t counts[VERDICT_COUNT]; /* that pass those but the verdict's */
    char next[64];                 /* "": this was the last page */
};

/* The cells are those of STORE_CASE. */
typedef bool (*store_case_fn)(void *context, const struct store_cell *cells, int n,
                              const struct store_spark *spark);

/* A page of cases. GATE_USAGE when `after` is not one of ours. */
enum gate_status store_cases(struct store *s, const struct store_case_query *query,
                             store_case_fn fn, void *context, struct store_case_page *page,
                             struct gate_error *err);

#endif
