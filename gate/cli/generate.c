/* SPDX-License-Identifier: Apache-2.0 */

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/environment.h"
#include "gate/cli/commands.h"
#include "version.h"

/* Calls `put` for each option of a command, --help not counted. */
static void each_option(const struct command *c,
                        void (*put)(const struct command *c, const struct option_def *o))
{
    for (const struct option_group *g = c->groups; g < c->groups + OPTION_GROUPS_MAX; g++)
        for (const struct option_def *o = g->options; o && o->name; o++)
            put(c, o);
}

/* ---- the manual page ---- */

/* Text in which nothing is a request of roff. */
static void put_roff(const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static void put_man_option(const struct command *c, const struct option_def *o)
{
    (void)c;
    fputs(".TP\n.B ", stdout);
    put_roff("--");
    put_roff(o->name);
    if (o->value) {
        fputs(" \\fI", stdout);
        put_roff(o->value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    put_roff(o->help);
    if (o->variable || o->fallback)
        fputs(" (default: ", stdout);
    if (o->variable)
        printf("$%s%s", o->variable, o->fallback ? ", else " : "");
    if (o->fallback)
        put_roff(o->fallback);
    puts(o->variable || o->fallback ? ")" : "");
}

/* Each line of the text is a paragraph; one with two columns is a row of a list. */
static void put_man_text(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char line[2048];
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        puts(line[0] == ' ' ? ".br" : ".PP");
        put_roff(line + strspn(line, " "));
        putchar('\n');
        text += n + (text[n] == '\n');
    }
}

static void put_man_command(const struct command *c)
{
    printf(".SS gate ");
    put_roff(c->name);
    putchar('\n');
    const char *form = c->operands ? c->operands : "";
    for (bool first = true; first || *form; first = false) {
        char line[300];
        size_t n = strcspn(form, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, form);
        printf("%s\\fBgate ", first ? "" : ".br\n");
        put_roff(c->name);
        fputs("\\fR ", stdout);
        put_roff(line);
        puts(n ? " [OPTION]..." : "[OPTION]...");
        form += n + (form[n] == '\n');
    }
    put_man_text(c->about);
    each_option(c, put_man_option);
    if (c->ending)
        put_man_text(c->ending);
}

/* A name and what it is, by turns. */
static const char *const files[] = {
    "gate.json",
    "the settings of a repository, in the folder where gate is started",
    "baselines/",
    "the stored baselines, a file for each device model, kept in the repository",
    "gate.db",
    "the history of runs, a SQLite database",
    "~/.cache/kernel\\-gate",
    "the libraries of baselines and runs; $GATE_CACHE names another folder",
    NULL,
};

static void put_man(void)
{
    puts(".TH GATE 1 \"\" \"gate " GATE_VERSION "\" \"Kernel Gate\"\n.SH NAME\n"
         "gate \\- regression gate for GPU kernels\n.SH SYNOPSIS\n.B gate\n"
         "\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n"
         "Verifies and measures the kernels of a library, compares them with stored baselines, and "
         "passes or fails.\nEach command has \\fB\\-\\-help\\fR. The file gate.json in a "
         "repository holds defaults.\n.SH COMMANDS");
    for (const struct command *const *c = commands; *c; c++)
        put_man_command(*c);
    puts(".SH ENVIRONMENT");
    for (const struct environment_variable *v = environment_variables; v->name; v++) {
        printf(".TP\n.B %s\n", v->name);
        put_roff(v->what);
        putchar('\n');
    }
    puts(".SH EXIT STATUS\n0 pass, 1 regression, 2 wrong result, crash, hang, or a library that "
         "cannot be loaded, 3 no verdict or incomplete, 4 environment refused, 64 usage, 70 "
         "internal, 74 input or output.");
    puts(".SH FILES");
    for (const char *const *f = files; *f; f += 2) {
        printf(".TP\n.I %s\n", f[0]);
        put_roff(f[1]);
        putchar('\n');
    }
    puts(".SH SEE ALSO\n.BR gate\\-server (1)");
}

/* ---- bash ---- */

static void put_bash_name(const struct command *c, const struct option_def *o)
{
    (void)c;
    printf(" --%s", o->name);
}

/* The words that a value may be: of "auto|host|cuda:N" they are auto, host and cuda:0. */
static void put_bash_values(const struct command *c, const struct option_def *o)
{
    if (!o->value || !strchr(o->value, '|'))
        return;
    printf("        %s:--%s) options='", c->name, o->name);
    for (const char *word = o->value; *word;) {
        size_t n = strcspn(word, "|");
        bool numbered = n && word[n - 1] == 'N';
        if (islower((unsigned char)*word))
            printf("%.*s%s ", (int)(n - numbered), word, numbered ? "0" : "");
        word += n + (word[n] == '|');
    }
    puts("' ;;");
}

static void put_bash(void)
{
    puts("# bash completion for gate\n_gate() {\n    local options=''\n    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        options='", stdout);
    for (const struct command *const *c = commands; *c; c++)
        printf("%s ", (*c)->name);
    puts("--help --version'\n    else\n        case ${COMP_WORDS[1]} in");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s) options='--help", (*c)->name);
        each_option(*c, put_bash_name);
        puts("' ;;");
    }
    puts("        esac\n        [[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || options=''\n"
         "        case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD - 1]} in");
    for (const struct command *const *c = commands; *c; c++)
        each_option(*c, put_bash_values);
    puts("        esac\n    fi\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- "
         "\"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
         "complete -o default -F _gate gate");
}

int generate(int argc, char **argv)
{
    const char *kind = argc == 2 ? argv[1] : "";
    if (!strcmp(kind, "man")) {
        put_man();
        return GATE_OK;
    }
    if (!strcmp(kind, "bash")) {
        put_bash();
        return GATE_OK;
    }
    fputs("gate generate: expected man or bash\n", stderr);
    return GATE_USAGE;
}
