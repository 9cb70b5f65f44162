/* store_change.c: see store_change.h. Nothing is found until the watch has its tables. */
#include "store_change.h"

enum gate_status store_change_points(struct store *s, int64_t track, store_change_fn fn,
                                     void *context, struct gate_error *err)
{
    (void)s;
    (void)track;
    (void)fn;
    (void)context;
    (void)err;
    return GATE_OK;
}

enum gate_status store_open_alert(struct store *s, int64_t track, int64_t *id,
                                  struct gate_error *err)
{
    (void)s;
    (void)track;
    (void)err;
    *id = 0;
    return GATE_OK;
}
