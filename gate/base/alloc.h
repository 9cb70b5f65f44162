/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.h: memory for the `gate` program. If there is none left, the program says so and ends with
 * exit code 70. The server and what it calls use malloc() and handle the failure.
 */
#ifndef GATE_BASE_ALLOC_H
#define GATE_BASE_ALLOC_H

#include <stddef.h>

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *list, size_t n, size_t size); /* room for n items */
char *xstrdup(const char *text);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Of a variable that `function`, which gets its address, lets go of when its block is left, also by
 * TRY(): RELEASED_BY(buf_release) struct buf text = buf_of(1000); */
#define RELEASED_BY(function) __attribute__((cleanup(function)))

/* free() of the pointer that lies there. */
void free_at(void *pointer);

#endif
