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
    FOREIGN_NONE,
    FOREIGN_NVBENCH,
    FOREIGN_PYTEST,
    FOREIGN_GOOGLE,
    FOREIGN_JUNIT,
    FOREIGN_CSV,
};
/* Puts the tool of this name into `field`, an enum foreign_tool; false: it is none. */
bool foreign_tool(void *field, const char *name);

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
    enum foreign_tool tool; /* with the next two the caller's */
    const char *name, *text;
    size_t len;
    struct foreign_time *times;
    size_t n_times;
    struct foreign_device *devices; /* none: it does not say which */
    size_t n_devices;
    char *version; /* of the tool */
    char *host, *commit, *branch;
    bool dirty;
    int64_t time_ms;   /* 0: not known */
    size_t n_left_out; /* results that were skipped, or failed, or have no time */
    /* For the documents the caller says more, and the time where the file does not: */
    const char *model; /* of the device, whatever the file says; NULL: what that says */
    const struct origin *origin;
};

/*
 * Reads the text of a file of which nothing else is known yet. GATE_IO: it is no such file, with
 * the place of the fault. It is to be released in any case.
 */
enum gate_status foreign_read(struct foreign_file *f, struct gate_error *err);
void foreign_release(struct foreign_file *f);

typedef enum gate_status (*foreign_document_fn)(void *context, const struct buf *document,
                                                struct gate_error *err);

/*
 * Hands over the run document of each device of the file, as JSON. The same file of the same commit
 * gives the same runs. GATE_USAGE: no device is known. GATE_IO: the file cannot be a run.
 */
enum gate_status foreign_documents(struct foreign_file *f, foreign_document_fn fn, void *context,
                                   struct gate_error *err);

/* ---- what the readers of the tools' files share ---- */

/* A result of which only its name, its time and its place are known; the caller adds to it what
 * else the file says. NULL, after the error: it has no name, or cannot take that long. */
struct foreign_time *reading_add(struct foreign_file *f, const char *name, double ns,
                                 const char *place, struct gate_error *err);

/* When it was, as ISO 8601 says it: "2026-01-31T12:00:00.5+01:00", or without a zone. 0: that is
 * no such time, or has no zone, and `is_utc` is false. */
int64_t reading_time_ms(const char *text, bool is_utc);

/* The whole text as a number. */
bool reading_number(const char *text, double *out);

enum gate_status reading_json(struct foreign_file *f, struct gate_error *err);
enum gate_status reading_junit(struct foreign_file *f, struct gate_error *err);
enum gate_status reading_csv(struct foreign_file *f, struct gate_error *err);

#endif
