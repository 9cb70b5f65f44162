/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/starved.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#define WAITED_LEAST 0.5 /* of the silence */
#define RAN_MOST 0.25    /* of what it wanted to run */

static struct processor_time read_thread(const char *path)
{
    uint64_t ran_ns = 0, waited_ns = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return (struct processor_time){0};
    if (fscanf(file, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) != 2)
        ran_ns = waited_ns = 0;
    fclose(file);
    return (struct processor_time){(double)ran_ns * 1e-9, (double)waited_ns * 1e-9};
}

struct processor_time processor_time_of(pid_t pid)
{
    struct processor_time sum = {0};
    char folder[64], path[400];
    snprintf(folder, sizeof folder, "/proc/%ld/task", (long)pid);
    DIR *tasks = opendir(folder);
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s/schedstat", folder, e->d_name);
        struct processor_time one = read_thread(path);
        sum.ran_s += one.ran_s;
        sum.waited_s += one.waited_s;
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

bool processor_was_missing(struct processor_time before, struct processor_time now,
                           double silence_s)
{
    double ran = now.ran_s - before.ran_s, waited = now.waited_s - before.waited_s;
    return waited >= WAITED_LEAST * silence_s && ran <= RAN_MOST * (ran + waited);
}
