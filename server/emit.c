/* emit.c: see emit.h. */
#include "emit.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"

static void separate(struct emit *e)
{
    if (e->comma)
        buf_putc(e->out, ',');
    e->comma = true;
}

void emit_open(struct emit *e, char bracket)
{
    separate(e);
    buf_putc(e->out, bracket);
    e->comma = false;
}

void emit_close(struct emit *e, char bracket)
{
    buf_putc(e->out, bracket);
    e->comma = true;
}

static void quote(struct emit *e, const char *s)
{
    buf_putc(e->out, '"');
    json_escape(s, e->out);
    buf_putc(e->out, '"');
}

void emit_key(struct emit *e, const char *key)
{
    separate(e);
    quote(e, key);
    buf_putc(e->out, ':');
    e->comma = false;
}

void emit_string(struct emit *e, const char *value)
{
    separate(e);
    quote(e, value);
}

void emit_integer(struct emit *e, int64_t value)
{
    separate(e);
    buf_printf(e->out, "%" PRId64, value);
}

void emit_real(struct emit *e, double value)
{
    if (!isfinite(value)) {
        emit_null(e);
        return;
    }
    separate(e);
    buf_printf(e->out, "%.9g", value);
}

void emit_bool(struct emit *e, bool value)
{
    separate(e);
    buf_puts(e->out, value ? "true" : "false");
}

void emit_null(struct emit *e)
{
    separate(e);
    buf_puts(e->out, "null");
}

void emit_string_member(struct emit *e, const char *key, const char *value)
{
    emit_key(e, key);
    emit_string(e, value);
}

void emit_integer_member(struct emit *e, const char *key, int64_t value)
{
    emit_key(e, key);
    emit_integer(e, value);
}

void emit_bool_member(struct emit *e, const char *key, bool value)
{
    emit_key(e, key);
    emit_bool(e, value);
}

void emit_known_real(struct emit *e, const char *key, double value)
{
    emit_key(e, key);
    if (value == 0.0)
        emit_null(e);
    else
        emit_real(e, value);
}

void emit_known_string(struct emit *e, const char *key, const char *value)
{
    emit_key(e, key);
    if (value[0] == '\0')
        emit_null(e);
    else
        emit_string(e, value);
}
