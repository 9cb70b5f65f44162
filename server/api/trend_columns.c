/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trend_columns.c: see trend_columns.h.
 *
 * An answer has up to some ten thousand numbers, and no time for printf(): each column is written
 * in one loop, straight into the body.
 */
#include "server/api/trend_columns.h"

#include <stddef.h>
#include <string.h>

#include "gate/base/json.h"
#include "server/text/number.h"

enum kind {
    INTEGER,
    KNOWN, /* a number; 0: not known */
    COUNT, /* -1: not known */
    ERROR, /* of a result, or over the vendor's; the same */
    TFLOPS,
    GBPS,
    YES_NO,
    TEXT,  /* "": not known */
    NAMED, /* text elsewhere; NULL or "": not known */
};

typedef struct store_trend_row row_t;
typedef struct store_trend_details details_t;
typedef struct store_trend_series series_t;

/* What a column is read with. */
enum part {
    LEVEL,
    CHAIN,
    DETAIL,  /* of struct store_trend_details */
    SUBJECT, /* the same, and not there unless asked for */
};

static const struct trend_column {
    const char *name;
    enum kind kind;
    size_t offset; /* in a row, or in its details */
    enum part part;
} columns[] = {
    {"time_ms", INTEGER, offsetof(row_t, time_ms), LEVEL},
    {"n", INTEGER, offsetof(row_t, n), LEVEL},
    {"p50_ns", KNOWN, offsetof(row_t, p50_ns), LEVEL},
    {"min_ns", KNOWN, offsetof(row_t, min_ns), LEVEL},
    {"max_ns", KNOWN, offsetof(row_t, max_ns), LEVEL},
    {"p50_lo_ns", KNOWN, offsetof(row_t, p50_lo_ns), LEVEL},
    {"p50_hi_ns", KNOWN, offsetof(row_t, p50_hi_ns), LEVEL},
    {"p10_ns", KNOWN, offsetof(details_t, p10_ns), DETAIL},
    {"p90_ns", KNOWN, offsetof(details_t, p90_ns), DETAIL},
    {"control_ns", KNOWN, offsetof(details_t, control_ns), DETAIL},
    {"baseline_p50_ns", KNOWN, offsetof(details_t, baseline_p50_ns), DETAIL},
    {"rel_err", ERROR, offsetof(details_t, rel_err), DETAIL},
    {"vendor_ratio", ERROR, offsetof(details_t, vendor_ratio), DETAIL},
    {"sm_clock_mhz", KNOWN, offsetof(details_t, sm_clock_mhz), DETAIL},
    {"registers", COUNT, offsetof(details_t, registers), DETAIL},
    {"shared_bytes", COUNT, offsetof(details_t, shared_bytes), DETAIL},
    {"spill_bytes", COUNT, offsetof(details_t, spill_bytes), DETAIL},
    {"tflops", TFLOPS, offsetof(row_t, p50_ns), LEVEL},
    {"gbps", GBPS, offsetof(row_t, p50_ns), LEVEL},
    {"ratio", KNOWN, offsetof(row_t, ratio), CHAIN},
    {"chain", KNOWN, offsetof(row_t, chain), CHAIN},
    {"chain_part", COUNT, offsetof(row_t, chain_part), CHAIN},
    {"main", YES_NO, offsetof(row_t, is_main), CHAIN},
    {"run", TEXT, offsetof(details_t, run), DETAIL},
    {"commit", TEXT, offsetof(details_t, commit), DETAIL},
    {"subject", NAMED, offsetof(details_t, subject), SUBJECT},
    {"author", NAMED, offsetof(details_t, author), SUBJECT},
    {"branch", NAMED, offsetof(details_t, branch), DETAIL},
    {"verdict", NAMED, offsetof(details_t, verdict), DETAIL},
    {"kernel", NAMED, offsetof(details_t, kernel), DETAIL},
};
#define N_COLUMNS (sizeof columns / sizeof columns[0])

static trend_columns bit_of(const char *name, size_t len)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (!strncmp(columns[i].name, name, len) && columns[i].name[len] == '\0')
            return (trend_columns)1 << i;
    }
    return 0;
}

bool trend_columns_of(const char *names, trend_columns *set)
{
    *set = 0;
    for (size_t i = 0; i < N_COLUMNS && !names; i++)
        *set |= (trend_columns)(columns[i].part == LEVEL || columns[i].part == DETAIL) << i;
    while (names) {
        size_t len = strcspn(names, ",");
        trend_columns bit = bit_of(names, len);
        if (!bit || *set & bit)
            return false;
        *set |= bit;
        names = names[len] == ',' ? names + len + 1 : NULL;
    }
    return true;
}

static bool has_part(trend_columns set, enum part part)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (set >> i & 1 && columns[i].part == part)
            return true;
    }
    return false;
}

bool trend_columns_are_levels(trend_columns set)
{
    return !has_part(set, DETAIL) && !has_part(set, SUBJECT);
}

bool trend_columns_have_chain(trend_columns set)
{
    return has_part(set, CHAIN);
}

/* ---- values ---- */

