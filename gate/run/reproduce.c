/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/reproduce.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What no shell takes for more than itself. */
static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+:";

/* Appends " --name value", quoted where it has to be; nothing for no value. */
static size_t add(char *text, size_t size, size_t used, const char *name, const char *value)
{
    if (!value || used >= size)
        return used;
    const char *quote = value[strspn(value, plain)] ? "'" : "";
    return used +
           (size_t)snprintf(text + used, size - used, " --%s %s%s%s", name, quote, value, quote);
}

void reproduce_command(const struct reproduce *r, const char *case_id, bool timed, char *text,
                       size_t size)
{
    size_t used = (size_t)snprintf(text, size, "gate %s", timed ? "run" : "verify");
    used = add(text, size, used, "device", r->device);
    used = add(text, size, used, "suite", r->suite);
    used = add(text, size, used, "library", r->library);
    used = add(text, size, used, "filter", case_id);
    if (!timed && r->tier != VERIFY_COMMIT)
        used = add(text, size, used, "tier", verify_tier_name(r->tier));
    if (used < size)
        snprintf(text + used, size - used, " --seed %016" PRIx64, r->seed);
}
