/* The launch never returns. */
#include <unistd.h>

#include "wrap.h"

static enum kg_status wrap_launch(const struct kg_problem *p, const struct kg_args *args)
{
    (void)p;
    (void)args;
    while (getpid() > 0)
        pause();
    return KG_OK;
}
