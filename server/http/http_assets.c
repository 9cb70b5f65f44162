/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_assets.c: the files of the page: those that were built in, or those of a folder; see
 * http_private.h.
 *
 * What was built in has its version in its address and may be kept for ever. A folder is read at
 * each request, for work on the page, and only plain names of it are served: no "..", no hidden
 * file, no symbolic link anywhere in the path, no type that a page has no use for.
 */
#include "server/http/http_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/base/embed.h"

#define MAX_FILE ((off_t)8 << 20)

/* Two forms of a file, as it is and gzip, are two representations, each with a tag of its own. */
struct form {
    struct etag tag;
    _Atomic(void *) kept;
};

struct assets {
    int root_fd;           /* -1: built in */
    struct form (*all)[2]; /* of the built-in files, in their order */
};

static const char *type_of(const char *name)
{
    static const struct {
        const char *ending;
        const char *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < sizeof types / sizeof types[0]; i++) {
        if (!strcmp(ending, types[i].ending))
            return types[i].type;
    }
    return NULL;
}

enum gate_status http_open_assets(struct http *h, struct gate_error *err)
{
    const char *web_root = h->options.web_root;
    struct assets *a = h->assets = calloc(1, sizeof *a);
    if (a)
        a->all = calloc(embedded_web_count, sizeof *a->all);
    if (!a || !a->all)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    for (size_t i = 0; i < embedded_web_count; i++) {
        const struct embedded_asset *file = &embedded_web[i];
        a->all[i][false].tag = etag_of(file->data, file->size);
        a->all[i][true].tag = etag_of(file->gz, file->gz_size);
    }
    a->root_fd = web_root ? open(web_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return !web_root || a->root_fd >= 0
               ? GATE_OK
               : gate_fail(err, GATE_IO, "cannot open the folder '%s' of --web-root: %s", web_root,
                           strerror(errno));
}

void http_close_assets(struct http *h)
{
    struct assets *a = h->assets;
    for (size_t i = 0; a && a->all && i < 2 * embedded_web_count; i++) {
        struct MHD_Response *kept = atomic_load(&a->all[i / 2][i % 2].kept);
        if (kept)
            MHD_destroy_response(kept);
    }
    if (a && a->all && a->root_fd >= 0)
        close(a->root_fd);
    if (a)
        free(a->all);
    free(a);
}

/* One name of a path: letters, digits, '_', '-' and '.', which does not come first. */
static bool is_plain(const char *name, size_t len)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    return len > 0 && name[0] != '.' && strspn(name, good) >= len;
}

/* Opens the file step by step, so that no link can lead out of the folder. -1: there is none. */
static int open_below(int root_fd, const char *path)
{
    char name[256];
    int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    while (fd >= 0) {
        size_t len = strcspn(path, "/");
        bool last = path[len] == '\0';
        int next = -1;
        if (is_plain(path, len) && len < sizeof name) {
            memcpy(name, path, len);
            name[len] = '\0';
            next =
                openat(fd, name,
                       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
        }
        close(fd);
        fd = next;
        if (last)
            break;
        path += len + 1;
    }
    return fd;
}

static bool read_file(int fd, struct buf *out)
{
    struct stat st;
    char chunk[16384];
    ssize_t n;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
        return false;
    while ((n = read(fd, chunk, sizeof chunk)) > 0)
        buf_append(out, chunk, (size_t)n);
    return n == 0 && !out->failed;
}

static bool get_from_folder(const struct assets *a, const char *name, struct reply *reply)
{
    int fd = open_below(a->root_fd, name);
    if (fd < 0)
        return false;
    bool good = read_file(fd, &reply->body);
    close(fd);
    if (good)
        reply->etag = etag_of(reply->body.data, reply->body.len);
    return good;
}

static bool get_built_in(const struct assets *a, const char *name, bool gzip, struct reply *reply)
{
    for (size_t i = 0; i < embedded_web_count; i++) {
        const struct embedded_asset *file = &embedded_web[i];
        if (!strcmp(file->name, name)) {
            reply->constant = gzip ? file->gz : file->data;
            reply->constant_size = gzip ? file->gz_size : file->size;
            reply->etag = a->all[i][gzip].tag;
            reply->kept = &a->all[i][gzip].kept;
            reply->varies = true;
            reply->gzipped = gzip;
            return true;
        }
    }
    return false;
}

/* The name behind "/files/VERSION/" of this build, or NULL. */
static const char *versioned(const char *path)
{
    static const char prefix[] = "/files/";
    size_t len = strlen(embedded_web_version);
    if (strncmp(path, prefix, strlen(prefix)) != 0)
        return NULL;
    path += strlen(prefix);
    return !strncmp(path, embedded_web_version, len) && path[len] == '/' ? path + len + 1 : NULL;
}

static bool find(const struct assets *a, const char *path, bool gzip, struct reply *reply)
{
    const char *name = !strcmp(path, "/") ? "index.html" : path + 1;
    const char *type = type_of(name);
    if (!type)
        return false;
    reply->type = type;
    if (a->root_fd >= 0) {
        /* A folder of sources does not have what the build took from npm. */
        bool from_npm = !strncmp(name, "uplot.", 6);
        return get_from_folder(a, name, reply) || (from_npm && get_built_in(a, name, gzip, reply));
    }
    const char *file = versioned(path);
    reply->immutable = file != NULL;
    if (!file && strcmp(path, "/") != 0)
        return false;
    return get_built_in(a, file ? file : name, gzip, reply);
}

void http_get_asset(struct peer *p)
{
    const char *path = p->request.path;
    if (!strncmp(path, "/api/", 5) || !strcmp(path, "/api"))
        reply_problem(&p->reply, 404,
                      "The API has no such address; /api/v1/openapi.json lists all.");
    else if (!find(p->http->assets, path, accepts_gzip(p->headers.accept_encoding), &p->reply))
        reply_text(&p->reply, 404,
                   !strcmp(path, "/")
                       ? "This server was built without the dashboard (WEB=0). Its data is below "
                         "/api/v1/, which /api/v1/openapi.json describes; for example "
                         "/api/v1/cases?format=csv"
                       : "There is nothing at this address. The dashboard is at /");
}
