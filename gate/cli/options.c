/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/json.h"
#include "gate/base/paths.h"
#include "gate/base/term.h"
#include "gate/base/utf8.h"
#include "gate/cli/config.h"
#include "gate/report/report.h"

#define HELP_COLUMN 26
#define HELP_WIDTH 90

static const struct option_def help_option = {
    .name = "help", .help = "this text", .type = OPTION_FLAG};

/* ---- messages ---- */

static void complain(const struct command *c, const char *message)
{
    RELEASED_BY(buf_release) struct buf line = buf_of(16 * 1024);
    term_puts(message, &line);
    fprintf(stderr, "%s: %s\n", c->name, line.data);
}

/* Of a command that ends: for the reports that it leaves. */
static char last_error[1024];

const char *command_last_error(void)
{
    return last_error;
}

int command_usage(const struct command *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof(last_error), format, args);
    va_end(args);
    complain(c, last_error);
    fprintf(stderr, "see '%s --help'\n", c->name);
    return GATE_USAGE;
}

int command_failed(const struct command *c, const struct gate_error *err)
{
    snprintf(last_error, sizeof(last_error), "%s", err->message);
    complain(c, err->message);
    return err->status;
}

void command_note(const struct command *c, const char *format, ...)
{
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    complain(c, message);
}

/* ---- values ---- */

static bool take_value(const struct option_def *o, const char *text, void *field)
{
    struct option_list *list = field;
    double number;
    char *end;
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case OPTION_TEXT:
        *(const char **)field = text;
        return *text != '\0';
    case OPTION_LIST:
        if (!*text || list->n == OPTION_LIST_MAX)
            return false;
        list->text[list->n++] = text;
        return true;
    case OPTION_NUMBER:
        *(double *)field = number = strtod(text, &end);
        return end != text && !*end && number >= o->least && number <= o->most;
    case OPTION_INTEGER:
        errno = 0;
        *(int64_t *)field = strtoll(text, &end, 10);
        number = (double)*(int64_t *)field;
        return !errno && end != text && !*end && number >= o->least && number <= o->most;
    case OPTION_PERCENT:
        number = strtod(text, &end);
        *(double *)field = number / 100;
        return end != text && strspn(text, "0123456789.") == (size_t)(end - text) &&
               !strcmp(end + strspn(end, " "), "%") && number > 0 && number <= 100;
    case OPTION_SEED:
        errno = 0;
        *(uint64_t *)field = strtoull(text, &end, 16);
        return end != text && !*end && !errno && *text != '-' && strlen(text) <= 16;
    case OPTION_READ:
        if (o->read)
            return o->read(field, text);
        *(const char **)field = text;
        return text_matches(o->pattern, text, NULL, 0);
    }
    return false;
}

/* Takes a value of a source; those that a list has from another one go. */
static bool set(const struct command *c, struct option_seen *s, enum option_source source,
                const char *from, const char *text)
{
    const struct option_def *o = s->option;
    char form[200];
    if (o->type == OPTION_LIST && s->source != source)
        *(struct option_list *)s->field = (struct option_list){0};
    s->source = source;
    s->text = text;
    if (take_value(o, text, s->field))
        return true;
    if (o->type == OPTION_LIST)
        snprintf(form, sizeof form, "%s, at most %d times", o->value, OPTION_LIST_MAX);
    else if (o->type == OPTION_NUMBER || o->type == OPTION_INTEGER)
        snprintf(form, sizeof form, "%s from %.10g to %.10g",
                 o->type == OPTION_INTEGER ? "an integer" : "a number", o->least, o->most);
    else if (o->type == OPTION_PERCENT)
        snprintf(form, sizeof form, "a percentage up to 100%%, such as 3%%");
    else if (o->type == OPTION_SEED)
        snprintf(form, sizeof form, "1 to 16 hex digits");
    else if (o->type == OPTION_READ)
        snprintf(form, sizeof form, "%s", o->form ? o->form : o->value);
    else
        snprintf(form, sizeof form, "%s, which is not empty", o->value ? o->value : "nothing");
    command_usage(c, "%s is '%s', expected %s", from, text, form);
    return false;
}

