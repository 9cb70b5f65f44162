/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "tests/unit/decide_play.h"
#include "tests/unit/unit.h"

struct columns {
    double d[DECIDE_LAST_LOOK], log_ratio_cycles[DECIDE_LAST_LOOK];
    bool swapped[DECIDE_LAST_LOOK];
};

/* The roles are swapped in every other process; `drawn` counts those of both sequences. */
static void extend(struct decide_sequence *s, struct columns *c, size_t n, play_draw *draw,
                   void *source, size_t *drawn)
{
    if (n <= s->n || n > DECIDE_LAST_LOOK)
        fail_msg("asked for %zu processes where there are %zu", n, s->n);
    for (size_t i = s->n; i < n; i++) {
        struct play_process p = draw(source);
        c->d[i] = p.d;
        c->log_ratio_cycles[i] = p.log_ratio_cycles;
        c->swapped[i] = (*drawn)++ % 2;
    }
    s->n = n;
    s->d = c->d;
    s->swapped = c->swapped;
    s->log_ratio_cycles = isnan(c->log_ratio_cycles[0]) ? NULL : c->log_ratio_cycles;
}

struct play_end play(const struct decide_input *policy, play_draw *draw, void *source)
{
    struct columns first, confirmation;
    struct decide_input in = *policy;
    struct play_end end = {.suspected = false};
    size_t drawn = 0;
    extend(&in.first, &first, DECIDE_FIRST_LOOK, draw, source, &drawn);
    for (;;) {
        end.decision = decide(&in);
        if (end.decision.next == DECIDE_DONE)
            break;
        if (end.decision.next == DECIDE_MORE_FIRST) {
            extend(&in.first, &first, end.decision.next_n, draw, source, &drawn);
        } else {
            end.suspected = true;
            extend(&in.confirmation, &confirmation, end.decision.next_n, draw, source, &drawn);
        }
    }
    end.processes = in.first.n + in.confirmation.n;
    return end;
}

void play_count(struct play_tally *t, const struct play_end *end)
{
    t->trials++;
    t->suspected += end->suspected;
    t->verdicts[end->decision.verdict]++;
    t->processes += end->processes;
}

double play_share(const struct play_tally *t, enum verdict v)
{
    return (double)t->verdicts[v] / (double)t->trials;
}

size_t play_trials(size_t wanted)
{
    return getenv("KERNEL_GATE_LONG") ? wanted : wanted / 10;
}

bool play_prints_rates(void)
{
    return getenv("KERNEL_GATE_RATES") != NULL;
}
