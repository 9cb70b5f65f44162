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

#include "server/api/alert_json.h"
#include "server/api/rows.h"
#include "server/api/api_call.h"
#include "gate/report/report_units.h"
#include "gate/store/store_alert.h"
#include "gate/store/store_badge.h"
#include "server/text/xml.h"

#define ENTRIES 50

/* One feed in the making. */
struct feed {
    struct buf *out, *entries;
    const char *identity; /* of the database */
    const char *base;     /* of links: of this server, or "./" */
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

static void put_title(struct buf *out, const struct store_alert *a)
{
    char text[ALERT_MAX_SENTENCE];
    buf_puts(out, "<title>");
    xml_text(out, alert_sentence(a, text));
    buf_printf(out, " (%s)</title>\n", alert_state_name(a->state));
}

/* The beginning of a link; what follows it is quoted and closed by the caller. */
static void put_link(const struct feed *f, struct buf *out, const char *rel, const char *type)
{
    buf_printf(out, "<link rel=\"%s\" type=\"%s\" href=\"", rel, type);
    xml_text(out, f->base);
    if (f->base[strlen(f->base) - 1] != '/')
        buf_putc(out, '/');
}

static void put_content(struct buf *out, const struct store_alert *a)
{
    char text[ALERT_MAX_SENTENCE];
    buf_puts(out, "<content type=\"text\">");
    xml_text(out, alert_sentence(a, text));
    if (a->machine[0] == '\0' && a->commit[0] != '\0' && a->subject[0] != '\0') {
        buf_puts(out, " (");
        xml_text(out, a->subject);
        if (a->author[0] != '\0') {
            buf_puts(out, ", by ");
            xml_text(out, a->author);
        }
        buf_putc(out, ')');
    }
    if (a->before_commit[0] != '\0')
        buf_printf(out, ", before it %.12s", a->before_commit);
    if (a->evidence[0] != '\0') {
        buf_puts(out, "; ");
        xml_text(out, a->evidence);
    }
    buf_printf(out, "; run %s; %s by ", a->run_uuid, alert_state_name(a->state));
    xml_text(out, a->who);
    if (a->reason[0] != '\0') {
        buf_puts(out, ": ");
        xml_text(out, a->reason);
    }
    buf_puts(out, "</content>\n");
}

static bool entry(void *context, const struct store_alert *a)
{
    struct feed *f = context;
    buf_puts(f->entries, "<entry>\n");
    put_id(f, f->entries, "alert", a->id);
    put_title(f->entries, a);
    put_updated(f->entries, a->updated_ms);
    put_link(f, f->entries, "alternate", "text/html");
    buf_printf(f->entries, "#/alerts/%lld\"/>\n<category term=\"%s\"/>\n", (long long)a->id,
               alert_kind_name(a->kind));
    put_content(f->entries, a);
    buf_puts(f->entries, "</entry>\n");
    if (a->updated_ms > f->updated_ms)
        f->updated_ms = a->updated_ms;
    return true;
}

/* What nobody is told by an alert, since no run came. */
static bool silence_entry(void *context, const struct store_cell *cells, int n)
{
    struct feed *f = context;
    const char *text = store_cell_of(cells, n, "text")->text;
    int64_t time_ms = store_cell_of(cells, n, "time_ms")->integer;
    buf_puts(f->entries, "<entry>\n<id>urn:gate:silence:");
    xml_text(f->entries, f->identity);
    buf_printf(f->entries, ":%s:", store_cell_of(cells, n, "run")->text);
    xml_text(f->entries, store_cell_of(cells, n, "place")->text);
    buf_puts(f->entries, "</id>\n<title>");
    xml_text(f->entries, text);
    buf_puts(f->entries, "</title>\n");
    put_updated(f->entries, time_ms);
    put_link(f, f->entries, "alternate", "text/html");
    buf_printf(f->entries, "#/run/%s\"/>\n<category term=\"silence\"/>\n",
               store_cell_of(cells, n, "run")->text);
    buf_puts(f->entries, "<content type=\"text\">");
    xml_text(f->entries, text);
    buf_puts(f->entries, "</content>\n</entry>\n");
    return true;
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
    struct alert_filter filter = {.state = -1, .kind = -1};
    struct buf entries;
    char identity[STORE_IDENTITY_MAX];
    struct feed f = {.out = &c->reply->body,
                     .entries = &entries,
                     .identity = identity,
                     .base = c->public_url ? c->public_url : "./"};
    if (!read_device(c, false, &filter.device_model) || !read_case(c, false, &filter.case_id))
        return GATE_OK;
    buf_init(&entries, REPLY_MAX_BODY);
    enum gate_status status = store_identity(c->store, identity, &c->err);
    if (!status)
        status =
            store_open_causes(c->store, filter.device_model, filter.case_id, &f.n_causes, &c->err);
    if (!status)
        status = store_alerts(c->store, &filter, false, INT64_MAX, ENTRIES, entry, &f, &c->err);
    const struct rows_value values[] = {{"main_branch", c->main_branch},
                                        {"device", filter.device_model},
                                        {"limit", "50"},
                                        {NULL, NULL}};
    if (!status && !filter.case_id)
        status = rows_select(c, "silences.sql", values, silence_entry, &f);
    put_feed(&f, c->request);
    c->reply->type = "application/atom+xml; charset=utf-8";
    buf_release(&entries);
    return status;
}
