/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/run.h"

#include <math.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"

/* ---- a part ---- */

bool shard_parse(void *out, const char *text)
{
    char *end;
    unsigned long index = strtoul(text, &end, 10), count = 0;
    if (end != text && *end == '/' && end[1] >= '1' && end[1] <= '9' && *text >= '1')
        count = strtoul(end + 1, &end, 10);
    if (*end || !index || index > count || count > SHARDS_MAX)
        return false;
    *(struct shard *)out = (struct shard){.index = index, .count = count};
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

enum gate_status shard_select(struct shard *s, struct suite *suite, struct gate_error *err)
{
    size_t n = suite->n_cases;
    char threshold[40];
    SHA2_CTX sha;
    if (n < s->count)
        return gate_fail(err, GATE_USAGE, "%zu cases cannot be measured in %zu parts", n, s->count);
    RELEASED_BY(free_at) struct dealt *all = xcalloc(n, sizeof *all);
    RELEASED_BY(free_at) bool *is_mine = xcalloc(n, sizeof *is_mine);
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
    for (size_t turn = 0; turn < n; turn++) { /* it goes to and fro: 1 2 3 3 2 1 1 2 3 ... */
        size_t at = turn % (2 * s->count);
        if ((at < s->count ? at : 2 * s->count - 1 - at) == s->index - 1)
            is_mine[all[turn].position] = true;
    }
    suite->n_cases = 0;
    for (size_t i = 0; i < n; i++)
        if (is_mine[i]) {
            s->positions[suite->n_cases] = i;
            suite->cases[suite->n_cases++] = suite->cases[i];
        }
    return GATE_OK;
}

void shard_release(struct shard *s)
{
    free(s->positions);
    s->positions = NULL;
}

/* ---- one run of several ---- */

#define NAMED_MAX 20 /* parts that are missing, by number */

/* 0: not known. */
static double positive(double x)
{
    return x > 0 ? x : 0;
}

static bool differ(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") != 0;
}

static enum gate_status check_same(const struct document *first, const struct document *d,
                                   struct gate_error *err)
{
    const char *what = NULL;
    if (!first->has_shard || !d->has_shard)
        return gate_fail(err, GATE_USAGE, "run %.8s covers a whole suite, not a part: see --shard",
                         first->has_shard ? d->uuid : first->uuid);
    if (first->shard.count != d->shard.count || first->shard.cases != d->shard.cases ||
        differ(first->shard.suite_sha256, d->shard.suite_sha256))
        what = "parts of different suites, or of different numbers of parts";
    else if (differ(first->git.commit, d->git.commit) || first->git.dirty != d->git.dirty)
        what = "of different commits";
    else if (differ(first->libraries[0].sha256, d->libraries[0].sha256))
        what = "of different libraries";
    else if (first->policy.threshold != d->policy.threshold ||
             positive(first->policy.host_threshold) != positive(d->policy.host_threshold) ||
             differ(first->policy.against, d->policy.against) ||
             differ(first->policy.warn_against, d->policy.warn_against))
        what = "compared with different things, or by different thresholds";
    if (what)
        return gate_fail(err, GATE_USAGE, "runs %.8s and %.8s are %s", first->uuid, d->uuid, what);
    if (differ(first->device.model, d->device.model))
        what = "different device models";
    else if (differ(first->epoch, d->epoch))
        what = "different drivers, toolkits or power limits";
    else if (differ(first->contract, d->contract))
        what = "different contracts";
    return what ? gate_fail(err, GATE_ENVIRONMENT,
                            "runs %.8s and %.8s were measured with %s, and are not one run",
                            first->uuid, d->uuid, what)
                : GATE_OK;
}

/* Each case in its place in the suite; then without the places of those that are not served. */
static enum gate_status place_cases(const struct document *parts, size_t n, struct document *whole,
                                    struct gate_error *err)
{
    size_t n_places = (size_t)whole->shard.cases, placed = 0;
    for (size_t i = 0; i < n; i++) {
        const struct document *d = &parts[i];
        if (d->shard.n_positions != d->n_cases)
            return gate_fail(err, GATE_NO_VERDICT, "run %.8s has %zu cases for %zu places", d->uuid,
                             d->n_cases, d->shard.n_positions);
        for (size_t k = 0; k < d->n_cases; k++, placed++) {
            double at = d->shard.positions[k];
            if (!(at >= 0 && at < (double)n_places) || whole->cases[(size_t)at].id)
                return gate_fail(err, GATE_NO_VERDICT, "case '%s' of run %.8s has no place",
                                 d->cases[k].id, d->uuid);
            whole->cases[(size_t)at] = d->cases[k];
        }
        for (size_t k = 0; k < d->n_not_served && placed < n_places; k++, placed++)
            whole->not_served[whole->n_not_served++] = d->not_served[k];
    }
    if (placed != n_places)
        return gate_fail(err, GATE_NO_VERDICT, "only %zu of %zu cases were measured", placed,
                         n_places);
    for (size_t i = 0; i < n_places; i++)
        if (whole->cases[i].id)
            whole->cases[whole->n_cases++] = whole->cases[i];
    return GATE_OK;
}

static void add_libraries(const struct document *d, struct document *whole)
{
    for (size_t i = 0; i < d->n_libraries; i++) {
        const struct document_library *library = &d->libraries[i];
        bool known = false;
        for (size_t k = 0; k < whole->n_libraries; k++)
            known |= whole->libraries[k].role == library->role &&
                     !differ(whole->libraries[k].sha256, library->sha256) &&
                     !differ(whole->libraries[k].provider, library->provider);
        if (!known && whole->n_libraries < DOCUMENT_LIBRARIES_MAX)
            whole->libraries[whole->n_libraries++] = *library;
    }
}

/* RFC 9562's version 8, of the parts' own. */
static void derive_uuid(const struct document *parts, size_t n, char uuid[37])
{
    SHA2_CTX sha;
    char hex[65];
    SHA256Init(&sha);
    for (int64_t index = 1; index <= (int64_t)n; index++)
        for (size_t i = 0; i < n; i++)
            if (parts[i].shard.index == index)
                SHA256Update(&sha, (const unsigned char *)parts[i].uuid, strlen(parts[i].uuid));
    SHA256End(&sha, hex);
    snprintf(uuid, 37, "%.8s-%.4s-8%.3s-%c%.3s-%.12s", hex, hex + 8, hex + 12, "89ab"[hex[15] % 4],
             hex + 16, hex + 19);
}

static enum yes_no both(enum yes_no a, enum yes_no b)
{
    return a == NO || b == NO ? NO : a == YES && b == YES ? YES : UNKNOWN;
}

static void add_facts(const struct document *d, struct document *whole)
{
    int64_t end = whole->time_ms + whole->duration_ms, other = d->time_ms + d->duration_ms;
    whole->time_ms = d->time_ms < whole->time_ms ? d->time_ms : whole->time_ms;
    whole->duration_ms = (other > end ? other : end) - whole->time_ms;
    if (d->n_processes > 0)
        whole->n_processes += d->n_processes;
    whole->users_checked = both(whole->users_checked, d->users_checked);
    whole->launch_order_checked = both(whole->launch_order_checked, d->launch_order_checked);
    if (isnan(whole->control_drift) || d->control_drift > whole->control_drift)
        whole->control_drift = d->control_drift;
    if (!whole->has_ceilings && d->has_ceilings) {
        whole->has_ceilings = true;
        whole->ceilings = d->ceilings;
    }
    if (differ(whole->device.uuid, d->device.uuid)) { /* each case keeps its share of its own */
        whole->device.uuid = "";
        whole->has_ceilings = false;
    }
    add_libraries(d, whole);
}

enum gate_status merge_documents(const struct document *parts, size_t n, struct buf *out,
                                 struct gate_error *err)
{
    struct document whole = parts[0];
    struct document_library libraries[DOCUMENT_LIBRARIES_MAX];
    size_t counts[VERDICT_COUNT] = {0}, n_missing = 0;
    unsigned seen[SHARDS_MAX + 1] = {0};
    char uuid[37], missing[200] = "";
    for (size_t i = 0; i < n; i++)
        TRY(check_same(&parts[0], &parts[i], err));
    for (size_t i = 0; i < n; i++)
        if (seen[parts[i].shard.index]++)
            return gate_fail(err, GATE_NO_VERDICT, "part %lld/%lld was given twice",
                             (long long)parts[i].shard.index, (long long)parts[i].shard.count);
    for (int64_t i = 1; i <= whole.shard.count; i++)
        if (!seen[i] && n_missing++ < NAMED_MAX)
            utf8_join(missing, sizeof missing, "", " %lld/%lld", (long long)i,
                      (long long)whole.shard.count);
    if (n_missing)
        return gate_fail(err, GATE_NO_VERDICT, "%zu of %lld parts are missing:%s%s", n_missing,
                         (long long)whole.shard.count, missing,
                         n_missing > NAMED_MAX ? " ..." : "");
    RELEASED_BY(free_at)
    struct document_case *cases = xcalloc((size_t)whole.shard.cases + 1, sizeof *cases);
    RELEASED_BY(free_at)
    struct document_not_served *not_served =
        xcalloc((size_t)whole.shard.cases + 1, sizeof *not_served);
    whole.n_cases = whole.n_not_served = 0;
    whole.cases = cases;
    whole.not_served = not_served;
    TRY(place_cases(parts, n, &whole, err));
    derive_uuid(parts, n, uuid);
    whole.uuid = uuid;
    whole.has_shard = false;
    whole.libraries = libraries;
    whole.n_libraries = 0;
    add_libraries(&parts[0], &whole);
    for (size_t i = 1; i < n; i++)
        add_facts(&parts[i], &whole);
    for (size_t i = 0; i < whole.n_cases; i++)
        counts[whole.cases[i].verdict]++;
    whole.verdict = (int)verdict_of_run(counts);
    whole.exit_code = verdict_exit_code(counts);
    document_write(&whole, out);
    return out->failed ? gate_fail(err, GATE_INTERNAL, "out of memory for the merged run")
                       : GATE_OK;
}
