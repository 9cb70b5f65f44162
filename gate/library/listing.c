/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/library/listing.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/alloc.h"
#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/paths.h"

#define PATIENCE_S 120.0
#define TEXT_MAX ((size_t)64 << 20)
#define SYMBOLS_MAX ((size_t)64 << 10)
#define DIFFERENT_MAX 4000 /* lines of a side between the first and the last that differs */
#define SOURCE_MAX 1500    /* the same where source lines are looked for */
#define WIDTH 60

/* ---- nvdisasm ---- */

/* An instruction stands between a comment with its address and the last ';'; labels and directives
 * have neither. */
static void add_line(struct listing *l, const char *line)
{
    const char *from = strstr(line, "/*"), *end;
    from = from ? strstr(from, "*/") : NULL;
    end = from ? strrchr(from, ';') : NULL;
    if (!end)
        return;
    for (from += 2; *from == ' ' || *from == '\t'; from++)
        continue;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (end == from)
        return;
    buf_append(&l->text, from, (size_t)(end - from));
    buf_putc(&l->text, '\0');
    buf_append(&l->text, l->at, strlen(l->at) + 1);
    l->n++;
}

/* `//## File "/src/gemm.cu", line 120 inlined at "...", line 7` stands before the instructions of
 * that line. */
static void note_source(struct listing *l, const char *line)
{
    const char *file = strstr(line, "//## File \""), *end, *number;
    file = file ? strchr(file, '"') + 1 : NULL;
    end = file ? strchr(file, '"') : NULL;
    number = end ? strstr(end, "line ") : NULL;
    if (!number)
        return;
    for (const char *at = file; at < end; at++)
        if (*at == '/')
            file = at + 1;
    snprintf(l->at, sizeof l->at, "%.*s:%d", (int)(end - file < 100 ? end - file : 100), file,
             (int)strtol(number + strlen("line "), NULL, 10));
}

/* The kernel whose section begins with this line; `at`: none does. */
static size_t find_section(const struct listing_wanted *wanted, size_t n, const char *line,
                           size_t at)
{
    const char *name = strstr(line, "\t.section\t.text.");
    if (!name)
        return at;
    name += strlen("\t.section\t.text.");
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(wanted[i].kernel->name);
        if (!strncmp(name, wanted[i].kernel->name, length) && name[length] == ',')
            return i;
    }
    return n;
}

static enum gate_status run(const char *path, const char *symbols,
                            const struct listing_wanted *wanted, size_t n, struct gate_error *err)
{
    char tool[PATHS_MAX];
    Elf64_Shdr lines;
    bool has_lines = elf_find(wanted[0].kernel->cubin, ".debug_line", &lines);
    char *argv[] = {tool,
                    (char *)"-c",
                    (char *)"-fun",
                    (char *)symbols,
                    has_lines ? (char *)"-g" : (char *)path,
                    has_lines ? (char *)path : NULL,
                    NULL};
    struct process p = {0};
    RELEASED_BY(buf_release) struct buf line = buf_of(PROCESS_LINE_MAX + 1);
    size_t at = n == 1 ? 0 : n, total = 0;
    TRY(toolkit_find("nvdisasm", NULL, tool, err));
    TRY(process_start(&p, argv, err));
    while (process_read_line(&p, PATIENCE_S, &line) == PROCESS_LINE && total < TEXT_MAX) {
        total += line.len;
        at = n == 1 ? 0 : find_section(wanted, n, line.data, at);
        if (at < n) {
            note_source(wanted[at].out, line.data);
            add_line(wanted[at].out, line.data);
        }
        buf_clear(&line);
    }
    int code = process_finish(&p, 1);
    for (size_t i = 0; i < n; i++)
        if (code || !wanted[i].out->n)
            return gate_fail(err, GATE_USAGE, "nvdisasm ended with %d and %zu instructions: %.300s",
                             code, wanted[i].out->n, process_last_words(&p));
    return GATE_OK;
}

