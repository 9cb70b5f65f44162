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
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate/base/embed.h"
#include "gate/base/file.h"

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

static int open_beneath(const struct assets *a, const char *path)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    return (int)syscall(SYS_openat2, a->root_fd, path, &how, sizeof how);
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
    if (!web_root)
        return GATE_OK;
    if (a->root_fd < 0)
        return gate_fail(err, GATE_IO, "cannot open the folder '%s' of --web-root: %s", web_root,
                         strerror(errno));
    int fd = open_beneath(a, ".");
    if (fd < 0)
        return gate_fail(err, GATE_IO,
                         "--web-root takes the system call openat2, which a container or a kernel "
                         "before 5.6 may refuse: %s",
                         strerror(errno));
    close(fd);
    return GATE_OK;
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

static bool get_from_folder(const struct assets *a, const char *path, struct reply *reply)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    struct stat st;
    bool is_plain = path[strspn(path, plain)] == '\0' && path[0] != '.' && !strstr(path, "/.") &&
                    !strstr(path, "//");
    int fd = is_plain ? open_beneath(a, path) : -1;
    if (fd < 0)
        return false;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_FILE &&
                file_read_fd(fd, path, &reply->body, NULL) == GATE_OK;
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
    if (strcmp(path, "/") != 0) {
        static const char prefix[] = "/files/";
        const char *version = path + strlen(prefix);
        size_t len = strlen(embedded_web_version);
        if (strncmp(path, prefix, strlen(prefix)) != 0 ||
            strncmp(version, embedded_web_version, len) != 0 || version[len] != '/')
            return false;
        reply->immutable = true;
        name = version + len + 1;
    }
    return get_built_in(a, name, gzip, reply);
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
