/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/baseline/artifact.h"
#include "gate/cli/run_reports.h"

static bool is_baseline(const char *against)
{
    return !strcmp(against, "baseline");
}

static bool needs_baselines(const struct run_policy *p)
{
    return is_baseline(p->against) || (p->warn_against && is_baseline(p->warn_against));
}

bool run_request_keeps_baselines(const struct run_request *r)
{
    return r->policy.accept_new || r->policy.ratchet;
}

enum gate_status run_session_open_for_keeping(const struct run_request *r, struct run_session *s,
                                              struct gate_error *err)
{
    char cache[PATHS_MAX];
    enum gate_status status = baseline_lock(r->baselines, &s->lock, err);
    if (!status && access(r->baselines, W_OK))
        status = gate_fail(err, GATE_IO, "cannot write to '%s': %s", r->baselines, strerror(errno));
    return status ? status : artifact_cache_dir(cache, err);
}

static const char *base_branch(const struct run_request *r, const struct origin *origin)
{
    return origin->base[0] ? origin->base : r->main_branch ? r->main_branch : "main";
}

static enum gate_status resolve_merge_base(const struct run_request *r, const struct origin *origin,
                                           char commit[41], struct gate_error *err)
{
    const char *base = base_branch(r, origin);
    enum gate_status status = revision_merge_base(base, commit, err);
    if (!status && !strcmp(commit, origin->commit) && !origin->dirty)
        status = gate_fail(err, GATE_USAGE,
                           "HEAD is on '%s', so merge-base would compare it with itself: use "
                           "--against baseline, or name a commit",
                           base);
    return status;
}

/* The library that is meant; of a merge base, the policy then has its commit. */
static enum gate_status resolve(const struct run_request *r, struct run_session *s,
                                const char **what, struct revision *out, struct gate_error *err)
{
    char commit[41];
    enum gate_status status = GATE_OK;
    if (!*what || is_baseline(*what))
        return GATE_OK;
    bool merge_base = !strcmp(*what, "merge-base");
    if (merge_base)
        status = resolve_merge_base(r, &s->origin, commit, err);
    if (!status)
        status = revision_resolve(merge_base ? commit : *what, &s->recipe, out, err);
    if (merge_base)
        *what = out->commit;
    return status;
}

static enum gate_status open_against(struct run_request *r, struct run_session *s,
                                     struct gate_error *err)
{
    const struct document_device *device = &supervisor_greeting(s->setup.supervisor)->device;
    bool host = device->kind == DEVICE_HOST;
    s->recipe = r->recipe.library ? r->recipe : run_request_recipe(r, host);
    enum gate_status status = resolve(r, s, &r->policy.against, &s->against, err);
    if (r->policy.against == s->against.commit)
        r->policy.base = base_branch(r, &s->origin);
    if (!status)
        status = resolve(r, s, &r->policy.warn_against, &s->warn_against, err);
    if (status || !needs_baselines(&r->policy))
        return status;
    const char *model = device->model;
    s->baseline_path = baseline_path(r->baselines, model);
    if (!s->baseline_path)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    if (run_request_keeps_baselines(r) && !r->shard.count)
        status = run_session_open_for_keeping(r, s, err);
    return status ? status : baseline_load(s->baseline_path, model, &s->baseline, err);
}

/* All that can be refused is refused before the first kernel runs. */
static enum gate_status prepare(struct run_request *r, struct run_session *s,
                                struct gate_error *err)
{
    r->origin.baselines = r->baselines;
    origin_read(&r->origin, &s->origin);
    enum gate_status status = run_reports_open(r, err);
    if (!status && !is_baseline(r->policy.against) && run_request_keeps_baselines(r))
        status = gate_fail(err, GATE_USAGE, "--accept-new and --ratchet need --against baseline");
    if (!status && r->history)
        status = store_open(r->db, STORE_READ_WRITE, &s->store, err);
    if (!status)
        status = run_setup_open(r, &s->setup, err);
    if (!status)
        status = open_against(r, s, err);
    return status;
}

