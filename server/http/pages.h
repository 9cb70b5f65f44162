/*
 * pages.h: bodies that go to a client without being copied.
 *
 * libmicrohttpd sends head and body with one sendmsg(), which copies both, and the client's
 * processor then has to fetch 28 KB that another one has just written. Its own sendfile() sends the
 * head as a segment of its own, and wakes the client twice. What is put here lies in pages of a
 * file in memory, and pages.c has the program's sendmsg(): where the second of two pieces is such a
 * body, the head is sent and told that there is more, and sendfile() hands over the pages. All else
 * goes to the system as it came.
 *
 * The pages of a body never change, and what the network still holds of one that was given up stays
 * as it was. They count as the process's memory (cgroup, MemoryMax), but VmRSS shows none that
 * was only sent.
 */
#ifndef SERVER_HTTP_PAGES_H
#define SERVER_HTTP_PAGES_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PAGES_MIN_BODY ((size_t)16 << 10) /* a shorter one is sent faster by copying it */
#define PAGES_MAX_BODY ((size_t)256 << 10)

/* For the whole program; sends are copied where the system gives no such memory. */
void pages_open(void);
/* When no body is left. */
void pages_close(void);

/* A copy of a body, to be read only; NULL: its size is not one of these, there is no room, or the
 * system makes huge pages for files in memory, which cannot be given up one body at a time. */
void *pages_put(const void *bytes, size_t n);
void pages_free(void *body); /* any thread's */

#endif
