/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c: see notify.h, sd_notify(3) and sd_listen_fds(3). */
#include "server/watch/notify.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_FD 3

/* A decimal number of the environment; -1: not there, or no number. */
static long long variable(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    long long value = strtoll(text, &end, 10);
    return *end == '\0' ? value : -1;
}

static bool is_listening_tcp(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    int listens = 0;
    socklen_t int_len = sizeof listens;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_len) == 0 && listens &&
           getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6);
}

enum gate_status notify_socket(int *fd, struct gate_error *err)
{
    long long n = variable("LISTEN_FDS");
    bool ours = variable("LISTEN_PID") == getpid();
    *fd = -1;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!ours || n < 1)
        return GATE_OK;
    if (n > 1)
        return gate_fail(err, GATE_USAGE, "%lld sockets were passed (LISTEN_FDS), and one is taken",
                         n);
    if (!is_listening_tcp(FIRST_FD) || fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(FIRST_FD, F_SETFL, O_NONBLOCK) < 0)
        return gate_fail(err, GATE_USAGE,
                         "the socket that was passed (LISTEN_FDS) is not a listening TCP socket");
    *fd = FIRST_FD;
    return GATE_OK;
}

void notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
        return;
    size_t len = strlen(path);
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') /* a name that is in no file system */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

int64_t notify_watchdog_ms(void)
{
    long long us = variable("WATCHDOG_USEC");
    long long pid = variable("WATCHDOG_PID");
    return us <= 0 || (pid >= 0 && pid != getpid()) ? 0 : us / 2000;
}
