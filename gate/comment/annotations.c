/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "gate/comment/comment.h"
#include "gate/report/report_run.h"

#define GITHUB_MAX 10
#define GITLAB_MAX 50

static bool is_error(const struct document_case *c)
{
    return c->verdict == VERDICT_REGRESSION || c->verdict == VERDICT_WRONG;
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

static void put_commands(const struct document *d, bool errors, struct buf *out)
{
    size_t n = 0;
    size_t last = out->len;
    for (size_t i = 0; i < d->n_cases; i++) {
        const struct document_case *c = &d->cases[i];
        bool good = c->verdict == VERDICT_PASS || c->verdict == VERDICT_IMPROVEMENT;
        if (good || is_error(c) != errors || ++n > GITHUB_MAX)
            continue;
        buf_printf(out, "::%s title=Kernel Gate%%3A %s::", errors ? "error" : "warning",
                   verdict_name(c->verdict));
        put_value(c->id, out);
        buf_puts(out, ": ");
        put_value(c->reason, out);
        last = out->len;
        buf_putc(out, '\n');
    }
    if (n > GITHUB_MAX && !out->failed) {
        out->data[out->len = last] = '\0';
        buf_printf(out, " (and %zu more cases)\n", n - GITHUB_MAX);
    }
}

void annotations_github(const struct document *d, struct buf *out)
{
    put_commands(d, true, out);
    put_commands(d, false, out);
}

void annotations_github_early(int exit_code, const char *message, struct buf *out)
{
    buf_printf(out, "::error title=Kernel Gate%%3A ended early (exit code %d)::", exit_code);
    put_value(message, out);
    buf_putc(out, '\n');
}

/* ---- GitLab ---- */

/* Behind `before` others; forgets the address. */
static void put_link(size_t before, const char *verdict, const char *id, struct buf *url,
                     struct buf *out)
{
    buf_printf(out, "%s\n    {\"external_link\": {\"label\": \"", before ? "," : "");
    json_escape(verdict, out);
    json_escape(id, out);
    buf_puts(out, "\", \"url\": \"");
    json_escape(url->data, out);
    buf_puts(out, "\"}}");
    buf_clear(url);
}

void annotations_gitlab(const struct document *documents, size_t n, const char *link,
                        struct buf *out)
{
    char label[80];
    size_t links = 0;
    RELEASED_BY(buf_release) struct buf url = buf_of(4096);
    buf_puts(out, "{\n  \"Kernel Gate\": [");
    for (const struct document *d = documents; d < documents + n; d++) {
        snprintf(label, sizeof label, "run %.8s: ", d->uuid);
        report_link_run(link, d->uuid, &url);
        put_link(links++, label, verdict_name(d->verdict), &url, out);
        for (size_t i = 0; i < d->n_cases && links < GITLAB_MAX; i++) {
            const struct document_case *c = &d->cases[i];
            if (!is_error(c))
                continue;
            snprintf(label, sizeof label, "%s: ", verdict_name(c->verdict));
            report_link_case(link, c->id, d->device.model, &url);
            put_link(links++, label, c->id, &url, out);
        }
    }
    buf_puts(out, "\n  ]\n}\n");
}
