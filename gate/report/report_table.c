/* SPDX-License-Identifier: Apache-2.0 */
/* report_table.c: see report.h. */
#include "gate/report/report.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"

#define GAP 2 /* spaces between columns */
#define MAX_TEXT (64u * 1024 * 1024)

struct cell {
    size_t text; /* offset in table.texts */
    int width;
    enum term_colour colour;
};

struct column {
    struct table_column is; /* without its title */
    bool hidden, shown;     /* on a terminal */
    bool used;              /* a cell below the title is not empty */
    int width;
};

struct table {
    size_t n_columns;
    struct column *columns;
    struct cell *cells; /* the titles are the first row */
    size_t n_cells, cap_cells;
    struct buf texts; /* fails where they are too long */
};

struct table *table_new(const struct table_column *columns, size_t n_columns)
{
    struct table *t = xcalloc(1, sizeof *t);
    t->texts = buf_of(MAX_TEXT);
    t->columns = xcalloc(n_columns, sizeof *t->columns);
    t->n_columns = n_columns;
    for (size_t i = 0; i < n_columns; i++)
        t->columns[i] = (struct column){.is = columns[i], .hidden = !columns[i].title};
    for (size_t i = 0; i < n_columns; i++)
        table_cell(t, TERM_BOLD, columns[i].title ? columns[i].title : "");
    return t;
}

void table_free(struct table *t)
{
    if (!t)
        return;
    buf_release(&t->texts);
    free(t->columns);
    free(t->cells);
    free(t);
}

void table_cell(struct table *t, enum term_colour colour, const char *text)
{
    size_t at = t->texts.len;
    term_puts(text, &t->texts);
    buf_append(&t->texts, "", 1);
    if (t->texts.failed)
        return;
    if (t->n_cells == t->cap_cells) {
        t->cap_cells = t->cap_cells ? 2 * t->cap_cells : 64;
        t->cells = xrealloc(t->cells, t->cap_cells, sizeof *t->cells);
    }
    int width = term_width(t->texts.data + at);
    struct column *column = &t->columns[t->n_cells % t->n_columns];
    if (width > column->width)
        column->width = width;
    column->used |= width > 0 && t->n_cells >= t->n_columns;
    t->cells[t->n_cells++] = (struct cell){.text = at, .width = width, .colour = colour};
}

/* Decides which columns are shown; returns how many are not. */
static size_t fit(const struct table *t, int width)
{
    size_t dropped = 0;
    int total = -GAP;
    for (size_t i = 0; i < t->n_columns; i++) {
        struct column *c = &t->columns[i];
        c->shown = !c->hidden && (c->used || t->n_cells == t->n_columns);
        total += c->shown ? c->width + GAP : 0;
    }
    while (width > 0 && total > width) {
        struct column *worst = NULL;
        for (size_t i = 0; i < t->n_columns; i++) {
            struct column *c = &t->columns[i];
            if (c->shown && c->is.drop > 0 && (!worst || c->is.drop >= worst->is.drop))
                worst = c;
        }
        if (!worst)
            break;
        worst->shown = false;
        total -= worst->width + GAP;
        dropped++;
    }
    return dropped;
}

/* A row has no spaces at its end: those of a left-aligned cell wait for the next cell. */
static void write_row(const struct table *t, const struct cell *row, bool colour, struct buf *out)
{
    int waiting = 0;
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *column = &t->columns[i];
        const struct cell *cell = &row[i];
        int space = column->width - cell->width;
        if (!column->shown)
            continue;
        if (cell->width > 0) {
            buf_printf(out, "%*s", waiting + (column->is.right ? space : 0), "");
            term_colour_begin(colour, cell->colour, out);
            buf_puts(out, t->texts.data + cell->text);
            term_colour_end(colour, cell->colour, out);
            waiting = GAP + (column->is.right ? 0 : space);
        } else {
            waiting += column->width + GAP;
        }
    }
    buf_putc(out, '\n');
}

/* ---- Markdown ---- */

