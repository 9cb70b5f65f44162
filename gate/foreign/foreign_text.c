/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_text.c: CSV (RFC 4180) with a header, and JUnit's XML: of UTF-8 alone, and without a
 * document type, so that no entity can be defined.
 */
#include <expat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/utf8.h"
#include "gate/foreign/foreign.h"

/* ---- both ---- */

struct cursor {
    struct foreign_file *f;
    struct gate_error *err;
    unsigned line;
};

#define REFUSE(c, ...)                                                                             \
    (gate_fail((c)->err, GATE_IO, __VA_ARGS__),                                                    \
     gate_fail_context((c)->err, "%s:%u", (c)->f->name, (c)->line))

static struct foreign_time *add(const struct cursor *c, const char *name, double ns)
{
    char place[20];
    snprintf(place, sizeof place, "line %u", c->line);
    return reading_add(c->f, name, ns, place, c->err);
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
            return REFUSE(c,
                          "there is no column '%.60s': name, p50_ns, p50_lo_ns, p50_hi_ns, "
                          "p10_ns, p90_ns and samples are known; times are in ns",
                          head->field[i]);
        if (place[k] != NO_COLUMN)
            return REFUSE(c, "the column '%s' is there twice", csv_columns[k]);
        place[k] = i;
    }
    if (place[NAME] == NO_COLUMN || place[P50] == NO_COLUMN)
        return REFUSE(c, "the first line must name the columns: name and p50_ns at least");
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
            return REFUSE(c, "%s must be a number above 0, is '%.60s'", csv_columns[k], text);
    }
    const double lo = number[P50_LO], hi = number[P50_HI];
    if (isnan(lo) != isnan(hi) || lo > number[P50] || hi < number[P50])
        return REFUSE(c, "p50_lo_ns and p50_hi_ns must be around p50_ns");
    struct foreign_time *t = add(c, row->field[place[NAME]], number[P50]);
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

enum gate_status reading_csv(struct foreign_file *f, struct gate_error *err)
{
    struct cursor c = {f, err, 1};
    struct csv_row row;
    size_t place[CSV_COLUMNS], n_columns = 0, n;
    uint32_t code = 0;
    const char *text = f->text;
    for (; (n = utf8_next(text, &code)) && code != UTF8_BAD; text += n)
        c.line += *text == '\n';
    if (text < f->text + f->len) /* or there is a NUL */
        return REFUSE(&c, "is not UTF-8");
    c.line = 1;
    RELEASED_BY(free_at) char *copy = xstrdup(f->text);
    char *at = copy + (strncmp(copy, "\xef\xbb\xbf", 3) ? 0 : 3); /* a byte order mark */
    do {
        const char *fault = csv_take(&at, &row);
        bool blank = row.n == 1 && !row.field[0][0];
        if (fault)
            return REFUSE(&c, "%s", fault);
        if (n_columns && !blank && row.n != n_columns)
            return REFUSE(&c, "has %zu fields, the first line %zu", row.n, n_columns);
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

struct junit {
    struct cursor c; /* while a testcase is open, where it begins */
    XML_Parser parser;
    enum gate_status status; /* the first failure */
    bool open, left_out;     /* left out: it failed, or was skipped */
    char *name, *time;
};

static void stop(struct junit *j, enum gate_status status)
{
    j->status = status;
    XML_StopParser(j->parser, XML_FALSE);
}

static const char *attribute(const char **list, const char *name)
{
    for (; *list; list += 2)
        if (!strcmp(list[0], name))
            return list[1];
    return "";
}

static void begin_element(void *context, const char *tag, const char **list)
{
    struct junit *j = context;
    struct foreign_file *f = j->c.f;
    const char *host = attribute(list, "hostname"), *group = attribute(list, "classname");
    j->left_out |= !strcmp(tag, "failure") || !strcmp(tag, "error") || !strcmp(tag, "skipped");
    if (!strcmp(tag, "testsuite")) {
        if (!f->host && *host && strlen(host) < 100)
            f->host = xstrdup(host);
        if (!f->time_ms)
            f->time_ms = reading_time_ms(attribute(list, "timestamp"), false);
    }
    if (strcmp(tag, "testcase") != 0)
        return;
    j->c.line = (unsigned)XML_GetCurrentLineNumber(j->parser);
    if (j->open)
        return stop(j, REFUSE(&j->c, "a testcase is in a testcase"));
    if (!*attribute(list, "name"))
        return stop(j, REFUSE(&j->c, "a testcase has no name"));
    j->open = true;
    j->left_out = false;
    j->name = xasprintf("%s%s%s", group, *group ? "/" : "", attribute(list, "name"));
    j->time = xstrdup(attribute(list, "time"));
}

/* A time of 0 is one that was too short for the three digits that are usual. */
static void end_element(void *context, const char *tag)
{
    struct junit *j = context;
    double seconds = 0;
    if (strcmp(tag, "testcase") != 0 || j->status) /* it ends behind a failure as well */
        return;
    if (!j->left_out && *j->time && (!reading_number(j->time, &seconds) || seconds < 0))
        stop(j, REFUSE(&j->c, "the time of '%.100s' must be in seconds, is '%.60s'", j->name,
                       j->time));
    else if (seconds == 0)
        j->c.f->n_left_out++;
    else if (!add(&j->c, j->name, seconds * 1e9))
        stop(j, GATE_IO);
    free(j->name);
    free(j->time);
    j->name = j->time = NULL;
    j->open = false;
}

static void refuse_type(void *context, const char *, const char *, const char *, int)
{
    struct junit *j = context;
    j->c.line = (unsigned)XML_GetCurrentLineNumber(j->parser);
    stop(j, REFUSE(&j->c, "a document type is not read"));
}

enum gate_status reading_junit(struct foreign_file *f, struct gate_error *err)
{
    struct junit j = {.c = {f, err, 1}, .parser = XML_ParserCreate("UTF-8")};
    XML_SetUserData(j.parser, &j);
    XML_SetElementHandler(j.parser, begin_element, end_element);
    XML_SetStartDoctypeDeclHandler(j.parser, refuse_type);
    if (XML_Parse(j.parser, f->text, (int)f->len, 1) != XML_STATUS_OK && !j.status) {
        j.c.line = (unsigned)XML_GetCurrentLineNumber(j.parser);
        j.status = REFUSE(&j.c, "%s", XML_ErrorString(XML_GetErrorCode(j.parser)));
    }
    XML_ParserFree(j.parser);
    free(j.name);
    free(j.time);
    return j.status;
}
