/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_text.c: CSV (RFC 4180) with a header, and JUnit's XML.
 *
 * Of XML only elements and their attributes are read: no document types, so that no entity can be
 * defined, and UTF-8 alone.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/foreign/foreign.h"

/* ---- both ---- */

struct cursor {
    struct reading *r;
    const char *at; /* in the text, which a NUL ends */
    unsigned line;
};

__attribute__((format(printf, 2, 3))) static enum gate_status refuse(const struct cursor *c,
                                                                     const char *format, ...)
{
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return gate_fail(c->r->err, GATE_IO, "%s:%u: %s", c->r->name, c->line, utf8_trim(message));
}

/* Begins at the text, behind a byte order mark; it has to be UTF-8 without a NUL. */
static enum gate_status begin(struct reading *r, struct cursor *c)
{
    const char *end = r->text + r->len;
    uint32_t code = 0;
    *c = (struct cursor){.r = r, .at = r->text, .line = 1};
    for (; c->at < end; c->at += utf8_decode(c->at, (size_t)(end - c->at), &code)) {
        if (!utf8_decode(c->at, (size_t)(end - c->at), &code) || code == 0)
            return refuse(c, "is not UTF-8");
        c->line += *c->at == '\n';
    }
    c->line = 1;
    c->at = r->text + (strncmp(r->text, "\xef\xbb\xbf", 3) ? 0 : 3);
    return GATE_OK;
}

static char *place_of(unsigned line)
{
    return xasprintf("line %u", line);
}

/* ---- CSV ---- */

enum csv_column { NAME, P50, P50_LO, P50_HI, P10, P90, SAMPLES, CSV_COLUMNS };
static const char *const csv_columns[CSV_COLUMNS] = {
    [NAME] = "name",  [P50] = "p50_ns", [P50_LO] = "p50_lo_ns", [P50_HI] = "p50_hi_ns",
    [P10] = "p10_ns", [P90] = "p90_ns", [SAMPLES] = "samples",
};

#define NO_COLUMN CSV_FIELDS_MAX

static enum gate_status read_header(const struct cursor *c, const struct csv_row *head,
                                    size_t place[CSV_COLUMNS])
{
    for (int k = 0; k < CSV_COLUMNS; k++)
        place[k] = NO_COLUMN;
    for (size_t i = 0; i < head->n; i++) {
        int k = 0;
        while (k < CSV_COLUMNS && strcmp(csv_columns[k], head->field[i]) != 0)
            k++;
        if (k == CSV_COLUMNS)
            return refuse(c,
                          "there is no column '%.60s': name, p50_ns, p50_lo_ns, p50_hi_ns, "
                          "p10_ns, p90_ns and samples are known; times are in ns",
                          head->field[i]);
        if (place[k] != NO_COLUMN)
            return refuse(c, "the column '%s' is there twice", csv_columns[k]);
        place[k] = i;
    }
    if (place[NAME] == NO_COLUMN || place[P50] == NO_COLUMN)
        return refuse(c, "the first line must name the columns: name and p50_ns at least");
    return GATE_OK;
}

static enum gate_status read_result(const struct cursor *c, const struct csv_row *row,
                                    const size_t place[CSV_COLUMNS])
{
    double number[CSV_COLUMNS];
    for (int k = P50; k < CSV_COLUMNS; k++) {
        const char *text = place[k] == NO_COLUMN ? "" : row->field[place[k]];
        number[k] = NAN;
        if (!*text && k != P50)
            continue;
        if (!reading_number(text, &number[k]) || number[k] <= 0 || number[k] > 1e15)
            return refuse(c, "%s must be a number above 0, is '%.60s'", csv_columns[k], text);
    }
    const double lo = number[P50_LO], hi = number[P50_HI];
    if (isnan(lo) != isnan(hi) || lo > number[P50] || hi < number[P50])
        return refuse(c, "p50_lo_ns and p50_hi_ns must be around p50_ns");
    struct foreign_time *t =
        reading_add(c->r, row->field[place[NAME]], number[P50], place_of(c->line));
    if (!t)
        return GATE_IO;
    struct document_timing *timing = &t->arm.timing;
    timing->p50_lo_ns = lo;
    timing->p50_hi_ns = hi;
    timing->p10_ns = number[P10];
    timing->p90_ns = number[P90];
    timing->samples = number[SAMPLES] >= 1 ? (int64_t)number[SAMPLES] : 1;
    return GATE_OK;
}

