/* SPDX-License-Identifier: Apache-2.0 */
/* http_headers.c: the headers of a request that mean something here; see http_private.h. */
#include "server/http/http_private.h"

#include <string.h>
#include <strings.h>

#include "server/text/bytes.h"

static const struct known {
    const char *name;
    size_t offset; /* in struct headers */
    bool once;     /* two of them are refused */
} known[] = {
    {"Accept", offsetof(struct headers, accept), false},
    {"Accept-Encoding", offsetof(struct headers, accept_encoding), false},
    {"Authorization", offsetof(struct headers, authorization), true},
    {"Content-Encoding", offsetof(struct headers, content_encoding), true},
    {"Content-Length", offsetof(struct headers, content_length), true},
    {"Content-Type", offsetof(struct headers, content_type), true},
    {"Host", offsetof(struct headers, host), true},
    {"If-None-Match", offsetof(struct headers, if_none_match), false},
    {"Transfer-Encoding", offsetof(struct headers, transfer_encoding), true},
};

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name,
                                 size_t name_len, const char *value, size_t value_len)
{
    struct headers *h = context;
    (void)kind;
    if (!name || !value || name_len == 0 || bytes_span(name, BYTE_OF_NAME) != name_len ||
        bytes_span(value, BYTE_OF_VALUE) != value_len) {
        h->malformed = true;
        return MHD_NO;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp(name, known[i].name) != 0)
            continue;
        const char **place = (const char **)(void *)((char *)h + known[i].offset);
        h->repeated |= *place && known[i].once;
        if (!*place)
            *place = value;
    }
    return MHD_YES;
}

void http_read_headers(struct MHD_Connection *connection, struct headers *out)
{
    *out = (struct headers){0};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_header, out);
}
