/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed_tool.c: a build tool that turns files into a C table (embed.h).
 *
 *     embed SYMBOL FILE...         > table.c
 *     embed --page SYMBOL FILE...  > table.c
 *
 * writes `const struct embedded_file SYMBOL[]`, sorted by name, and `SYMBOL_count`. The name of a
 * file in the table is FILE without its folders, or what follows web/ in it, as "chart/plot.js" of
 * web/chart/plot.js. With --page, for files that a browser is given, the table is of `struct
 * embedded_asset`, each with its gzip form, `SYMBOL_version` is a hash of all names and bytes, and
 * in index.html every "NAME" of another file becomes "files/VERSION/NAME": an address with a
 * version never gets other bytes and may be kept forever. The modules name each other relatively,
 * so they need no change and never mix versions.
 */
#include <errno.h>
#include <sha2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_FILE ((size_t)16 << 20)
#define VERSION_DIGITS 16

struct file {
    const char *name;
    unsigned char *data;
    size_t size;
};

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static void *reserve(size_t size)
{
    void *p = calloc(1, size);
    if (!p) {
        fprintf(stderr, "embed: out of memory\n");
        abort();
    }
    return p;
}

static bool read_file(const char *path, struct file *out)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        fprintf(stderr, "embed: cannot open '%s': %s\n", path, strerror(errno));
        return false;
    }
    const char *web = strstr(path, "web/"), *slash = strrchr(path, '/');
    out->name = web ? web + strlen("web/") : slash ? slash + 1 : path;
    out->data = reserve(MAX_FILE);
    out->size = fread(out->data, 1, MAX_FILE, in);
    bool good = !ferror(in) && out->size < MAX_FILE;
    if (!good)
        fprintf(stderr, "embed: cannot read '%s', or it has more than %zu bytes\n", path,
                MAX_FILE - 1);
    fclose(in);
    return good;
}

static void version_of(const struct file *files, int n, char version[VERSION_DIGITS + 1])
{
    SHA2_CTX context;
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256Init(&context);
    for (int i = 0; i < n; i++) {
        SHA256Update(&context, (const uint8_t *)files[i].name, strlen(files[i].name) + 1);
        SHA256Update(&context, (const uint8_t *)&files[i].size, sizeof(files[i].size));
        SHA256Update(&context, files[i].data, files[i].size);
    }
    SHA256Final(digest, &context);
    for (int i = 0; i < VERSION_DIGITS / 2; i++)
        snprintf(version + (size_t)i * 2, 3, "%02x", digest[i]);
}

/* The file whose name stands between two quotes at `text`, or NULL. */
static const struct file *quoted_file(const struct file *files, int n, const char *text)
{
    for (int i = 0; i < n && *text == '"'; i++) {
        size_t len = strlen(files[i].name);
        if (strncmp(text + 1, files[i].name, len) == 0 && text[len + 1] == '"')
            return &files[i];
    }
    return NULL;
}

/* Gives every address in the page its version. The bytes end in a NUL, as reserve() clears. */
static void add_versions(struct file *page, const struct file *files, int n, const char *version)
{
    unsigned char *out = reserve(MAX_FILE);
    size_t size = 0;
    const char *text = (const char *)page->data;
    while (*text != '\0' && size < MAX_FILE / 2) {
        const struct file *file = quoted_file(files, n, text);
        out[size++] = (unsigned char)*text++;
        if (file)
            size += (size_t)snprintf((char *)out + size, MAX_FILE - size, "files/%s/", version);
    }
    free(page->data);
    page->data = out;
    page->size = size;
}

/* The gzip form; the same bytes give the same form, which has no time in it. */
static struct file compressed(const struct file *file)
{
    z_stream z = {0};
    struct file out = {.name = file->name};
    /* 15 bits of window; 16 more ask for gzip's frame. */
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    uLong bound = deflateBound(&z, file->size);
    out.data = reserve(bound);
    z.next_in = file->data;
    z.avail_in = (uInt)file->size;
    z.next_out = out.data;
    z.avail_out = (uInt)bound;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    out.size = z.total_out;
    deflateEnd(&z);
    return out;
}

/* The bytes as an array, with a NUL that is not counted. */
static void write_bytes(const struct file *file, const char *kind, int index)
{
    printf("static const unsigned char %s_%d[] = {", kind, index);
    for (size_t i = 0; i < file->size; i++)
        printf("%s%d,", i % 24 == 0 ? "\n" : "", file->data[i]);
    printf("\n0};\n");
}

static void write_table(const char *symbol, const struct file *files, int n)
{
    for (int i = 0; i < n; i++)
        write_bytes(&files[i], "file", i);
    printf("\nconst struct embedded_file %s[] = {\n", symbol);
    for (int i = 0; i < n; i++)
        printf("    {\"%s\", file_%d, %zu},\n", files[i].name, i, files[i].size);
}

static void write_page(const char *symbol, struct file *files, int n)
{
    char version[VERSION_DIGITS + 1];
    size_t *sizes = reserve(sizeof(*sizes) * (size_t)n);
    version_of(files, n, version);
    for (int i = 0; i < n; i++) {
        if (strcmp(files[i].name, "index.html") == 0)
            add_versions(&files[i], files, n, version);
        struct file gz = compressed(&files[i]);
        write_bytes(&files[i], "file", i);
        write_bytes(&gz, "gz", i);
        sizes[i] = gz.size;
        free(gz.data);
    }
    printf("\nconst char %s_version[] = \"%s\";\n", symbol, version);
    printf("const struct embedded_asset %s[] = {\n", symbol);
    for (int i = 0; i < n; i++)
        printf("    {\"%s\", file_%d, %zu, gz_%d, %zu},\n", files[i].name, i, files[i].size, i,
               sizes[i]);
    free(sizes);
}

int main(int argc, char **argv)
{
    bool page = argc > 1 && strcmp(argv[1], "--page") == 0;
    int first = page ? 3 : 2;
    int n = argc - first;
    if (n < 1) {
        fprintf(stderr, "usage: embed [--page] SYMBOL FILE... > table.c\n");
        return 64;
    }
    const char *symbol = argv[first - 1];
    struct file *files = reserve(sizeof(*files) * (size_t)n);
    for (int i = 0; i < n; i++)
        if (!read_file(argv[first + i], &files[i]))
            return 74;
    qsort(files, (size_t)n, sizeof(*files), compare_files);
    printf("/* Made by the build. */\n#include \"gate/base/embed.h\"\n\n");
    if (page)
        write_page(symbol, files, n);
    else
        write_table(symbol, files, n);
    printf("};\nconst size_t %s_count = %d;\n", symbol, n);
    for (int i = 0; i < n; i++)
        free(files[i].data);
    free(files);
    if (fflush(stdout) == EOF || ferror(stdout)) {
        fprintf(stderr, "embed: cannot write: %s\n", strerror(errno));
        return 74;
    }
    return 0;
}
