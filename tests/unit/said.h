/* SPDX-License-Identifier: Apache-2.0 */
/* said.h: what a call writes to standard error. */
#ifndef TESTS_UNIT_SAID_H
#define TESTS_UNIT_SAID_H

/* How many lines of it have a word. */
int count_said(void (*call)(void *context), void *context, const char *word);

#endif
