/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_put.h: stores a run document that a test made as a tree.
 */
#ifndef TESTS_TOOLS_SAMPLE_PUT_H
#define TESTS_TOOLS_SAMPLE_PUT_H

#include <cjson/cJSON.h>

#include "gate/store/store.h"

/* GATE_IO for what the reader of documents refuses. */
enum gate_status sample_put_text(struct store *s, const cJSON *run, const char *text, size_t len,
                                 bool *existed, struct gate_error *err);
/* The same with the tree's own text. `existed` may be NULL. */
enum gate_status sample_put(struct store *s, const cJSON *run, bool *existed,
                            struct gate_error *err);

#endif
