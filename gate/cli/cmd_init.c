/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_init.c: gate init: what a repository needs to gate its kernels, as files to be committed.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/embed.h"
#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/json.h"
#include "gate/base/paths.h"
#include "gate/cli/commands.h"
#include "gate/cli/config.h"
#include "gate/run/supervisor.h"
#include "kernels/ops/op.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define OP_NAME_MAX 32
#define EXAMPLE_LIBRARY "build/libmykernels.so" /* what the example builds */

struct init {
    const char *library, *build, *suite, *baselines, *main_branch, *database, *ci;
    const char *op; /* a user's, of which files are written; NULL: none */
    bool example, force;
    const char *measures;   /* options that the commands need on this machine */
    cJSON *config;          /* the gate.json to be written; NULL: the one that is there is kept */
    bool is_guess;          /* nobody has said how the library is built */
    const char *why_branch; /* was it taken for the main branch; NULL: somebody has named it */
    char branch[200], make[1100], op_library[100], op_suite[100];
    char top[1000];    /* from here to the root of the repository: "" or "../../" */
    char inside[1000]; /* from there to here: "" or "a/b/" */
    struct gate_error *err;
};

#define ARGUMENTS struct init

/* A name that is also one of C, of files and of an op that is not built in. */
static bool read_op(void *field, const char *text)
{
    const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    *(const char **)field = text;
    return text[0] >= 'a' && !text[n] && n <= OP_NAME_MAX && !op_by_name(text);
}

static const struct option_def options[] = {
    OPTION(TEXT, "library", "FILE", library, "path of the built kernel library",
           .fallback = EXAMPLE_LIBRARY),
    OPTION(TEXT, "build", "COMMAND", build, "shell command that builds it in a fresh checkout",
           .fallback = "from CMakeLists.txt or the Makefile"),
    OPTION(TEXT, "suite", "FILE", suite, "the problems to measure", .fallback = "kernels.json"),
    OPTION(TEXT, "baselines", "DIR", baselines, "folder of the stored baselines",
           .fallback = DEFAULT_BASELINES),
    OPTION(TEXT, "main-branch", "BRANCH", main_branch, "the branch that others are merged into",
           .fallback = "from git"),
    OPTION(READ, "ci", "SYSTEM", ci, "github, gitlab, slurm or none",
           .pattern = "^(github|gitlab|slurm|none)$", .form = "github, gitlab, slurm or none",
           .fallback = "detected from .github, .gitlab-ci.yml, or the address of origin"),
    FLAG("example", example,
         "also write an example: a library for the host and one for a GPU, with CMakeLists.txt "
         "and Makefile"),
    OPTION(READ, "op", "NAME", op,
           "also write an op of your own: its file, a reference and a kernel for the host in C, "
           "and a suite, to begin with a layer norm",
           .read = read_op, .form = "a new name of letters, digits and '_'"),
    FLAG("force", force,
         "replace existing files; without it they are kept. Of gate.json only what options name "
         "changes, and the suite is replaced only with --example"),
    {0},
};

/* ---- what is asked for ---- */

static const struct {
    const char *key, *option; /* in gate.json, and on the command line */
    size_t at;
} members[] = {{"library", "library", offsetof(struct init, library)},
               {"build", "build", offsetof(struct init, build)},
               {"suite", "suite", offsetof(struct init, suite)},
               {"baselines", "baselines", offsetof(struct init, baselines)},
               {"main", "main-branch", offsetof(struct init, main_branch)},
               {"database", NULL, offsetof(struct init, database)}};

#define MEMBERS (sizeof members / sizeof members[0])

static const char **member(struct init *i, size_t k)
{
    return (const char **)((char *)i + members[k].at);
}

/* A gate.json that is there holds for the other files as well, but for what options change. What
 * somebody has put into it stays. */
