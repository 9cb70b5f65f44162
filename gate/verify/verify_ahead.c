/* SPDX-License-Identifier: Apache-2.0 */
/* verify_ahead.c: see trial.h. */
#include "gate/verify/trial.h"

static void *make(void *ahead)
{
    struct trial_ahead *a = ahead;
    a->image = trial_image(&a->trial);
    return NULL;
}

static void start(struct trial_ahead *a, const struct trial *t)
{
    *a = (struct trial_ahead){.trial = *t, .waits = true};
    a->trial.made = &a->image;
    (void)pattern_normal(0, 0); /* the table, before threads use it */
    a->started = !pthread_create(&a->thread, NULL, make, a);
    if (!a->started)
        make(a);
}

static void end(struct trial_ahead *a)
{
    if (a->started)
        pthread_join(a->thread, NULL);
    a->started = false;
}

static void drop(struct trial_ahead *a)
{
    end(a);
    image_release(&a->image);
    a->waits = false;
}

enum gate_status trial_row_next(struct trial_row *row, const struct trial *next, trial_fn try,
                                void *context, struct gate_error *err)
{
    struct trial_ahead *now = &row->of[row->turn];
    enum gate_status status = GATE_OK;
    row->turn ^= 1;
    if (next)
        start(&row->of[row->turn], next);
    if (!now->waits)
        return GATE_OK;
    end(now);
    status = try(context, &now->trial, err);
    drop(now);
    return status;
}

void trial_row_release(struct trial_row *row)
{
    drop(&row->of[0]);
    drop(&row->of[1]);
}
