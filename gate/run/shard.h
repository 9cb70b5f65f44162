/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h: a suite in parts that are measured apart, by several GPUs or runners.
 */
#ifndef GATE_RUN_SHARD_H
#define GATE_RUN_SHARD_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/cases/suite.h"

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

#endif
