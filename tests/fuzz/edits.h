/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits.h: what the targets share that read a JSON document.
 *
 * Bytes at random are hardly ever a document that passes a schema, so an input is one of two
 * things: a text as it is, when it begins with '{', else a list of edits of a good document.
 */
#ifndef TESTS_FUZZ_EDITS_H
#define TESTS_FUZZ_EDITS_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/buf.h"

/* What libFuzzer calls. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Appends the text that the input stands for. An edit is five bytes and, for some, more: what to
 * do, to which value (two bytes, counted in the order of the document, modulo their number), and
 * two bytes of argument. Every input is a list of edits.
 */
void edits_text(const cJSON *good, const uint8_t *data, size_t size, struct buf *out);

/* Ends the program, as a crash that libFuzzer notes, unless `good`. */
void fuzz_expect(int good, const char *what, const char *found);

/* A folder of its own below $TMPDIR (or /tmp) that is removed, with `name` in it, at the end. */
const char *fuzz_file(const char *name);

#endif
