/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.h: the socket that the server takes connections from, and what systemd gives and is told:
 * sockets (LISTEN_FDS), readiness, the watchdog. Without systemd notify_*() do nothing.
 */
#ifndef SERVER_HTTP_LISTEN_H
#define SERVER_HTTP_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/error.h"

#define LISTEN_MAX_URL 96

/*
 * Binds "ADDR:PORT", with ADDR a numeric IPv4 address or an IPv6 one in brackets, and PORT 0 for
 * any free one. The socket is the caller's (close). GATE_USAGE for a text of another form, GATE_IO
 * when the system refuses.
 */
enum gate_status listen_open(const char *address, int *fd, struct gate_error *err);

/* Where a socket listens, "http://127.0.0.1:8731/". */
enum gate_status listen_url(int fd, bool tls, char url[LISTEN_MAX_URL], struct gate_error *err);

/* Is it reached from this machine alone, by TCP? */
bool listen_is_loopback(int fd);

/*
 * The socket that was passed to this process, -1 when there is none. Takes the variables out of the
 * environment. GATE_USAGE when there are several, or it is not a listening TCP socket.
 */
enum gate_status notify_socket(int *fd, struct gate_error *err);

/* Sends a state such as "READY=1" to $NOTIFY_SOCKET. */
void notify_send(const char *state);

/* How often the watchdog wants to hear, in ms: half of its limit; 0: never. */
int64_t notify_watchdog_ms(void);

#endif
