/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_put.h: reads and stores a run document that a test made as a tree.
 */
#ifndef TESTS_TOOLS_SAMPLE_PUT_H
#define TESTS_TOOLS_SAMPLE_PUT_H

#include <cjson/cJSON.h>

#include "gate/document/document.h"
#include "gate/store/store.h"

/* document_take() of the tree's text. */
bool sample_read(const cJSON *run, struct document *out, struct field_fault *fault);

/* GATE_IO for what the reader of documents refuses. */
enum gate_status sample_put_text(struct store *s, const cJSON *run, const char *text, size_t len,
                                 bool *existed, struct gate_error *err);
/* The same with the tree's own text. `existed` may be NULL. */
enum gate_status sample_put(struct store *s, const cJSON *run, bool *existed,
                            struct gate_error *err);

#endif
