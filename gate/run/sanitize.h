/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitize.h: workers under NVIDIA's compute-sanitizer.
 *
 * Each of its tools (memcheck, racecheck, initcheck, synccheck) starts a worker that runs the tier
 * `small` of every case; what the tool reports is read from its log. Reports that match a line of
 * the allow list are counted apart. A tool that is not here, or cannot start a worker, skips all
 * its cases, which is counted and never taken for a pass. Nor is a log that cannot be read, or a
 * tool whose exit code says that it found errors and whose log has none: each is one more error.
 */
#ifndef GATE_RUN_SANITIZE_H
#define GATE_RUN_SANITIZE_H

#include <stdio.h>

#include "gate/cases/suite.h"
#include "gate/run/supervisor.h"

#define SANITIZE_TOOLS 4
#define SANITIZE_TEXTS 8 /* different reports that are kept of each tool */
#define SANITIZE_TEXT_SIZE 1600

/* What was reported, and how often. */
struct sanitize_text {
    char text[SANITIZE_TEXT_SIZE];
    size_t times;
};

struct sanitize_tool {
    const char *name;
    size_t cases, skipped, wrong;
    size_t errors, allowed;                     /* reports */
    struct sanitize_text texts[SANITIZE_TEXTS]; /* the first errors and wrong cases */
    unsigned n_texts;
    char why_skipped[300];
};

struct sanitize {
    const struct suite *suite;
    struct supervisor_options options;
    uint64_t seed;
    const char *allow; /* file of shell patterns, one a line, # for comments; NULL: none */
    void (*progress)(const char *text); /* before each case, which takes seconds under a tool */
    struct sanitize_tool tools[SANITIZE_TOOLS];
};

/* Fill in all but the tools. GATE_IO, GATE_USAGE: the allow list cannot be read. */
enum gate_status sanitize_run(struct sanitize *s, struct gate_error *err);

/* Reads one log of a tool, of any length, to its end; `patterns` is the text of an allow list.
 * False: it cannot be read. */
bool sanitize_read_log(FILE *log, const char *patterns, struct sanitize_tool *tool);

#endif
