/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h: says on standard error what is going on.
 *
 * On a terminal it is one line that is written over. Elsewhere, where CI systems end jobs that are
 * silent for minutes, it is a line every 20 s, also while one thing goes on for long.
 */
#ifndef GATE_BASE_PROGRESS_H
#define GATE_BASE_PROGRESS_H

/* What goes on from now on, without the end of a line; "": nothing that takes long. Texts are cut
 * at 300 bytes. */
void progress_show(const char *text);

/* Seconds between two lines, from the next progress_show() on; for tests. */
void progress_every(double seconds);

#endif
