/* cmd_serve.c: gate-server --db FILE: serves until a signal asks it to end. */
#include "server_commands.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "http.h"
#include "listen.h"
#include "options.h"

#define DEFAULT_LISTEN "127.0.0.1:8731"

static const char usage[] =
    "usage: gate-server --db FILE [--listen ADDR:PORT] [--web-root DIR]\n"
    "       gate-server token ...\n"
    "\n"
    "Shows the history in FILE as a page and as JSON (/api/v1/). It only reads.\n"
    "\n"
    "  --db FILE           the database that `gate run` writes\n"
    "  --listen ADDR:PORT  where to listen (" DEFAULT_LISTEN "); port 0 is any free one\n"
    "  --web-root DIR      take the page's files from DIR instead of the built-in ones\n"
    "  --help              print this text; each command has its own\n"
    "  --version           print the version\n"
    "\n"
    "It prints its address on standard error when it is ready, and ends on SIGTERM or SIGINT.\n"
    "There is no login: leave it on a loopback address, or put a proxy with one in front of it.\n"
    "Exit status: 0 stopped by a signal, 64 usage, 70 internal, 74 database or address.\n";

struct arguments {
    const char *listen;
    struct http_options http;
};

static enum gate_status take(void *context, int letter, const char *value, struct gate_error *err)
{
    struct arguments *a = context;
    (void)err;
    if (letter == 'd')
        a->http.db = value;
    else if (letter == 'l')
        a->listen = value;
    else
        a->http.web_root = value;
    return GATE_OK;
}

static enum gate_status serve(struct arguments *a, struct gate_error *err)
{
    sigset_t stop;
    char url[LISTEN_MAX_URL];
    int signal_number;
    struct http *http = NULL;

    /* Blocked before there is a second thread, so that only sigwait() below sees them. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);

    enum gate_status status = listen_open(a->listen, &a->http.listen_fd, url, err);
    if (status == GATE_OK)
        status = http_start(&a->http, &http, err);
    if (status != GATE_OK)
        return status;
    fprintf(stderr, "gate-server: listening on %s\n", url);
    sigwait(&stop, &signal_number);
    http_stop(http);
    return GATE_OK;
}

enum gate_status server_serve(int argc, char **argv, struct gate_error *err)
{
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},
        {"listen", required_argument, NULL, 'l'},
        {"web-root", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct arguments a = {.listen = DEFAULT_LISTEN};
    bool done;
    enum gate_status status =
        options_parse(argc, argv, options, usage, take, &a, NULL, 0, &done, err);
    if (status != GATE_OK || done)
        return status;
    if (!a.http.db)
        return gate_fail(err, GATE_USAGE, "--db FILE is missing; see --help");
    return serve(&a, err);
}
