/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/sanitize.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/json.h"
#include "gate/base/seed.h"
#include "gate/base/utf8.h"

#define PROGRAM "compute-sanitizer"
#define LINE_SIZE 1024 /* of a log's line; what is longer is cut */
#define ALLOW_MAX_BYTES ((size_t)1 << 20)
#define FOUND_ERRORS 99 /* the exit code of a tool that found some */
#define SLOWNESS 20.0   /* a kernel under a tool may be silent for so many times the time-out */

static const char *const tool_names[SANITIZE_TOOLS] = {"memcheck", "racecheck", "initcheck",
                                                       "synccheck"};

static bool on_path(const char *program)
{
    const char *path = getenv("PATH");
    char file[4096];
    for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
        snprintf(file, sizeof file, "%.*s/%s", (int)strcspn(path, ":"), path, program);
        if (!access(file, X_OK))
            return true;
    }
    return false;
}

/* ---- logs ---- */

/* Copies a report without what differs from one to the next of the same fault: which thread of
 * which block, which address, and counts in brackets, such as "[18 hazards]". */
static void leave_kind(const char *report, char *out)
{
    for (const char *end; *report; report = end + (*end == ';')) {
        report += strspn(report, " ");
        end = report + strcspn(report, ";");
        if (!strncmp(report, "by thread", 9) || !strncmp(report, "Address", 7))
            continue;
        for (bool inside = false; report < end; report++) {
            inside |= *report == '[';
            if (!inside)
                *out++ = *report;
            inside &= *report != ']';
        }
    }
    *out = '\0';
}

static bool is_same_report(const char *one, const char *other)
{
    char kind[SANITIZE_TEXT_SIZE], other_kind[SANITIZE_TEXT_SIZE];
    leave_kind(one, kind);
    leave_kind(other, other_kind);
    return !strcmp(kind, other_kind);
}

/* Each report once, with how often it came: a race is reported for each launch. */
static void keep_text(struct sanitize_tool *tool, const char *text)
{
    for (unsigned i = 0; i < tool->n_texts; i++)
        if (is_same_report(tool->texts[i].text, text)) {
            tool->texts[i].times++;
            return;
        }
    if (tool->n_texts == SANITIZE_TEXTS)
        return;
    struct sanitize_text *kept = &tool->texts[tool->n_texts++];
    snprintf(kept->text, sizeof kept->text, "%s", text);
    kept->times = 1;
}

/* Does a line match one of the patterns? */
static bool is_allowed(const char *line, const char *patterns)
{
    char pattern[512];
    for (; patterns && *patterns;
         patterns += strcspn(patterns, "\n"), patterns += *patterns == '\n') {
        size_t n = strcspn(patterns, "\r\n");
        if (n == 0 || *patterns == '#' || n > sizeof pattern - 3)
            continue;
        snprintf(pattern, sizeof pattern, "*%.*s*", (int)n, patterns);
        if (!fnmatch(pattern, line, 0))
            return true;
    }
    return false;
}

/* Lines of the log that are no part of a report. "ERROR SUMMARY: 7 errors were not printed" is one:
 * nobody knows what they were. */
static bool is_frame(const char *line)
{
    if (strstr(line, "not printed"))
        return false;
    return !*line || strstr(line, "COMPUTE-SANITIZER") || strstr(line, "SUMMARY") ||
           !strncmp(line, "Target application", 18);
}

struct report {
    char text[SANITIZE_TEXT_SIZE]; /* its first lines */
    bool open, allowed;
};

static void end_report(struct report *r, struct sanitize_tool *tool)
{
    if (r->open && r->allowed)
        tool->allowed++;
    else if (r->open) {
        tool->errors++;
        keep_text(tool, r->text);
    }
    *r = (struct report){0};
}

/* A report begins with a line that is not indented; indented ones belong to it. */
static void read_line(const char *line, const char *patterns, struct report *r,
                      struct sanitize_tool *tool)
{
    size_t indent = strspn(line, " ");
    if (indent == 0)
        end_report(r, tool);
    if (indent == 0 && is_frame(line))
        return;
    r->open = true;
    r->allowed |= is_allowed(line, patterns);
    size_t used = strlen(r->text);
    snprintf(r->text + used, sizeof r->text - used, "%s%s", used ? "; " : "", line + indent);
}

/* Reads a line without its end, and leaves out what is too long; false at the end of the log. */
static bool next_line(FILE *log, char line[LINE_SIZE])
{
    size_t n = 0;
    int c;
    while ((c = getc_unlocked(log)) != EOF && c != '\n')
        if (n < LINE_SIZE - 1 && c != '\0' && c != '\r')
            line[n++] = (char)c;
    line[n] = '\0';
    return c != EOF || n;
}

bool sanitize_read_log(FILE *log, const char *patterns, struct sanitize_tool *tool)
{
    static const char mark[] = "========= ";
    struct report report = {0};
    char line[LINE_SIZE];
    while (next_line(log, line)) {
        if (strncmp(line, mark, sizeof mark - 2) != 0)
            continue;
        size_t n = strlen(line);
        read_line(line + (n < sizeof mark - 1 ? n : sizeof mark - 1), patterns, &report, tool);
    }
    end_report(&report, tool);
    return !ferror(log);
}

