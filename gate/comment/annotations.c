/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/comment/annotations.h"

#include <stdio.h>

#include "gate/base/json.h"
#include "gate/report/report_run.h"

#define GITHUB_MAX 10
#define GITLAB_MAX 50

static bool is_error(const struct document_case *c)
{
    return c->verdict == VERDICT_REGRESSION || c->verdict == VERDICT_WRONG;
}

static bool is_warning(const struct document_case *c)
{
    return c->verdict == VERDICT_NO_VERDICT || c->verdict == VERDICT_ENVIRONMENT;
}

/* ---- GitHub ---- */

/* A command is one line. */
static void put_value(const char *text, struct buf *out)
{
    for (; *text; text++) {
        if (*text == '%' || (unsigned char)*text < 0x20)
            buf_printf(out, "%%%02X", (unsigned char)*text);
        else
            buf_putc(out, *text);
    }
}

static void put_commands(const struct document *d, const char *command,
                         bool (*is_meant)(const struct document_case *), struct buf *out)
{
    size_t n = 0, told = 0;
    for (size_t i = 0; i < d->n_cases; i++)
        n += is_meant(&d->cases[i]);
    for (size_t i = 0; i < d->n_cases && told < GITHUB_MAX; i++) {
        const struct document_case *c = &d->cases[i];
        if (!is_meant(c))
            continue;
        told++;
        bool last = told == GITHUB_MAX && n > GITHUB_MAX;
        buf_printf(out, "::%s title=Kernel Gate%%3A %s::", command, verdict_name(c->verdict));
        put_value(c->id, out);
        buf_puts(out, ": ");
        put_value(c->reason, out);
        if (last)
            buf_printf(out, " (and %zu more cases)", n - told);
        buf_putc(out, '\n');
    }
}

void annotations_github(const struct document *d, struct buf *out)
{
    put_commands(d, "error", is_error, out);
    put_commands(d, "warning", is_warning, out);
}

void annotations_github_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "::error title=Kernel Gate%%3A ended early (exit code %d)::", exit_code);
    put_value(message, out);
    buf_putc(out, '\n');
}

/* ---- GitLab ---- */

static void add_link(cJSON *list, const char *label, struct buf *url)
{
    cJSON *link = cJSON_CreateObject(), *outer = cJSON_CreateObject();
    cJSON_AddStringToObject(link, "label", label);
    cJSON_AddStringToObject(link, "url", url->data);
    cJSON_AddItemToObject(outer, "external_link", link);
    cJSON_AddItemToArray(list, outer);
    buf_clear(url);
}

static void add_run(cJSON *list, const struct document *d, const char *link)
{
    char label[300];
    struct buf url;
    buf_init(&url, 4096);
    snprintf(label, sizeof label, "run %.8s: %s", d->uuid, verdict_name(d->verdict));
    report_link_run(link, d->uuid, &url);
    add_link(list, label, &url);
    for (size_t i = 0; i < d->n_cases && cJSON_GetArraySize(list) < GITLAB_MAX; i++) {
        const struct document_case *c = &d->cases[i];
        if (!is_error(c))
            continue;
        snprintf(label, sizeof label, "%s: %.200s", verdict_name(c->verdict), c->id);
        report_link_case(link, c->id, d->device.model, &url);
        add_link(list, label, &url);
    }
    buf_release(&url);
}

void annotations_gitlab(const struct document *const *documents, size_t n, const char *link,
                        struct buf *out)
{
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "Kernel Gate");
    for (size_t i = 0; i < n; i++)
        add_run(list, documents[i], link);
    json_write(o, true, out);
    cJSON_Delete(o);
}
