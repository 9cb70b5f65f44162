/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/base/process.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool is_secret(const char *name)
{
    for (size_t i = 0; i < COUNT(prefixes); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
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
