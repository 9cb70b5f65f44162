#include "gate/run/calibrate.h"

#include <math.h>

#include "gate/decide/decide.h"
#include "gate/base/seed.h"

#define DECISIONS 2000

const double calibrate_shares[CALIBRATE_SHARES] = {0, 0.005, 0.01, 0.02, 0.025, 0.03, 0.05};

/* A sequence of processes; every other one has the roles swapped, here as in what is drawn from. */
struct drawn {
    double d[DECIDE_LAST_LOOK];
    bool swapped[DECIDE_LAST_LOOK];
};

/* Draws with replacement, role by role; `state` counts the draws. */
static void draw(const double *d, size_t n, struct drawn *out, size_t wanted,
                 struct decide_sequence *to, uint64_t seed, uint64_t *state)
{
    for (; to->n < wanted && to->n < DECIDE_LAST_LOOK; to->n++) {
        size_t role = to->n % 2, of_role = (n + 1 - role) / 2;
        out->d[to->n] = d[2 * (seed_at(seed, (*state)++) % of_role) + role];
        out->swapped[to->n] = role;
    }
    to->d = out->d;
    to->swapped = out->swapped;
}

/* One whole protocol: looks, confirmation, verdict. */
static enum verdict play_once(const double *d, size_t n, double threshold, uint64_t seed,
                              uint64_t *state)
{
    struct drawn first, confirmation;
    struct decide_input in = {.threshold = threshold};
    struct decision decision;
    draw(d, n, &first, DECIDE_FIRST_LOOK, &in.first, seed, state);
    /* The excess over the absolute floor is the concern of a run, which knows its times. */
    in.baseline_p50_ns = 1e6;
    while ((decision = decide(&in)).next != DECIDE_DONE) {
        if (decision.next == DECIDE_MORE_FIRST)
            draw(d, n, &first, decision.next_n, &in.first, seed, state);
        else
            draw(d, n, &confirmation, decision.next_n, &in.confirmation, seed, state);
    }
    return decision.verdict;
}

/* Outcomes of protocols whose processes are drawn from n values of d. */
struct counts {
    size_t decisions, red, pass, no_verdict;
};

static struct counts play(const double *d, size_t n, double threshold, uint64_t seed)
{
    struct counts counts = {.decisions = DECISIONS};
    uint64_t state = 0;
    for (size_t i = 0; i < counts.decisions; i++) {
        switch (play_once(d, n, threshold, seed, &state)) {
        case VERDICT_REGRESSION:
            counts.red++;
            break;
        case VERDICT_PASS:
        case VERDICT_IMPROVEMENT:
            counts.pass++;
            break;
        default:
            counts.no_verdict++;
        }
    }
    return counts;
}

static cJSON *share_object(const struct calibrated_case *c, size_t share)
{
    struct counts n = play(c->d[share], c->n, c->threshold, share + 1);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "share", calibrate_shares[share]);
    cJSON_AddItemToObject(o, "log_ratio", cJSON_CreateDoubleArray(c->d[share], (int)c->n));
    cJSON_AddNumberToObject(o, "decisions", (double)n.decisions);
    cJSON_AddNumberToObject(o, "red", (double)n.red);
    cJSON_AddNumberToObject(o, "pass", (double)n.pass);
    cJSON_AddNumberToObject(o, "no_verdict", (double)n.no_verdict);
    return o;
}

bool calibrate_has_figures(const struct calibrated_case *c)
{
    return c->n >= DECIDE_FIRST_LOOK && c->lacks != VERDICT_WRONG;
}

static cJSON *case_object(const struct calibrated_case *c, double mde, bool resolved)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "id", c->id);
    cJSON_AddItemToObject(o, "mde", mde > 0 ? cJSON_CreateNumber(mde) : cJSON_CreateNull());
    cJSON_AddBoolToObject(o, "resolved", resolved);
    cJSON *injected = cJSON_AddArrayToObject(o, "injected");
    for (size_t s = 0; s < CALIBRATE_SHARES; s++)
        cJSON_AddItemToArray(injected, share_object(c, s));
    return o;
}

static cJSON *incomplete_object(const struct calibrated_case *c, size_t wanted)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "id", c->id);
    cJSON_AddNumberToObject(o, "processes", (double)c->n);
    cJSON_AddNumberToObject(o, "wanted", (double)wanted);
    cJSON_AddStringToObject(o, "verdict", verdict_name(c->lacks));
    cJSON_AddStringToObject(o, "reason", c->reason);
    return o;
}

/* Standard deviation of d within the roles, which a whole sequence takes the difference out of. */
static double deviation(const double *d, size_t n)
{
    const size_t of_role[2] = {(n + 1) / 2, n / 2};
    double mean[2] = {0}, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean[i % 2] += d[i] / (double)of_role[i % 2];
    for (size_t i = 0; i < n; i++)
        squares += (d[i] - mean[i % 2]) * (d[i] - mean[i % 2]);
    return n > 2 ? sqrt(squares / (double)(n - 2)) : 0;
}

cJSON *calibrate_document(const struct calibrated_case *cases, size_t n_cases, size_t wanted,
                          size_t counts[VERDICT_COUNT])
{
    cJSON *o = cJSON_CreateObject(), *incomplete = cJSON_CreateArray();
    size_t processes = 0;
    for (size_t i = 0; i < n_cases; i++)
        processes = cases[i].n > processes ? cases[i].n : processes;
    cJSON_AddNumberToObject(o, "processes", (double)processes);
    cJSON *list = cJSON_AddArrayToObject(o, "cases");
    for (size_t i = 0; i < n_cases; i++) {
        const struct calibrated_case *c = &cases[i];
        if (calibrate_has_figures(c)) {
            double mde = decide_mde_of(deviation(c->d[0], c->n), DECIDE_LAST_LOOK);
            bool resolved = mde > 0 && mde <= c->threshold;
            cJSON_AddItemToArray(list, case_object(c, mde, resolved));
            counts[VERDICT_NO_VERDICT] += !resolved;
        }
        if (c->lacks != VERDICT_PASS) {
            cJSON_AddItemToArray(incomplete, incomplete_object(c, wanted));
            counts[c->lacks]++;
        }
    }
    if (incomplete->child)
        cJSON_AddItemToObject(o, "incomplete", incomplete);
    else
        cJSON_Delete(incomplete);
    return o;
}
