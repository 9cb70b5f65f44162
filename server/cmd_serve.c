/* cmd_serve.c: gate-server --db FILE: serves until a signal asks it to end. */
#include "server_commands.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "listen.h"
#include "log.h"
#include "notify.h"
#include "options.h"

#define DEFAULT_LISTEN "127.0.0.1:8731"
#define TICK_MS 1000

static const char usage[] =
    "usage: gate-server --db FILE [OPTION]...\n"
    "       gate-server token ...\n"
    "\n"
    "Keeps the history in FILE: takes runs (POST /api/v1/runs), shows them as a page and as JSON\n"
    "(/api/v1/). `gate run --db FILE` may write the same file beside it.\n"
    "\n"
    "  --db FILE             the database, made when it is not there\n"
    "  --listen ADDR:PORT    where to listen (" DEFAULT_LISTEN "); port 0 is any free one\n"
    "  --artifacts DIR       folder of the artifacts (FILE-artifacts)\n"
    "  --private             reading takes a token too, as writing always does\n"
    "  --tls-cert FILE       serve HTTPS with this certificate (PEM, with its chain)\n"
    "  --tls-key FILE        and its key\n"
    "  --webhook URL         tell it of alerts, by signed POSTs (server/webhook.h)\n"
    "  --webhook-secret-file FILE  what they are signed with\n"
    "  --read-rate N         requests a second of one address (2000)\n"
    "  --write-rate N        writes a second of one token (20)\n"
    "  --max-connections N   connections at a time (256), and of\n"
    "  --max-per-address N   them from one address (64)\n"
    "  --timeout SECONDS     a silent client is dropped after it (15), and one that takes more\n"
    "                        than twice as long for its headers, four times for its body\n"
    "  --log LEVEL           error, warning, info (the default) or request: one line for each\n"
    "  --log-json            log lines are JSON\n"
    "  --web-root DIR        take the page's files from DIR instead of the built-in ones\n"
    "  --help                print this text; each command has its own\n"
    "  --version             print the version\n"
    "\n"
    "It prints its address on standard error when it is ready, and ends on SIGTERM or SIGINT when\n"
    "all that it took is stored. Tokens are made by `gate-server token`. Without TLS leave it on\n"
    "a loopback address, or put a proxy that has it in front.\n"
    "Exit status: 0 stopped by a signal, 64 usage, 70 internal, 74 database or address.\n";

struct arguments {
    const char *listen;
    enum log_level log;
    bool log_json;
    struct http_options http;
    char artifacts[4096];
};

static const struct option options[] = {
    {"db", required_argument, NULL, 'd'},
    {"listen", required_argument, NULL, 'l'},
    {"artifacts", required_argument, NULL, 'a'},
    {"private", no_argument, NULL, 'p'},
    {"tls-cert", required_argument, NULL, 'c'},
    {"tls-key", required_argument, NULL, 'k'},
    {"webhook", required_argument, NULL, 'u'},
    {"webhook-secret-file", required_argument, NULL, 's'},
    {"read-rate", required_argument, NULL, 'r'},
    {"write-rate", required_argument, NULL, 'w'},
    {"max-connections", required_argument, NULL, 'm'},
    {"max-per-address", required_argument, NULL, 'n'},
    {"timeout", required_argument, NULL, 't'},
    {"log", required_argument, NULL, 'g'},
    {"log-json", no_argument, NULL, 'j'},
    {"web-root", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static enum gate_status take_level(const char *text, enum log_level *out, struct gate_error *err)
{
    static const char *const names[] = {"error", "warning", "info", "request"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum log_level)i;
            return GATE_OK;
        }
    }
    return gate_fail(err, GATE_USAGE, "--log is '%s', and must be error, warning, info or request",
                     text);
}

