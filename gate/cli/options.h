/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h: a program, its commands and what they take, in tables: they are read by them, and
 * --help, completion and manual are printed from them.
 *
 * An option's value comes from the command line, else from its environment variable, else from its
 * key in the repository's gate.json (config.h), else it is what the command had in its arguments.
 */
#ifndef GATE_CLI_OPTIONS_H
#define GATE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "gate/base/error.h"

enum option_type {
    OPTION_FLAG,    /* bool: no value */
    OPTION_TEXT,    /* const char *: any text but an empty one */
    OPTION_LIST,    /* struct option_list: the option may be repeated */
    OPTION_NUMBER,  /* double, from least to most */
    OPTION_INTEGER, /* int64_t, from least to most */
    OPTION_PERCENT, /* double: "3%" is 0.03 */
    OPTION_SEED,    /* uint64_t, in hex; where none is given, a random one */
    OPTION_READ,    /* what read() makes of it; else const char *: a text of the pattern */
};

#define OPTION_LIST_MAX 7

struct option_list {
    const char *text[OPTION_LIST_MAX];
    size_t n;
    bool none; /* an empty list in gate.json: not even what the default is */
};

struct option_def {
    const char *name;
    const char *value; /* what its value is called, "FILE"; NULL: it takes none */
    const char *help;
    enum option_type type;
    size_t at; /* offset in the arguments that its group names */
    double least, most;
    const char *form; /* of OPTION_READ: how a right value looks, "16 hex digits at most" */
    bool (*read)(void *field, const char *text);
    const char *pattern;  /* an extended regular expression */
    const char *variable; /* of environment.c; NULL: none */
    const char *key;      /* in gate.json; NULL: none */
    bool is_path;         /* in gate.json it is relative to that file's folder, if it is a path */
    const char *fallback; /* what --help and --print-config call the default; NULL: none */
};

/*
 * Entries of a table, whose fields are those of the struct ARGUMENTS; what has no place of its own
 * here follows the help: OPTION(TEXT, "db", "FILE", db, "the history", .variable = "GATE_DB")
 */
/* clang-format off */
#define OPTION(type_, name_, value_, field, ...)                                              \
    {.name = name_, .value = value_, .type = OPTION_##type_,                                  \
     .at = offsetof(ARGUMENTS, field), .help = __VA_ARGS__}
#define FLAG(name_, field, ...)                                                               \
    {.name = name_, .type = OPTION_FLAG, .at = offsetof(ARGUMENTS, field), .help = __VA_ARGS__}
/* clang-format on */

/* Options that several commands share, or those of one; `base` is the offset of their arguments in
 * the command's. The table ends with a NULL name. */
struct option_group {
    const struct option_def *options;
    size_t base;
};

#define OPTION_GROUPS_MAX 8
#define OPTIONS_MAX 40

struct command_call;

struct command {
    const char *name;     /* as it is called: "gate history" */
    const char *operands; /* one line a form: "CASE" or "show\naccept CASE"; NULL: none */
    int least, most;      /* operands */
    const char *missing;  /* what is said of fewer */
    const char *summary;  /* in the list of commands; NULL: it is not listed */
    const char *about;    /* paragraphs; a line is wrapped, under its second column if it has one */
    struct option_group groups[OPTION_GROUPS_MAX];
    const char *ending;   /* what --help says last: exit codes; NULL: nothing */
    size_t bytes;         /* of its arguments */
    const void *defaults; /* which these are at first */
    /* The exit code. Where it is that of *err, the message is printed. */
    int (*main)(struct command_call *call, struct gate_error *err);
    /* Called when the options or operands are refused; NULL: there is nothing to do. */
    void (*refused)(const struct command_call *call, int exit_code);
};

/* Of struct command, whose arguments are ARGUMENTS: the defaults of its fields. */
#define DEFAULTS(...)                                                                              \
    .bytes = sizeof(ARGUMENTS), .defaults = &(const ARGUMENTS)                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- a call ---- */

enum option_source { OPTION_DEFAULT, OPTION_CONFIG, OPTION_ENVIRONMENT, OPTION_COMMAND_LINE };

/* Where each option of a command came from. */
struct options_seen {
    size_t n;
    struct option_seen {
        const struct option_def *option;
        enum option_source source;
        const char *text; /* of the last value; NULL: none */
        void *field;
    } seen[OPTIONS_MAX];
};

struct command_call {
    const struct command *command;
    void *arguments;
    char **operands; /* NULL ends them */
    int n_operands;
    int argc;
    char **argv;
    struct options_seen seen;
};

/* Reads the options, and does what the command does; the exit code. */
int command_call(const struct command *c, int argc, char **argv);

/* Was it given on the command line? Its name must be one of the command's. */
bool options_given(const struct options_seen *seen, const char *name);

/*
 * The options of the command line as words for a program that takes them too: those that `list` has
 * (NULL ends it), or, where it is of `own` ones, all others. Returns how many; words beyond `max`
 * are left out. Each name lies in `names`.
 */
#define OPTION_WORD_MAX 48
size_t options_repeat(const struct options_seen *seen, const char *const *list, bool own,
                      char names[OPTIONS_MAX][OPTION_WORD_MAX], const char **words, size_t max);

/* Each option with its value and where that came from, on standard output; the exit code. */
int options_print(const struct options_seen *seen);

/* "NAME: MESSAGE" on standard error, safe for a terminal. Each returns the exit code. */
int command_usage(const struct command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int command_failed(const struct command *c, const struct gate_error *err);

/* The last MESSAGE of these two; "": none. */
const char *command_last_error(void);

/* The same of what goes on. */
void command_note(const struct command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- a program ---- */

struct program {
    const char *name, *summary; /* "gate", "regression gate for GPU kernels" */
    const char *about;          /* for the manual, in roff */
    /* Ends with NULL. The last may have the program's own name: what is done without another's. */
    const struct command *const *commands;
    bool reads_environment;   /* the variables of environment.c */
    const char *exit_codes;   /* for the manual */
    const char *const *files; /* the same, a name and what it is by turns; NULL ends them */
    const char *see_also;
};

/* The exit code. Besides its commands a program knows --version, and `generate man|bash`, for the
 * installation. */
int program_main(const struct program *p, int argc, char **argv);

#endif
