/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_comment.c: gate comment. */
#include "gate/cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/alloc.h"
#include "gate/base/utf8.h"
#include "gate/comment/comment.h"
#include "gate/report/report_run.h"

#define REPORTS_MAX 32       /* each has 2,000 bytes of a comment on GitHub */
#define EARLY_HEADING_MAX 60 /* bytes beside the message, in Markdown */

struct comment_arguments {
    struct target_options target;
    const char *db, *run, *name, *annotations;
    struct command_link link;
    double patience_s;
    bool dry_run;
};

#define ARGUMENTS struct comment_arguments

static const struct option_def options[] = {
    OPTION(TEXT, "run", "UUID|latest", run,
           "the stored run if no report is named, by the beginning of its uuid",
           .fallback = "latest"),
    DB_OPTION(db),
    OPTION(TEXT, "service", "github|gitlab", target.service, "where the merge request is",
           .fallback = "from the job's variables"),
    OPTION(TEXT, "api", "URL", target.api, "address of its API",
           .fallback = "$GITHUB_API_URL or $CI_API_V4_URL"),
    OPTION(TEXT, "project", "OWNER/NAME", target.project,
           "the repository; on GitLab also its number",
           .fallback = "$GITHUB_REPOSITORY or $CI_PROJECT_ID"),
    OPTION(TEXT, "change", "NUMBER", target.change, "the pull or merge request",
           .fallback = "from the job's event or variables, never from the report"),
    OPTION(TEXT, "name", "NAME", name, "one comment is kept for each name", .fallback = "gate"),
    LINK_OPTION(link),
    OPTION(TEXT, "annotations", "FILE", annotations,
           "write the bad cases to FILE: on GitHub as workflow commands (- is standard output), "
           "on GitLab for artifacts:reports:annotations, which needs --link"),
    OPTION(TEXT, "token-file", "FILE", target.remote.token_file, "file with the token",
           .fallback = "$GATE_COMMENT_TOKEN, else $GITHUB_TOKEN or $GITLAB_TOKEN"),
    OPTION(TEXT, "ca-file", "FILE", target.remote.ca_file,
           "certificates to trust instead of the system's", .fallback = "$GATE_CA_FILE"),
    OPTION(NUMBER, "retry-for", "SECONDS", patience_s,
           "keep trying for this time while the service does not answer", .most = 3600,
           .fallback = "60"),
    FLAG("dry-run", dry_run, "print the comment, and send nothing"),
    {0},
};

struct work {
    const struct comment_arguments *arguments;
    struct comment_target target;
    struct document documents[REPORTS_MAX];
    size_t n;
    struct report_early early[REPORTS_MAX]; /* of reports without a document */
    size_t n_early;
    char marker[COMMENT_NAME_MAX + 40];
};

/* ---- the runs ---- */

static enum gate_status read_runs(struct work *w, int n, char **paths, struct gate_error *err)
{
    RELEASED_BY(command_close_store) struct store *store = NULL;
    for (int i = 0; i < n; i++) {
        enum gate_status read = document_load(paths[i], &w->documents[w->n], err);
        w->n += !read;
        if (read && !command_read_early(paths[i], &w->early[w->n_early++]))
            return read;
    }
    if (n)
        return GATE_OK;
    TRY(store_open(w->arguments->db, STORE_READ_ONLY, &store, err));
    TRY(command_document(store, w->arguments->run, &w->documents[0], err));
    w->n = 1;
    return GATE_OK;
}

/* ---- what is written ---- */

static void write_body(const struct work *w, struct buf *out)
{
    buf_printf(out, "%s\n\n", w->marker);
    if (w->arguments->link.url[0] && w->target.change[0]) {
        buf_puts(out, "[All pushes and devices of this change](");
        report_link_change(w->arguments->link.url, w->target.change, out);
        buf_puts(out, ")\n\n");
    }
    size_t head = out->len;
    const struct report_style style = {
        .markdown_max = (COMMENT_MAX(w->target.service) - head) / (w->n + w->n_early) - 2,
        .link = w->arguments->link.url};
    for (size_t i = 0; i < w->n; i++) {
        report_write(&w->documents[i], REPORT_MARKDOWN, &style, out);
        buf_putc(out, '\n');
    }
    for (size_t i = 0; i < w->n_early; i++) {
        /* A character of a message takes up to 5 bytes of Markdown; the cut is for hostile ones. */
        char message[sizeof w->early->message];
        size_t most = (style.markdown_max - EARLY_HEADING_MAX) / 5;
        snprintf(message, most < sizeof message ? most : sizeof message, "%s", w->early[i].message);
        utf8_trim(message);
        report_write_early(REPORT_MARKDOWN, w->early[i].exit_code, message, out);
        buf_putc(out, '\n');
    }
}

