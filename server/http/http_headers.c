/*
 * http_headers.c: the headers of a request, as they lie in libmicrohttpd's memory; see
 * http_private.h.
 *
 * libmicrohttpd 0.9.75 takes more for a header than RFC 9112 does, and what it hands out does not
 * show it: a name with a blank before the colon is another name, a folded line is appended to the
 * value before it, a value ends at its first NUL byte, and a bare CR or LF ends a line. A proxy may
 * read each of them otherwise, and see the request end elsewhere. But it parses in place, so what
 * it has hidden shows in where the parts lie: a value stands behind its name with one byte for the
 * colon and blanks between, and two bytes, once CR and LF, stand before the next name. The first
 * name stands behind the version, and the last value before the end of the header.
 */
#include "http_private.h"

#include <string.h>
#include <strings.h>

#include "text/bytes.h"

#define LINE_END 2 /* bytes of CR and LF, of which libmicrohttpd makes NUL */

struct reading {
    struct headers *headers;
    uintptr_t next; /* where the next name must be */
};

static void keep(struct headers *h, const char **place, const char *value, bool once)
{
    if (*place && once)
        h->repeated = true;
    else if (!*place)
        *place = value;
}

static void keep_known(struct headers *h, const char *name, const char *value)
{
    switch (name[0] | 0x20) {
    case 'a':
        if (strcasecmp(name, "Accept") == 0)
            keep(h, &h->accept, value, false);
        else if (strcasecmp(name, "Accept-Encoding") == 0)
            keep(h, &h->accept_encoding, value, false);
        else if (strcasecmp(name, "Authorization") == 0)
            keep(h, &h->authorization, value, true);
        break;
    case 'c':
        if (strcasecmp(name, "Content-Length") == 0)
            keep(h, &h->content_length, value, true);
        else if (strcasecmp(name, "Content-Type") == 0)
            keep(h, &h->content_type, value, true);
        else if (strcasecmp(name, "Content-Encoding") == 0)
            keep(h, &h->content_encoding, value, true);
        break;
    case 'h':
        if (strcasecmp(name, "Host") == 0)
            keep(h, &h->host, value, true);
        break;
    case 'i':
        if (strcasecmp(name, "If-None-Match") == 0)
            keep(h, &h->if_none_match, value, false);
        break;
    case 't':
        if (strcasecmp(name, "Transfer-Encoding") == 0)
            keep(h, &h->transfer_encoding, value, true);
        break;
    default:
        break;
    }
}

/* Does the value stand behind its name, in the same line? */
static bool is_behind(const char *name, size_t name_len, const char *value)
{
    const char *blank = name + name_len + 1;
    if ((uintptr_t)value < (uintptr_t)blank)
        return false;
    while (blank != value && (*blank == ' ' || *blank == '\t'))
        blank++;
    return blank == value;
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name,
                                 size_t name_len, const char *value, size_t value_len)
{
    struct reading *r = context;
    (void)kind;
    if (!name || !value || (uintptr_t)name != r->next || name_len == 0 ||
        bytes_span(name, BYTE_OF_NAME) != name_len ||
        bytes_span(value, BYTE_OF_VALUE) != value_len || !is_behind(name, name_len, value)) {
        r->headers->malformed = true;
        return MHD_NO;
    }
    r->next = (uintptr_t)value + value_len + LINE_END;
    keep_known(r->headers, name, value);
    return MHD_YES;
}

void http_read_headers(struct MHD_Connection *connection, const char *method, const char *version,
                       struct headers *out)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct reading r = {.headers = out, .next = (uintptr_t)version + strlen(version) + LINE_END};
    *out = (struct headers){0};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_header, &r);
    if (!size || r.next + LINE_END != (uintptr_t)method + size->header_size)
        out->malformed = true;
}
