/* main.c: the gate-server command. */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "listen.h"
#include "version.h"

#define DEFAULT_LISTEN "127.0.0.1:8731"

static const char usage_text[] =
    "usage: gate-server --db FILE [--listen ADDR:PORT] [--web-root DIR]\n"
    "\n"
    "Shows the history in FILE as a page and as JSON (/api/v1/). It only reads.\n"
    "\n"
    "  --db FILE           the database that `gate run` writes\n"
    "  --listen ADDR:PORT  where to listen (" DEFAULT_LISTEN "); port 0 is any free one\n"
    "  --web-root DIR      take the page's files from DIR instead of the built-in ones\n"
    "  --help              print this text\n"
    "  --version           print the version\n"
    "\n"
    "It prints its address on standard error when it is ready, and ends on SIGTERM or SIGINT.\n"
    "There is no login: leave it on a loopback address, or put a proxy with one in front of it.\n"
    "Exit status: 0 stopped by a signal, 64 usage, 70 internal, 74 database or address.\n";

struct arguments {
    const char *db;
    const char *listen;
    const char *web_root;
    bool done; /* --help or --version was asked for, and printed */
};

static enum gate_status parse_arguments(int argc, char **argv, struct arguments *a,
                                        struct gate_error *err)
{
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},       {"listen", required_argument, NULL, 'l'},
        {"web-root", required_argument, NULL, 'w'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},        {NULL, 0, NULL, 0},
    };
    int option;
    opterr = 0;
    *a = (struct arguments){.listen = DEFAULT_LISTEN};
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            a->db = optarg;
            break;
        case 'l':
            a->listen = optarg;
            break;
        case 'w':
            a->web_root = optarg;
            break;
        case 'h':
            fputs(usage_text, stdout);
            a->done = true;
            return GATE_OK;
        case 'v':
            puts("gate-server " GATE_VERSION);
            a->done = true;
            return GATE_OK;
        case ':':
            return gate_fail(err, GATE_USAGE, "'%s' needs a value; see --help", argv[optind - 1]);
        default:
            return gate_fail(err, GATE_USAGE, "'%s' is no option; see --help", argv[optind - 1]);
        }
    }
    if (optind < argc)
        return gate_fail(err, GATE_USAGE, "'%s' is not expected; see --help", argv[optind]);
    if (!a->db)
        return gate_fail(err, GATE_USAGE, "--db FILE is missing; see --help");
    return GATE_OK;
}

/* Serves until a signal asks it to end. */
static enum gate_status serve(const struct arguments *a, struct gate_error *err)
{
    sigset_t stop;
    char url[LISTEN_MAX_URL];
    int fd;
    int signal_number;
    struct http *http = NULL;
    struct http_options options = {.db = a->db, .web_root = a->web_root};

    /* Blocked before there is a second thread, so that only sigwait() below sees them. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);

    enum gate_status status = listen_open(a->listen, &fd, url, err);
    if (status != GATE_OK)
        return status;
    options.listen_fd = fd;
    status = http_start(&options, &http, err);
    if (status != GATE_OK)
        return status;
    fprintf(stderr, "gate-server: listening on %s\n", url);
    sigwait(&stop, &signal_number);
    http_stop(http);
    return GATE_OK;
}

int main(int argc, char **argv)
{
    struct gate_error err = {0};
    struct arguments arguments;
    enum gate_status status = parse_arguments(argc, argv, &arguments, &err);
    if (status == GATE_OK && !arguments.done)
        status = serve(&arguments, &err);
    if (status != GATE_OK)
        fprintf(stderr, "gate-server: %s\n", err.message);
    return (int)status;
}
