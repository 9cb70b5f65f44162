/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: a program of commands, with its manual page and its completion. */
#include "gate/cli/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "gate/base/paths.h"
#include "version.h"

/* A command's name without the program's; "": it is the program's own. */
static const char *word_of(const struct program *p, const struct command *c)
{
    const char *rest = c->name + strlen(p->name);
    return rest + (*rest == ' ');
}

/* Calls `put` for each option of a command, --help not counted. */
static void each_option(const char *word, const struct command *c,
                        void (*put)(const char *word, const struct option_def *o))
{
    for (const struct option_group *g = c->groups; g < c->groups + OPTION_GROUPS_MAX; g++)
        for (const struct option_def *o = g->options; o && o->name; o++)
            put(word, o);
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

static void put_man_option(const char *, const struct option_def *o)
{
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

/* A line for each way to call it. */
static void put_man_forms(const struct command *c)
{
    const char *form = c->operands ? c->operands : "";
    for (bool first = true; first || *form; first = false) {
        char line[300];
        size_t n = strcspn(form, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, form);
        printf("%s\\fB", first ? "" : ".br\n");
        put_roff(c->name);
        fputs("\\fR ", stdout);
        put_roff(line);
        puts(n ? " [OPTION]..." : "[OPTION]...");
        form += n + (form[n] == '\n');
    }
}

static void put_man(const struct program *p)
{
    const struct command *const *c = p->commands;
    printf(".TH %s 1 \"\" \"%s " GATE_VERSION "\" \"Kernel Gate\"\n.SH NAME\n%s \\- %s\n"
           ".SH SYNOPSIS\n",
           p->name, p->name, p->name, p->summary);
    while (*c && *word_of(p, *c))
        c++;
    if (*c)
        put_man_forms(*c);
    else
        printf("\\fB%s\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n", p->name);
    printf(".SH DESCRIPTION\n%s\nEach command has \\fB\\-\\-help\\fR.\n.SH COMMANDS\n", p->about);
    for (c = p->commands; *c; c++) {
        printf(".SS ");
        put_roff((*c)->name);
        putchar('\n');
        put_man_forms(*c);
        put_man_text((*c)->about);
        each_option("", *c, put_man_option);
        if ((*c)->ending)
            put_man_text((*c)->ending);
    }
    if (p->reads_environment)
        puts(".SH ENVIRONMENT");
    for (const struct environment_variable *v = environment_variables;
         p->reads_environment && v->name; v++) {
        printf(".TP\n.B %s\n", v->name);
        put_roff(v->what);
        putchar('\n');
    }
    printf(".SH EXIT STATUS\n%s\n.SH FILES\n", p->exit_codes);
    for (const char *const *f = p->files; *f; f += 2) {
        printf(".TP\n.I %s\n", f[0]);
        put_roff(f[1]);
        putchar('\n');
    }
    printf(".SH SEE ALSO\n.BR %s (1)\n", p->see_also);
}

/* ---- bash ---- */

static void put_bash_name(const char *, const struct option_def *o)
{
    printf(" --%s", o->name);
}

/* The words that a value may be: of "auto|host|cuda:N" they are auto, host and cuda:0. */
static void put_bash_values(const char *word, const struct option_def *o)
{
    if (!o->value || !strchr(o->value, '|'))
        return;
    printf("        %s:--%s) options='", *word ? word : "*", o->name);
    for (const char *value = o->value; *value;) {
        size_t n = strcspn(value, "|");
        bool numbered = n && value[n - 1] == 'N';
        if (islower((unsigned char)*value))
            printf("%.*s%s ", (int)(n - numbered), value, numbered ? "0" : "");
        value += n + (value[n] == '|');
    }
    puts("' ;;");
}

static void put_bash(const struct program *p)
{
    const struct command *const *c;
    printf("# bash completion for %s\n_%s() {\n    local options=''\n    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        options='",
           p->name, p->name);
    for (c = p->commands; *c; c++)
        if (*word_of(p, *c))
            printf("%s ", word_of(p, *c));
        else
            each_option("", *c, put_bash_name);
    puts(" --help --version'\n    else\n        case ${COMP_WORDS[1]} in");
    for (c = p->commands; *c; c++) {
        printf("        %s) options='--help", *word_of(p, *c) ? word_of(p, *c) : "*");
        each_option("", *c, put_bash_name);
        puts("' ;;");
    }
    puts("        esac\n        [[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || options=''\n"
         "        case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD - 1]} in");
    for (c = p->commands; *c; c++)
        each_option(word_of(p, *c), *c, put_bash_values);
    printf("        esac\n    fi\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- "
           "\"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
           "complete -o default -F _%s %s\n",
           p->name, p->name);
}

/* ---- the program ---- */

static int dispatch(const struct program *p, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        printf("%s " GATE_VERSION "\n", p->name);
        return GATE_OK;
    }
    if (!strcmp(word, "generate") && argc == 3 && !strcmp(argv[2], "man")) {
        put_man(p);
        return GATE_OK;
    }
    if (!strcmp(word, "generate") && argc == 3 && !strcmp(argv[2], "bash")) {
        put_bash(p);
        return GATE_OK;
    }
    for (const struct command *const *c = p->commands; *c; c++)
        if (!*word_of(p, *c))
            return command_call(*c, argc, argv);
        else if (!strcmp(word, word_of(p, *c)))
            return command_call(*c, argc - 1, argv + 1);
    bool help = !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
    FILE *to = help ? stdout : stderr;
    if (*word && !help) {
        fprintf(to, "%s: unknown command '%s'; see '%s --help'\n", p->name, word, p->name);
        return GATE_USAGE;
    }
    fprintf(to, "Usage: %s COMMAND [OPTION]...\n\n%c%s.\n\n", p->name, toupper(p->summary[0]),
            p->summary + 1);
    for (const struct command *const *c = p->commands; *c; c++)
        fprintf(to, "  %-12s %s\n", word_of(p, *c), (*c)->summary);
    fprintf(to,
            "\n'%s COMMAND --help' describes a command, '%s --version' prints the version, and\n"
            "'%s doctor' lists the environment variables. gate.json in a repository sets "
            "defaults.\n",
            p->name, p->name, p->name);
    return help ? GATE_OK : GATE_USAGE;
}

/* What was printed into a full disk or a closed pipe was not printed. */
int program_main(const struct program *p, int argc, char **argv)
{
    int code = dispatch(p, argc, argv);
    bool lost = fflush(stdout) || ferror(stdout);
    return lost && !code ? GATE_IO : code;
}