static enum gate_status take_kept(struct init *i)
{
    const cJSON *config = NULL;
    TRY(config_read(&config, i->err));
    for (size_t k = 0; k < MEMBERS; k++) {
        const char *kept = json_string(config, members[k].key, NULL), **value = member(i, k);
        if (!*value || (kept && !strcmp(kept, *value))) {
            *value = kept;
            continue;
        }
        if (!i->force)
            return gate_fail(i->err, GATE_USAGE,
                             "--%s is '%.300s', but the existing %s has %s%.300s%s as '%s': change "
                             "it there, or add --force",
                             members[k].option, *value, CONFIG_FILE, kept ? "'" : "",
                             kept ? kept : "nothing", kept ? "'" : "", members[k].key);
        if (!i->config)
            i->config = cJSON_Duplicate(config, true);
        cJSON_DeleteItemFromObjectCaseSensitive(i->config, members[k].key);
        cJSON_AddStringToObject(i->config, members[k].key, *value);
    }
    if (!i->suite) /* then a run takes one that comes with the gate, and reads no file */
        i->suite = "canonical";
    return GATE_OK;
}

/* The GPU's where it can be built. Without an nvcc the host's, though the gate would take the GPU
 * that is there. */
struct example example_choose(bool has_gpu, bool has_nvcc)
{
    const char *host = "build/libmykernels.so", *cuda = "build/libmykernels_cuda.so";
    if (has_gpu && has_nvcc)
        return (struct example){cuda, ""};
    return (struct example){host, has_gpu ? " --device host" : ""};
}

static bool is_found(const char *program)
{
    char path[PATHS_MAX];
    return !toolkit_find(program, NULL, path, NULL);
}

/* The example has a Makefile, too: what the gate itself was built with will do. */
static void take_defaults(struct init *i)
{
    const struct example own = example_choose(i->example && target_has_gpu(), is_found("nvcc"));
    bool cmake = i->example ? is_found("cmake") : !access("CMakeLists.txt", F_OK);
    i->measures = i->library ? "" : own.options;
    if (i->op) {
        snprintf(i->op_library, sizeof i->op_library, "build/lib%s.so", i->op);
        snprintf(i->op_suite, sizeof i->op_suite, "%s.json", i->op);
        i->measures = target_has_gpu() ? " --device host" : "";
        i->library = i->library ? i->library : i->op_library;
        i->suite = i->suite ? i->suite : i->op_suite;
    }
    i->library = i->library ? i->library : own.library;
    i->suite = i->suite ? i->suite : "kernels.json";
    i->baselines = i->baselines ? i->baselines : DEFAULT_BASELINES;
    i->database = i->database ? i->database : DEFAULT_DB;
    if (i->build)
        return;
    i->is_guess = !i->example && !i->op;
    if (i->op)
        snprintf(i->make, sizeof i->make, "make -f %s.mk", i->op);
    else if (cmake)
        snprintf(i->make, sizeof i->make, "cmake -S . -B build && cmake --build build");
    else
        snprintf(i->make, sizeof i->make, "make %s", i->library);
    i->build = i->make;
}

static bool is_branch(const char *name)
{
    static const char *const places[] = {"heads", "remotes/origin"};
    char ref[300], found[100];
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        snprintf(ref, sizeof ref, "refs/%s/%s", places[k], name);
        if (git_line(found, sizeof found, "rev-parse", "--verify", "-q", ref, NULL))
            return true;
    }
    return false;
}

/* The current branch comes last: it may be one that will be merged. */
static void find_branch(struct init *i)
{
    static const char prefix[] = "refs/remotes/origin/";
    char found[200];
    if (git_line(found, sizeof found, "symbolic-ref", "-q", "refs/remotes/origin/HEAD", NULL) &&
        !strncmp(found, prefix, sizeof prefix - 1)) {
        i->why_branch = "origin says so";
        snprintf(i->branch, sizeof i->branch, "%s", found + sizeof prefix - 1);
    } else if (git_line(i->branch, sizeof i->branch, "config", "init.defaultBranch", NULL) &&
               is_branch(i->branch)) {
        i->why_branch = "it exists, and git's init.defaultBranch names it";
    } else if (is_branch("main") || is_branch("master")) {
        i->why_branch = "a branch of this name exists";
        snprintf(i->branch, sizeof i->branch, "%s", is_branch("main") ? "main" : "master");
    } else if (git_line(i->branch, sizeof i->branch, "symbolic-ref", "-q", "--short", "HEAD",
                        NULL)) {
        i->why_branch = "it is the current one";
    } else {
        i->why_branch = "git names no branch here";
        snprintf(i->branch, sizeof i->branch, "main");
    }
    i->main_branch = i->branch;
}