/* ---- sources ---- */

static int command_help(const struct command *c);

static bool set_from_config(const struct command *c, struct option_seen *s, const cJSON *value)
{
    char from[300];
    const struct option_def *o = s->option;
    const char *text = cJSON_GetStringValue(value);
    if (!text)
        return true;
    if (o->is_path && (strcmp(o->key, "suite") != 0 || paths_is_suite_file(text)))
        text = config_path(text);
    snprintf(from, sizeof from, "'%s' of %s%s", o->key, config_folder(), CONFIG_FILE);
    return set(c, s, OPTION_CONFIG, from, text);
}

static bool read_config(const struct command *c, struct options_seen *seen, int *exit_code)
{
    const cJSON *config = NULL, *item;
    struct gate_error err;
    bool wanted = false, good = true;
    for (size_t i = 0; i < seen->n; i++)
        wanted |= seen->seen[i].option->key != NULL;
    if (wanted && config_read(&config, &err)) {
        *exit_code = command_failed(c, &err);
        return false;
    }
    for (size_t i = 0; config && i < seen->n && good; i++) {
        struct option_seen *s = &seen->seen[i];
        const cJSON *value = s->option->key ? json_member(config, s->option->key) : NULL;
        good = set_from_config(c, s, value);
        const cJSON *list = cJSON_IsArray(value) ? value : NULL;
        if (list && !cJSON_GetArraySize(list)) {
            *(struct option_list *)s->field = (struct option_list){.none = true};
            s->source = OPTION_CONFIG;
        }
        cJSON_ArrayForEach (item, list)
            good = good && set_from_config(c, s, item);
    }
    return good;
}

static bool read_command_line(const struct command *c, struct options_seen *seen, int argc,
                              char **argv, int *exit_code)
{
    struct option table[OPTIONS_MAX + 2] = {{0}};
    char from[80];
    for (size_t i = 0; i < seen->n; i++) {
        const struct option_def *o = seen->seen[i].option;
        table[i] = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                                   (int)i + 256};
    }
    table[seen->n] = (struct option){"help", no_argument, NULL, 'h'};
    opterr = 0;
    optind = 0; /* glibc: begin anew */
    for (int found; (found = getopt_long(argc, argv, ":h", table, NULL)) != -1;) {
        *exit_code = GATE_USAGE;
        if (found == 'h') {
            *exit_code = command_help(c);
            return false;
        }
        if (found == ':' || found == '?') {
            command_usage(
                c, found == ':' ? "option '%s' needs a value" : "unknown or unexpected option '%s'",
                argv[optind - 1]);
            return false;
        }
        struct option_seen *s = &seen->seen[found - 256];
        snprintf(from, sizeof from, "--%s", s->option->name);
        if (!set(c, s, OPTION_COMMAND_LINE, from, optarg ? optarg : "yes"))
            return false;
    }
    return true;
}

static void list_options(const struct command *c, void *arguments, struct options_seen *seen)
{
    for (const struct option_group *g = c->groups; g < c->groups + OPTION_GROUPS_MAX; g++)
        for (const struct option_def *o = g->options; o && o->name; o++) {
            void *field = arguments ? (char *)arguments + g->base + o->at : NULL;
            assert(seen->n < OPTIONS_MAX);
            seen->seen[seen->n++] = (struct option_seen){.option = o, .field = field};
            while (field && o->type == OPTION_SEED && getrandom(field, sizeof(uint64_t), 0) < 0)
                continue;
        }
}

