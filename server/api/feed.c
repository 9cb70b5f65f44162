/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c: GET /feed.atom: the newest alerts, for feed readers (RFC 4287).
 *
 * An entry is an alert; a step of its life makes it newer. Ids are UUIDs that follow from the
 * database and the alert, so that they are the same at every address.
 */

#include <sha2.h>
#include <stdio.h>
#include <string.h>

#include "server/api/rows.h"
#include "server/api/api_call.h"
#include "gate/report/report_units.h"
#include "gate/store/store_alert.h"

#define ENTRIES "51" /* 50 alerts, and another page */
#define MAX_IDENTITY 64

/* One feed in the making. */
struct feed {
    struct buf *out, *entries;
    char identity[MAX_IDENTITY]; /* of the database, the same as long as it lives */
    const char *base;            /* of links: of this server, or "./" */
    int64_t updated_ms, n_causes;
};

/* A UUID of version 8 (RFC 9562): what it is made of is ours. */
static void put_id(const struct feed *f, struct buf *out, const char *what, int64_t id)
{
    char text[160];
    uint8_t d[SHA256_DIGEST_LENGTH];
    SHA2_CTX context;
    int n = snprintf(text, sizeof text, "%s %s %lld", f->identity, what, (long long)id);
    SHA256Init(&context);
    SHA256Update(&context, (const uint8_t *)text, (size_t)n);
    SHA256Final(d, &context);
    d[6] = (uint8_t)(0x80 | (d[6] & 0x0f));
    d[8] = (uint8_t)(0x80 | (d[8] & 0x3f));
    buf_puts(out, "<id>urn:uuid:");
    for (int i = 0; i < 16; i++)
        buf_printf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", d[i]);
    buf_puts(out, "</id>\n");
}

static void put_updated(struct buf *out, int64_t ms)
{
    char iso[UNITS_MAX];
    buf_printf(out, "<updated>%s</updated>\n", units_time_iso(ms, iso));
}

/* The beginning of a link; what follows it is quoted and closed by the caller. */
static void put_link(const struct feed *f, struct buf *out, const char *rel, const char *type)
{
    buf_printf(out, "<link rel=\"%s\" type=\"%s\" href=\"", rel, type);
    xml_text(out, f->base);
    if (f->base[strlen(f->base) - 1] != '/')
        buf_putc(out, '/');
}

static void put_part(struct buf *out, const char *before, const char *text)
{
    if (text[0] != '\0')
        buf_puts(out, before);
    xml_text(out, text);
}

static bool entry(void *context, const struct store_row *a)
{
    struct feed *f = context;
    struct buf *out = f->entries;
    int64_t id = store_integer_of(a, "id");
    int64_t updated_ms = store_integer_of(a, "updated_ms");
    const char *text = store_text_of(a, "text"), *state = store_text_of(a, "state");
    buf_puts(out, "<entry>\n");
    put_id(f, out, "alert", id);
    buf_puts(out, "<title>");
    xml_text(out, text);
    buf_printf(out, " (%s)</title>\n", state);
    put_updated(out, updated_ms);
    put_link(f, out, "alternate", "text/html");
    buf_printf(out, "#/alerts/%lld\"/>\n<category term=\"%s\"/>\n<content type=\"text\">",
               (long long)id, store_text_of(a, "kind"));
    xml_text(out, text);
    if (!store_text_of(a, "machine")[0] && !store_integer_of(a, "dirty") &&
        store_text_of(a, "commit")[0] && store_text_of(a, "subject")[0]) {
        put_part(out, " (", store_text_of(a, "subject"));
        put_part(out, ", by ", store_text_of(a, "author"));
        buf_putc(out, ')');
    }
    if (store_text_of(a, "before_commit")[0])
        buf_printf(out, ", before it %.12s", store_text_of(a, "before_commit"));
    put_part(out, "; ", store_text_of(a, "evidence"));
    buf_printf(out, "; run %s; %s by ", store_text_of(a, "run"), state);
    xml_text(out, store_text_of(a, "who"));
    put_part(out, ": ", store_text_of(a, "reason"));
    buf_puts(out, "</content>\n</entry>\n");
    if (updated_ms > f->updated_ms)
        f->updated_ms = updated_ms;
    return true;
}

/* What nobody is told by an alert, since no run came. */
static bool silence_entry(void *context, const struct store_row *row)
{
    struct feed *f = context;
    struct buf *out = f->entries;
    const char *text = store_text_of(row, "text"), *run = store_text_of(row, "run");
    buf_puts(out, "<entry>\n<id>urn:gate:silence:");
    xml_text(out, f->identity);
    buf_printf(out, ":%s:", run);
    xml_text(out, store_text_of(row, "place"));
    buf_puts(out, "</id>\n<title>");
    xml_text(out, text);
    buf_puts(out, "</title>\n");
    put_updated(out, store_integer_of(row, "time_ms"));
    put_link(f, out, "alternate", "text/html");
    buf_printf(out, "#/run/%s\"/>\n<category term=\"silence\"/>\n<content type=\"text\">", run);
    xml_text(out, text);
    buf_puts(out, "</content>\n</entry>\n");
    return true;
}

static bool note_causes(void *context, const struct store_row *row)
{
    struct feed *f = context;
    f->n_causes = store_integer_of(row, "causes");
    snprintf(f->identity, sizeof f->identity, "%s", store_text_of(row, "identity"));
    return false;
}

static void put_feed(struct feed *f, const struct request *request)
{
    buf_puts(f->out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                     "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:lang=\"en\">\n"
                     "<title>Kernel Gate alerts</title>\n");
    buf_printf(f->out, "<subtitle>%lld open cause%s</subtitle>\n", (long long)f->n_causes,
               f->n_causes == 1 ? "" : "s");
    put_id(f, f->out, "feed", 0);
    put_updated(f->out, f->updated_ms);
    buf_puts(f->out, "<author><name>" ALERT_SERVER "</name></author>\n");
    put_link(f, f->out, "self", "application/atom+xml");
    xml_text(f->out, request->target + strspn(request->target, "/"));
    buf_puts(f->out, "\"/>\n");
    put_link(f, f->out, "alternate", "text/html");
    buf_puts(f->out, "#/alerts\"/>\n");
    buf_append(f->out, f->entries->data, f->entries->len);
    buf_puts(f->out, "</feed>\n");
    f->out->failed |= f->entries->failed;
}

enum gate_status get_feed(struct call *c)
{
    const char *device, *case_id;
    struct buf entries;
    struct feed f = {.out = &c->reply->body,
                     .entries = &entries,
                     .base = c->site.public_url ? c->site.public_url : "./"};
    if (!read_parameter(c, "device", false, &device) || !read_parameter(c, "case", false, &case_id))
        return GATE_OK;
    const struct rows_value values[] = {
        {"device", device}, {"case", case_id}, {"groups", "0"}, {"limit", ENTRIES}, {NULL, NULL}};
    buf_init(&entries, REPLY_MAX_BODY);
    enum gate_status status = rows_select(c, "alert_counts.sql", values, note_causes, &f);
    if (!status)
        status = rows_select(c, "alerts.sql", values, entry, &f);
    if (!status && !case_id)
        status = rows_select(c, "silences.sql", values, silence_entry, &f);
    put_feed(&f, c->request);
    c->reply->type = "application/atom+xml; charset=utf-8";
    buf_release(&entries);
    return status;
}
