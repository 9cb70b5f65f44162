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
#define MAX_METHOD 20 /* bytes that are logged: it is any word that the client likes */

static enum log_level most_level = LOG_LEVEL_INFO;
static bool as_json;

static const char *const level_names[] = {"error", "warning", "info", "request"};

void log_setup(enum log_level most, bool json)
{
    most_level = most;
    as_json = json;
}

bool log_wants_requests(void)
{
    return most_level >= LOG_LEVEL_REQUEST;
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
    if (level > most_level)
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

/* What stands behind a token's mark is nobody's to read, though no address takes one. */
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

/* In quotes and escaped: the client's text. */
static void put_quoted(struct buf *line, const char *text)
{
    struct emit e = {.out = line};
    emit_string(&e, text);
}

void log_one_request(const struct log_request *r)
{
    struct buf line;
    struct emit e = {.out = &line};
    char method[MAX_METHOD + 1], target[MAX_LINE];
    hide_tokens(r->target, target, sizeof target);
    snprintf(method, sizeof method, "%s", r->method);
    buf_init(&line, MAX_LINE * 2);
    if (as_json) {
        begin_json(&e, LOG_LEVEL_REQUEST);
        emit_string_member(&e, "address", r->address);
        emit_string_member(&e, "method", method);
        emit_string_member(&e, "target", target);
        emit_integer_member(&e, "status", r->status);
        emit_integer_member(&e, "bytes", (int64_t)r->bytes);
        emit_integer_member(&e, "us", r->us);
        emit_known_string(&e, "token", r->token);
        emit_close(&e, '}');
    } else {
        buf_printf(&line, "gate-server: request time_ms=%lld address=%s method=",
                   (long long)clock_wall_ms(), r->address);
        put_quoted(&line, method);
        buf_printf(&line, " status=%u bytes=%llu us=%lld token=%s target=", r->status,
                   (unsigned long long)r->bytes, (long long)r->us,
                   r->token[0] != '\0' ? r->token : "-");
        put_quoted(&line, target);
    }
    write_line(&line);
}
