/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h: what systemd gives and is told: sockets (LISTEN_FDS), readiness, the watchdog.
 *
 * Without systemd each does nothing.
 */
#ifndef SERVER_WATCH_NOTIFY_H
#define SERVER_WATCH_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "gate/base/error.h"

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
