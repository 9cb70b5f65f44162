/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.h: an environment for code that is not trusted: what a kernel library reads there, it could
 * use or pass on.
 */
#ifndef GATE_BASE_SCRUB_H
#define GATE_BASE_SCRUB_H

/* Takes all variables out of this process's environment that are a token, a password or a key by
 * their names, or steer a CI job, as $GITHUB_ENV and $CI_JOB_TOKEN do. */
void scrub_environment(void);

#endif