enum gate_status reading_csv(struct reading *r)
{
    struct cursor c;
    struct csv_row row;
    size_t place[CSV_COLUMNS], n_columns = 0;
    TRY(begin(r, &c));
    RELEASED_BY(free_at) char *copy = xstrdup(c.at);
    char *at = copy;
    do {
        const char *fault = csv_take(&at, &row);
        bool blank = row.n == 1 && !row.field[0][0];
        if (fault)
            return refuse(&c, "%s", fault);
        if (n_columns && !blank && row.n != n_columns)
            return refuse(&c, "has %zu fields, the first line %zu", row.n, n_columns);
        if (!n_columns)
            TRY(read_header(&c, &row, place));
        else if (!blank)
            TRY(read_result(&c, &row, place));
        n_columns = n_columns ? n_columns : row.n;
        c.line += row.n_lines;
    } while (*at);
    return GATE_OK;
}

/* ---- JUnit ---- */

#define DEPTH_MAX 32
#define ATTRIBUTE_MAX 1000

struct test_case {
    bool open, failed; /* failed: or skipped */
    unsigned line;
    size_t depth;
    char class_name[ATTRIBUTE_MAX], name[ATTRIBUTE_MAX], time[ATTRIBUTE_MAX];
};

struct element {
    const char *name;
    size_t len;
};

struct junit {
    struct cursor c;
    struct element open[DEPTH_MAX];
    size_t depth;
    struct test_case test;
};

#define SPACE " \t\r\n"

static bool begins(const struct cursor *c, const char *with)
{
    return !strncmp(c->at, with, strlen(with));
}

static void go(struct cursor *c, size_t n)
{
    for (; n; n--)
        c->line += *c->at++ == '\n';
}

/* Passes what ends with `with`. */
static enum gate_status pass(struct cursor *c, const char *with)
{
    const char *found = strstr(c->at, with);
    if (!found)
        return refuse(c, "has no '%s' behind what begins here", with);
    go(c, (size_t)(found - c->at) + strlen(with));
    return GATE_OK;
}

/* And the space behind it. */
static struct element read_name(struct cursor *c)
{
    const struct element e = {c->at, strcspn(c->at, SPACE "=/>\"'<")};
    go(c, e.len + strspn(c->at + e.len, SPACE));
    return e;
}

static bool is_named(struct element e, const char *name)
{
    return e.len == strlen(name) && !memcmp(e.name, name, e.len);
}

