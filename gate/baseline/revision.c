/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revision.c: a library by a file, a commit or a stored baseline, and the rebuild of a commit.
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

#include "gate/base/alloc.h"
#include "gate/base/clock.h"
#include "gate/base/paths.h"
#include "gate/base/process.h"
#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/library/machine_code.h"

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

/* ---- the build ---- */

/* Checks the commit out and runs the recipe; `library` becomes the path of what it has made. The
 * worktree has a fresh name each time: what a killed build left running cannot write into the next.
 */
static enum gate_status build(struct rebuild *r, char library[PATHS_MAX], struct gate_error *err)
{
    char target[300], parallel[16], how[96], folder[2 * PATHS_MAX], path[PATHS_MAX];
    const struct rebuild_recipe *recipe = r->recipe;
    const char *what = recipe->command ? recipe->command : "make";
    cpu_set_t set;
    int jobs = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    TRY(paths_set(path, err, "%s/%s.XXXXXX", r->worktrees, r->commit));
    if (!mkdtemp(path))
        return gate_fail(err, GATE_IO, "cannot make a folder in '%s': %s", r->worktrees,
                         strerror(errno));
    memcpy(r->worktree, path, sizeof r->worktree);
    snprintf(target, sizeof target, "build/lib/kernel-gate/%.200s", recipe->library);
    snprintf(parallel, sizeof parallel, "-j%d", jobs < JOBS_MAX ? jobs : JOBS_MAX);
    snprintf(folder, sizeof folder, "%s/%s", path, r->prefix);
    /* Hooks are the user's, and not for a checkout that nobody works in. */
    const char *const add[] = {
        "git",     "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--", path,
        r->commit, NULL};
    const char *const make[] = {"make", "-C", path, parallel, target, NULL};
    const char *const shell[] = {"sh", "-c", "cd -- \"$0\" && eval \"$1\"", folder, recipe->command,
                                 NULL};
    if (!run_logged(r, add, false, r->deadline - clock_s(), how, sizeof how))
        return rebuild_failed(r, "git worktree add", how, err);
    if (!run_logged(r, recipe->command ? shell : make, true, r->deadline - clock_s(), how,
                    sizeof how))
        return rebuild_failed(r, what, how, err);
    const char *made = recipe->command ? recipe->library : target;
    if (snprintf(library, PATHS_MAX, "%.*s/%s%s", PATHS_MAX, path, recipe->command ? r->prefix : "",
                 made) >= PATHS_MAX)
        return gate_fail(err, GATE_ENVIRONMENT, "the path of '%s' is too long", recipe->library);
    if (access(library, R_OK)) {
        snprintf(how, sizeof how, "succeeded without making %.60s", made);
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
    TRY(paths_set(path, err, "%s/%s.lock", r->worktrees, r->commit));
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
    char text[128], folder[PATHS_MAX], path[PATHS_MAX], library[PATHS_MAX], sha256[65];
    TRY(artifact_cache_folder("logs", folder, err));
    TRY(paths_set(r->log_path, err, "%s/%s-%s.log", folder, r->commit, r->file_name));
    r->log = open(r->log_path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (r->log < 0)
        return gate_fail(err, GATE_IO, "cannot write '%s': %s", r->log_path, strerror(errno));
    snprintf(text, sizeof text, "building commit %.12s", r->commit);
    progress_show(text);
    fprintf(stderr, "gate: building %s of commit %.12s (log: %s)\n", r->recipe->library, r->commit,
            r->log_path);
    r->deadline = clock_s() + (double)r->timeout_s;
    /* Nobody else is at work on this commit, so every worktree of it is one that a kill left. */
    DIR *worktrees = opendir(r->worktrees);
    for (const struct dirent *e; worktrees && (e = readdir(worktrees));)
        if (!strncmp(e->d_name, r->commit, 40) && e->d_name[40] == '.' &&
            strcmp(e->d_name + 40, ".lock") != 0 &&
            !paths_set(path, NULL, "%s/%s", r->worktrees, e->d_name))
            remove_worktree(r, path);
    if (worktrees)
        closedir(worktrees);
    enum gate_status status = build(r, library, err);
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
static enum gate_status find_built(const struct rebuild *r, char path[PATHS_MAX], char sha256[65],
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
    enum gate_status status = find_built(&r, path, sha256, err); /* checks both names, too */
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
        status = find_built(&r, path, sha256, err); /* whoever held the lock may have made it */
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

/* ---- what a text names ---- */

/* Messages repeat what the user gave, and terminals act on control characters. */
static enum gate_status check_text(const char *what, struct gate_error *err)
{
    size_t n = strnlen(what, PATHS_MAX);
    if (!n)
        return gate_fail(err, GATE_USAGE, "an empty text is neither a file nor a revision");
    if (n >= PATHS_MAX - 2) /* room for "./" */
        return gate_fail(err, GATE_USAGE, "'%.40s...' is too long for a file or a revision", what);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)what[i] < ' ' || what[i] == 0x7f)
            return gate_fail(err, GATE_USAGE,
                             "a file or revision has a control character at its byte %zu", i + 1);
    return GATE_OK;
}

/* The commit that a revision names. No shell is involved, and nothing behind --end-of-options is an
 * option. */
static bool ask_git(const char *what, char commit[41], char why[GIT_WHY_SIZE])
{
    char peeled[PATHS_MAX + 16];
    snprintf(peeled, sizeof peeled, "%s^{commit}", what);
    return git_commit(commit, why, "rev-parse", "--verify", "--quiet", "--end-of-options", peeled,
                      NULL);
}

enum gate_status revision_merge_base(const char *base, char commit[41], struct gate_error *err)
{
    char fetched[PATHS_MAX], tip[41];
    TRY(check_text(base, err));
    snprintf(fetched, sizeof fetched, "refs/remotes/origin/%.4000s", base);
    if (!ask_git(fetched, tip, NULL) && !ask_git(base, tip, NULL))
        return gate_fail(err, GATE_USAGE,
                         "the base branch '%s' is not in this clone: fetch it, or name it with "
                         "--base or by 'main' in gate.json",
                         base);
    return git_commit(commit, NULL, "merge-base", "HEAD", tip, NULL)
               ? GATE_OK
               : gate_fail(err, GATE_USAGE,
                           "HEAD and '%s' have no commit in common here; a shallow clone lacks "
                           "older commits",
                           base);
}

static enum gate_status resolve_commit(const char *commit, const struct rebuild_recipe *recipe,
                                       struct revision *out, struct gate_error *err)
{
    struct revision r = {0};
    memcpy(r.commit, commit, sizeof r.commit);
    enum gate_status status = rebuild_commit(commit, recipe, r.path, r.sha256, err);
    if (!status)
        *out = r;
    return status;
}

/* A file has no commit: "". */
static enum gate_status find(const char *what, char commit[41], struct gate_error *err)
{
    struct stat st;
    char why[GIT_WHY_SIZE];
    enum gate_status status = check_text(what, err);
    commit[0] = '\0';
    if (status || (!stat(what, &st) && S_ISREG(st.st_mode)))
        return status;
    if (!ask_git(what, commit, why))
        return gate_fail(err, GATE_USAGE,
                         "'%s' is neither a regular file nor a revision that git knows here%s%s%s",
                         what, why[0] ? " (git: " : "", why,
                         why[0] ? ")" : "; a shallow clone lacks older commits");
    return GATE_OK;
}

enum gate_status revision_check(const char *what, struct gate_error *err)
{
    char commit[41];
    return find(what, commit, err);
}

enum gate_status revision_resolve(const char *what, const struct rebuild_recipe *recipe,
                                  struct revision *out, struct gate_error *err)
{
    struct revision r = {0};
    struct stat st;
    TRY(find(what, r.commit, err));
    if (r.commit[0])
        return resolve_commit(r.commit, recipe, out, err);
    snprintf(r.path, sizeof r.path, "%s%s", strchr(what, '/') ? "" : "./", what);
    if (!stat(r.path, &st) && (uintmax_t)st.st_size > ARTIFACT_MAX_BYTES)
        return gate_fail(err, GATE_USAGE, "'%s' is larger than the %zu MiB a library may have",
                         what, ARTIFACT_MAX_BYTES >> 20);
    TRY(piece_hash_file(r.path, r.sha256, NULL, err));
    *out = r;
    return GATE_OK;
}

enum gate_status revision_resolve_baseline(const struct baseline_entry *entry,
                                           const struct rebuild_recipe *recipe,
                                           struct revision *out, struct gate_error *err)
{
    struct revision r = {0};
    struct gate_error absent = {0};
    char known[41], why[300], code[65] = "";
    enum gate_status status = artifact_get(entry->library_sha256, r.path, &absent);
    if (!status) {
        memcpy(r.sha256, entry->library_sha256, sizeof r.sha256);
        snprintf(r.commit, sizeof r.commit, "%s", hex_is(entry->commit, 40) ? entry->commit : "");
        *out = r;
        return GATE_OK;
    }
    if (status != GATE_NO_VERDICT || !hex_is(entry->commit, 40) ||
        !ask_git(entry->commit, known, NULL))
        return gate_fail(err, status, "%s%s", absent.message,
                         status == GATE_NO_VERDICT ? ", and no commit that is known here makes it"
                                                   : "");
    if (entry->dirty == YES)
        return gate_fail(err, GATE_NO_VERDICT,
                         "the baseline's library is not here, and no commit makes it: it was built "
                         "with changes that were not committed");
    TRY(resolve_commit(entry->commit, recipe, &r, err));
    if (strcmp(r.sha256, entry->library_sha256) != 0) {
        why[0] = '\0'; /* not the baseline's file, but perhaps one of the same code */
        if (!entry->code_sha256)
            snprintf(why, sizeof why, "and the machine code of the stored one is not recorded");
        else if (machine_code_of_file(r.path, code, &absent))
            utf8_print(why, sizeof why, "and %.200s", absent.message);
        else if (strcmp(code, entry->code_sha256) != 0)
            snprintf(why, sizeof why, "and runs other machine code");
        r.other_code = why[0] && entry->launches;
        if (why[0] && !entry->launches)
            return gate_fail(err, GATE_NO_VERDICT,
                             "the build of commit %.12s differs from the file of the stored "
                             "baseline, %s: refused. Builds differ with another compiler, toolkit "
                             "or option, and with paths (__FILE__), dates and random names in the "
                             "code",
                             entry->commit, why);
    }
    *out = r;
    return GATE_OK;
}

/* ---- what two builds of a commit run ---- */

/* "NAME VALUE NAME VALUE; NAME VALUE": how long the first word is. */
static size_t word_of(const char *text)
{
    return strcspn(text, " ;");
}

static bool is_same(const char *a, const char *b)
{
    return word_of(a) == word_of(b) && !strncmp(a, b, word_of(a));
}

bool launches_are_equal(const char *stored, const char *now, char *why, size_t size)
{
    size_t n = 0, n_stored = 0, part = 1;
    if (!strcmp(stored, now))
        return true;
    for (const char *at = now; (at = strchr(at, ';')); at++)
        n++;
    for (const char *at = stored; (at = strchr(at, ';')); at++)
        n_stored++;
    if (n_stored != n) {
        snprintf(why, size, "a launch runs %zu different kernels, and the stored one %zu", n,
                 n_stored);
        return false;
    }
    /* Word by word: the names are the same, so a name stands before the value that differs. */
    const char *name = now;
    while (*stored && *now && is_same(stored, now)) {
        name = now;
        part += now[word_of(now)] == ';';
        stored += word_of(stored) + strspn(stored + word_of(stored), " ;");
        now += word_of(now) + strspn(now + word_of(now), " ;");
    }
    if (is_same(name, "order"))
        snprintf(why, size,
                 "the order of its launches, their clusters, attributes or dependencies differ");
    else if (is_same(name, "code"))
        snprintf(why, size, "kernel %zu of %zu has other device code", part, n);
    else
        snprintf(why, size, "kernel %zu of %zu has %.*s %.*s, and the stored one %.*s", part, n,
                 (int)word_of(name), name, (int)word_of(now), now, (int)word_of(stored), stored);
    return false;
}
