#include "gate/baseline/origin.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gate/base/hex.h"
#include "gate/base/process.h"

#define GIT_TIMEOUT_S 20.0

/* Runs a command and copies its n-th line of output (0: the first); false when there is none. */
static bool line_of(char *const *argv, unsigned n, char *out, size_t size)
{
    struct process p = {0};
    struct buf line;
    if (process_start(&p, argv, NULL))
        return false;
    buf_init(&line, 65536);
    bool found = false;
    for (unsigned i = 0; i <= n; i++) {
        buf_clear(&line);
        found = process_read_line(&p, GIT_TIMEOUT_S, &line) == PROCESS_LINE;
        if (!found)
            break;
    }
    if (found)
        snprintf(out, size, "%s", line.len ? line.data : "");
    process_finish(&p, GIT_TIMEOUT_S);
    buf_release(&line);
    return found;
}

static void copy_variable(const char *name, char *out, size_t size)
{
    const char *value = getenv(name);
    if (value && !out[0])
        snprintf(out, size, "%s", value);
}

static void read_git(struct origin *o)
{
    char *log[] = {(char *)"git", (char *)"log", (char *)"-1", (char *)"--format=%H%n%P%n%s", NULL};
    char *branch[] = {(char *)"git", (char *)"symbolic-ref", (char *)"--short",
                      (char *)"-q",  (char *)"HEAD",         NULL};
    char *changes[] = {(char *)"git", (char *)"status", (char *)"--porcelain",
                       (char *)"--untracked-files=no", NULL};
    char parents[512] = "", change[16];
    if (!line_of(log, 0, o->commit, sizeof o->commit) || !hex_is(o->commit, 40)) {
        o->commit[0] = '\0';
        return;
    }
    line_of(log, 1, parents, sizeof parents);
    parents[strcspn(parents, " ")] = '\0';
    if (hex_is(parents, 40))
        memcpy(o->parent, parents, sizeof o->parent);
    line_of(log, 2, o->subject, sizeof o->subject);
    line_of(branch, 0, o->branch, sizeof o->branch);
    o->dirty = line_of(changes, 0, change, sizeof change);
}

static void read_variables(struct origin *o)
{
    char commit[64] = "";
    copy_variable("GITHUB_SHA", commit, sizeof commit);
    copy_variable("CI_COMMIT_SHA", commit, sizeof commit);
    if (!o->commit[0] && hex_is(commit, 40))
        memcpy(o->commit, commit, sizeof o->commit);
    copy_variable("GITHUB_HEAD_REF", o->branch, sizeof o->branch);
    copy_variable("GITHUB_REF_NAME", o->branch, sizeof o->branch);
    copy_variable("CI_COMMIT_REF_NAME", o->branch, sizeof o->branch);
}

static void read_who(struct origin *o)
{
    char host[80] = "unknown";
    const struct passwd *user = getpwuid(getuid());
    gethostname(host, sizeof host - 1);
    snprintf(o->who, sizeof o->who, "%.80s@%.80s", user ? user->pw_name : "unknown", host);
}

void origin_author(char *out, size_t size)
{
    char *get_name[] = {(char *)"git", (char *)"config", (char *)"--get", (char *)"user.name",
                        NULL};
    char *get_mail[] = {(char *)"git", (char *)"config", (char *)"--get", (char *)"user.email",
                        NULL};
    char name[150] = "", mail[150] = "";
    struct origin o = {0};
    if (line_of(get_name, 0, name, sizeof name) && line_of(get_mail, 0, mail, sizeof mail) &&
        name[0] && mail[0]) {
        snprintf(out, size, "%s <%s>", name, mail);
        return;
    }
    read_who(&o);
    snprintf(out, size, "%s", o.who);
}

static void make_uuid(char uuid[37])
{
    unsigned char b[16];
    /* 16 bytes come whole, and never fail once the system has booted. */
    while (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        continue;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    char *at = uuid;
    for (size_t i = 0; i < sizeof b; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += snprintf(at, 4, "%s%02x", dash ? "-" : "", b[i]);
    }
}

void origin_read(struct origin *out)
{
    *out = (struct origin){0};
    read_git(out);
    read_variables(out);
    read_who(out);
    make_uuid(out->uuid);
}