/* "&lt;" or "&#60;", of which c->at is the ampersand. */
static enum gate_status read_reference(struct cursor *c, struct buf *out)
{
    static const struct {
        const char *text;
        char is;
    } names[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (begins(c, names[i].text)) {
            buf_putc(out, names[i].is);
            c->at += strlen(names[i].text);
            return GATE_OK;
        }
    bool hex = begins(c, "&#x");
    const char *digits = begins(c, "&#") ? c->at + (hex ? 3 : 2) : "";
    size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");
    unsigned long code = n <= 8 ? strtoul(digits, NULL, hex ? 16 : 10) : 0;
    if (!code || digits[n] != ';')
        return refuse(c, "a reference is not one of &lt; &gt; &amp; &quot; &apos; or a number");
    const char *end = digits + n + 1;
    if (code < 0x80)
        buf_putc(out, (char)code);
    else
        buf_append(out, c->at, (size_t)(end - c->at)); /* as it is written */
    c->at = end;
    return GATE_OK;
}

/* name="value" and the space behind it. */
static enum gate_status read_attribute(struct cursor *c, struct element *name, struct buf *out)
{
    buf_clear(out);
    *name = read_name(c);
    if (!name->len || *c->at != '=')
        return refuse(c, "an attribute must be NAME=\"VALUE\"");
    go(c, 1 + strspn(c->at + 1, SPACE));
    if (*c->at != '"' && *c->at != '\'')
        return refuse(c, "the value of an attribute must be in quotes");
    for (const char quote = *c->at++; *c->at != quote;) {
        if (!*c->at)
            return refuse(c, "the value of an attribute has no end");
        if (*c->at == '<')
            return refuse(c, "the value of an attribute has a '<'");
        if (*c->at == '&') {
            TRY(read_reference(c, out));
        } else {
            buf_putc(out, *c->at);
            go(c, 1);
        }
    }
    go(c, 1 + strspn(c->at + 1, SPACE));
    return GATE_OK;
}

static enum gate_status take_attribute(struct junit *j, struct element tag, struct element name,
                                       const struct buf *value)
{
    struct test_case *t = &j->test;
    struct foreign_file *out = j->c.r->out;
    char *to = NULL;
    if (is_named(tag, "testcase"))
        to = is_named(name, "name")        ? t->name
             : is_named(name, "classname") ? t->class_name
             : is_named(name, "time")      ? t->time
                                           : NULL;
    if (to && (value->failed || value->len >= ATTRIBUTE_MAX))
        return refuse(&j->c, "an attribute of a testcase has more than %d bytes", ATTRIBUTE_MAX);
    if (to)
        memcpy(to, value->data, value->len + 1);
    if (!is_named(tag, "testsuite") || value->failed)
        return GATE_OK;
    if (is_named(name, "hostname") && !out->host && value->len && value->len < 100)
        out->host = xstrdup(value->data);
    if (is_named(name, "timestamp") && !out->time_ms)
        out->time_ms = reading_time_ms(value->data, false);
    return GATE_OK;
}

/* A time of 0 is one that was too short for the three digits that are usual. */
static enum gate_status end_test(struct junit *j)
{
    struct test_case *t = &j->test;
    struct cursor at = j->c;
    char name[2 * ATTRIBUTE_MAX];
    double seconds = 0;
    t->open = false;
    at.line = t->line;
    if (!t->name[0])
        return refuse(&at, "a testcase has no name");
    bool timed = !t->failed && t->time[0];
    if (timed && (!reading_number(t->time, &seconds) || seconds < 0))
        return refuse(&at, "the time of '%.100s' must be in seconds, is '%.60s'", t->name, t->time);
    if (seconds == 0) {
        j->c.r->out->n_left_out++;
        return GATE_OK;
    }
    snprintf(name, sizeof name, "%s%s%s", t->class_name, t->class_name[0] ? "/" : "", t->name);
    return reading_add(j->c.r, name, seconds * 1e9, place_of(t->line)) ? GATE_OK : GATE_IO;
}

/* Behind the '<' of a tag. */
static enum gate_status read_tag(struct junit *j)
{
    struct cursor *c = &j->c;
    struct test_case *t = &j->test;
    RELEASED_BY(buf_release) struct buf value = buf_of((size_t)1 << 20);
    struct element name;
    bool ends = *c->at == '/';
    c->at += ends;
    const struct element tag = read_name(c);
    if (!tag.len || (ends && j->depth == 0))
        return refuse(c, "a tag has no name, or ends nothing");
    if (!ends && j->depth == DEPTH_MAX)
        return refuse(c, "elements are more than %d deep", DEPTH_MAX);
    if (!ends && is_named(tag, "testcase")) {
        if (t->open)
            return refuse(c, "a testcase is in a testcase");
        *t = (struct test_case){.open = true, .line = c->line, .depth = j->depth};
    }
    t->failed |=
        !ends && (is_named(tag, "failure") || is_named(tag, "error") || is_named(tag, "skipped"));
    if (!ends)
        j->open[j->depth++] = tag;
    while (*c->at && *c->at != '>' && *c->at != '/') {
        TRY(read_attribute(c, &name, &value));
        TRY(take_attribute(j, tag, name, &value));
    }
    bool empty = !ends && *c->at == '/';
    c->at += empty;
    if (*c->at != '>')
        return refuse(c, "a tag has no '>'");
    c->at++;
    if (!ends && !empty)
        return GATE_OK;
    const struct element open = j->open[--j->depth];
    if (open.len != tag.len || memcmp(open.name, tag.name, tag.len) != 0)
        return refuse(c, "</%.*s> ends <%.*s>", (int)(tag.len < 60 ? tag.len : 60), tag.name,
                      (int)(open.len < 60 ? open.len : 60), open.name);
    return t->open && t->depth == j->depth ? end_test(j) : GATE_OK;
}

enum gate_status reading_junit(struct reading *r)
{
    struct junit j = {.depth = 0};
    struct cursor *c = &j.c;
    bool any = false;
    TRY(begin(r, c));
    while (*c->at) {
        if (*c->at != '<') {
            go(c, 1);
        } else if (begins(c, "<?")) {
            TRY(pass(c, "?>"));
        } else if (begins(c, "<!--")) {
            TRY(pass(c, "-->"));
        } else if (begins(c, "<![CDATA[")) {
            TRY(pass(c, "]]>"));
        } else if (begins(c, "<!")) {
            return refuse(c, "a document type is not read");
        } else {
            c->at++;
            any = true;
            TRY(read_tag(&j));
        }
    }
    if (j.depth > 0 || !any)
        return refuse(c, any ? "ends within an element" : "has no element: it is no XML");
    return GATE_OK;
}