enum gate_status listing_read(const struct listing_wanted *wanted, size_t n, struct gate_error *err)
{
    const struct bytes cubin = wanted[0].kernel->cubin;
    char path[PATH_MAX];
    RELEASED_BY(buf_release) struct buf symbols = buf_of(SYMBOLS_MAX);
    for (size_t i = 0; i < n; i++) {
        *wanted[i].out = (struct listing){.text = buf_of(TEXT_MAX)};
        buf_printf(&symbols, "%s%zu", i ? "," : "", wanted[i].kernel->symbol);
    }
    if (symbols.failed)
        return gate_fail(err, GATE_INTERNAL, "a cubin has too many kernels");
    snprintf(path, sizeof path, "%.3900s/gate-diff.XXXXXX", file_temporary_folder());
    int fd = mkstemp(path);
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot make '%s': %s", path, strerror(errno));
    close(fd);
    enum gate_status status = file_write_atomic(path, cubin.at, cubin.n, err);
    if (!status)
        status = run(path, symbols.data, wanted, n, err);
    unlink(path);
    for (size_t i = 0; i < n && !status; i++) {
        struct listing *l = wanted[i].out;
        if (l->text.failed)
            status = gate_fail(err, GATE_INTERNAL, "a listing is too large");
        l->line = xcalloc(2 * l->n + 1, sizeof *l->line);
        l->source = l->line + l->n;
        char *at = l->text.data;
        for (size_t k = 0; k < 2 * l->n && !status; k++, at += strlen(at) + 1)
            l->line[k / 2 + k % 2 * l->n] = at;
    }
    for (size_t i = 0; i < n && status; i++)
        listing_release(wanted[i].out);
    return status;
}

void listing_release(struct listing *l)
{
    free(l->line);
    buf_release(&l->text);
    *l = (struct listing){0};
}

