/* SPDX-License-Identifier: Apache-2.0 */
/*
 * term.h: the abilities of a terminal, and texts that are safe to print on it.
 */
#ifndef GATE_BASE_TERM_H
#define GATE_BASE_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/buf.h"

enum term_colour { TERM_PLAIN, TERM_RED, TERM_GREEN, TERM_YELLOW, TERM_CYAN, TERM_BOLD, TERM_DIM };

/* A terminal that is not "dumb", and NO_COLOR is unset or empty. */
bool term_has_colour(int fd);

/* Columns of the terminal on `fd`; 0 if it is not a terminal, or they are unknown. COLUMNS
 * overrides them. */
int term_columns(int fd);

/* Columns that a UTF-8 text takes: wide characters two, combining marks none. */
int term_width(const char *text);

/*
 * Appends `text` with every control character (escape sequences begin with one), every character
 * that turns the direction of writing, and every byte that is not UTF-8 replaced by U+FFFD.
 */
void term_puts(const char *text, struct buf *out);

/* Appends words, with line breaks at spaces so that no line is longer than `width` (0: no limit).
 * The first line begins at `column`, the others at `indent`. */
void term_wrap(const char *words, size_t n, int column, int indent, int width, struct buf *out);

/* Starts and ends a colour; nothing when `on` is false or the colour is TERM_PLAIN. */
void term_colour_begin(bool on, enum term_colour colour, struct buf *out);
void term_colour_end(bool on, enum term_colour colour, struct buf *out);

/*
 * ---- progress.c: says on standard error what is going on ----
 *
 * On a terminal it is one line that is written over. Elsewhere, where CI systems end jobs that are
 * silent for minutes, it is a line every 20 s, also while one thing goes on for long.
 */

/* What goes on from now on, without the end of a line; "": nothing that takes long. Texts are cut
 * at 300 bytes. */
void progress_show(const char *text);

/* Seconds between two lines, from the next progress_show() on; for tests. */
void progress_every(double seconds);

#endif
