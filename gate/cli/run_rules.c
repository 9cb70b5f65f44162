/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/run_request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/base/paths.h"
#include "gate/base/process.h"
#include "gate/cli/config.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)
#define SUITE_MAX_BYTES ((size_t)16 << 20)

static bool take_line(void *context, const char *line)
{
    buf_puts(context, line);
    buf_putc(context, '\n');
    return true;
}

/* The text that a file had in a commit; false: it had none. */
static bool read_old(const char *commit, const char *path, struct buf *out)
{
    char folder[PATHS_MAX], name[PATHS_MAX + 64];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1,
             slash ? path : ".");
    snprintf(name, sizeof name, "%s:./%s", commit, slash ? slash + 1 : path);
    return git_lines(take_line, out, "-C", folder, "show", name, NULL) && out->len && !out->failed;
}

__attribute__((format(printf, 2, 3))) static void note(struct run_rules *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (r->n < RUN_RULES_MAX && vasprintf(&r->changed[r->n], format, args) >= 0)
        fprintf(stderr, "gate run: warning: changed against the base: %s\n", r->changed[r->n++]);
    va_end(args);
}

/* A suite that this gate cannot read any more has no thresholds that could be compared. */
static bool load_old(const char *commit, const char *path, struct suite *out)
{
    char copy[PATHS_MAX];
    struct gate_error err;
    RELEASED_BY(buf_release) struct buf text = buf_of(SUITE_MAX_BYTES);
    if (!read_old(commit, path, &text))
        return false;
    snprintf(copy, sizeof copy, "%s/kernel-gate.XXXXXX", file_temporary_folder());
    int fd = mkstemp(copy);
    if (fd < 0)
        return false;
    bool good = write(fd, text.data, text.len) == (ssize_t)text.len &&
                !suite_load_copy(copy, path, out, &err);
    close(fd);
    unlink(copy);
    return good;
}

enum gate_status run_rules_compare(const char *commit, const char *suite_path,
                                   const struct suite *now, double threshold, struct run_rules *out,
                                   struct gate_error *err)
{
    /* Another suite or folder of baselines brings thresholds and times that nothing here can be
     * compared with. */
    static const char *const keys[] = {"host_threshold", "suite", "baselines"};
    RELEASED_BY(buf_release) struct buf text = buf_of(CONFIG_MAX_BYTES);
    RELEASED_BY(json_delete_at) cJSON *before = NULL;
    RELEASED_BY(suite_free) struct suite old = {0};
    const cJSON *config;
    TRY(config_read(&config, err));
    bool known = config && read_old(commit, config_path(CONFIG_FILE), &text) &&
                 !json_parse(CONFIG_FILE, text.data, text.len, GATE_USAGE, &before, NULL);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && known; i++) {
        const char *from = json_string(before, keys[i], "none"),
                   *to = json_string(config, keys[i], "none");
        if (strcmp(from, to) != 0)
            note(out, "%s: %s %.150s -> %.150s", CONFIG_FILE, keys[i], from, to);
    }
    if (!suite_path || !load_old(commit, suite_path, &old))
        return GATE_OK;
    for (const struct suite_case *c = now->cases; c < now->cases + now->n_cases; c++)
        for (size_t k = 0; k < old.n_cases; k++) {
            double from = old.cases[k].threshold > 0 ? old.cases[k].threshold : threshold;
            double to = c->threshold > 0 ? c->threshold : threshold;
            if (!strcmp(old.cases[k].id, c->id) && from != to)
                note(out, "%s: threshold %.3g %% -> %.3g %%", c->id, 100 * from, 100 * to);
        }
    return GATE_OK;
}

void run_rules_release(struct run_rules *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->changed[i]);
    r->n = 0;
}