static enum gate_status write_annotations(const struct work *w, struct gate_error *err)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    if (!w->arguments->annotations)
        return GATE_OK;
    if (w->target.service == COMMENT_GITLAB) {
        annotations_gitlab(w->documents, w->n, w->arguments->link.url, &text);
    } else {
        for (size_t i = 0; i < w->n; i++)
            annotations_github(&w->documents[i], &text);
        for (size_t i = 0; i < w->n_early; i++)
            annotations_github_early(w->early[i].exit_code, w->early[i].message, &text);
    }
    return command_write(w->arguments->annotations, &text, err);
}

static enum gate_status write_comment(struct work *w, int n, char **paths, struct buf *body,
                                      struct gate_error *err)
{
    const struct comment_arguments *a = w->arguments;
    char url[300] = "", *head = w->target.head;
    bool created = false;
    size_t length = strlen(a->name);
    if (!length || length > COMMENT_NAME_MAX || strspn(a->name, COMMENT_LETTERS) != length ||
        strstr(a->name, "--")) /* would end an HTML comment */
        return gate_fail(err, GATE_USAGE,
                         "--name '%.80s' is not valid: use letters, digits, '.', '_' and single "
                         "'-'",
                         a->name);
    snprintf(w->marker, sizeof w->marker, "<!-- kernel-gate: %s -->", a->name);
    if (!a->dry_run)
        TRY(comment_target_read(&a->target, &w->target, err));
    else if (a->target.service && !strcmp(a->target.service, "gitlab"))
        w->target.service = COMMENT_GITLAB;
    if (a->annotations && w->target.service == COMMENT_GITLAB && !a->link.url[0])
        return gate_fail(err, GATE_USAGE,
                         "GitLab's annotations are links: --annotations needs --link URL");
    TRY(read_runs(w, n, paths, err));
    /* A push while the run was measured, or a report that is none of this change. One of a run that
     * ended early does not know its commit, and nothing that the change would be judged by. */
    for (size_t i = 0; i < w->n && !a->dry_run; i++) {
        const char *commit = w->documents[i].git.commit;
        if (!head[0]) /* --change: the service is asked for it, before it is written */
            snprintf(head, sizeof w->target.head, "%s", commit);
        if (!commit[0] || strcmp(commit, head) != 0)
            return gate_fail(err, GATE_NO_VERDICT,
                             "the report is of commit %.12s, but the head of the change is %.12s: "
                             "nothing was written",
                             commit[0] ? commit : "unknown", head[0] ? head : "another");
    }
    write_body(w, body);
    if (body->failed)
        return gate_fail(err, GATE_IO,
                         "the summaries of the runs, even without cases, are longer than a "
                         "comment may be: name fewer reports");
    TRY(write_annotations(w, err));
    if (a->dry_run)
        return command_write(NULL, body, err);
    TRY(comment_post(&w->target, w->marker, body->data, a->patience_s, &created, url, err));
    fprintf(stderr, "gate comment: the comment on change %s of %s is %s%s%s\n", w->target.change,
            w->target.project, created ? "written" : "updated", url[0] ? ": " : "", url);
    return GATE_OK;
}

static int comment(struct command_call *call, struct gate_error *err)
{
    RELEASED_BY(free_at) struct work *w = xcalloc(1, sizeof *w);
    RELEASED_BY(buf_release) struct buf body = buf_of(2 * COMMENT_MAX(COMMENT_GITLAB));
    w->arguments = call->arguments;
    enum gate_status status = write_comment(w, call->n_operands, call->operands, &body, err);
    for (size_t i = 0; i < w->n; i++)
        document_release(&w->documents[i]);
    return status;
}

const struct command command_comment = {
    .name = "gate comment",
    .operands = "[REPORT.json]...",
    .summary = "write one comment on a pull or merge request, and keep it up to date",
    .about =
        "Writes the summary of a run as one comment on the pull request (GitHub) or merge request "
        "(GitLab) of this job, and updates it at the next call. It reads the reports (--report "
        "json=FILE of gate run), else a stored run.\n"
        "The target comes only from this job's variables, its event and the options, so the "
        "reports may come from a job that ran code of a fork. Give the token to a second job, "
        "started by workflow_run on GitHub. Before it writes, the command asks the service for the "
        "head commit, and refuses a report of another commit, so that an older job does not "
        "overwrite a newer comment.\n",
    .groups = {{options, 0}},
    .ending = "Exit codes: 0 the comment is written, 3 the merge request has a newer commit and "
              "nothing was written, 4 the server is not the intended one, 64 "
              "usage, 74 an error of a file or of the service.\n",
    .most = REPORTS_MAX,
    DEFAULTS(.db = DEFAULT_DB, .run = "latest", .name = "gate", .patience_s = 60),
    .main = comment,
};