static enum gate_status take(void *context, int letter, const char *value, struct gate_error *err)
{
    struct arguments *a = context;
    struct http_options *h = &a->http;
    switch (letter) {
    case 'd':
        h->db = value;
        return GATE_OK;
    case 'l':
        a->listen = value;
        return GATE_OK;
    case 'a':
        h->artifacts = value;
        return GATE_OK;
    case 'p':
        h->private_reads = true;
        return GATE_OK;
    case 'c':
        h->tls_cert = value;
        return GATE_OK;
    case 'k':
        h->tls_key = value;
        return GATE_OK;
    case 'u':
        h->webhook = value;
        return GATE_OK;
    case 's':
        h->webhook_secret = value;
        return GATE_OK;
    case 'r':
        return options_number("--read-rate", value, 1, 10000000, &h->read_rate, err);
    case 'w':
        return options_number("--write-rate", value, 1, 10000000, &h->write_rate, err);
    case 'm':
        return options_number("--max-connections", value, 1, 100000, &h->max_connections, err);
    case 'n':
        return options_number("--max-per-address", value, 1, 100000, &h->max_per_address, err);
    case 't':
        return options_number("--timeout", value, 1, 3600, &h->timeout_s, err);
    case 'g':
        return take_level(value, &a->log, err);
    case 'j':
        a->log_json = true;
        return GATE_OK;
    default:
        h->web_root = value;
        return GATE_OK;
    }
}

static enum gate_status check(struct arguments *a, struct gate_error *err)
{
    if (!a->http.db)
        return gate_fail(err, GATE_USAGE, "--db FILE is missing; see --help");
    if (!a->http.tls_cert != !a->http.tls_key)
        return gate_fail(err, GATE_USAGE, "--tls-cert and --tls-key belong together");
    if (!a->http.webhook != !a->http.webhook_secret)
        return gate_fail(err, GATE_USAGE, "--webhook and --webhook-secret-file belong together");
    if (!a->http.artifacts) {
        size_t n = (size_t)snprintf(a->artifacts, sizeof(a->artifacts), "%s-artifacts", a->http.db);
        if (n >= sizeof(a->artifacts))
            return gate_fail(err, GATE_USAGE, "the path of --db is too long");
        a->http.artifacts = a->artifacts;
    }
    return GATE_OK;
}

/* The socket that systemd passed, else one of our own. */
static enum gate_status open_socket(struct arguments *a, char url[LISTEN_MAX_URL],
                                    struct gate_error *err)
{
    enum gate_status status = notify_socket(&a->http.listen_fd, err);
    if (status == GATE_OK && a->http.listen_fd < 0)
        status = listen_open(a->listen, &a->http.listen_fd, err);
    if (status != GATE_OK)
        return status;
    status = listen_url(a->http.listen_fd, a->http.tls_cert != NULL, url, err);
    if (status != GATE_OK)
        close(a->http.listen_fd);
    return status;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until one of the signals comes: what is to be done now and then. */
static void wait_and_tick(struct http *http, const sigset_t *stop)
{
    int64_t watchdog_ms = notify_watchdog_ms();
    int64_t step_ms = watchdog_ms > 0 && watchdog_ms < TICK_MS ? watchdog_ms : TICK_MS;
    int64_t told_ms = 0;
    struct timespec step = {step_ms / 1000, step_ms % 1000 * 1000000};
    while (sigtimedwait(stop, NULL, &step) < 0) {
        http_tick(http);
        if (watchdog_ms > 0 && now_ms() - told_ms >= watchdog_ms && http_is_alive(http)) {
            notify_send("WATCHDOG=1");
            told_ms = now_ms();
        }
    }
}

static enum gate_status serve(struct arguments *a, struct gate_error *err)
{
    sigset_t stop;
    char url[LISTEN_MAX_URL];
    struct http *http = NULL;

    /* Blocked before there is a second thread, so that only sigtimedwait() sees them. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    log_setup(a->log, a->log_json);

    enum gate_status status = open_socket(a, url, err);
    if (status == GATE_OK)
        status = http_start(&a->http, &http, err);
    if (status != GATE_OK)
        return status;
    log_message(LOG_LEVEL_INFO, "listening on %s", url);
    notify_send("READY=1");
    wait_and_tick(http, &stop);
    notify_send("STOPPING=1");
    http_stop(http);
    return GATE_OK;
}

enum gate_status server_serve(int argc, char **argv, struct gate_error *err)
{
    struct arguments a = {
        .listen = DEFAULT_LISTEN,
        .log = LOG_LEVEL_INFO,
        .http = {.read_rate = 2000,
                 .write_rate = 20,
                 .max_connections = 256,
                 .max_per_address = 64,
                 .timeout_s = 15},
    };
    bool done;
    enum gate_status status =
        options_parse(argc, argv, options, usage, take, &a, NULL, 0, &done, err);
    if (status == GATE_OK && !done)
        status = check(&a, err);
    if (status != GATE_OK || done)
        return status;
    return serve(&a, err);
}
