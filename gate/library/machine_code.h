/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_code.h: a hash of the GPU code of each kernel in a library file.
 *
 * Two libraries are two files as soon as one kernel of them changed; a slowdown of another kernel,
 * whose code is bit for bit the same in both, is then the machine's doing and not the change's.
 *
 * nvcc packs the code into the section .nv_fatbin of the shared object: containers, each with an
 * ELF file (a cubin) an architecture, in which each kernel has a section .text.<name>. A kernel's
 * hash is over its code, its constants and shared memory, and what it shares with other kernels of
 * its cubin (global data, functions that were not inlined), in all architectures. Names are left
 * out: those of static kernels are made from the path of the source. Code that was compressed with
 * zstd (nvcc -Xfatbin -compress-all) has the hash that it has plain. The ELF part is as the System
 * V ABI has it; the container is not documented by its maker, so whatever does not look as expected
 * means "not known", and never "the same". Cubins and containers among the files that belong to the
 * library (below) count like those inside.
 */
#ifndef GATE_LIBRARY_MACHINE_CODE_H
#define GATE_LIBRARY_MACHINE_CODE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/base/error.h"
#include "gate/base/buf.h"
#include "kernels/kernel.h"
#include "gate/document/fields.h"

/* ---- sections of ELF files of 64 bits, little-endian ----
 *
 * Nothing in the file is believed before it was compared with the bounds of what it lies in: false
 * or NULL is what does not lie there.
 */

struct bytes {
    const unsigned char *at;
    size_t n;
};

/* Copies a struct out, since nothing in a file need be aligned. */
bool bytes_take(struct bytes b, uint64_t offset, void *to, size_t n);

bool elf_content(struct bytes elf, const Elf64_Shdr *s, struct bytes *out);

/* A text of a table of texts; NULL: none begins there, or it does not end. */
const char *elf_text(struct bytes elf, size_t table, uint64_t offset);

/* The first section of that name. */
bool elf_find(struct bytes elf, const char *name, Elf64_Shdr *s);

/* ---- machine code ---- */

struct machine_code;

/* One kernel of one cubin; it lives as long as the machine code that it is of. */
struct machine_kernel {
    const char *name; /* in the file's bytes, and it ends there */
    struct bytes cubin;
    size_t text;   /* index of its section */
    size_t symbol; /* and in the table of symbols */
};

/* Reads a shared object or a bundle. A file without GPU code, or with some that cannot be taken
 * apart (compressed by LZ4, say), is no error: it has no kernel. The errors are those of
 * piece_read(). The result is the caller's. */
enum gate_status machine_code_read(const char *path, struct machine_code **out,
                                   struct gate_error *err);
void machine_code_free(struct machine_code *m); /* NULL is fine */

/* Appears `name` (as the linker knows it, mangled) in the file? Then its SHA-256, 64 lower-case hex
 * digits and a NUL; false: not known, also where two of this name for the same GPUs differ. */
bool machine_code_hash(const struct machine_code *m, const char *name, char hex[65]);

/* The kernel of that name in a cubin; false: there is none. */
bool machine_code_find(struct bytes cubin, const char *name, struct machine_kernel *out);

/* All kernels, in the order of the file, each once an architecture; how many. */
size_t machine_code_kernels(const struct machine_code *m, const struct machine_kernel **out);

/* The one of that name that a GPU of this architecture (90: sm_90) runs: of its generation, the
 * newest that is not newer than it; NULL: there is none. */
const struct machine_kernel *machine_code_on(const struct machine_code *m, const char *name,
                                             unsigned architecture);

/* False: there is GPU code that cannot be taken apart. */
bool machine_code_is_read(const struct machine_code *m);

/* Of one of them alone; false: not known. */
bool machine_kernel_hash(const struct machine_kernel *k, char hex[65]);

/*
 * SHA-256 of what a shared object runs: its machine code and data for the host as they are mapped,
 * the code of all its GPU kernels, and the files that belong to it (below). Debug information,
 * build id and comments do not count, so two builds of one source may be two files of the same
 * code. Of a bundle it is all of it. GATE_NO_VERDICT: neither an ELF file nor a bundle, or one with
 * GPU code that cannot be taken apart. GATE_IO: it cannot be read.
 */
