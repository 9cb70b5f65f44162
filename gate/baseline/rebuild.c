/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.c: a commit's kernel library, built from its sources once more.
 *
 * The commit is checked out in a worktree of its own below the artifact cache, built there by
 * its own Makefile, stored as an artifact, noted as that commit's library, and the worktree is
 * removed, also after a failure. What a killed process left behind goes with the next rebuild of
 * the same commit; two at a time of one commit wait for each other.
 *
 *     <cache>/worktrees/<commit>.XXXXXX   the checkout, <commit>.lock the lock
 *     <cache>/logs/<commit>-<file>.log    what git and make wrote, kept
 */
#include "gate/baseline/revision.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sha2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gate/baseline/artifact.h"
#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/environment.h"
#include "gate/base/process.h"
#include "gate/base/term.h"
#include "gate/base/utf8.h"

#define TIMEOUT_MAX_S 86400
#define REMOVE_S 60.0    /* removing a worktree, and after it the files */
#define LOCK_POLL_MS 100 /* flock() knows no time-out */
#define JOBS_MAX 8       /* a CUDA compiler takes 1 to 2 GB of memory */
#define TAIL_BYTES 320   /* of the log in a message, which is one line and may be cut */
#define LOOK_BYTES 65536 /* of the log, its last ones, in which an error is looked for */

struct rebuild {
    const char *commit;
    const struct rebuild_recipe *recipe;
    char prefix[PATHS_MAX]; /* of the recipe's folder in the repository: "" or "sub/folder/" */
    char file_name[64];     /* under which the cache has it */
    char worktrees[PATHS_MAX];
    char worktree[PATHS_MAX]; /* "": none yet */
    char log_path[PATHS_MAX];
    int log, lock; /* -1: none yet */
    long timeout_s;
    double deadline;
};

/* ---- a command, run to its end ---- */

/* Through env(1): what a make or a git hook above this process tells its children must not reach
 * ours. */
static const char *const clean[] = {"env",
                                    "-uMAKEFLAGS",
                                    "-uMAKELEVEL",
                                    "-uMAKEFILES",
                                    "-uMFLAGS",
                                    "-uGNUMAKEFLAGS",
                                    "-uMAKEOVERRIDES",
                                    "-uSANITIZE", /* would build in another folder */
                                    "-uGIT_INDEX_FILE",
                                    "-uGIT_PREFIX",
                                    "GIT_TERMINAL_PROMPT=0"};
