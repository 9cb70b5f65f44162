/* openapi.json and the tables of routes tell of the same addresses. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/embed.h"
#include "base/json.h"
#include "server/api/api_private.h"
#include "server/api/api_write.h"

#define PREFIX "/api/v1/"

static cJSON *document;

static int set_up(void **state)
{
    struct gate_error err = {0};
    (void)state;
    assert_int_equal(embedded_api_count, 1);
    if (json_parse("openapi.json", (const char *)embedded_api[0].data, embedded_api[0].size,
                   GATE_IO, &document, &err) != GATE_OK)
        fail_msg("%s", err.message);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cJSON_Delete(document);
    return 0;
}

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* What "#/components/KIND/NAME" names, or the value itself. */
static const cJSON *resolve(const cJSON *value)
{
    const char *ref = json_string(value, "$ref", NULL);
    if (!ref)
        return value;
    char kind[32], name[64];
    assert_int_equal(sscanf(ref, "#/components/%31[^/]/%63s", kind, name), 2);
    value = member(member(member(document, "components"), kind), name);
    if (!value)
        fail_msg("%s is not there", ref);
    return value;
}

/* "runs/{uuid}" is the route "runs/", "runs" is "runs". */
static bool is_of_route(const char *path, const char *route)
{
    size_t len = strlen(route);
    if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
        return false;
    path += strlen(PREFIX);
    if (route[len - 1] != '/')
        return strcmp(path, route) == 0;
    return strncmp(path, route, len) == 0 && path[len] == '{' && !strchr(path + len, '/');
}

static const cJSON *find_documented(const char *route, const char *method)
{
    const cJSON *path;
    cJSON_ArrayForEach (path, member(document, "paths"))
        if (is_of_route(path->string, route))
            return member(path, method);
    return NULL;
}

static bool is_documented(const cJSON *operation, const char *parameter)
{
    const cJSON *p;
    cJSON_ArrayForEach (p, member(operation, "parameters"))
        if (strcmp(json_string(resolve(p), "name", ""), parameter) == 0)
            return true;
    return false;
}

static void test_every_route_is_documented(void **state)
{
    size_t n;
    const struct route *routes = api_routes(&n);
    (void)state;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        const cJSON *get = find_documented(routes[i].path, "get");
        if (!get)
            fail_msg("GET %s is not documented", routes[i].path);
        for (size_t k = 0; k < API_MAX_NAMES && routes[i].parameters[k]; k++)
            if (!is_documented(get, routes[i].parameters[k]))
                fail_msg("%s of %s is not documented", routes[i].parameters[k], routes[i].path);
    }
}

static bool needs_scope(const cJSON *operation, const char *scope)
{
    const cJSON *security = member(operation, "security");
    const cJSON *scopes = member(cJSON_GetArrayItem(security, 0), "token");
    return cJSON_GetArraySize(security) == 1 && cJSON_GetArraySize(scopes) == 1 &&
           strcmp(cJSON_GetArrayItem(scopes, 0)->valuestring, scope) == 0;
}

static void test_every_write_is_documented(void **state)
{
    size_t n;
    const struct api_write_route *routes = api_write_routes(&n);
    (void)state;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        char method[8] = "", scope[AUTH_MAX_SCOPES];
        for (size_t k = 0; k + 1 < sizeof(method) && routes[i].method[k]; k++)
            method[k] = (char)tolower((unsigned char)routes[i].method[k]);
        auth_scope_text(routes[i].scope, scope);
        const cJSON *operation = find_documented(routes[i].path, method);
        if (!operation)
            fail_msg("%s %s is not documented", routes[i].method, routes[i].path);
        if (!needs_scope(operation, scope))
            fail_msg("%s %s: the documented scope is not %s", method, routes[i].path, scope);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route_is_documented),
        cmocka_unit_test(test_every_write_is_documented),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
