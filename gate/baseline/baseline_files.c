/* SPDX-License-Identifier: Apache-2.0 */
/* baseline_files.c: see baseline_files.h. */
#include "gate/baseline/baseline_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum gate_status load(const char *folder, const char *device_model, baseline_file_fn fn,
                             void *context, struct gate_error *err)
{
    struct baseline *baseline = NULL;
    char *path = baseline_path(folder, device_model);
    if (!path)
        return gate_fail(err, GATE_INTERNAL, "out of memory");
    enum gate_status status = baseline_load(path, device_model, &baseline, err);
    if (!status)
        status = fn(context, device_model, baseline, err);
    baseline_free(baseline);
    free(path);
    return status;
}

static int is_baseline_file(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".json") == 0;
}

enum gate_status baseline_files_each(const char *folder, const char *device_model,
                                     baseline_file_fn fn, void *context, struct gate_error *err)
{
    struct dirent **entries;
    enum gate_status status = GATE_OK;
    if (device_model)
        return load(folder, device_model, fn, context, err);
    int n = scandir(folder, &entries, is_baseline_file, alphasort);
    if (n < 0)
        return gate_fail(err, GATE_IO, "cannot read the folder '%s': %s%s", folder, strerror(errno),
                         errno == ENOENT ? "; gate run --accept-new makes it" : "");
    for (int i = 0; i < n; i++) {
        entries[i]->d_name[strlen(entries[i]->d_name) - 5] = '\0';
        if (!status)
            status = load(folder, entries[i]->d_name, fn, context, err);
        free(entries[i]);
    }
    free(entries);
    return status;
}