static bool is_at_top(const struct init *i, const char *name)
{
    char path[1100];
    snprintf(path, sizeof path, "%s%s", i->top, name);
    return !access(path, F_OK);
}

static const char *find_ci(const struct init *i)
{
    char url[1000] = "";
    if (is_at_top(i, ".github"))
        return "github";
    if (is_at_top(i, ".gitlab-ci.yml"))
        return "gitlab";
    if (git_line(url, sizeof url, "remote", "get-url", "origin", NULL) && strstr(url, "github"))
        return "github";
    return strstr(url, "gitlab") ? "gitlab" : "none";
}

/* ---- files ---- */

static enum gate_status write_file(const struct init *i, const char *path, const struct buf *text)
{
    bool there = !access(path, F_OK);
    char folder[1024];
    const char *slash = strrchr(path, '/');
    if (there && !i->force) {
        printf("kept      %s, which exists (--force replaces it)\n", path);
        return GATE_OK;
    }
    if (slash) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        TRY(file_make_folders(folder, 0777, i->err));
    }
    TRY(command_write(path, text, i->err));
    printf("%s  %s\n", there ? "replaced" : "wrote   ", path);
    return GATE_OK;
}

static const char *embedded(const char *name)
{
    for (size_t k = 0; k < embedded_init_count; k++)
        if (!strcmp(embedded_init[k].name, name))
            return (const char *)embedded_init[k].data;
    assert(!"a file of the build");
    return "";
}

#define OP_MARK "layernorm" /* in the files of examples/layernorm */

/* Copies a text; @BUILD@, @LIBRARY@, @MAIN@ and @BASELINES@ become what gate.json says, and @IN@
 * what stands before a path in its folder; OP_MARK is the op's name. */
static enum gate_status write_embedded(const struct init *i, const char *name, const char *path)
{
    const struct {
        const char *mark, *value;
    } marks[] = {{"@BUILD@", i->build},      {"@LIBRARY@", i->library},
                 {"@MAIN@", i->main_branch}, {"@BASELINES@", i->baselines},
                 {"@IN@", i->inside},        {OP_MARK, i->op ? i->op : OP_MARK}};
    RELEASED_BY(buf_release) struct buf text = buf_of(FILE_MAX_BYTES);
    for (const char *at = embedded(name); *at;) {
        size_t k = 0, n = sizeof marks / sizeof marks[0];
        while (k < n && strncmp(at, marks[k].mark, strlen(marks[k].mark)) != 0)
            k++;
        if (k == n) {
            buf_putc(&text, *at++);
            continue;
        }
        at += strlen(marks[k].mark);
        /* The lines of a value stand as far to the right as its mark. */
        const char *begin = text.data + text.len;
        while (begin > text.data && begin[-1] != '\n')
            begin--;
        const int indent = (int)strspn(begin, " ");
        for (const char *value = marks[k].value; *value; value++)
            if (*value == '\n')
                buf_printf(&text, "\n%*s", indent, "");
            else
                buf_putc(&text, *value);
    }
    return write_file(i, path, &text);
}

/* CI systems read their files at the root of the repository, which may be above. */
static enum gate_status write_at_top(const struct init *i, const char *name, const char *path)
{
    char above[1100];
    snprintf(above, sizeof above, "%s%s", i->top, path);
    return write_embedded(i, name, above);
}