/* True: the command goes on. False: it ends with *exit_code, after its help or a complaint. */
static bool read_call(struct command_call *call, int *exit_code)
{
    const struct command *c = call->command;
    list_options(c, call->arguments, &call->seen);
    *exit_code = GATE_USAGE;
    /* --help first: it is not kept back by a broken file or variable. */
    for (int i = 1; i < call->argc && strcmp(call->argv[i], "--") != 0; i++)
        if (!strcmp(call->argv[i], "--help") || !strcmp(call->argv[i], "-h")) {
            *exit_code = command_help(c);
            return false;
        }
    if (!read_config(c, &call->seen, exit_code))
        return false;
    for (struct option_seen *s = call->seen.seen; s < call->seen.seen + call->seen.n; s++) {
        const char *name = s->option->variable, *text = name ? environment_get(name) : NULL;
        char from[80];
        snprintf(from, sizeof from, "$%s", name ? name : "");
        if (text && !set(c, s, OPTION_ENVIRONMENT, from, text))
            return false;
    }
    if (!read_command_line(c, &call->seen, call->argc, call->argv, exit_code))
        return false;
    call->operands = call->argv + optind;
    call->n_operands = call->argc - optind;
    if (call->n_operands >= c->least && call->n_operands <= c->most)
        return true;
    if (call->n_operands < c->least)
        command_usage(c, "%s", c->missing);
    else if (c->most > 1)
        command_usage(c, "unexpected argument '%s': it takes at most %d", call->operands[c->most],
                      c->most);
    else
        command_usage(c, "unexpected argument '%s'", call->operands[c->most]);
    *exit_code = GATE_USAGE;
    return false;
}

int command_call(const struct command *c, int argc, char **argv)
{
    struct gate_error err = {0};
    struct command_call call = {
        .command = c, .arguments = xcalloc(1, c->bytes), .argc = argc, .argv = argv};
    int code;
    if (c->defaults)
        memcpy(call.arguments, c->defaults, c->bytes);
    if (read_call(&call, &code)) {
        code = c->main(&call, &err);
        if (code && code == (int)err.status)
            command_failed(c, &err);
    } else if (code && c->refused) {
        c->refused(&call, code);
    }
    free(call.arguments);
    return code;
}

bool options_given(const struct options_seen *seen, const char *name)
{
    for (size_t i = 0; i < seen->n; i++)
        if (!strcmp(seen->seen[i].option->name, name))
            return seen->seen[i].source == OPTION_COMMAND_LINE;
    assert(!"an option of the command");
    return false;
}

size_t options_repeat(const struct options_seen *seen, const char *const *list, bool own,
                      char names[OPTIONS_MAX][OPTION_WORD_MAX], const char **words, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < seen->n; i++) {
        const struct option_seen *s = &seen->seen[i];
        const struct option_list *values = s->field;
        size_t times = s->option->type == OPTION_LIST ? values->n : 1;
        const char *const *listed = list;
        while (*listed && strcmp(*listed, s->option->name) != 0)
            listed++;
        if (s->source != OPTION_COMMAND_LINE || own == (*listed != NULL))
            continue;
        snprintf(names[i], OPTION_WORD_MAX, "--%s", s->option->name);
        for (size_t k = 0; k < times && n + 2 <= max; k++) {
            words[n++] = names[i];
            if (s->option->value)
                words[n++] = s->option->type == OPTION_LIST ? values->text[k] : s->text;
        }
    }
    return n;
}

/* Prints a text, and frees it; the exit code. */
static int print_text(struct buf *text)
{
    bool lost = text->failed || fputs(text->data, stdout) == EOF || fflush(stdout) == EOF;
    buf_release(text);
    return lost ? GATE_IO : GATE_OK;
}

/* ---- what holds ---- */

