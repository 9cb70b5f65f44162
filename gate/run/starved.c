/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/supervisor.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WAITED_LEAST 0.5 /* of the silence */
#define RAN_MOST 0.25    /* of what it wanted to run */

/* The first line of a file of a thread's; "" if it cannot be read. */
static void read_line(const char *thread, const char *name, char *out, int size)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", thread, name);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(out, size, file))
        out[0] = '\0';
    if (file)
        fclose(file);
}

struct processor_time processor_time_of(pid_t pid)
{
    struct processor_time sum = {0};
    char folder[64], thread[340], line[1024];
    uint64_t ran_ns, waited_ns;
    snprintf(folder, sizeof folder, "/proc/%ld/task", (long)pid);
    DIR *tasks = opendir(folder);
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(thread, sizeof thread, "%s/%s", folder, e->d_name);
        read_line(thread, "schedstat", line, sizeof line);
        if (sscanf(line, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) != 2)
            continue;
        sum.ran_s += (double)ran_ns * 1e-9;
        sum.waited_s += (double)waited_ns * 1e-9;
        read_line(thread, "stat", line, sizeof line);
        const char *name_end = strrchr(line, ')'); /* the name may have brackets, too */
        const char state = name_end && name_end[1] ? name_end[2] : '?';
        sum.ready += state == 'R';
        sum.stopped += state == 'T' || state == 't';
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

bool processor_was_missing(struct processor_time before, struct processor_time now,
                           double silence_s)
{
    double ran = now.ran_s - before.ran_s, waited = now.waited_s - before.waited_s;
    double unended = now.ready * silence_s - ran - waited; /* what is not accounted for yet */
    if (unended > 0)
        waited += unended;
    return waited >= WAITED_LEAST * silence_s && ran <= RAN_MOST * (ran + waited);
}

void excuse_silence(struct processor_time before, struct processor_time now, double silence_s,
                    char *out, size_t size)
{
    if (now.stopped)
        snprintf(out, size,
                 "stopped: after %.3g s without a sign of life it is held by a signal or a "
                 "debugger; let it go on (SIGCONT), and run it again",
                 silence_s);
    else if (processor_was_missing(before, now, silence_s))
        snprintf(out, size,
                 "starved: in %.3g s it got hardly any processor, because other programs use them; "
                 "measure on a quiet machine, or with `chrt -f 1`",
                 silence_s);
}
