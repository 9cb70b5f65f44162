/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/baseline/revision.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/baseline/artifact.h"
#include "gate/base/file.h"
#include "gate/base/hex.h"
#include "gate/base/process.h"
#include "gate/library/machine_code.h"
#include "gate/library/piece.h"

#define GIT_TIMEOUT_S 20.0

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

/* The one commit that git answers with. On failure `why` has what git said, or nothing. */
static bool read_commit(char *const argv[], char commit[41], char *why, size_t why_size)
{
    struct process p = {0};
    struct gate_error err = {0};
    if (process_start(&p, argv, &err)) {
        utf8_print(why, why_size, "%.190s", err.message);
        return false;
    }
    RELEASED_BY(buf_release) struct buf line = buf_of(65536);
    bool found = process_read_line(&p, GIT_TIMEOUT_S, &line) == PROCESS_LINE && line.len == 40 &&
                 hex_is(line.data, 40);
    if (found) {
        memcpy(commit, line.data, 41);
        /* A range comes as two lines, --verify or not. */
        found = process_read_line(&p, GIT_TIMEOUT_S, &line) == PROCESS_END;
    }
    process_finish(&p, GIT_TIMEOUT_S);
    p.complaint[strcspn(p.complaint, "\n")] = '\0';
    utf8_print(why, why_size, "%.190s", p.complaint);
    return found;
}

/* The commit that a revision names. No shell is involved, and nothing behind --end-of-options is an
 * option. */
static bool ask_git(const char *what, char commit[41], char *why, size_t why_size)
{
    char peeled[PATHS_MAX + 16];
    snprintf(peeled, sizeof peeled, "%s^{commit}", what);
    char *argv[] = {(char *)"git",
                    (char *)"rev-parse",
                    (char *)"--verify",
                    (char *)"--quiet",
                    (char *)"--end-of-options",
                    peeled,
                    NULL};
    return read_commit(argv, commit, why, why_size);
}

enum gate_status revision_merge_base(const char *base, char commit[41], struct gate_error *err)
{
    char fetched[PATHS_MAX], tip[41], why[200];
    char *argv[] = {(char *)"git", (char *)"merge-base", (char *)"HEAD", tip, NULL};
    TRY(check_text(base, err));
    snprintf(fetched, sizeof fetched, "refs/remotes/origin/%.4000s", base);
    if (!ask_git(fetched, tip, why, sizeof why) && !ask_git(base, tip, why, sizeof why))
        return gate_fail(err, GATE_USAGE,
                         "the base branch '%s' is not in this clone: fetch it, or name it with "
                         "--base or by 'main' in gate.json",
                         base);
    return read_commit(argv, commit, why, sizeof why)
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
    char why[200];
    enum gate_status status = check_text(what, err);
    commit[0] = '\0';
    if (status || (!stat(what, &st) && S_ISREG(st.st_mode)))
        return status;
    if (!ask_git(what, commit, why, sizeof why))
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
    TRY(piece_hash_file(r.path, r.sha256, err));
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
        !ask_git(entry->commit, known, why, sizeof why))
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
