/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_file.c: what the readers of the gate's formats say of documents.
 *
 *     check_file run|suite|baseline|config|op|bundle < LINES
 *
 * reads a JSON text from each line and answers with a line: "ok", or where the fault is and what.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/baseline/baseline.h"
#include "gate/cases/op_file.h"
#include "gate/cases/suite.h"
#include "gate/cli/config.h"
#include "gate/document/document.h"
#include "gate/library/machine_code.h"

static bool check(const char *format, const char *text, size_t len, struct field_fault *fault)
{
    const struct shape *shape = !strcmp(format, "run")        ? &document_shape
                                : !strcmp(format, "suite")    ? &suite_file_shape
                                : !strcmp(format, "baseline") ? &baseline_file_shape
                                : !strcmp(format, "op")       ? &op_file_shape
                                : !strcmp(format, "bundle")   ? &manifest_shape
                                                              : &config_file_shape;
    void *out = calloc(1, shape->bytes);
    struct fields_taken taken = {.texts = NULL};
    bool good = out && fields_take(shape, text, len, out, &taken, fault);
    if (good)
        fields_release(shape, out);
    free(taken.texts);
    free(out);
    return good;
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    if (argc != 2) {
        fprintf(stderr, "usage: check_file run|suite|baseline|config|op|bundle < LINES\n");
        return GATE_USAGE;
    }
    while ((len = getline(&line, &size, stdin)) > 0) {
        struct field_fault fault;
        if (check(argv[1], line, (size_t)len, &fault))
            printf("ok\n");
        else
            printf("%s %s\n", fault.pointer[0] ? fault.pointer : "/", fault.message);
    }
    free(line);
    return GATE_OK;
}
