/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_base.h: the run that another one is compared with when that is not named: of the nearest
 * commit before it that was measured on its device, or of the main branch where its own began.
 */
#ifndef SERVER_API_COMPARE_BASE_H
#define SERVER_API_COMPARE_BASE_H

#include "server/api/api_call.h"

struct compare_base {
    char uuid[40]; /* "": there is none */
    bool by_time; /* the parents of the commit are not known: the main branch's newest run before */
};

/* Is it "parent" or "merge-base"? */
bool compare_is_base(const char *name);
/* Of the run, which store_find_run() takes, on its own device model. */
enum gate_status compare_find_base(struct call *c, const char *name, const char *run,
                                   const char *device, struct compare_base *out);

#endif
