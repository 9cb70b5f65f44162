/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/search/shell.h"

#include "gate/base/clock.h"
#include "gate/base/process.h"

#define OUTPUT_MAX ((size_t)64 << 20)
#define GRACE_S 10.0

/* Reads to the end of its output; what ended it. */
static enum process_event read_all(struct process *p, double deadline, struct buf *first)
{
    struct buf line;
    size_t total = 0;
    enum process_event event;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    for (bool is_first = true;; is_first = false) {
        buf_clear(&line);
        event = process_read_line(p, deadline - clock_s(), &line);
        if (event != PROCESS_LINE)
            break;
        total += line.len + 1;
        if (total > OUTPUT_MAX) {
            event = PROCESS_FLOOD;
            break;
        }
        if (is_first)
            buf_append(first, line.data, line.len);
    }
    buf_release(&line);
    return event;
}

enum gate_status shell_ask(const char *command, const char *folder, double patience_s,
                           struct buf *line, struct gate_error *err)
{
    char *argv[] = {(char *)"sh",
                    (char *)"-c",
                    (char *)"cd -- \"$0\" && eval \"$1\"",
                    (char *)(folder[0] ? folder : "."),
                    (char *)command,
                    NULL};
    struct process p = {0};
    char how[96] = "";
    buf_clear(line);
    process_adopt_orphans();
    enum gate_status status = process_start_scrubbed(&p, argv, err);
    if (status)
        return status;
    enum process_event event = read_all(&p, clock_s() + patience_s, line);
    if (event == PROCESS_END) {
        int code = process_finish(&p, GRACE_S);
        if (code)
            status = gate_fail(err, GATE_USAGE, "'%.200s' ended with %d: %.400s", command, code,
                               process_last_words(&p));
    } else {
        process_kill(&p, how, sizeof how);
        process_end_orphans();
        if (event == PROCESS_INTERRUPTED)
            status = gate_fail(err, GATE_ENVIRONMENT, "interrupted");
        else
            status = gate_fail(err, GATE_USAGE, "'%.200s' %s and was killed", command,
                               event == PROCESS_FLOOD ? "printed too much"
                                                      : "did not end in its time (--patience)");
    }
    return status;
}
