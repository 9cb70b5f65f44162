/* api_write.c: see api_write.h. */
#include "api_write.h"

#include <string.h>

#define PREFIX "/api/v1/"

static const struct api_write_route routes[] = {
    {"runs", "POST", TOKEN_INGEST, true, (size_t)32 << 20, api_prepare_run, api_store_run,
     api_release_run},
    {"alerts/", "POST", TOKEN_ADMIN, false, (size_t)16 << 10, api_prepare_step, api_take_step,
     api_release_step},
};

const struct api_write_route *api_write_routes(size_t *n)
{
    *n = sizeof(routes) / sizeof(routes[0]);
    return routes;
}

const struct api_write_route *api_write_find(const char *path, const char **rest)
{
    if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
        return NULL;
    path += strlen(PREFIX);
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        size_t len = strlen(routes[i].path);
        bool takes_rest = routes[i].path[len - 1] == '/';
        if (strncmp(path, routes[i].path, len) == 0 && (takes_rest || path[len] == '\0')) {
            *rest = path + len;
            return &routes[i];
        }
    }
    return NULL;
}
