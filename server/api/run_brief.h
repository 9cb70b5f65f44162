/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_brief.h: a run as its page begins: all that it says of itself, and of each case what a row
 * shows, in columns.
 */
#ifndef SERVER_API_RUN_BRIEF_H
#define SERVER_API_RUN_BRIEF_H

#include "gate/document/document.h"
#include "server/text/emit.h"

/* Takes what the processes of the calibration measured out of the document. */
void run_brief_write(struct document *d, struct emit *e);

#endif