enum gate_status machine_code_of_file(const char *path, char hex[65], struct gate_error *err);

/* ---- what a kernel takes of a GPU, as its cubin says ----
 *
 * The figures are those of `ptxas -v`. Registers, stack and barriers stand in the attributes of
 * .nv.info, which their maker does not document: their numbers are known from files of CUDA 13 for
 * sm_75 to sm_100. Loads and stores of local memory are counted in the code itself, from sm_70 on:
 * they are spilled registers and arrays whose index is not known when they are compiled.
 */

enum resource {
    RESOURCE_REGISTERS,
    RESOURCE_STACK,        /* bytes of its frame */
    RESOURCE_LOCAL_STORES, /* bytes that a thread stores, each instruction counted once */
    RESOURCE_LOCAL_LOADS,
    RESOURCE_SHARED, /* static bytes, without those that CUDA keeps for itself */
    RESOURCE_BARRIERS,
    RESOURCE_CODE, /* bytes */
    RESOURCE_COUNT
};

/* "registers", "local_stores" and so on. */
extern const char *const resource_names[RESOURCE_COUNT];

#define CUBIN_PARAMETERS_MAX 60

struct resources {
    unsigned architecture;      /* 90: sm_90 */
    int64_t of[RESOURCE_COUNT]; /* -1: not known */
    int n_parameters;           /* -1: not known, or too many */
    uint16_t parameter_bytes[CUBIN_PARAMETERS_MAX];
};

struct resources resources_of(const struct machine_kernel *k);

/* ---- opcode.c: what instructions do, in words for a report ----
 *
 * The names are those of nvdisasm (CUDA Binary Utilities, "Instruction Set Reference").
 */

/* "stores a spilled register or a local array" for STL; NULL: an opcode that needs no words. */
const char *opcode_meaning(const char *opcode);

/* What makes up a kernel's time: arithmetic and its tensor cores, access to memory, waiting. */
bool opcode_is_work(const char *opcode);

/* ---- piece.c: a kernel library in one piece, the shared object and what belongs to it ----
 *
 * A library names its files by KG_FILE() (kernel.h), which puts their names into a section of the
 * shared object, so that they are known without running any of its code. A manifest in
 * place of the shared object names the files of its machine code. In the folder where a library was
 * built they lie beside it. In the cache, in a copy in memory and on a server a library
 * is one piece of bytes:
 *
 *     the shared object | file 1 | ... | file n | n sizes | size of the shared object | "KGPIECE1"
 *
 * with sizes in bytes as 64 bits, little-endian. The loader reads it as the shared object that it
 * begins with. A library without files is that alone. The hash of a library is the hash of its
 * piece, so a library of which one file changed is another library.
 */

/* ---- a kernel library without host code ----
 *
 * Which machine code to launch for which problem, and how, by gate/formats/bundle.schema.json.
 * docs/bundles.md says what the keys mean. The files that it names belong to it as those of
 * KG_FILE() do to a shared object: in one piece they are a bundle.
 */

#define MANIFEST_AXES 3
#define MANIFEST_WHEN_MAX 32
#define MANIFEST_ARGUMENTS_MAX 60
#define MANIFEST_LAUNCHES_MAX 16
#define MANIFEST_KERNELS_MAX 256

/* clang-format off */
#define MANIFEST_ARGUMENT(F) \
    F(WORD, type, REQUIRED, manifest_types) \
    F(WORDS, value, REQUIRED, EXPRESSION_MAX)