static void set_against(struct run *run, const struct run_session *s, const char *what,
                        const struct revision *found)
{
    bool stored = is_baseline(what);
    run->baseline = stored ? s->baseline : NULL;
    run->against_path = stored ? NULL : found->path;
    run->against_sha256 = stored ? NULL : found->sha256;
    if (!run->policy.other)
        run->policy.other = stored                  ? "the baseline"
                            : what == found->commit ? "the merge base"
                                                    : "the other library";
}

static void start_warning(const struct run_request *r, struct run_session *s)
{
    s->warning = s->run;
    s->warning.policy.accept_new = s->warning.policy.ratchet = false;
    s->warning.policy.other = NULL;
    set_against(&s->warning, s, r->policy.warn_against, &s->warn_against);
}

/* Of a merge request it is said if this cannot be told; elsewhere there need not be a base. */
static enum gate_status compare_rules(const struct run_request *r, struct run_session *s,
                                      struct gate_error *err)
{
    char commit[41];
    struct gate_error why;
    if (!r->history && !r->shard.count) /* of another command */
        return GATE_OK;
    if (revision_merge_base(base_branch(r, &s->origin), commit, &why)) {
        if (s->origin.base[0])
            fprintf(stderr, "gate run: whether thresholds were changed is not known: %s\n",
                    why.message);
        return GATE_OK;
    }
    return run_rules_compare(commit, s->setup.own_suite ? r->suite : NULL, &s->setup.whole,
                             r->policy.threshold, &s->rules, err);
}

static void start(const struct run_request *r, struct run_session *s)
{
    s->run = (struct run){.suite = &s->setup.suite,
                          .whole = &s->setup.whole,
                          .filter = r->filter,
                          .shard = s->setup.shard.count ? &s->setup.shard : NULL,
                          .no_baselines = access(r->baselines, F_OK) && errno == ENOENT,
                          .library = s->setup.target.library,
                          .recipe = s->recipe,
                          .own_suite = s->setup.own_suite,
                          .policy = r->policy,
                          .seed = r->seed_text ? r->seed : run_request_fresh_seed()};
    set_against(&s->run, s, r->policy.against, &s->against);
    s->run.reproduce = (struct reproduce){.device = s->setup.target.device,
                                          .suite = r->suite,
                                          .library = r->target.library,
                                          .seed = s->run.seed};
    s->run.policy.changed = s->rules.n ? (const char *const *)s->rules.changed : NULL;
    s->run.policy.n_changed = s->rules.n;
    s->run.origin = s->origin;
    origin_author(s->run.author, sizeof s->run.author);
    if (r->policy.warn_against)
        start_warning(r, s);
}

/* A baseline names the commit that makes it. */
static enum gate_status check_clean(const struct run_request *r, const struct origin *origin,
                                    struct gate_error *err)
{
    if (!run_request_keeps_baselines(r) || !origin->dirty || r->policy.allow_dirty)
        return GATE_OK;
    return gate_fail(err, GATE_USAGE,
                     "there are uncommitted changes, but a baseline names the commit %.12s: commit "
                     "them, or add --allow-dirty",
                     origin->commit);
}

enum gate_status run_session_open(struct run_request *r, struct run_session *s,
                                  struct gate_error *err)
{
    *s = (struct run_session){.lock = -1};
    enum gate_status status = prepare(r, s, err);
    if (!status)
        status = compare_rules(r, s, err);
    if (status)
        return status;
    start(r, s);
    return check_clean(r, &s->run.origin, err);
}

void run_session_close(struct run_session *s)
{
    run_release(&s->run);
    run_release(&s->warning);
    supervisor_stop(s->supervisor);
    run_setup_close(&s->setup);
    run_rules_release(&s->rules);
    baseline_free(s->baseline);
    free(s->baseline_path);
    store_close(s->store);
    if (s->lock >= 0)
        close(s->lock);
}
