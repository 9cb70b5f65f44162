/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c: gate diff. */

#include <string.h>

#include "gate/baseline/baseline.h"
#include "gate/baseline/revision.h"
#include "gate/cli/run_request.h"
#include "gate/diff/diff.h"
#include "gate/document/document.h"

#define BASELINE "baseline:"

struct diff_request {
    struct run_request run; /* its recipe and its folder of baselines */
    const char *device_model, *run_file;
    int64_t architecture;
    bool all, instructions, json, markdown;
};

#define ARGUMENTS struct diff_request

static const struct option_def options[] = {
    OPTION(INTEGER, "arch", "NUMBER", architecture,
           "only kernels for this architecture, such as 90 for sm_90", .least = 1, .most = 255,
           .fallback = "all"),
    FLAG("all", all, "also list kernels with the same code"),
    FLAG("instructions", instructions, "show the changed instructions side by side"),
    FLAG("markdown", markdown, "print Markdown"),
    OPTION(TEXT, "cases", "RUN.json", run_file,
           "a JSON report of gate run on a GPU: also list its cases that launch a changed kernel"),
    FLAG("json", json, "print JSON, of all kernels"),
    BASELINES_OPTION(run.baselines),
    OPTION(TEXT, "device-model", "M", device_model,
           "the baseline of this device model, such as nvidia-h200"),
    {0},
};

struct diff_selection {
    const struct diff_request *request;
    const char *case_id;
    struct revision *out; /* NULL: is it there? */
    size_t n_found;
};

static enum gate_status take_file(void *context, const char *, const struct baseline *baseline,
                                  struct gate_error *err)
{
    struct diff_selection *w = context;
    const struct baseline_file *stored = baseline_stored(baseline);
    struct rebuild_recipe recipe = run_request_recipe(&w->request->run, false);
    struct baseline_entry entry;
    if (!baseline_find(baseline, w->case_id, stored->contract, &entry))
        return GATE_OK;
    if (++w->n_found > 1)
        return gate_fail(err, GATE_USAGE,
                         "'%.200s' has baselines of several device models; choose one with "
                         "--device-model",
                         w->case_id);
    return w->out ? revision_resolve_baseline(&entry, &recipe, w->out, err) : GATE_OK;
}

/* Without `out` it looks only whether there is such a library, and builds nothing. */
static enum gate_status resolve(const struct diff_request *r, const char *what,
                                struct revision *out, struct gate_error *err)
{
    struct rebuild_recipe recipe = run_request_recipe(&r->run, false);
    if (strncmp(what, BASELINE, strlen(BASELINE)) != 0)
        return out ? revision_resolve(what, &recipe, out, err) : revision_check(what, err);
    struct diff_selection w = {.request = r, .case_id = what + strlen(BASELINE), .out = out};
    TRY(baseline_files_each(r->run.baselines, r->device_model, take_file, &w, err));
    if (!w.n_found)
        return gate_fail(err, GATE_USAGE, "no baseline of case '%.200s' is stored in '%.300s'",
                         w.case_id, r->run.baselines);
    return GATE_OK;
}

static enum gate_status open_library(const struct diff_request *r, const char *what,
                                     struct machine_code **out, struct gate_error *err)
{
    struct revision library;
    const struct machine_kernel *kernels;
    TRY(resolve(r, what, &library, err));
    TRY(machine_code_read(library.path, out, err));
    if (!machine_code_is_read(*out))
        return gate_fail(err, GATE_USAGE,
                         "the GPU code of '%.300s' cannot be read: it is damaged, or compressed by "
                         "LZ4 (nvcc before CUDA 13, or with --compress-mode speed)",
                         what);
    if (!machine_code_kernels(*out, &kernels))
        return gate_fail(err, GATE_USAGE,
                         "'%.300s' has no machine code for a GPU: it is a host library, contains "
                         "only PTX, or is incomplete",
                         what);
    return GATE_OK;
}

/* ---- which cases a change can touch ---- */