int options_print(const struct options_seen *seen)
{
    static const struct table_column columns[] = {
        {.title = "option"}, {.title = "value"}, {.title = "from"}};
    static const char *const sources[] = {"default", NULL, NULL, "command line"};
    struct table *t = table_new(columns, sizeof columns / sizeof columns[0]);
    struct report_style style = {0};
    struct buf text;
    char value[4096];
    buf_init(&text, (size_t)1 << 20);
    for (size_t i = 0; i < seen->n; i++) {
        const struct option_seen *s = &seen->seen[i];
        const struct option_list *list = s->field;
        const char *fallback = s->option->fallback ? s->option->fallback : "-";
        size_t used = 0;
        snprintf(value, sizeof value, "%s",
                 s->text && s->source != OPTION_DEFAULT ? s->text : fallback);
        if (s->option->type == OPTION_LIST && s->source != OPTION_DEFAULT) {
            snprintf(value, sizeof value, "none");
            for (size_t k = 0; k < list->n && used < sizeof value; k++)
                used += (size_t)snprintf(value + used, sizeof value - used, "%s%s", k ? ", " : "",
                                         list->text[k]);
        }
        table_cell(t, TERM_PLAIN, s->option->name);
        table_cell(t, TERM_PLAIN, value);
        if (s->source == OPTION_CONFIG)
            snprintf(value, sizeof value, "%s%s", config_folder(), CONFIG_FILE);
        else
            snprintf(value, sizeof value, "%s%s", s->source == OPTION_ENVIRONMENT ? "$" : "",
                     s->source == OPTION_ENVIRONMENT ? s->option->variable : sources[s->source]);
        table_cell(t, TERM_PLAIN, value);
    }
    table_write(t, &style, &text);
    table_free(t);
    return print_text(&text);
}

/* ---- help ---- */

/* Paragraphs: each line of the text is wrapped by itself, from its second column on if it has one,
 * which is behind two spaces. */
static void put_text(const char *text, struct buf *out)
{
    while (*text) {
        size_t n = strcspn(text, "\n"), at = strspn(text, " ");
        while (at && at + 1 < n && (text[at] != ' ' || text[at + 1] != ' '))
            at++;
        at += strspn(text + at, " ");
        const int column = at < n ? (int)at : 0;
        buf_append(out, text, (size_t)column);
        term_wrap(text + column, n - (size_t)column, column, column, HELP_WIDTH, out);
        buf_putc(out, '\n');
        text += n + (text[n] == '\n');
    }
}

static void put_option(const struct option_def *o, struct buf *out)
{
    RELEASED_BY(buf_release) struct buf words = buf_of(4096);
    buf_puts(&words, o->help);
    if (o->variable || o->fallback) {
        buf_puts(&words, " (default: ");
        if (o->variable)
            buf_printf(&words, "$%s%s", o->variable, o->fallback ? ", else " : "");
        buf_printf(&words, "%s)", o->fallback ? o->fallback : "");
    }
    size_t before = out->len;
    buf_printf(out, "  --%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    int column = (int)(out->len - before);
    if (column + 2 > HELP_COLUMN) {
        buf_putc(out, '\n');
        column = 0;
    }
    buf_printf(out, "%*s", HELP_COLUMN - column, "");
    term_wrap(words.data, words.len, HELP_COLUMN, HELP_COLUMN, HELP_WIDTH, out);
    buf_putc(out, '\n');
}

static int command_help(const struct command *c)
{
    struct options_seen seen = {.n = 0};
    struct buf text;
    const char *form = c->operands ? c->operands : "";
    buf_init(&text, (size_t)1 << 20);
    list_options(c, NULL, &seen);
    for (bool first = true; first || *form; first = false) {
        size_t n = strcspn(form, "\n");
        buf_printf(&text, "%s %s%s%.*s [OPTION]...\n", first ? "Usage:" : "      ", c->name,
                   n ? " " : "", (int)n, form);
        form += n + (form[n] == '\n');
    }
    buf_putc(&text, '\n');
    put_text(c->about, &text);
    buf_putc(&text, '\n');
    for (size_t i = 0; i < seen.n; i++)
        put_option(seen.seen[i].option, &text);
    put_option(&help_option, &text);
    if (c->ending) {
        buf_putc(&text, '\n');
        put_text(c->ending, &text);
    }
    return print_text(&text);
}