/* What the services make links, mentions or commands of where a word follows. */
static bool begins_reference(const char *text)
{
    if (text[0] == ':')
        return text[1] == '/' && text[2];
    return strchr("@#!$%&~", text[0]) && text[0] &&
           (isalnum((unsigned char)text[1]) || text[1] == '"');
}

/* A reference is broken by a space of no width. */
void markdown_text(const char *text, struct buf *out)
{
    uint32_t code;
    for (size_t n; (n = utf8_next(text, &code)); text += n) {
        if (code == UTF8_BAD)
            buf_puts(out, "\xef\xbf\xbd");
        else if (code < 0x20 || code == 0x7f)
            buf_putc(out, ' ');
        else if (code == '<')
            buf_puts(out, "&lt;");
        else if (code == '>')
            buf_puts(out, "&gt;");
        else if (code == '&')
            buf_puts(out, "&amp;");
        else if (code < 0x80 && strchr("\\`*_[]|~#!", (int)code))
            buf_printf(out, "\\%c", (char)code);
        else
            buf_append(out, text, n);
        if (begins_reference(text) || (!strncasecmp(text, "www.", 4) && text[4]))
            buf_puts(out, "\xe2\x80\x8b");
    }
}

void markdown_code(const char *text, struct buf *out)
{
    buf_putc(out, '`');
    for (; *text; text++)
        buf_putc(out, *text == '`' || *text == '|' || (unsigned char)*text < 0x20 ? '?' : *text);
    buf_putc(out, '`');
}

static bool is_joined(const struct column *c)
{
    return c->is.markdown && c->is.markdown[0] == ' ';
}

static bool is_in_markdown(const struct column *c)
{
    return c->is.markdown ? c->is.markdown[0] != '\0' : !c->hidden;
}

static void put_row(const struct table *t, const struct cell *row, struct buf *out)
{
    const char *separator = "| ";
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *column = &t->columns[i];
        if (!is_in_markdown(column))
            continue;
        const bool title = row == t->cells, joined = is_joined(column);
        const char *text =
            title && column->is.markdown ? column->is.markdown : t->texts.data + row[i].text;
        const bool is_bold = row[i].colour == TERM_YELLOW && !column->is.raw && row[i].width;
        const char *bold = is_bold ? "**" : "";
        if (!joined) {
            buf_puts(out, separator);
            separator = " | ";
        }
        if (joined && (title || !row[i].width))
            continue;
        buf_printf(out, "%s%s", joined ? column->is.markdown : "", bold);
        if (column->is.raw && !title)
            buf_puts(out, text);
        else
            markdown_text(*text ? text : "-", out);
        buf_puts(out, bold);
    }
    buf_puts(out, " |\n");
}

void table_write(const struct table *t, const struct report_style *style, struct buf *out)
{
    out->failed |= t->texts.failed;
    if (style->markdown) {
        put_row(t, t->cells, out);
        for (size_t i = 0; i < t->n_columns; i++)
            if (is_in_markdown(&t->columns[i]) && !is_joined(&t->columns[i]))
                buf_puts(out, t->columns[i].is.right ? "|--:" : "|:--");
        buf_puts(out, "|\n");
        for (size_t at = t->n_columns; at + t->n_columns <= t->n_cells; at += t->n_columns)
            put_row(t, &t->cells[at], out);
        return;
    }
    size_t dropped = fit(t, style->width);
    for (size_t at = 0; at + t->n_columns <= t->n_cells; at += t->n_columns)
        write_row(t, &t->cells[at], style->colour, out);
    if (dropped == 0)
        return;
    const char *separator = "columns left out at this width: ";
    term_colour_begin(style->colour, TERM_DIM, out);
    for (size_t i = 0; i < t->n_columns; i++) {
        if (t->columns[i].shown || t->columns[i].hidden || !t->columns[i].used)
            continue;
        buf_printf(out, "%s%s", separator, t->texts.data + t->cells[i].text);
        separator = ", ";
    }
    term_colour_end(style->colour, TERM_DIM, out);
    buf_putc(out, '\n');
}