static enum gate_status write_cases(const struct diff_request *r, const struct diff *d,
                                    struct buf *out, struct gate_error *err)
{
    RELEASED_BY(document_release) struct document run = {0};
    size_t touched = 0, unknown = 0;
    TRY(document_load(r->run_file, &run, err));
    buf_printf(out, "\n"
                    "Cases that launch a changed kernel:\n");
    for (size_t i = 0; i < run.n_cases; i++) {
        const struct document_arm *arm = document_candidate(&run.cases[i]);
        const struct document_timing *launched = arm && arm->has_timing ? &arm->timing : NULL;
        bool known = launched && launched->n_kernels, is = false;
        for (size_t k = 0; known && k < launched->n_kernels; k++)
            for (const struct diff_row *row = d->rows; row < d->rows + d->n; row++) {
                const char *name = launched->kernels[k].name;
                const struct machine_kernel *new = row->new.kernel, *old = row->old.kernel;
                is |= row->change != DIFF_SAME &&
                      ((new && !strcmp(new->name, name)) || (old && !strcmp(old->name, name)));
            }
        unknown += !known;
        touched += is;
        if (is)
            buf_printf(out, "%s%s\n", r->markdown ? "- " : "  ", run.cases[i].id);
    }
    buf_printf(out, "%zu of %zu cases", touched, run.n_cases);
    if (unknown)
        buf_printf(out, "; for %zu the run does not record the launched kernels", unknown);
    buf_putc(out, '\n');
    return GATE_OK;
}

static void free_code(struct machine_code **m)
{
    machine_code_free(*m);
}

static int diff(struct command_call *call, struct gate_error *err)
{
    const struct diff_request *r = call->arguments;
    char **names = call->operands;
    struct report_style style = command_style();
    RELEASED_BY(free_code) struct machine_code *new = NULL;
    RELEASED_BY(free_code) struct machine_code *old = NULL;
    RELEASED_BY(diff_release) struct diff d = {0};
    RELEASED_BY(buf_release) struct buf text = buf_of(COMMAND_MAX_OUTPUT);
    if (r->json && (r->instructions || r->markdown || r->run_file))
        return command_usage(&command_diff, "--json cannot be combined with --instructions, "
                                            "--cases or --markdown");
    TRY(resolve(r, names[0], NULL, err));
    TRY(resolve(r, names[1], NULL, err));
    TRY(open_library(r, names[0], &new, err));
    TRY(open_library(r, names[1], &old, err));
    TRY(diff_libraries(new, old, (unsigned)r->architecture, &d, err));
    TRY(diff_read_listings(&d, r->all, err));
    if (r->json) {
        diff_write_json(&d, &text);
    } else {
        diff_demangle(&d);
        style.markdown = r->markdown;
        diff_write(&d, r->all, &style, &text);
        diff_write_instructions(&d, r->instructions, &style, &text);
    }
    if (r->run_file)
        TRY(write_cases(r, &d, &text, err));
    return command_write(NULL, &text, err);
}

const struct command command_diff = {
    .name = "gate diff",
    .operands = "NEW OLD",
    .summary = "compare the kernels of two libraries, without a GPU",
    .about =
        "Compares the GPU code of kernel library NEW with that of OLD, kernel by kernel: "
        "registers, stack, loads and stores of local memory, static shared memory, barriers and "
        "size. NEW and OLD are files, commits of this repository (which are built if necessary), "
        "or baseline:CASE, the library of a stored baseline. Kernel names are "
        "those of the source where cu++filt or c++filt is found; --json keeps them as they are.\n"
        "\n"
        "Local memory holds spilled registers, and arrays with an index that the compiler does not "
        "know. Its bytes are per thread, with each instruction counted once, as ptxas -v counts "
        "spills. A '?' means that the file does not contain the figure. A library does not say "
        "which kernels a case launches, but the report of a run does: see --cases.\n"
        "\n"
        "If nvdisasm of the CUDA toolkit is on PATH, in $CUDA_HOME/bin or below /usr/local/cuda, "
        "the output also shows which instructions occur more or less often in a listed kernel, "
        "and what they do.\n",
    .groups = {{options, 0}, {request_build_options, offsetof(struct diff_request, run)}},
    .ending = "Exit codes: 0 the kernels were compared; 64 a library has no GPU code, or its code "
              "cannot be read.\n",
    .least = 2,
    .most = 2,
    .missing = "two libraries or commits are needed: NEW OLD",
    DEFAULTS(.run = {RUN_REQUEST_DEFAULTS}),
    .main = diff,
};
