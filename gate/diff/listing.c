/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/diff/listing.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/base/file.h"
#include "gate/base/process.h"
#include "gate/base/toolkit.h"
#include "gate/diff/flow.h"

#define PATIENCE_S 120.0
#define TEXT_MAX ((size_t)16 << 20)
#define DIFFERENT_MAX 4000 /* lines of a side between the first and the last that differs */
#define WIDTH 60

/* ---- nvdisasm ---- */

static bool write_all(int fd, struct bytes b)
{
    while (b.n > 0) {
        ssize_t n = write(fd, b.at, b.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        b.at += n;
        b.n -= (size_t)n;
    }
    return true;
}

/* An instruction stands between a comment with its address and the last ';'; labels and directives
 * have neither. */
static void add_line(struct listing *l, const char *line)
{
    const char *from = strstr(line, "/*"), *end;
    flow_add_label(l, line);
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
    l->n++;
}

static void split(struct listing *l)
{
    l->line = l->text.failed ? NULL : calloc(l->n + 1, sizeof *l->line);
    char *at = l->text.data;
    for (size_t i = 0; l->line && i < l->n; at += strlen(at) + 1)
        l->line[i++] = at;
}

static enum gate_status run(const char *path, size_t symbol, struct listing *out,
                            struct gate_error *err)
{
    char index[24], tool[PATHS_MAX];
    char *argv[] = {tool, (char *)"-c", (char *)"-fun", index, (char *)path, NULL};
    struct process p = {0};
    struct buf line;
    snprintf(index, sizeof index, "%zu", symbol);
    enum gate_status status = toolkit_find("nvdisasm", NULL, tool, err);
    if (!status)
        status = process_start(&p, argv, err);
    if (status)
        return status;
    buf_init(&line, PROCESS_LINE_MAX + 1);
    while (process_read_line(&p, PATIENCE_S, &line) == PROCESS_LINE && !out->text.failed) {
        add_line(out, line.data ? line.data : "");
        buf_clear(&line);
    }
    buf_release(&line);
    int code = process_finish(&p, 1);
    if (code || !out->n)
        return gate_fail(err, GATE_USAGE, "nvdisasm ended with %d and %zu instructions: %.300s",
                         code, out->n, process_last_words(&p));
    return GATE_OK;
}

enum gate_status listing_read(const struct machine_kernel *k, struct listing *out,
                              struct gate_error *err)
{
    char path[PATH_MAX];
    *out = (struct listing){0};
    buf_init(&out->text, TEXT_MAX);
    buf_init(&out->labels, TEXT_MAX);
    snprintf(path, sizeof path, "%.3900s/gate-diff.XXXXXX", file_temporary_folder());
    int fd = mkstemp(path);
    if (fd < 0)
        return gate_fail(err, GATE_IO, "cannot make '%s': %s", path, strerror(errno));
    bool written = write_all(fd, k->cubin);
    close(fd);
    enum gate_status status = written ? run(path, k->symbol, out, err)
                                      : gate_fail(err, GATE_IO, "cannot write '%s'", path);
    unlink(path);
    if (!status) {
        split(out);
        if (!out->line || !flow_follow(out))
            status = gate_fail(err, GATE_INTERNAL, "a listing is too large");
    }
    return status;
}

void listing_release(struct listing *l)
{
    free(l->line);
    free(l->steps);
    buf_release(&l->text);
    buf_release(&l->labels);
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

static void put_pair(const char *old, const char *new, struct buf *out)
{
    buf_printf(out, "%-*.*s %c %.*s\n", WIDTH, WIDTH, old ? old : "",
               !old   ? '>'
               : !new ? '<'
                      : '|',
               WIDTH, new ? new : "");
}

/* The longest lines in common, from behind: common[i][k] of the lines from i and k on. */
static uint16_t *count_common(char *const *a, size_t n, char *const *b, size_t m)
{
    uint16_t *common = calloc((n + 1) * (m + 1), sizeof *common);
    for (size_t i = n; common && i-- > 0;)
        for (size_t k = m; k-- > 0;) {
            uint16_t down = common[(i + 1) * (m + 1) + k], right = common[i * (m + 1) + k + 1];
            common[i * (m + 1) + k] = !strcmp(a[i], b[k])
                                          ? (uint16_t)(common[(i + 1) * (m + 1) + k + 1] + 1)
                                      : down > right ? down
                                                     : right;
        }
    return common;
}

static bool put_different(char *const *a, size_t n, char *const *b, size_t m, struct buf *out)
{
    uint16_t *common = count_common(a, n, b, m);
    size_t i = 0, k = 0;
    while (common && (i < n || k < m)) {
        size_t i_end = i, k_end = k;
        while ((i_end < n || k_end < m) && !(i_end < n && k_end < m && !strcmp(a[i_end], b[k_end])))
            if (k_end == m || (i_end < n && common[(i_end + 1) * (m + 1) + k_end] >=
                                                common[i_end * (m + 1) + k_end + 1]))
                i_end++;
            else
                k_end++;
        if (i < i_end || k < k_end)
            buf_printf(out, "%s", out->len ? "...\n" : "");
        for (; i < i_end || k < k_end; i += i < i_end, k += k < k_end)
            put_pair(i < i_end ? a[i] : NULL, k < k_end ? b[k] : NULL, out);
        for (; i < n && k < m && !strcmp(a[i], b[k]); i++)
            k++;
    }
    free(common);
    return common != NULL;
}

bool listing_compare(const struct listing *old, const struct listing *new, struct buf *out)
{
    char **a = old->line, **b = new->line;
    size_t n = old->n, m = new->n;
    for (; n && m && !strcmp(*a, *b); n--, m--) {
        a++;
        b++;
    }
    for (; n && m && !strcmp(a[n - 1], b[m - 1]); n--)
        m--;
    return n <= DIFFERENT_MAX && m <= DIFFERENT_MAX && put_different(a, n, b, m, out);
}
