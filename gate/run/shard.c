/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/shard.h"

#include "gate/base/alloc.h"

#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool shard_parse(const char *text, struct shard *out)
{
    char *end;
    unsigned long index = strtoul(text, &end, 10), count = 0;
    if (end != text && *end == '/' && end[1] >= '1' && end[1] <= '9' && *text >= '1')
        count = strtoul(end + 1, &end, 10);
    if (*end || !index || index > count || count > SHARDS_MAX)
        return false;
    *out = (struct shard){.index = index, .count = count};
    return true;
}

struct dealt {
    double flops;
    size_t position;
};

static int compare_flops(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;
    if (x->flops != y->flops)
        return x->flops < y->flops ? 1 : -1;
    return (x->position > y->position) - (x->position < y->position);
}

static int compare_positions(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;
    return (x->position > y->position) - (x->position < y->position);
}

/* The turn goes to and fro: 1 2 3 3 2 1 1 2 3 ... */
static bool is_mine(const struct shard *s, size_t turn)
{
    size_t at = turn % (2 * s->count);
    return (at < s->count ? at : 2 * s->count - 1 - at) == s->index - 1;
}

enum gate_status shard_select(struct shard *s, struct suite *suite, struct gate_error *err)
{
    size_t n = suite->n_cases, mine = 0;
    char threshold[40];
    SHA2_CTX sha;
    if (n < s->count)
        return gate_fail(err, GATE_USAGE, "%zu cases cannot be measured in %zu parts", n, s->count);
    struct dealt *all = xcalloc(n, sizeof *all);
    s->positions = xcalloc(n, sizeof *s->positions);
    SHA256Init(&sha);
    for (size_t i = 0; i < n; i++) {
        const struct suite_case *c = &suite->cases[i];
        all[i] = (struct dealt){problem_flops(&c->problem), i};
        SHA256Update(&sha, (const unsigned char *)c->id, strlen(c->id) + 1);
        snprintf(threshold, sizeof threshold, "%.17g", c->threshold);
        SHA256Update(&sha, (const unsigned char *)threshold, strlen(threshold) + 1);
    }
    SHA256End(&sha, s->suite_sha256);
    s->n_cases = n;
    qsort(all, n, sizeof *all, compare_flops);
    for (size_t turn = 0; turn < n; turn++)
        if (is_mine(s, turn))
            all[mine++] = all[turn];
    qsort(all, mine, sizeof *all, compare_positions);
    for (size_t i = 0; i < mine; i++) {
        s->positions[i] = all[i].position;
        suite->cases[i] = suite->cases[all[i].position];
    }
    suite->n_cases = mine;
    free(all);
    return GATE_OK;
}

void shard_release(struct shard *s)
{
    free(s->positions);
    s->positions = NULL;
}