#define MANIFEST_LAUNCH(F) \
    F(WORDS, code, REQUIRED, FILE_NAME_MAX) \
    F(WORDS, entry, REQUIRED, SYMBOL_MAX) \
    F(TEXTS, grid, REQUIRED, MANIFEST_AXES, EXPRESSION_MAX) \
    F(TEXTS, cluster, 0, MANIFEST_AXES, EXPRESSION_MAX) \
    F(TEXTS, block, REQUIRED, MANIFEST_AXES, EXPRESSION_MAX) \
    F(WORDS, shared, 0, EXPRESSION_MAX) \
    F(LIST, arguments, REQUIRED, 0, MANIFEST_ARGUMENTS_MAX, manifest_argument)

#define MANIFEST_KERNEL(F) \
    F(FORMED, op, REQUIRED, FORM_NAME, 63) \
    F(FORMED, name, REQUIRED, FORM_NAME, 63) \
    F(TEXTS, dtypes, REQUIRED, KG_MAX_TENSORS, 8) \
    F(TEXTS, when, 0, MANIFEST_WHEN_MAX, EXPRESSION_MAX) \
    F(WORDS, workspace, 0, EXPRESSION_MAX) \
    F(YES_NO, nondeterministic) \
    F(LIST, launches, REQUIRED, 1, MANIFEST_LAUNCHES_MAX, manifest_launch)

#define MANIFEST(F) \
    F(CHOICE, schema, REQUIRED, schemas) \
    F(FORMED, provider, REQUIRED, FORM_NAME, 31) \
    F(WORDS, version, REQUIRED, 63) \
    F(LIST, kernels, REQUIRED, 1, MANIFEST_KERNELS_MAX, manifest_kernel)

struct manifest_argument { MANIFEST_ARGUMENT(FIELD_MEMBER) };
struct manifest_launch { MANIFEST_LAUNCH(FIELD_MEMBER) };
struct manifest_kernel { MANIFEST_KERNEL(FIELD_MEMBER) };
struct manifest {
    MANIFEST(FIELD_MEMBER)
    struct fields_taken taken; /* the texts */
};
/* clang-format on */

extern const struct shape manifest_shape;
extern const char *const manifest_types[]; /* of an argument; NULL ends them */

/* Does a library begin as one? */
bool manifest_is(struct bytes library);

/* GATE_WRONG with "manifest:LINE:COLUMN: ...". The result is the caller's; NULL is freed too. */
enum gate_status manifest_parse(struct bytes text, struct manifest **out, struct gate_error *err);
void manifest_free(struct manifest *m);

/* The error for a fault in its text. */
enum gate_status manifest_fault(struct bytes text, const struct field_fault *fault,
                                struct gate_error *err);

/* ---- pieces ---- */

#define PIECE_FILES_MAX 64

struct piece {
    struct buf bytes;
    size_t object_bytes;       /* of the shared object, or of the manifest */
    struct manifest *manifest; /* NULL: it begins with no manifest */
    unsigned n_files;
    /* Names and contents are in `bytes`; a file without a name ends them. */
    struct kg_file files[PIECE_FILES_MAX + 1];
};

/*
 * Reads the library at `path`, with the files beside it that it names. A file that is no shared
 * object and no manifest has none. GATE_IO: it or one of its files cannot be read. GATE_USAGE: not
 * a regular file, or empty, or the piece has more than `most` bytes. GATE_WRONG: a name is not that
 * of a file, or stands twice, the manifest breaks its rules, or the piece is damaged. The result is
 * the caller's (piece_release).
 */
enum gate_status piece_read(const char *path, size_t most, struct piece *out,
                            struct gate_error *err);
void piece_release(struct piece *piece);

/* SHA-256 of bytes as 64 lower-case hex digits and a NUL. */
void piece_hash(const struct piece *piece, char sha256[65]);

#define PIECE_OTHER_MAX 151

/*
 * Both, of which the hash is kept. Does it tell all of the library's code: are the libraries that
 * the loader brings with it (DT_NEEDED) those of the system alone: of C, of C++, and of the GPU's
 * driver? Else the first other one is in `other` (unless that is NULL), and so is what it says of a
 * file that is not one for the loader. What a library opens by itself is not seen.
 */
enum gate_status piece_hash_file(const char *path, char sha256[65], char other[PIECE_OTHER_MAX],
                                 struct gate_error *err);

#endif
