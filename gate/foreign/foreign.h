/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h: times that other tools measured, from their files into run documents. Nobody verified
 * what was timed, and nothing was measured beside it: such a document has no verdict (document.h).
 */
#ifndef GATE_FOREIGN_FOREIGN_H
#define GATE_FOREIGN_FOREIGN_H

#include "gate/base/alloc.h"
#include "gate/baseline/origin.h"
#include "gate/document/document.h"

enum foreign_tool {
    FOREIGN_NVBENCH,
    FOREIGN_PYTEST,
    FOREIGN_GOOGLE,
    FOREIGN_JUNIT,
    FOREIGN_CSV,
};
/* By its name; false: it is none. */
bool foreign_tool(const char *name, enum foreign_tool *out);

#define FOREIGN_ID_MAX 160

struct foreign_time {
    char *name;                  /* as the tool has it, with its parameters */
    char *place;                 /* in the file, for messages */
    char id[FOREIGN_ID_MAX + 1]; /* of the case that it becomes, */
    char *reason;                /* which is not judged, and why */
    struct document_arm arm;
    size_t device; /* place among the devices */
};

struct foreign_device {
    int64_t id;
    char model[64]; /* as the gate calls it */
    char *name;
};

/* What a file says. A text that it does not say is NULL. */
struct foreign_file {
    struct foreign_time *times;
    size_t n_times;
    struct foreign_device *devices; /* none: it does not say which */
    size_t n_devices;
    char *version; /* of the tool */
    char *host, *commit, *branch;
    bool dirty;
    int64_t time_ms;   /* 0: not known */
    size_t n_left_out; /* results that were skipped, or failed, or have no time */
};

/*
 * Reads the text of the file `name`. GATE_IO: it is no such file, with the place of the fault. *out
 * is to be released in any case.
 */
enum gate_status foreign_read(enum foreign_tool tool, const char *name, const char *text,
                              size_t len, struct foreign_file *out, struct gate_error *err);
void foreign_release(struct foreign_file *file);

/* Where and when it was measured, as far as the file does not say it. */
struct foreign_about {
    enum foreign_tool tool;
    const char *name, *text; /* of the file */
    size_t len;
    const char *device; /* the model, whatever the file says; NULL: what that says */
    const struct origin *origin;
    int64_t time_ms;
};

typedef enum gate_status (*foreign_document_fn)(void *context, const struct buf *document,
                                                struct gate_error *err);

/*
 * Hands over the run document of each device of the file, as JSON. The same file of the same commit
 * gives the same runs. GATE_USAGE: no device is known. GATE_IO: the file cannot be a run.
 */
enum gate_status foreign_documents(struct foreign_file *file, const struct foreign_about *about,
                                   foreign_document_fn fn, void *context, struct gate_error *err);

/* ---- what the readers of the tools' files share ---- */

#define FOREIGN_NAME_MAX 1000 /* bytes of the name of a result */

struct reading {
    enum foreign_tool tool;
    const char *name, *text; /* of the file */
    size_t len;
    struct foreign_file *out;
    struct gate_error *err;
};

/* A result of which only its name, its time and its place are known; the caller adds to it what
 * else the file says. NULL, after the error: it has no name, or cannot take that long. `place` is
 * taken over. */
struct foreign_time *reading_add(struct reading *r, const char *name, double ns, char *place);

void foreign_release_time(struct foreign_time *t);

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