void listing_opcode(const char *line, char *out, size_t size)
{
    if (*line == '@') {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    size_t n = 0;
    for (; n + 1 < size && line[n] && !strchr(" .;", line[n]); n++)
        out[n] = isalnum((unsigned char)line[n]) || line[n] == '_' ? line[n] : '?';
    out[n] = '\0';
}

/* ---- side by side ---- */

static int compare_opcodes(const char *a, const char *b)
{
    char x[24], y[24];
    listing_opcode(a, x, sizeof x);
    listing_opcode(b, y, sizeof y);
    return strcmp(x, y);
}

#define ALONE SIZE_MAX

/* By line of a: the one of b that corresponds to it, or ALONE. The pairs are as many as can be; of
 * several such choices the one that leaves out lines of a sooner. NULL: more than `most` lines of a
 * side lie between the first and the last that have no other. */
static size_t *align(const struct listing *a, const struct listing *b,
                     int (*compare)(const char *, const char *), size_t most)
{
    size_t begin = 0, n = a->n, m = b->n;
    while (begin < n && begin < m && !compare(a->line[begin], b->line[begin]))
        begin++;
    for (; n > begin && m > begin && !compare(a->line[n - 1], b->line[m - 1]); n--)
        m--;
    if (n - begin > most || m - begin > most)
        return NULL;
    /* How many pairs the lines from i and k on have, from behind. */
    const size_t row = m - begin + 1;
    uint16_t *common = xcalloc((n - begin + 1) * row, sizeof *common);
    for (size_t i = n; i-- > begin;)
        for (size_t k = m; k-- > begin;) {
            uint16_t *at = &common[(i - begin) * row + k - begin];
            at[0] = !compare(a->line[i], b->line[k]) ? (uint16_t)(at[row + 1] + 1)
                    : at[row] > at[1]                ? at[row]
                                                     : at[1];
        }
    size_t *pair = xcalloc(a->n + 1, sizeof *pair), i = 0, k = begin;
    for (; i < begin; i++)
        pair[i] = i;
    while (i < n) {
        const uint16_t *at = &common[(i - begin) * row + k - begin];
        if (k < m && !compare(a->line[i], b->line[k]))
            pair[i++] = k++;
        else if (k == m || at[row] >= at[1])
            pair[i++] = ALONE;
        else
            k++;
    }
    for (k = m; i < a->n; i++)
        pair[i] = k++;
    free(common);
    return pair;
}

bool listing_compare(const struct listing *old, const struct listing *new, struct buf *out)
{
    size_t *pair = align(old, new, strcmp, DIFFERENT_MAX), i = 0, k = 0;
    while (pair && (i < old->n || k < new->n)) {
        size_t i_end = i, k_end;
        while (i_end < old->n && pair[i_end] == ALONE)
            i_end++;
        k_end = i_end < old->n ? pair[i_end] : new->n;
        if (i < i_end || k < k_end)
            buf_puts(out, out->len ? "...\n" : "");
        for (; i < i_end || k < k_end; i += i < i_end, k += k < k_end)
            buf_printf(out, "%-*.*s %c %.*s\n", WIDTH, WIDTH, i < i_end ? old->line[i] : "",
                       i == i_end   ? '>'
                       : k == k_end ? '<'
                                    : '|',
                       WIDTH, k < k_end ? new->line[k] : "");
        for (; i < old->n && pair[i] == k; i++)
            k++;
    }
    free(pair);
    return pair != NULL;
}

void listing_source(const struct listing *old, const struct listing *new, const char *opcode,
                    bool of_old, char out[LISTING_SOURCE_SIZE])
{
    const struct listing *mine = of_old ? old : new, *other = of_old ? new : old;
    size_t *pair = align(other, mine, compare_opcodes, SOURCE_MAX), i = 0, k = 0;
    out[0] = '\0';
    for (; pair && k < mine->n; k++) {
        char own[24];
        while (i < other->n && (pair[i] == ALONE || pair[i] < k))
            i++;
        listing_opcode(mine->line[k], own, sizeof own);
        if ((i == other->n || pair[i] != k) && !strcmp(own, opcode))
            break;
    }
    if (pair && k < mine->n)
        snprintf(out, LISTING_SOURCE_SIZE, "%s", mine->source[k]);
    free(pair);
}

/* ---- how often each instruction occurs ---- */

static void count_all(struct mix *m, const struct listing *l, bool is_new)
{
    char opcode[MIX_OPCODE_SIZE];
    for (size_t i = 0; i < l->n; i++) {
        size_t k = 0;
        listing_opcode(l->line[i], opcode, sizeof opcode);
        if (!strcmp(opcode, "NOP"))
            continue;
        while (k < m->n && strcmp(m->rows[k].opcode, opcode) != 0)
            k++;
        if (k == MIX_ROWS_MAX)
            continue;
        if (k == m->n) {
            m->rows[m->n++] = (struct mix_row){0};
            memcpy(m->rows[k].opcode, opcode, strlen(opcode) + 1);
        }
        *(is_new ? &m->rows[k].new : &m->rows[k].old) += 1;
    }
}

static size_t change_of(const struct mix_row *r)
{
    return r->new > r->old ? r->new - r->old : r->old - r->new;
}

static int compare_rows(const void *a, const void *b)
{
    const struct mix_row *x = a, *y = b;
    bool x_works = opcode_is_work(x->opcode), y_works = opcode_is_work(y->opcode);
    size_t x_change = change_of(x), y_change = change_of(y);
    if (!x_change != !y_change)
        return x_change ? -1 : 1;
    if (x_works != y_works)
        return x_works ? -1 : 1;
    if (x_change != y_change)
        return x_change > y_change ? -1 : 1;
    return strcmp(x->opcode, y->opcode);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct mix_row *)a)->opcode, ((const struct mix_row *)b)->opcode);
}

void mix_count(const struct listing *new, const struct listing *old, struct mix *out)
{
    bool both = new &&old;
    out->n = out->n_changed = 0;
    if (new)
        count_all(out, new, true);
    if (old)
        count_all(out, old, false);
    for (size_t i = 0; i < out->n && both; i++)
        out->n_changed += change_of(&out->rows[i]) > 0;
    qsort(out->rows, out->n, sizeof *out->rows, both ? compare_rows : compare_names);
}