/* The repository itself too: in the worktree, it is the one that the worktree belongs to. */
static const char *const clean_of_repository[] = {
    "-uGIT_DIR",       "-uGIT_WORK_TREE",        "-uGIT_COMMON_DIR",
    "-uGIT_NAMESPACE", "-uGIT_OBJECT_DIRECTORY", "-uGIT_ALTERNATE_OBJECT_DIRECTORIES",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define COMMAND_MAX 16 /* words of a command, with the NULL behind them */

/* Runs a command with its output in the log; true when it ended with 0. Else `how` says what became
 * of it. Nothing that it started in its process group outlives the call. */
static bool run_logged(struct rebuild *r, const char *const *argv, bool in_worktree,
                       double timeout_s, char *how, size_t how_size)
{
    const char *words[COUNT(clean) + COUNT(clean_of_repository) + COMMAND_MAX] = {NULL};
    struct process p;
    struct gate_error err;
    size_t n = 1;
    words[0] = clean[0];
    for (size_t i = 0; in_worktree && i < COUNT(clean_of_repository); i++)
        words[n++] = clean_of_repository[i];
    for (size_t i = 1; i < COUNT(clean); i++)
        words[n++] = clean[i];
    for (size_t i = 0; argv[i] && i + 1 < COMMAND_MAX; i++)
        words[n++] = argv[i];
    if (process_start_logged(&p, (char *const *)words, r->log, &err)) {
        utf8_print(how, how_size, "cannot be started: %.70s", err.message);
        return false;
    }
    bool ended = process_wait(&p, timeout_s);
    bool good = process_kill(&p, how, how_size) == 0 && ended;
    if (!ended)
        snprintf(how, how_size, "took more than the %ld s of GATE_BUILD_TIMEOUT", r->timeout_s);
    return good;
}

/* ---- messages ---- */

/* The message has the lines of the log that say why, as one: from the first line with an error of a
 * compiler on, else from the first whole line of the last TAIL_BYTES. */
static enum gate_status rebuild_failed(const struct rebuild *r, const char *what, const char *how,
                                       struct gate_error *err)
{
    char *log = xcalloc(1, LOOK_BYTES + 1), *start = log, tail[TAIL_BYTES + 1];
    struct stat st = {0};
    fstat(r->log, &st);
    ssize_t read =
        pread(r->log, log, LOOK_BYTES, st.st_size > LOOK_BYTES ? st.st_size - LOOK_BYTES : 0);
    size_t n = read > 0 ? (size_t)read : 0;
    while (n > 0 && log[n - 1] == '\n')
        n--;
    log[n] = '\0';
    char *error = memmem(log, n, "error:", 6), *line = NULL;
    if (error) {
        line = memrchr(log, '\n', (size_t)(error - log));
    } else if (n > TAIL_BYTES) {
        start = log + n - TAIL_BYTES;
        line = memchr(start, '\n', TAIL_BYTES);
    }
    start = line ? line + 1 : start;
    for (char *c = start; c < log + n; c++)
        *c = *c == '\n' ? '|' : *c && *c != '\t' ? *c : ' ';
    RELEASED_BY(buf_release) struct buf safe = buf_of((size_t)4 * LOOK_BYTES);
    term_puts(start, &safe);
    utf8_print(tail, sizeof tail, "%s", safe.len ? safe.data : "");
    free(log);
    return gate_fail(
        err, GATE_ENVIRONMENT,
        "%s of commit %.12s cannot be built here: '%.100s' %s%s (log: %s)%s%s", r->recipe->library,
        r->commit, what, how,
        r->recipe->command ? "" : ", and neither gate.json nor --build names another command",
        r->log_path, tail[0] ? ": " : "", tail);
}

/* ---- worktrees ---- */

/* git forgets the worktree, too; where it does not know it (it is of another clone, or broken),
 * what counts is that the files are gone. */
static void remove_worktree(struct rebuild *r, const char *path)
{
    char how[96];
    const char *const remove_it[] = {"git",     "worktree", "remove", "--force",
                                     "--force", "--",       path,     NULL};
    run_logged(r, remove_it, false, REMOVE_S, how, sizeof how);
    if (access(path, F_OK) && errno == ENOENT)
        return;
    const char *const files[] = {"rm", "-rf", "--one-file-system", "--", path, NULL};
    run_logged(r, files, false, REMOVE_S, how, sizeof how);
    if (!access(path, F_OK))
        fprintf(stderr, "gate: cannot remove '%s': remove it by hand\n", path);
}

/* Nobody else is at work on this commit, so every worktree of it is one that a kill left behind. */
static void remove_stale_worktrees(struct rebuild *r)
{
    char path[PATHS_MAX];
    DIR *folder = opendir(r->worktrees);
    if (!folder)
        return;
    for (const struct dirent *e; (e = readdir(folder));) {
        if (strncmp(e->d_name, r->commit, 40) != 0 || e->d_name[40] != '.' ||
            !strcmp(e->d_name + 40, ".lock"))
            continue;
        if (!paths_set(&artifact_cache, path, NULL, "%s/%s", r->worktrees, e->d_name))
            remove_worktree(r, path);
    }
    closedir(folder);
}

/* A fresh name each time: what a killed build left running cannot write into the next. */
static enum gate_status add_worktree(struct rebuild *r, struct gate_error *err)
{
    char how[96], path[PATHS_MAX];
    TRY(paths_set(&artifact_cache, path, err, "%s/%s.XXXXXX", r->worktrees, r->commit));
    if (!mkdtemp(path))
        return gate_fail(err, GATE_IO, "cannot make a folder in '%s': %s", r->worktrees,
                         strerror(errno));
    memcpy(r->worktree, path, sizeof r->worktree);
    /* Hooks are the user's, and not for a checkout that nobody works in. */
    const char *const add[] = {
        "git",     "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--", path,
        r->commit, NULL};
    if (run_logged(r, add, false, r->deadline - clock_s(), how, sizeof how))
        return GATE_OK;
    return rebuild_failed(r, "git worktree add", how, err);
}

/* ---- the build ---- */

/* Runs the recipe; `library` becomes the path of what it has made. */
static enum gate_status run_recipe(struct rebuild *r, char library[PATHS_MAX],
                                   struct gate_error *err)
{
    char target[300], parallel[16], how[96], folder[2 * PATHS_MAX];
    const struct rebuild_recipe *recipe = r->recipe;
    cpu_set_t set;
    int jobs = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    snprintf(target, sizeof target, "build/lib/kernel-gate/%.200s", recipe->library);
    snprintf(parallel, sizeof parallel, "-j%d", jobs < JOBS_MAX ? jobs : JOBS_MAX);
    snprintf(folder, sizeof folder, "%s/%s", r->worktree, r->prefix);
    const char *const make[] = {"make", "-C", r->worktree, parallel, target, NULL};
    const char *const shell[] = {"sh", "-c", "cd -- \"$0\" && eval \"$1\"", folder, recipe->command,
                                 NULL};
    const char *what = recipe->command ? recipe->command : "make";
    if (!run_logged(r, recipe->command ? shell : make, true, r->deadline - clock_s(), how,
                    sizeof how))
        return rebuild_failed(r, what, how, err);
    int n = recipe->command
                ? snprintf(library, PATHS_MAX, "%.*s%s", PATHS_MAX, folder, recipe->library)
                : snprintf(library, PATHS_MAX, "%s/%s", r->worktree, target);
    if (n < 0 || n >= PATHS_MAX)
        return gate_fail(err, GATE_ENVIRONMENT, "the path of '%s' is too long", recipe->library);
    if (access(library, R_OK)) {
        snprintf(how, sizeof how, "succeeded without making %.60s",
                 recipe->command ? recipe->library : target);
        return rebuild_failed(r, what, how, err);
    }
    return GATE_OK;
}

/* ---- one at a time ---- */

static enum gate_status take_lock(struct rebuild *r, struct gate_error *err)
{
    char path[PATHS_MAX];
    const struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000L};
    double deadline = clock_s() + (double)r->timeout_s;
    TRY(paths_set(&artifact_cache, path, err, "%s/%s.lock", r->worktrees, r->commit));
    r->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (r->lock < 0)
        return gate_fail(err, GATE_IO, "cannot open '%s': %s", path, strerror(errno));
    for (bool told = false; flock(r->lock, LOCK_EX | LOCK_NB); nanosleep(&pause, NULL)) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return gate_fail(err, GATE_IO, "cannot lock '%s': %s", path, strerror(errno));
        if (clock_s() > deadline)
            return gate_fail(err, GATE_ENVIRONMENT,
                             "another process has been building commit %.12s for over %ld s "
                             "(it holds '%s')",
                             r->commit, r->timeout_s, path);
        if (!told)
            progress_show("waiting for another build");
        if (!told)
            fprintf(stderr, "gate: waiting for another build of commit %.12s\n", r->commit);
        told = true;
    }
    return GATE_OK;
}

