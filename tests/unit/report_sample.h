/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_sample.h: a sample run document, changes to it, and what the report writers make of it.
 * Each function fails the running test where it cannot do what it says.
 */
#ifndef TESTS_UNIT_REPORT_SAMPLE_H
#define TESTS_UNIT_REPORT_SAMPLE_H

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "gate/report/report.h"

extern const struct report_style report_plain; /* no colour, of any width */

/* The caller's, cJSON_Delete(). */
cJSON *report_sample(void);

/* The i-th case of a document, from 0. */
cJSON *sample_case(cJSON *document, int i);

/* Replaces a member that is there by a text. */
void set_member(cJSON *object, const char *key, const char *text);

/* What a test changed must still be a document that the gate takes. */
void assert_fits_run_schema(const cJSON *document);

/* A document that must be one; its texts are the tree's. To be released. */
struct document report_read(const cJSON *document);

/* The report of a document; the caller's, free(). */
char *report_made(const cJSON *document, enum report_format format,
                  const struct report_style *style);

/* Makes it in every format. */
void report_every(const cJSON *document);

/* How often a text, or the plain report of a document, has something in it. */
size_t count(const char *text, const char *what);
int told(const cJSON *document, enum report_format format, const char *what);

/* Holds `text` against tests/golden/NAME, or writes it there with GATE_UPDATE_GOLDEN=1. */
void assert_golden(const char *name, const char *text);

#endif
