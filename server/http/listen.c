/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c: see listen.h. */
#include "server/http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
#define FIRST_FD 3 /* of those that systemd passes */

/* Splits "ADDR:PORT" and "[ADDR]:PORT". */
static bool split(const char *text, char host[64], char port[8])
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return false;
    const char *start = text;
    size_t len = (size_t)(colon - text);
    if (*text == '[') {
        if (colon[-1] != ']')
            return false;
        start++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return false;
    }
    size_t digits = strspn(colon + 1, "0123456789");
    if (len == 0 || len > 63 || digits == 0 || digits > 5 || colon[1 + digits] != '\0')
        return false;
    memcpy(host, start, len);
    host[len] = '\0';
    memcpy(port, colon + 1, digits + 1);
    return true;
}

static enum gate_status bind_to(const struct addrinfo *info, const char *address, int *fd,
                                struct gate_error *err)
{
    int on = 1;
    *fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(*fd, info->ai_addr, info->ai_addrlen) == 0 && listen(*fd, BACKLOG) == 0)
        return GATE_OK;
    int error = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return gate_fail(err, GATE_IO, "cannot listen on %s: %s%s", address, strerror(error),
                     error == EADDRINUSE ? "; name another port with --listen" : "");
}

enum gate_status listen_url(int fd, bool tls, char url[LISTEN_MAX_URL], struct gate_error *err)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    char host[64];
    char port[8];
    int flags = NI_NUMERICHOST | NI_NUMERICSERV;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) < 0 ||
        getnameinfo((struct sockaddr *)&bound, len, host, sizeof host, port, sizeof port, flags) !=
            0)
        return gate_fail(err, GATE_IO, "cannot read the address of the socket");
    snprintf(url, LISTEN_MAX_URL, bound.ss_family == AF_INET6 ? "%s://[%s]:%s/" : "%s://%s:%s/",
             tls ? "https" : "http", host, port);
    return GATE_OK;
}

enum gate_status listen_open(const char *address, int *fd, struct gate_error *err)
{
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
    };
    struct addrinfo *info = NULL;
    char host[64];
    char port[8];
    *fd = -1;
    if (!split(address, host, port) || strtoul(port, NULL, 10) > 65535 ||
        getaddrinfo(host, port, &hints, &info) != 0)
        return gate_fail(err, GATE_USAGE,
                         "'%s' is not an address to listen on: write 127.0.0.1:8731 or [::1]:8731",
                         address);
    enum gate_status status = bind_to(info, address, fd, err);
    freeaddrinfo(info);
    return status;
}

bool listen_is_loopback(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return false;
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address;
    return address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* ---- systemd: see sd_notify(3) and sd_listen_fds(3) ---- */

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
