/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gate/base/alloc.h"
#include "gate/base/buf.h"
#include "gate/base/file.h"
#include "gate/base/paths.h"
#include "gate/document/fields_table.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)
#define LEVELS_MAX 64

static cJSON *document; /* for as long as the program runs: options point into it */
static char folder[3 * LEVELS_MAX + 1];

/* ---- what it may hold, as gate/formats/config.schema.json publishes it ---- */

struct config_file {
    const char *schema, *library, *build, *suite, *baselines, *main, *database, *host_threshold;
    const char **providers;
    size_t n_providers;
};

static const char *const schemas[] = {"gate-config/1", NULL};

#define PATH_MAX_CHARACTERS 1000
#define OPTION_MAX 2000

#define OF config_file
static const struct field config_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    WORDS(library, 0, PATH_MAX_CHARACTERS),
    WORDS(build, 0, OPTION_MAX),
    WORDS(suite, 0, OPTION_MAX),
    WORDS(baselines, 0, PATH_MAX_CHARACTERS),
    TEXTS(providers, 0, 7, PATH_MAX_CHARACTERS),
    WORDS(main, 0, OPTION_MAX),
    WORDS(database, 0, PATH_MAX_CHARACTERS),
    WORDS(host_threshold, 0, OPTION_MAX),
};
const struct shape config_file_shape = SHAPE_OF(config);
#undef OF

/* ---- finding it ---- */

const char *config_folder(void)
{
    return folder;
}

/* Is there NAME in the folder that is so many levels up? A link that leads nowhere is there, and
 * cannot be read. */
static bool exists(int levels, const char *name, char path[PATHS_MAX])
{
    struct stat st;
    char *at = path;
    for (int i = 0; i < levels; i++)
        at = stpcpy(at, "../");
    snprintf(at, PATHS_MAX - (size_t)(at - path), "%s", name);
    return !lstat(path, &st);
}

enum gate_status config_read(const cJSON **out, struct gate_error *err)
{
    char path[PATHS_MAX];
    struct config_file contents;
    struct fields_taken taken;
    RELEASED_BY(buf_release) struct buf text = buf_of(CONFIG_MAX_BYTES);
    /* What lies above a repository, or beside one that is none, is somebody else's. */
    int levels = 0, top = 0;
    while (top < LEVELS_MAX && !exists(top, ".git", path))
        top++;
    top = top < LEVELS_MAX ? top : 0;
    while (levels <= top && !exists(levels, CONFIG_FILE, path))
        levels++;
    if (!document && levels <= top) {
        snprintf(folder, sizeof folder, "%.*s", 3 * levels, path);
        TRY(file_read(path, &text, err));
        TRY(fields_parse(&config_file_shape, path, 1, text.data, text.len, GATE_USAGE, &contents,
                         &taken, err));
        fields_release(&config_file_shape, &contents);
        free(taken.texts);
        TRY(json_parse(path, text.data, text.len, GATE_USAGE, &document, err));
    }
    *out = document;
    return GATE_OK;
}

/* Options point at it for as long as the program runs, and so does this, for leak checkers. */
static struct joined {
    struct joined *next;
    char path[];
} * joined_paths;

const char *config_path(const char *path)
{
    if (path[0] == '/' || !folder[0])
        return path;
    struct joined *joined = xcalloc(1, sizeof *joined + strlen(folder) + strlen(path) + 1);
    stpcpy(stpcpy(joined->path, folder), path);
    joined->next = joined_paths;
    return (joined_paths = joined)->path;
}