/* What keeps a tool from passing though no report says so. */
__attribute__((format(printf, 2, 3))) static void add_error(struct sanitize_tool *tool,
                                                            const char *format, ...)
{
    char text[SANITIZE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tool->errors++;
    keep_text(tool, text);
}

/* Reads a log; returns whether it has a report. */
static bool read_log(const char *path, const char *patterns, struct sanitize_tool *tool)
{
    size_t before = tool->errors + tool->allowed;
    FILE *log = fopen(path, "re");
    bool read = log && sanitize_read_log(log, patterns, tool);
    bool has_report = tool->errors + tool->allowed > before;
    if (!read)
        add_error(tool, "the log of %s's %s cannot be read (%s), so its findings are unknown",
                  PROGRAM, tool->name, strerror(errno));
    if (log)
        fclose(log);
    return has_report || !read;
}

/* Reads and removes all files of the folder. `findings` is how many processes said by their end
 * that their logs have something. */
static void read_logs(const char *folder, const char *patterns, unsigned findings,
                      struct sanitize_tool *tool)
{
    char path[4096];
    unsigned logs = 0, with_reports = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        with_reports += read_log(path, patterns, tool);
        logs++;
        remove(path);
    }
    if (entries)
        closedir(entries);
    if (!logs && tool->cases)
        add_error(tool, "%s's %s left no log in '%s', so its findings are unknown", PROGRAM,
                  tool->name, folder);
    else if (with_reports < findings)
        add_error(tool,
                  "%u processes of %s's %s ended with exit code %d, which says that it found "
                  "errors, or had to be killed; %u logs have a report",
                  findings, PROGRAM, tool->name, FOUND_ERRORS, with_reports);
}

/* ---- running ---- */

static void skip_rest(struct sanitize_tool *tool, size_t cases, const char *why)
{
    tool->skipped += cases;
    utf8_print(tool->why_skipped, sizeof tool->why_skipped, "%.290s", why);
}

static void count_case(struct sanitize_tool *tool, const struct suite_case *c,
                       const struct case_result *result)
{
    const struct document_arm *arm = result->n_arms ? result->arms : NULL;
    if (arm && arm->has_verify && arm->verify.own_shape_only == YES)
        skip_rest(tool, 1,
                  "its kernel takes no other shape than the case's, which is not run here");
    else if (result->outcome == CASE_VERIFIED || result->outcome == CASE_WRONG)
        tool->cases++;
    else
        skip_rest(tool, 1, result->message);
    if (result->outcome != CASE_WRONG)
        return;
    char text[SANITIZE_TEXT_SIZE];
    tool->wrong++;
    snprintf(text, sizeof text, "%s: wrong: %.900s", c->id, result->message);
    keep_text(tool, text);
}

/* Returns how many processes said by their end that the tool found something. */
static unsigned run_cases(const struct sanitize *s, struct sanitize_tool *tool,
                          const struct supervisor_options *options)
{
    unsigned findings = 0;
    struct gate_error err = {0};
    struct supervisor *supervisor = NULL;
    enum gate_status status = supervisor_start(options, &supervisor, &err);
    size_t i = 0;
    while (i < s->suite->n_cases && !status) {
        const struct suite_case *c = &s->suite->cases[i];
        char text[320];
        snprintf(text, sizeof text, "%s [%zu/%zu] %s", tool->name, i + 1, s->suite->n_cases, c->id);
        s->progress(text);
        const struct case_task task = {.c = c,
                                       .seed = seed_of_text(s->seed, c->id),
                                       .budget_ms = 1,
                                       .verify = true,
                                       .verify_only = true,
                                       .tier = VERIFY_SMALL};
        struct case_result result = {0};
        status = supervisor_run_case(supervisor, &task, &result, &err);
        if (!status) {
            count_case(tool, c, &result);
            i++;
        }
        case_result_release(&result);
    }
    if (status)
        skip_rest(tool, s->suite->n_cases - i, err.message);
    if (supervisor) {
        supervisor_retire_worker(supervisor);
        findings = supervisor_findings(supervisor);
    }
    supervisor_stop(supervisor);
    return findings;
}

static void run_tool(const struct sanitize *s, struct sanitize_tool *tool, const char *folder,
                     const char *patterns)
{
    char log[4096], code[8];
    const char *const wrapper[] = {
        PROGRAM, "--tool",     tool->name, "--error-exitcode", code, "--target-processes",
        "all",   "--log-file", log};
    struct supervisor_options options = s->options;
    if (!on_path(PROGRAM)) {
        skip_rest(tool, s->suite->n_cases, PROGRAM " is not on PATH");
        return;
    }
    snprintf(log, sizeof log, "%s/%%p.log", folder);
    snprintf(code, sizeof code, "%d", FOUND_ERRORS);
    options.n_providers = 0;
    options.timeout_s *= SLOWNESS;
    options.wrapper = wrapper;
    options.n_wrapper = sizeof wrapper / sizeof wrapper[0];
    options.found_code = FOUND_ERRORS;
    unsigned findings = run_cases(s, tool, &options);
    read_logs(folder, patterns, findings, tool);
}

enum gate_status sanitize_run(struct sanitize *s, struct gate_error *err)
{
    char folder[2048];
    struct buf patterns;
    buf_init(&patterns, ALLOW_MAX_BYTES);
    enum gate_status status = s->allow ? file_read(s->allow, &patterns, err) : GATE_OK;
    snprintf(folder, sizeof folder, "%s/gate-sanitize.XXXXXX", file_temporary_folder());
    if (!status && !mkdtemp(folder))
        status = gate_fail(err, GATE_IO, "cannot make a folder for logs like '%s'", folder);
    for (unsigned i = 0; i < SANITIZE_TOOLS && !status; i++) {
        s->tools[i] = (struct sanitize_tool){.name = tool_names[i]};
        run_tool(s, &s->tools[i], folder, patterns.data);
    }
    if (!status)
        rmdir(folder);
    buf_release(&patterns);
    return status;
}
