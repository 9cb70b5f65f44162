/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h: a suite in parts that are measured apart, by several GPUs or runners, and these as one
 * run.
 */
#ifndef GATE_RUN_SHARD_H
#define GATE_RUN_SHARD_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"
#include "gate/cases/suite.h"
#include "gate/document/document.h"

#define SHARDS_MAX 1000

struct shard {
    size_t index, count; /* 1 to count; count 0: the suite is whole */
    size_t n_cases;      /* of the whole suite */
    char suite_sha256[65];
    size_t *positions; /* of this part's cases in the suite */
};

/* "2/4". False: no such part. */
bool shard_parse(const char *text, struct shard *out);

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

#endif
