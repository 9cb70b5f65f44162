/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.h: an environment for code that is not trusted: what a kernel library reads there, it could
 * use or pass on.
 */
#ifndef GATE_BASE_SCRUB_H
#define GATE_BASE_SCRUB_H

#include <stdbool.h>

/* Is it a token, a password or a key by its name, or does it steer a CI job, as $GITHUB_ENV and
 * $CI_JOB_TOKEN do? */
bool scrub_is_secret(const char *name);

/* Takes all such variables out of this process's environment. */
void scrub_environment(void);

#endif
