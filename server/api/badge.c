/* SPDX-License-Identifier: Apache-2.0 */
/*
 * badge.c: GET /badge/DEVICE.svg|.json and /badge/DEVICE/CASE.svg|.json: how the newest run of the
 * main branch went on a device, or a case in it, as a picture and for shields.io's endpoint badge.
 *
 * A device or a case that is not known has a badge that says so, with status 200: pages that show
 * badges show nothing else.
 */

#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"
#include "gate/base/embed.h"
#include "gate/report/report_units.h"
#include "server/api/rows.h"

#define MAX_LABEL 160
#define MARGIN_PX 6
#define COLOR_SIZE sizeof("#08704f")

struct badge {
    char label[MAX_LABEL + 1];
    char message[64];
    char color[COLOR_SIZE]; /* white on it is at least 4.5 : 1 */
};

struct badge_path {
    char device[65];
    char id[161]; /* of the case; "": none */
    bool svg;
};

/* ---- what it says ---- */

/* The colour that the page has for the verdict: "--pass: #08704f;" in its style sheet. It is not
 * changed where there is none by that name. */
static void read_color(const char *verdict, char color[COLOR_SIZE])
{
    char name[32];
    snprintf(name, sizeof name, "--%s: #", verdict);
    for (size_t i = 0; i < embedded_web_count; i++) {
        const struct embedded_asset *file = &embedded_web[i];
        const char *found = !strcmp(file->name, "style.css")
                                ? memmem(file->data, file->size, name, strlen(name))
                                : NULL;
        if (found) {
            memcpy(color, found + strlen(name) - 1, COLOR_SIZE - 1);
            color[COLOR_SIZE - 1] = '\0';
        }
    }
}

struct badge_facts {
    char verdict[16]; /* of the newest run; "": there is none */
    double p50_ns;    /* of a case; 0: not timed */
    int64_t n_causes;
};

static bool note_newest(void *context, const struct store_row *row)
{
    struct badge_facts *facts = context;
    snprintf(facts->verdict, sizeof facts->verdict, "%s", store_text_of(row, "verdict"));
    facts->p50_ns = store_cell_of(row, "p50_ns")->real;
    return false;
}

static bool note_causes(void *context, const struct store_row *row)
{
    struct badge_facts *facts = context;
    facts->n_causes = store_integer_of(row, "causes");
    return false;
}

/* Of runs of the main branch: a merge request that is red is not the project's state. */
static enum gate_status ask(struct call *c, const struct badge_path *path, struct badge *b)
{
    struct badge_facts facts = {.p50_ns = 0};
    char more[UNITS_MAX + 2] = ", ";
    bool is_case = path->id[0] != '\0';
    const struct rows_value values[] = {
        {"device", path->device}, {"case", is_case ? path->id : NULL}, {NULL, NULL}};
    enum gate_status status = rows_select(c, "badge.sql", values, note_newest, &facts);
    if (!status && !is_case)
        status = rows_select(c, "alert_counts.sql", values, note_causes, &facts);
    snprintf(b->label, sizeof b->label, is_case ? "%.160s" : "kernels on %.64s",
             is_case ? path->id : path->device);
    if (status || facts.verdict[0] == '\0')
        return status;
    if (facts.n_causes > 0)
        snprintf(more, sizeof more, ", %lld open cause%s", (long long)facts.n_causes,
                 facts.n_causes == 1 ? "" : "s");
    else if (facts.p50_ns > 0)
        units_duration(facts.p50_ns, more + 2);
    else
        more[0] = '\0';
    snprintf(b->message, sizeof b->message, "%.15s%.48s",
             !strcmp(facts.verdict, "no-verdict") ? "no verdict" : facts.verdict, more);
    read_color(facts.verdict, b->color); /* else as what has no verdict */
    return GATE_OK;
}

/* ---- how it looks ---- */

static void put_part(struct buf *out, int x, int width, const char *text)
{
    buf_printf(out, "<text x=\"%d\" y=\"14\" textLength=\"%d\">", x + MARGIN_PX,
               width - 2 * MARGIN_PX);
    xml_text(out, text);
    buf_puts(out, "</text>");
}

/* About what Verdana's characters take at 11 px; the text is stretched to just that. */
static int width_of(const char *text)
{
    int tenths = 0;
    for (; *text != '\0'; text++) {
        if (strchr("fijlrt.,:/- ", *text))
            tenths += 43;
        else
            tenths += strchr("mw", *text) ? 98 : 67;
    }
    return 2 * MARGIN_PX + (tenths + 5) / 10;
}

static void put_svg(struct buf *out, const struct badge *b)
{
    int left = width_of(b->label), right = width_of(b->message);
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" role=\"img\">"
               "<title>",
               left + right);
    xml_text(out, b->label);
    buf_puts(out, ": ");
    xml_text(out, b->message);
    buf_printf(out,
               "</title><rect width=\"%d\" height=\"20\" rx=\"3\" fill=\"#3b4048\"/>"
               "<path d=\"M%d 0h%da3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H%dz\" fill=\"%s\"/>"
               "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" "
               "font-size=\"11\">",
               left + right, left, right - 3, left, b->color);
    put_part(out, 0, left, b->label);
    put_part(out, left, right, b->message);
    buf_puts(out, "</g></svg>\n");
}

/* ---- the address ---- */

static bool ends_in(const char *name, size_t *len, const char *suffix)
{
    size_t n = strlen(suffix);
    if (*len < n || strncmp(name + *len - n, suffix, n) != 0)
        return false;
    *len -= n;
    return true;
}

static bool parse(const char *name, struct badge_path *out)
{
    size_t len = strlen(name), device_len = strcspn(name, "/");
    *out = (struct badge_path){.svg = ends_in(name, &len, ".svg")};
    if (!out->svg && !ends_in(name, &len, ".json"))
        return false;
    if (device_len > len)
        device_len = len;
    size_t id_len = device_len < len ? len - device_len - 1 : 0;
    if (device_len >= sizeof out->device || id_len >= sizeof out->id)
        return false;
    memcpy(out->device, name, device_len);
    memcpy(out->id, name + device_len + 1, id_len);
    return is_name(out->device, "_.+-", 64) &&
           (device_len == len || is_name(out->id, "_./+-", 160));
}

enum gate_status get_badge(struct call *c)
{
    struct badge badge = {.message = "unknown"};
    struct badge_path path;
    c->reply->embedded = true;
    read_color("no-verdict", badge.color);
    if (!parse(c->rest, &path)) {
        reply_problem(c->reply, 404,
                      "A badge is at /badge/DEVICE.svg, /badge/DEVICE/CASE.svg, or "
                      "the same with .json.");
        return GATE_OK;
    }
    enum gate_status status = ask(c, &path, &badge);
    if (status)
        return status;
    if (path.svg) {
        c->reply->type = "image/svg+xml";
        put_svg(&c->reply->body, &badge);
        return GATE_OK;
    }
    emit_open(&c->emit, '{');
    emit_integer_member(&c->emit, "schemaVersion", 1);
    emit_string_member(&c->emit, "label", badge.label);
    emit_string_member(&c->emit, "message", badge.message);
    emit_string_member(&c->emit, "color", badge.color);
    emit_close(&c->emit, '}');
    buf_putc(&c->reply->body, '\n');
    return GATE_OK;
}