static bool has_line(const struct buf *text, const char *line)
{
    size_t n = strlen(line);
    for (const char *at = text->data; at && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\r\n") == n && !strncmp(at, line, n))
            return true;
    return false;
}

/* Adds the lines that it lacks: one that is there is somebody's own, with or without --force. */
static enum gate_status write_ignored(const struct init *i)
{
    RELEASED_BY(buf_release) struct buf text = buf_of(FILE_MAX_BYTES);
    size_t n_added = 0;
    bool there = !access(".gitignore", F_OK);
    if (there)
        TRY(file_read(".gitignore", &text, i->err));
    if (text.len > 0 && text.data[text.len - 1] != '\n')
        buf_putc(&text, '\n');
    for (const char *at = embedded(".gitignore"); *at; at += strspn(at, "\n")) {
        char line[1100];
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        if (!strcmp(line, DEFAULT_DB "*"))
            snprintf(line, sizeof line, "%s*", i->database);
        if (!strcmp(line, "build/") && strncmp(i->library, "build/", 6) != 0 &&
            !strchr("./", i->library[0]))
            snprintf(line, sizeof line, "/%s", i->library);
        if (!has_line(&text, line)) {
            buf_printf(&text, "%s\n", line);
            n_added++;
        }
        at += n;
    }
    if (!n_added)
        return GATE_OK;
    TRY(command_write(".gitignore", &text, i->err));
    printf("%s .gitignore\n", there ? "added to " : "wrote    ");
    return GATE_OK;
}

/* Is the pipeline that is there the one that an earlier call wrote for this folder? */
static bool is_own_pipeline(const struct init *i)
{
    char path[1100], line[1100];
    RELEASED_BY(buf_release) struct buf text = buf_of(FILE_MAX_BYTES);
    snprintf(path, sizeof path, "%s.gitlab-ci.yml", i->top);
    snprintf(line, sizeof line, "    - cd \"./%s\" # the folder of gate.json", i->inside);
    return !file_read(path, &text, NULL) && has_line(&text, line);
}

static enum gate_status write_ci(const struct init *i)
{
    if (!strcmp(i->ci, "github")) {
        TRY(write_at_top(i, "github-actions.yml", ".github/workflows/kernel-gate.yml"));
        return write_at_top(i, "github-comment.yml", ".github/workflows/kernel-gate-comment.yml");
    }
    if (!strcmp(i->ci, "slurm"))
        return write_embedded(i, "slurm.sh", "kernel-gate.slurm.sh");
    if (strcmp(i->ci, "gitlab") != 0) {
        printf("no CI file: --ci github, gitlab or slurm writes one\n");
        return GATE_OK;
    }
    if (!is_at_top(i, ".gitlab-ci.yml") || is_own_pipeline(i))
        return write_at_top(i, "gitlab-ci.yml", ".gitlab-ci.yml");
    TRY(write_at_top(i, "gitlab-ci.yml", "kernel-gate.gitlab-ci.yml"));
    printf("to do     add this line to .gitlab-ci.yml: "
           "include: [{local: kernel-gate.gitlab-ci.yml}]\n");
    return GATE_OK;
}

/* The files of a first kernel. */
static enum gate_status write_kernel(const struct init *i)
{
    static const char *const names[] = {"mykernels.c", "mykernels.cu", "CMakeLists.txt",
                                        "Makefile"};
    static const char *const endings[] = {".op.json", ".c", "_reference.c", ".mk"};
    char name[100], path[100];
    for (size_t k = 0; k < sizeof names / sizeof names[0] && i->example; k++)
        TRY(write_embedded(i, names[k], names[k]));
    for (size_t k = 0; k < sizeof endings / sizeof endings[0] && i->op; k++) {
        snprintf(name, sizeof name, OP_MARK "%s", endings[k]);
        snprintf(path, sizeof path, "%s%s", i->op, endings[k]);
        TRY(write_embedded(i, name, path));
    }
    TRY(write_embedded(i, "kernel.h", "kernel.h"));
    return write_embedded(i, "problem.h", "problem.h");
}

/* ---- the command ---- */

static void print_next(const struct init *i)
{
    const char *places =
        strcmp(i->ci, "none") != 0 ? CONFIG_FILE " and in the CI file" : CONFIG_FILE;
    if (i->why_branch)
        printf("guessed   that '%s' is the main branch, because %s: if not, change it in %s\n",
               i->main_branch, i->why_branch, places);
    if (i->op && strcmp(i->op, OP_MARK) != 0)
        printf("example   the files of '%s' compute a layer norm: write your op in its place\n",
               i->op);
    if (i->is_guess)
        printf("guessed   that '%s' builds the library %s: if not, change both in %s%s\n", i->build,
               i->library, places,
               strcmp(i->library, EXAMPLE_LIBRARY)
                   ? ""
                   : ", or begin with the working library of `gate init --example`");
    printf("\n"
           "Next, on the machine that measures:\n"
           "  git add -A && git commit     # a baseline names its commit\n"
           "  %s\n"
           "  gate verify%-17s # are the results right?\n"
           "  gate run --accept-new%-7s # stores the first baselines\n"
           "  git add %s && git commit\n"
           "Every later 'gate run' compares with them. If the build has nvcc's -lineinfo, which\n"
           "changes no code, the reports of a slowdown name source lines.\n",
           i->build, i->measures, i->measures, i->baselines);
}

static enum gate_status write_all(struct init *i)
{
    bool is_there = !access(CONFIG_FILE, F_OK);
    if (is_there)
        TRY(take_kept(i));
    take_defaults(i);
    if (!git_line(i->top, sizeof i->top, "rev-parse", "--show-cdup", NULL) ||
        !git_line(i->inside, sizeof i->inside, "rev-parse", "--show-prefix", NULL))
        i->top[0] = i->inside[0] = '\0';
    if (!i->main_branch)
        find_branch(i);
    if (!i->ci)
        i->ci = find_ci(i);
    RELEASED_BY(buf_release) struct buf text = buf_of(FILE_MAX_BYTES);
    if (!is_there) {
        i->config = cJSON_CreateObject();
        cJSON_AddStringToObject(i->config, "schema", "gate-config/1");
        for (size_t k = 0; k < MEMBERS; k++)
            cJSON_AddStringToObject(i->config, members[k].key, *member(i, k));
    }
    if (i->config) {
        json_write(i->config, true, &text);
        TRY(write_file(i, CONFIG_FILE, &text));
    } else {
        printf("kept      " CONFIG_FILE ", which exists\n");
    }
    if (paths_is_suite_file(i->suite)) {
        /* A suite is work of its owner, which nobody means by the --force that renews a job. */
        if (!(i->force && i->example) && !access(i->suite, F_OK))
            printf("kept      %s, which exists (--example --force replaces it)\n", i->suite);
        else
            TRY(write_embedded(i, i->op ? OP_MARK ".json" : "kernels.json", i->suite));
    }
    TRY(write_ignored(i));
    if (i->example || i->op)
        TRY(write_kernel(i));
    return write_ci(i);
}

static int init(struct command_call *call, struct gate_error *err)
{
    struct init *i = call->arguments;
    i->err = err;
    if (i->op && i->example)
        return command_usage(&command_init, "--op and --example both write a first kernel: take "
                                            "one of them");
    enum gate_status status = write_all(i);
    cJSON_Delete(i->config);
    if (!status)
        print_next(i);
    return status;
}

const struct command command_init = {
    .name = "gate init",
    .summary = "write gate.json, a suite and a CI job into this repository",
    .about = "Writes gate.json, so that commands need no options in this repository; a suite of a "
             "few problems, to be replaced by your own; and the job for the detected CI system. It "
             "prints the name of each file that it writes or keeps. If gate.json exists and is "
             "kept, the other files follow it.",
    .groups = {{options, 0}},
    .bytes = sizeof(struct init),
    .main = init,
};
