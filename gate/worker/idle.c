/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/idle.h"

#include <math.h>

#define LIMIT_DEVICE 1.15
#define LIMIT_HOST 1.3
#define LIMIT_ALONE 2.0
#define FIXED_DEVICE_NS 20e3
#define FIXED_HOST_NS 300e3
#define LEAST_NS 2000.0 /* a difference below this is none */

/* The most that the baseline excuses: one that idles itself shall not hide another that does. */
#define EXCUSE_MAX 2.0

struct idle_rule idle_rule(bool on_host, bool beside_baseline)
{
    double beside = on_host ? LIMIT_HOST : LIMIT_DEVICE;
    return (struct idle_rule){beside_baseline ? beside : LIMIT_ALONE,
                              on_host ? FIXED_HOST_NS : FIXED_DEVICE_NS};
}

static double expected_ns(const struct idle_check *look, const struct idle_rule *rule)
{
    return fmin(look->stale, look->timed + rule->fixed_ns);
}

/* Fresh over what is expected of it: as long as stale takes, which is like it in all else, but no
 * more than what was timed and the fixed cost. */
static double ratio(const struct idle_check *look, const struct idle_rule *rule)
{
    return look->fresh / expected_ns(look, rule);
}

static bool is_over(const struct idle_check *look, const struct idle_rule *rule, double excuse)
{
    return ratio(look, rule) > rule->limit * excuse &&
           look->fresh > expected_ns(look, rule) + LEAST_NS;
}

enum idle_answer idle_ask(const struct idle_check *look, const struct idle_rule *rule)
{
    if (!is_over(look, rule, 1))
        return IDLE_NO;
    return is_over(look, rule, EXCUSE_MAX) ? IDLE_YES : IDLE_ASK_BASELINE;
}

enum idle_answer idle_ask_baseline(const struct idle_check *look, const struct idle_check *baseline,
                                   const struct idle_rule *rule)
{
    double excuse = fmin(fmax(ratio(baseline, rule), 1), EXCUSE_MAX);
    return is_over(look, rule, excuse) ? IDLE_YES : IDLE_NO;
}

int idle_score(int score, bool suspicious)
{
    return score + (suspicious ? 1 : -2);
}
