/* SPDX-License-Identifier: Apache-2.0 */
/* reading.h: what the readers of the tools' files share. */
#ifndef GATE_FOREIGN_READING_H
#define GATE_FOREIGN_READING_H

#include "gate/base/alloc.h"
#include "gate/foreign/foreign.h"

#define FOREIGN_NAME_MAX 1000 /* bytes of the name of a result */

struct reading {
    const char *name, *text; /* of the file */
    size_t len;
    struct foreign_file *out;
    struct gate_error *err;
};

/* A result of which only its name, its time and its place are known; the caller adds to it what
 * else the file says. NULL, after the error: it has no name, or cannot take that long. `place` is
 * taken over. */
struct foreign_time *reading_add(struct reading *r, const char *name, double ns, char *place);

/* When it was, as ISO 8601 says it: "2026-01-31T12:00:00.5+01:00", or without a zone. 0: that is
 * no such time, or has no zone, and `is_utc` is false. */
int64_t reading_time_ms(const char *text, bool is_utc);

/* The whole text as a number. */
bool reading_number(const char *text, double *out);

enum gate_status reading_nvbench(struct reading *r);
enum gate_status reading_pytest(struct reading *r);
enum gate_status reading_google(struct reading *r);
enum gate_status reading_junit(struct reading *r);
enum gate_status reading_csv(struct reading *r);

#endif