/* Where the values of a column are: of row k at `first + k * stride`. */
struct trend_source {
    const char *first;
    size_t stride;
};

static struct trend_source source_of(const struct trend_column *column, const series_t *s)
{
    if (column->part == LEVEL || column->part == CHAIN)
        return (struct trend_source){(const char *)s->rows + column->offset, sizeof *s->rows};
    return (struct trend_source){(const char *)s->details + column->offset, sizeof *s->details};
}

static int64_t integer_at(const char *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static double real_at(const char *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static const char *text_at(const struct trend_column *column, const char *at)
{
    const char *named;
    if (column->kind == TEXT)
        return at;
    memcpy(&named, at, sizeof named);
    return named ? named : "";
}

/* 0: not known. */
static double rate_at(const struct trend_column *column, const char *at)
{
    const row_t *row = (const row_t *)(const void *)(at - column->offset);
    double work = column->kind == TFLOPS ? row->flops : row->bytes;
    return row->p50_ns > 0 ? work / row->p50_ns : 0;
}

/* ---- columns ---- */

#define ROOM (NUMBER_MAX + 1) /* of a number and its comma */

static size_t put_bytes(const char *bytes, size_t n, char *out)
{
    memcpy(out, bytes, n);
    return n;
}

static size_t put_null(char *out)
{
    return put_bytes("null", 4, out);
}

static size_t put_real(double value, bool known, char *out)
{
    return known ? number_real(value, out) : put_null(out);
}

static size_t put_number(const struct trend_column *column, const char *at, char *out)
{
    double rate;
    int64_t value;
    switch (column->kind) {
    case INTEGER:
        return number_integer(integer_at(at), out);
    case KNOWN:
        return put_real(real_at(at), real_at(at) > 0, out);
    case COUNT:
        value = integer_at(at);
        return value >= 0 ? number_integer(value, out) : put_null(out);
    case YES_NO:
        return integer_at(at) ? put_bytes("true", 4, out) : put_bytes("false", 5, out);
    case ERROR:
        return put_real(real_at(at), real_at(at) >= 0, out);
    default:
        rate = rate_at(column, at);
        return put_real(rate, rate > 0, out);
    }
}

/* All in one go, behind which the last comma is taken back. */
static void put_numbers(struct buf *out, const struct trend_column *column, const series_t *s)
{
    struct trend_source source = source_of(column, s);
    char *room = buf_room(out, s->n * ROOM);
    char *end = room;
    if (!room)
        return;
    for (size_t k = 0; k < s->n; k++) {
        end += put_number(column, source.first + k * source.stride, end);
        *end++ = ',';
    }
    buf_used(out, (size_t)(end - room) - (s->n > 0));
}

static void put_text(struct buf *out, const char *text)
{
    size_t n = strlen(text);
    if (n == 0) {
        buf_append(out, "null", 4);
        return;
    }
    char *room = buf_room(out, n + 2);
    if (room && json_is_plain(text, n)) {
        room[0] = room[n + 1] = '"';
        buf_used(out, put_bytes(text, n, room + 1) + 2);
        return;
    }
    buf_putc(out, '"');
    json_escape(text, out);
    buf_putc(out, '"');
}

static void put_texts(struct buf *out, const struct trend_column *column, const series_t *s)
{
    struct trend_source source = source_of(column, s);
    for (size_t k = 0; k < s->n; k++) {
        if (k > 0)
            buf_putc(out, ',');
        put_text(out, text_at(column, source.first + k * source.stride));
    }
}

void trend_put_columns(struct emit *e, const struct store_trend_series *s, trend_columns set)
{
    emit_open(e, '{');
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct trend_column *column = &columns[i];
        if (!(set >> i & 1))
            continue;
        emit_key(e, column->name);
        emit_open(e, '[');
        if (column->kind == TEXT || column->kind == NAMED)
            put_texts(e->out, column, s);
        else
            put_numbers(e->out, column, s);
        emit_close(e, ']');
    }
    emit_close(e, '}');
}

/* ---- one object a row ---- */

void trend_put_row(struct emit *e, const struct store_trend_series *s, size_t k, trend_columns set)
{
    for (size_t i = 0; i < N_COLUMNS; i++) {
        const struct trend_column *column = &columns[i];
        if (!(set >> i & 1))
            continue;
        struct trend_source source = source_of(column, s);
        const char *at = source.first + k * source.stride;
        if (column->kind == KNOWN)
            emit_known_real(e, column->name, real_at(at));
        else if (column->kind == TFLOPS || column->kind == GBPS)
            emit_known_real(e, column->name, rate_at(column, at));
        else if (column->kind == TEXT || column->kind == NAMED)
            emit_known_string(e, column->name, text_at(column, at));
        else if (column->kind == YES_NO)
            emit_bool_member(e, column->name, integer_at(at) != 0);
        else if (column->kind == ERROR && real_at(at) >= 0)
            emit_real_member(e, column->name, real_at(at));
        else if (column->kind != ERROR && (column->kind == INTEGER || integer_at(at) >= 0))
            emit_integer_member(e, column->name, integer_at(at));
        else
            emit_string_member(e, column->name, NULL);
    }
}
