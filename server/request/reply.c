/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c: see reply.h. */
#include "server/request/reply.h"

#include <microhttpd.h>
#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "server/text/emit.h"

void reply_init(struct reply *r)
{
    *r = (struct reply){.status = 200, .type = "application/json", .file_fd = -1};
    buf_init(&r->body, REPLY_MAX_BODY);
}

void reply_release(struct reply *r)
{
    if (r->file_fd >= 0)
        close(r->file_fd);
    buf_release(&r->body);
}

static void start_over(struct reply *r, unsigned status, const char *type)
{
    buf_release(&r->body);
    r->status = status;
    r->type = type;
    r->etag.text[0] = '\0';
    r->constant = NULL;
    r->kept = NULL;
    r->varies = r->gzipped = r->immutable = false;
}

static void put_problem(struct reply *r, unsigned status, const char *detail, const char *path,
                        const char *message)
{
    start_over(r, status, "application/problem+json");
    snprintf(r->why, sizeof r->why, "%s", detail);
    struct emit e = {.out = &r->body};
    emit_open(&e, '{');
    emit_string_member(&e, "type", "about:blank");
    emit_string_member(&e, "title", MHD_get_reason_phrase_for(status));
    emit_integer_member(&e, "status", status);
    emit_string_member(&e, "detail", detail);
    if (path) {
        emit_key(&e, "errors");
        emit_open(&e, '[');
        emit_open(&e, '{');
        emit_string_member(&e, "path", path);
        emit_string_member(&e, "message", message);
        emit_close(&e, '}');
        emit_close(&e, ']');
    }
    emit_close(&e, '}');
    buf_putc(&r->body, '\n');
}

void reply_problem(struct reply *r, unsigned status, const char *format, ...)
{
    char detail[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    put_problem(r, status, detail, NULL, NULL);
}

void reply_fault(struct reply *r, unsigned status, const char *path, const char *message)
{
    char detail[1200];
    snprintf(detail, sizeof detail, "%s%s%s.", path, path[0] != '\0' ? ": " : "", message);
    put_problem(r, status, detail, path, message);
}

void reply_text(struct reply *r, unsigned status, const char *text)
{
    start_over(r, status, "text/plain; charset=utf-8");
    buf_puts(&r->body, text);
    buf_putc(&r->body, '\n');
}

static struct etag end_tag(SHA2_CTX *context)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    struct etag tag;
    char *out = tag.text;
    SHA256Final(digest, context);
    *out++ = '"';
    for (int i = 0; i < 8; i++, out += 2)
        snprintf(out, 3, "%02x", digest[i]);
    *out++ = '"';
    *out = '\0';
    return tag;
}

struct etag etag_of(const void *bytes, size_t size)
{
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, bytes, size);
    return end_tag(&context);
}

struct etag etag_of_texts(const char *const *texts, size_t n)
{
    SHA2_CTX context;
    SHA256Init(&context);
    for (size_t i = 0; i < n; i++)
        SHA256Update(&context, (const uint8_t *)texts[i], strlen(texts[i]) + 1);
    return end_tag(&context);
}

struct etag etag_gzipped(const struct etag *tag)
{
    struct etag out;
    size_t len = strlen(tag->text);
    snprintf(out.text, sizeof out.text, "%.*s-gz\"", (int)(len > 0 ? len - 1 : 0), tag->text);
    return out;
}

bool etag_is_named(const struct etag *tag, const char *if_none_match)
{
    if (!if_none_match || tag->text[0] == '\0')
        return false;
    /* The first quote is part of the tag, and no tag of ours holds another, so a substring is a
     * match when it ends there, or in the mark of the same content in gzip's bytes. */
    size_t len = strlen(tag->text) - 1;
    for (const char *at = if_none_match; (at = strchr(at, '"')) != NULL; at++) {
        if (!strncmp(at, tag->text, len) && (at[len] == '"' || !strncmp(at + len, "-gz\"", 4)))
            return true;
    }
    return false;
}

bool etag_matches(const struct etag *tag, const char *if_none_match)
{
    bool is_any = if_none_match && !strcmp(if_none_match, "*");
    return tag->text[0] != '\0' && (is_any || etag_is_named(tag, if_none_match));
}

/* "q=0", "q=0.000": never. Anything else is a yes. */
static bool is_zero_weight(const char *text, size_t len)
{
    size_t at = strspn(text, "; \t");
    if (at + 3 > len || strncasecmp(text + at, "q=0", 3) != 0)
        return false;
    at += 3;
    return at + strspn(text + at, ".0 \t") >= len;
}

bool accepts_gzip(const char *accept_encoding)
{
    const char *item = accept_encoding;
    while (item && *item) {
        item += strspn(item, ", \t");
        size_t len = strcspn(item, ",");
        size_t name = strcspn(item, ",; \t");
        if (name == 4 && !strncasecmp(item, "gzip", 4))
            return !is_zero_weight(item + name, len - name);
        item += len;
    }
    return false;
}
