/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h: which bytes may stand where in a request. Each is looked up, since all of a request are.
 */
#ifndef SERVER_TEXT_BYTES_H
#define SERVER_TEXT_BYTES_H

#include <stddef.h>

enum byte_kind {
    BYTE_OF_NAME = 1,  /* of a header: a token of RFC 9110 */
    BYTE_OF_VALUE = 2, /* of a header: no control character but the tab */
    BYTE_OF_HOST = 4,  /* a host or an address with a port */
    BYTE_PLAIN = 8,    /* of a target: ASCII that stands for itself; not '%' */
};

/* How many of the kind stand at the start of a text; its NUL is of no kind. */
size_t bytes_span(const char *text, enum byte_kind kind);

#endif
