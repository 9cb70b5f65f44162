/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/process.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"

/* Of CI systems, and of what starts programs on their runners. CircleCI runs what later steps find
 * in the file that BASH_ENV names. */
static const char *const prefixes[] = {
    "ACTIONS_", "AGENT_",  "AWS_",      "AZURE_",  "BASH_ENV", "BITBUCKET_",          "BUILDKITE",
    "CI_",      "CIRCLE",  "ENDPOINT_", "GITHUB_", "GITLAB_",  "GOOGLE_APPLICATION_", "HUDSON_",
    "JENKINS_", "RUNNER_", "SYSTEM_",   "VAULT_",  "VSS_"};

/* Between underscores, in capitals or not. */
static const char *const words[] = {
    "AUTH",     "CREDENTIAL", "CREDENTIALS", "KEY",     "PASS",  "PASSPHRASE", "PASSWD",
    "PASSWORD", "PAT",        "SECRET",      "SECRETS", "TOKEN", "TOKENS",
};

/* These say where and when, and not how: a build has its own ones each time. */
static const char *const volatile_names[] = {
    "_",        "COLUMNS",       "GATE_CACHE",     "GATE_LOCKS", "TMPDIR",
    "HOSTNAME", "INVOCATION_ID", "JOURNAL_STREAM", "LINES",      "OLDPWD",
    "PWD",      "SHLVL",         "TERM",           "WINDOWID"};
static const char *const volatile_prefixes[] = {"BUILD_", "JOB_", "SLURM_", "SSH_", "XDG_SESSION_"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool begins_with(const char *name, const char *const *prefix, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(name, prefix[i], strlen(prefix[i])))
            return true;
    return false;
}

static bool is_secret(const char *name)
{
    if (begins_with(name, prefixes, COUNT(prefixes)))
        return true;
    for (const char *at = name; *at; at += strspn(at, "_")) {
        size_t n = strcspn(at, "_");
        for (size_t i = 0; i < COUNT(words); i++)
            if (n == strlen(words[i]) && !strncasecmp(at, words[i], n))
                return true;
        at += n;
    }
    return false;
}

void scrub_environment(void)
{
    for (char **at = environ; *at;) {
        char *name = strndup(*at, strcspn(*at, "="));
        if (!name)
            abort(); /* a child that would start with its secrets is none */
        bool secret = is_secret(name);
        if (secret)
            unsetenv(name); /* the next one moves here */
        else
            at++;
        free(name);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void scrub_list(struct buf *out)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    const char **list = xcalloc(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        char *name = xstrdup(environ[i]);
        name[strcspn(name, "=")] = '\0';
        bool left_out =
            is_secret(name) || begins_with(name, volatile_prefixes, COUNT(volatile_prefixes));
        for (size_t k = 0; k < COUNT(volatile_names); k++)
            left_out |= !strcmp(name, volatile_names[k]);
        if (!left_out)
            list[kept++] = environ[i];
        free(name);
    }
    qsort(list, kept, sizeof *list, by_text);
    for (size_t i = 0; i < kept; i++)
        buf_append(out, list[i], strlen(list[i]) + 1);
    free(list);
}
