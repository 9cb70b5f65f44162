/*
 * embed_tool.c: a build tool that turns files into a C table (embed.h).
 *
 *     embed SYMBOL FOLDER FILE...  > table.c
 *
 * writes `const struct embedded_file SYMBOL[]`, sorted by name, and `SYMBOL_count`. A file's name
 * in the table is FILE, its path below FOLDER.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Writes the bytes of one file as an array, with a NUL that is not counted. */
static bool write_bytes(const char *folder, const char *name, int index, long *size)
{
    char path[4096];
    int c;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) {
        fprintf(stderr, "embed: '%s' is too long a name\n", name);
        return false;
    }
    FILE *in = fopen(path, "rb");
    if (!in) {
        fprintf(stderr, "embed: cannot open '%s': %s\n", path, strerror(errno));
        return false;
    }
    printf("static const unsigned char file_%d[] = {", index);
    for (*size = 0; (c = getc(in)) != EOF; ++*size)
        printf("%s%d,", *size % 24 == 0 ? "\n" : "", c);
    printf("\n0};\n");
    bool good = !ferror(in);
    if (!good)
        fprintf(stderr, "embed: cannot read '%s': %s\n", path, strerror(errno));
    fclose(in);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: embed SYMBOL FOLDER FILE... > table.c\n");
        return 64;
    }
    const char *symbol = argv[1], *folder = argv[2];
    char **names = argv + 3;
    int n = argc - 3;
    long *sizes = calloc((size_t)n, sizeof(*sizes));
    if (!sizes)
        return 70;

    qsort(names, (size_t)n, sizeof(*names), compare_names);
    printf("/* Made by the build from the files under %s. */\n#include \"base/embed.h\"\n\n",
           folder);
    for (int i = 0; i < n; i++) {
        if (!write_bytes(folder, names[i], i, &sizes[i]))
            return 74;
    }
    printf("\nconst struct embedded_file %s[] = {\n", symbol);
    for (int i = 0; i < n; i++)
        printf("    {\"%s\", file_%d, %ld},\n", names[i], i, sizes[i]);
    printf("};\nconst size_t %s_count = %d;\n", symbol, n);
    free(sizes);
    if (fflush(stdout) == EOF || ferror(stdout)) {
        fprintf(stderr, "embed: cannot write: %s\n", strerror(errno));
        return 74;
    }
    return 0;
}
