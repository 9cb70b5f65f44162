/*
 * embed_tool.c: a build tool that turns files into a C table (embed.h).
 *
 *     embed SYMBOL FILE...         > table.c
 *     embed --page SYMBOL FILE...  > table.c
 *
 * writes `const struct embedded_file SYMBOL[]`, sorted by name, and `SYMBOL_count`. The name of a
 * file in the table is FILE without its folders. With --page, for files that a browser is given,
 * the table is of `struct embedded_asset`, each with its gzip form, `SYMBOL_version` is a hash of
 * all names and bytes, and in index.html every "NAME" of another file becomes
 * "files/VERSION/NAME": an address with a version never gets other bytes and may be kept forever.
 * The modules name each other relatively, so they need no change and never mix versions. Modules
 * and style sheets lose their indentation and comments, but for those of a licence, which begin
 * with an exclamation mark: a quarter of what a browser would fetch.
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

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

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
    out->name = name_of(path);
    out->data = reserve(MAX_FILE);
    out->size = fread(out->data, 1, MAX_FILE, in);
    bool good = !ferror(in) && out->size < MAX_FILE;
    if (!good)
        fprintf(stderr, "embed: cannot read '%s', or it has more than %zu bytes\n", path,
                MAX_FILE - 1);
    fclose(in);
    return good;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t len = strlen(text), n = strlen(ending);
    return len >= n && strcmp(text + len - n, ending) == 0;
}

/* How much of a line is left without a comment at its end: a "//" that no quote is open before. */
static size_t without_comment(const char *line, size_t len)
{
    for (size_t i = 1; i + 3 < len; i++) {
        if (strncmp(line + i, " // ", 4) != 0)
            continue;
        size_t quotes[3] = {0};
        for (size_t k = 0; k < i; k++) {
            quotes[0] += line[k] == '"';
            quotes[1] += line[k] == '\'';
            quotes[2] += line[k] == '`';
        }
        if (quotes[0] % 2 == 0 && quotes[1] % 2 == 0 && quotes[2] % 2 == 0)
            return i;
    }
    return len;
}

/* May the next line follow this one at once, in a script as in a style sheet? Not where a comment
 * may have stayed. */
static bool goes_on(const char *line, size_t len)
{
    return len > 0 && strchr("{(,;", line[len - 1]) && !memmem(line, len, "//", 2);
}

/*
 * Drops indentation, empty lines and comments, and joins lines. A block of comment counts where it
 * begins a line, so no string can be taken for one; the text of a template must not go over several
 * lines.
 */
static void strip_lines(struct file *file)
{
    const char *in = (const char *)file->data;
    const char *end = in + file->size;
    unsigned char *out = file->data;
    bool comment = false, licence = false;
    while (in < end) {
        const char *stop = memchr(in, '\n', (size_t)(end - in));
        const char *next = stop ? stop + 1 : end;
        size_t indent = licence ? 0 : strspn(in, " ");
        in = in + indent < next ? in + indent : next;
        size_t len = (size_t)(next - in);
        if (!comment && !licence) {
            comment = len >= 2 && strncmp(in, "/*", 2) == 0;
            licence = len >= 3 && strncmp(in, "/*!", 3) == 0;
        }
        bool dropped = !licence && (comment || len <= 1 || strncmp(in, "//", 2) == 0);
        if (!dropped) {
            size_t kept = licence ? len : without_comment(in, len);
            size_t text = kept > 0 && in[kept - 1] == '\n' ? kept - 1 : kept;
            bool joined = !licence && goes_on(in, text);
            memmove(out, in, text);
            out += text;
            if (!joined && (stop || kept < len))
                *out++ = '\n';
        }
        if (memmem(in, len, "*/", 2))
            comment = licence = false;
        in = next;
    }
    *out = '\0';
    file->size = (size_t)(out - file->data);
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
    for (int i = 0; i < n; i++) {
        if (!read_file(argv[first + i], &files[i]))
            return 74;
        if (page && (ends_with(files[i].name, ".js") || ends_with(files[i].name, ".css")))
            strip_lines(&files[i]);
    }
    qsort(files, (size_t)n, sizeof(*files), compare_files);
    printf("/* Made by the build. */\n#include \"base/embed.h\"\n\n");
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
