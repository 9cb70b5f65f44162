/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c: gate-server --db FILE: serves until a signal asks it to end. */
#include "server/command/server_commands.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "server/http/http.h"
#include "server/http/listen.h"
#include "server/ops/log.h"
#include "version.h"

#define TICK_MS 1000
/*
 * Buffers of this size are the system's again when they are freed. Left to itself the limit goes up
 * with what is freed, and each thread keeps a heap as large as the largest document that it had.
 */
#define LARGE_BYTES (512 << 10)
#define MAX_HEAPS 4 /* of all threads: each keeps what was freed in it */

/* The socket that systemd passed, else one of our own. */
static enum gate_status open_socket(struct serve_options *a, char url[LISTEN_MAX_URL],
                                    struct gate_error *err)
{
    enum gate_status status = notify_socket(&a->http.listen_fd, err);
    a->http.listen_is_passed = a->http.listen_fd >= 0;
    if (!status && !a->http.listen_is_passed)
        status = listen_open(a->listen, &a->http.listen_fd, err);
    if (status)
        return status;
    status = listen_url(a->http.listen_fd, a->http.tls_cert != NULL, url, err);
    if (status)
        close(a->http.listen_fd);
    return status;
}

/* Until one of the signals comes: what is to be done now and then. */
static void wait_and_tick(struct http *http, const sigset_t *stop)
{
    int64_t watchdog_ms = notify_watchdog_ms();
    int64_t step_ms = watchdog_ms > 0 && watchdog_ms < TICK_MS ? watchdog_ms : TICK_MS;
    double told_ms = 0;
    struct timespec step = {step_ms / 1000, step_ms % 1000 * 1000000};
    while (sigtimedwait(stop, NULL, &step) < 0) {
        http_tick(http);
        if (watchdog_ms > 0 && clock_s() * 1000 - told_ms >= (double)watchdog_ms &&
            http_is_alive(http)) {
            notify_send("WATCHDOG=1");
            told_ms = clock_s() * 1000;
        }
    }
}

static int serve(struct command_call *call, struct gate_error *err)
{
    struct serve_options *a = call->arguments;
    sigset_t stop;
    char url[LISTEN_MAX_URL];
    struct http *http = NULL;
    struct rlimit files;
    TRY(serve_options_check(a, err));
    /* Blocked before there is a second thread, so that only sigtimedwait() sees them. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk: an answer of 503 */
    /* Each connection is a file, and the usual limit of 1,024 is for all files. */
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    log_setup(a->log, a->log_json);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_ARENA_MAX, MAX_HEAPS);

    enum gate_status status = open_socket(a, url, err);
    bool loopback = !status && listen_is_loopback(a->http.listen_fd);
    if (!status)
        status = http_start(&a->http, &http, err);
    if (status)
        return status;
    if (!a->http.tls_cert && !loopback)
        log_message(LOG_LEVEL_WARNING,
                    "%s is not HTTPS: tokens are sent to it in the clear; give --tls-cert and "
                    "--tls-key, or listen on a loopback address behind a proxy that has TLS",
                    url);
    log_message(LOG_LEVEL_INFO,
                "listening on %s with the history '%s': version " GATE_VERSION
                ", reading takes %s token, alerts are of branch '%s'",
                url, a->http.db, a->http.private_reads ? "a" : "no", a->http.main_branch);
    status = http_watch(http, err);
    if (!status) {
        notify_send("READY=1");
        wait_and_tick(http, &stop);
        notify_send("STOPPING=1");
    }
    http_stop(http);
    log_message(LOG_LEVEL_INFO, "stopped");
    return status;
}

#define ARGUMENTS struct serve_options

const struct command command_serve = {
    .name = "gate-server",
    .operands = "--db FILE\ntoken create|list|revoke ...\ncheck --db FILE\n"
                "backup|restore|thin --db FILE ...\nroutes",
    .about = "Keeps the history in FILE, and creates it if necessary. Receives runs (POST "
             "/api/v1/runs) and shows them as a page and as JSON (/api/v1/). `gate run --db FILE` "
             "may write to the same file.\n",
    .groups = {{serve_options, 0}},
    .ending =
        "The server prints its address on standard error when it is ready. After SIGTERM or SIGINT "
        "it ends the requests that are under way, then itself. `gate-server token` creates tokens. "
        "Without TLS, listen only on a loopback address, or behind a proxy with TLS. --version "
        "prints the version.\n"
        "\n"
        "Exit codes: 0 stopped by a signal, 64 usage, 70 internal, 74 database or address.\n",
    DEFAULTS(SERVE_DEFAULTS),
    .main = serve,
};
