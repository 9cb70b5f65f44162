/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_idle.c: the rule for who does less where its result is there already.
 */
#include "gate/worker/measure.h"
#include "tests/unit/unit.h"

static const struct idle_rule beside = {.limit = 1.15, .fixed_ns = 20e3};
static const struct idle_rule alone = {.limit = 2, .fixed_ns = 20e3};

static enum idle_answer ask(double timed, double stale, double fresh)
{
    return idle_ask(&(struct idle_check){timed, stale, fresh}, &beside);
}

TEST(fresh_may_take_as_long_as_stale)
{
    assert_int_equal(ask(1e6, 1e6, 1e6), IDLE_NO);
    assert_int_equal(ask(1e6, 1e6, 1.14e6), IDLE_NO);
    assert_int_equal(ask(1e6, 1e6, 1.16e6), IDLE_ASK_BASELINE);
    assert_int_equal(ask(1e6, 1e6, 2.31e6), IDLE_YES);
}

/* Whatever a busy machine did to the samples. */
TEST(samples_that_took_longer_hide_nothing)
{
    assert_int_equal(ask(5e6, 1e6, 1.16e6), IDLE_ASK_BASELINE);
}

/* What idles late, or was recorded otherwise, shows in the samples alone. */
TEST(what_the_samples_took_is_expected_of_stale_too)
{
    assert_int_equal(ask(0.5e6, 1e6, 1e6), IDLE_ASK_BASELINE);
    assert_int_equal(ask(0.1e6, 1e6, 1e6), IDLE_YES);
}

TEST(a_replay_by_itself_has_a_cost)
{
    assert_int_equal(ask(2e3, 8e3, 8e3), IDLE_NO);
    assert_int_equal(ask(2e3, 22e3, 23e3), IDLE_NO);
    assert_true(idle_rule(true, true).fixed_ns > idle_rule(false, true).fixed_ns);
}

TEST(a_microsecond_or_two_are_nothing)
{
    assert_int_equal(ask(2e3, 2e3, 3.9e3), IDLE_NO);
    assert_int_equal(ask(2e3, 2e3, 4.7e3), IDLE_YES);
}

TEST(a_baseline_excuses_what_it_has_too)
{
    const struct idle_check own = {1e6, 1e6, 1.6e6};
    assert_int_equal(idle_ask_baseline(&own, &(struct idle_check){1e6, 1e6, 1e6}, &beside),
                     IDLE_YES);
    assert_int_equal(idle_ask_baseline(&own, &(struct idle_check){2e6, 2e6, 1e6}, &beside),
                     IDLE_YES);
    assert_int_equal(idle_ask_baseline(&own, &(struct idle_check){2e6, 2e6, 3e6}, &beside),
                     IDLE_NO);
}

/* One that idles as well. */
TEST(a_baseline_does_not_excuse_everything)
{
    const struct idle_check own = {1e6, 1e6, 2.4e6}, idle = {1e3, 1e3, 1e6};
    assert_int_equal(idle_ask_baseline(&own, &idle, &beside), IDLE_YES);
    assert_int_equal(idle_ask(&(struct idle_check){1e6, 1e6, 1.9e6}, &alone), IDLE_NO);
    assert_int_not_equal(idle_ask(&(struct idle_check){1e6, 1e6, 2.1e6}, &alone), IDLE_NO);
}

TEST(rules_are_wider_where_there_is_more_noise)
{
    assert_true(idle_rule(false, true).limit < idle_rule(true, true).limit);
    assert_true(idle_rule(true, true).limit < idle_rule(true, false).limit);
    assert_true(idle_rule(false, false).limit == idle_rule(true, false).limit);
}

static int looks_until_sure(unsigned one_in)
{
    int score = IDLE_SCORE_START, looks = 0;
    while (0 < score && score < IDLE_SCORE_SURE)
        score = idle_score(score, ++looks % one_in != 0);
    return score >= IDLE_SCORE_SURE ? looks : -looks;
}

TEST(a_score_needs_many_suspicions_and_few_others)
{
    assert_int_equal(looks_until_sure(1), -2);  /* none is suspicious */
    assert_int_equal(looks_until_sure(2), -8);  /* one in two */
    assert_int_equal(looks_until_sure(10), 15); /* nine in ten */
    assert_int_equal(looks_until_sure(100), 12);
}