static enum gate_status build_in_worktree(struct rebuild *r, struct gate_error *err)
{
    char text[128], folder[PATHS_MAX], library[PATHS_MAX], sha256[65];
    TRY(artifact_cache_folder("logs", folder, err));
    TRY(paths_set(&artifact_cache, r->log_path, err, "%s/%s-%s.log", folder, r->commit,
                  r->file_name));
    r->log = open(r->log_path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (r->log < 0)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", r->log_path, strerror(errno));
    snprintf(text, sizeof text, "building commit %.12s", r->commit);
    progress_show(text);
    fprintf(stderr, "gate: building %s of commit %.12s (log: %s)\n", r->recipe->library, r->commit,
            r->log_path);
    r->deadline = clock_s() + (double)r->timeout_s;
    remove_stale_worktrees(r);
    enum gate_status status = add_worktree(r, err);
    if (!status)
        status = run_recipe(r, library, err);
    if (!status)
        status = artifact_put(library, sha256, err);
    if (!status)
        status = artifact_note_commit(r->commit, r->file_name, sha256, err);
    if (r->worktree[0])
        remove_worktree(r, r->worktree);
    progress_show("");
    return status;
}

/* artifact_get_commit() that leaves the error alone when the library is merely not there. */
static enum gate_status find(const struct rebuild *r, char path[PATHS_MAX], char sha256[65],
                             struct gate_error *err)
{
    struct gate_error why = {0};
    enum gate_status status = artifact_get_commit(r->commit, r->file_name, sha256, path, &why);
    if (status && status != GATE_NO_VERDICT)
        gate_fail(err, status, "%s", why.message);
    return status;
}

/* ---- recipes ---- */

/* The commands of a shell may make different libraries of a commit; each is known by its recipe. */
static enum gate_status read_recipe(struct rebuild *r, struct gate_error *err)
{
    SHA2_CTX context;
    char hex[SHA256_DIGEST_STRING_LENGTH], padded[PATHS_MAX + 2];
    const struct rebuild_recipe *recipe = r->recipe;
    const char *library = recipe->library;
    if (!library)
        return gate_fail(err, GATE_USAGE,
                         "nothing says how a commit is built: set 'build' and 'library' in "
                         "gate.json, or give --build COMMAND and --built FILE");
    snprintf(padded, sizeof padded, "/%s/", library);
    if (library[0] == '/' || strstr(padded, "/../") || strlen(library) > 1000)
        return gate_fail(err, GATE_USAGE,
                         "the build makes '%.200s', which is not in the checkout of a commit: give "
                         "a path relative to the folder of the build",
                         library);
    if (!recipe->command) {
        int n = snprintf(r->file_name, sizeof r->file_name, "%s", library);
        return n < (int)sizeof r->file_name
                   ? GATE_OK
                   : gate_fail(err, GATE_USAGE, "'%.80s' is not the file name of a library",
                               library);
    }
    /* Where its folder lies in the repository, as git has it: with a '/' at its end. */
    const char *folder = recipe->folder && recipe->folder[0] ? recipe->folder : ".";
    if (!git_line(r->prefix, sizeof r->prefix, "-C", folder, "rev-parse", "--show-prefix", NULL))
        return gate_fail(
            err, GATE_ENVIRONMENT,
            "git finds no repository that it may use at '%s': 'git -C %s status' says why", folder,
            folder);
    const char *const texts[] = {recipe->command, r->prefix, library};
    SHA256Init(&context);
    for (size_t i = 0; i < COUNT(texts); i++)
        SHA256Update(&context, (const uint8_t *)texts[i], strlen(texts[i]) + 1);
    SHA256End(&context, hex);
    snprintf(r->file_name, sizeof r->file_name, "build-%.16s.so", hex);
    return GATE_OK;
}

enum gate_status rebuild_commit(const char *commit, const struct rebuild_recipe *recipe,
                                char path[PATHS_MAX], char sha256[65], struct gate_error *err)
{
    struct rebuild r = {.commit = commit, .recipe = recipe, .log = -1, .lock = -1};
    TRY(read_recipe(&r, err));
    enum gate_status status = find(&r, path, sha256, err); /* checks both names, too */
    if (status != GATE_NO_VERDICT)
        return status;
    const char *text = environment_get("GATE_BUILD_TIMEOUT");
    char *end = NULL;
    errno = 0;
    r.timeout_s = text ? strtol(text, &end, 10) : REBUILD_TIMEOUT_S;
    if (text && (errno || *end || r.timeout_s < 1 || r.timeout_s > TIMEOUT_MAX_S))
        return gate_fail(err, GATE_USAGE,
                         "GATE_BUILD_TIMEOUT is '%.40s', expected seconds from 1 to %d", text,
                         TIMEOUT_MAX_S);
    TRY(artifact_cache_folder("worktrees", r.worktrees, err));
    status = take_lock(&r, err);
    if (!status) {
        status = find(&r, path, sha256, err); /* whoever held the lock may have made it */
        if (status == GATE_NO_VERDICT)
            status = build_in_worktree(&r, err);
        if (!status)
            status = artifact_get_commit(commit, r.file_name, sha256, path, err);
    }
    if (r.log >= 0)
        close(r.log);
    if (r.lock >= 0)
        close(r.lock);
    return status;
}
