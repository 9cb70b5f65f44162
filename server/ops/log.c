/* SPDX-License-Identifier: Apache-2.0 */
/* log.c: see log.h. */
#include "server/ops/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/clock.h"
#include "server/text/emit.h"

#define MAX_LINE 8192

static enum log_level most_level = LOG_LEVEL_INFO;
static bool as_json;

static const char *const level_names[] = {"error", "warning", "info", "request"};

void log_setup(enum log_level most, bool json)
{
    most_level = most;
    as_json = json;
}

bool log_wants(enum log_level level)
{
    return level <= most_level;
}

/* There is nobody to tell when this fails. */
static void write_line(struct buf *line)
{
    buf_putc(line, '\n');
    if (!line->failed) {
        ssize_t ignored = write(STDERR_FILENO, line->data, line->len);
        (void)ignored;
    }
    buf_release(line);
}

static void begin_json(struct emit *e, enum log_level level)
{
    emit_open(e, '{');
    emit_integer_member(e, "time_ms", clock_wall_ms());
    emit_string_member(e, "level", level_names[level]);
}

void log_message(enum log_level level, const char *format, ...)
{
    char text[2048];
    struct buf line;
    va_list args;
    if (!log_wants(level))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text[strcspn(text, "\n")] = '\0';
    buf_init(&line, MAX_LINE * 2);
    if (as_json) {
        struct emit e = {.out = &line};
        begin_json(&e, level);
        emit_string_member(&e, "message", text);
        emit_close(&e, '}');
    } else {
        buf_printf(&line, "gate-server: %s", text);
    }
    write_line(&line);
}

#define TOKEN_MARK "kg_"

/* What stands behind a token's mark is nobody's to read, though nothing that is logged takes one.
 */
static void hide_tokens(const char *text, char *out, size_t size)
{
    size_t n = 0;
    while (*text && n + 1 < size) {
        bool is_token = !strncmp(text, TOKEN_MARK, strlen(TOKEN_MARK));
        size_t len = is_token ? strlen(TOKEN_MARK) : 1;
        n += (size_t)snprintf(out + n, size - n, "%.*s%s", (int)len, text, is_token ? "..." : "");
        text += len;
        if (is_token)
            text += strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    }
    out[n < size ? n : size - 1] = '\0';
}

/* ---- lines of values ---- */

void log_begin(struct log_line *l, enum log_level level, const char *event)
{
    *l = (struct log_line){.begun = log_wants(level)};
    if (!l->begun)
        return;
    buf_init(&l->text, MAX_LINE * 2);
    if (as_json) {
        struct emit e = {.out = &l->text};
        begin_json(&e, level);
        emit_string_member(&e, "event", event);
    } else {
        buf_printf(&l->text, "gate-server: %s", event);
        log_number(l, "time_ms", clock_wall_ms());
    }
}

static void put_name(struct log_line *l, const char *name)
{
    buf_printf(&l->text, as_json ? ",\"%s\":" : " %s=", name);
}

/* JSON says null and text "-" where there is none. */
static void put_string(struct log_line *l, const char *value)
{
    struct emit e = {.out = &l->text};
    emit_string(&e, value);
}

void log_word(struct log_line *l, const char *name, const char *value)
{
    bool known = value && value[0] != '\0';
    if (!l->begun)
        return;
    put_name(l, name);
    if (as_json)
        put_string(l, known ? value : NULL);
    else
        buf_puts(&l->text, known ? value : "-");
}

void log_text(struct log_line *l, const char *name, const char *value)
{
    char shown[MAX_LINE];
    if (!l->begun)
        return;
    hide_tokens(value, shown, sizeof shown);
    put_name(l, name);
    put_string(l, shown);
}

void log_number(struct log_line *l, const char *name, int64_t value)
{
    if (!l->begun)
        return;
    put_name(l, name);
    buf_printf(&l->text, "%lld", (long long)value);
}

void log_end(struct log_line *l)
{
    if (l->begun && as_json)
        buf_putc(&l->text, '}');
    if (l->begun)
        write_line(&l->text);
    l->begun = false;
}
