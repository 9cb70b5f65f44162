/* SPDX-License-Identifier: Apache-2.0 */
/* A library in one piece: what belongs to it is in it, and what is damaged is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/base/file.h"
#include "gate/library/machine_code.h"
#include "tests/unit/unit.h"

#define MOST ((size_t)1 << 26)
#define TAIL 16 /* the size of the shared object, and the mark */

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    struct gate_error err;
    assert_int_equal(file_write_atomic(path, bytes, n, &err), GATE_OK);
}

/* tests/mutants/filed.c, which names filed.txt and other-file.bin; the first name is replaced by
 * one as long. */
static void write_library(const char *name)
{
    char path[512];
    struct gate_error err;
    struct buf bytes;
    buf_init(&bytes, MOST);
    snprintf(path, sizeof path, "%s/tests/mutants/filed.so", getenv("KERNEL_GATE_BUILD"));
    assert_int_equal(file_read(path, &bytes, &err), GATE_OK);
    char *end = bytes.data + bytes.len, *at = bytes.data;
    while ((at = memmem(at, (size_t)(end - at), "filed.txt", 9)) != NULL)
        at = (char *)memcpy(at, name, 9) + 9;
    write_bytes("lib.so", bytes.data, bytes.len);
    buf_release(&bytes);
    write_text("filed.txt", "word");
    write_text("other-file.bin", "more");
}

static enum gate_status read_piece(struct piece *piece, struct gate_error *err)
{
    *err = (struct gate_error){0};
    return piece_read("lib.so", MOST, piece, err);
}

static void assert_word(const struct piece *p)
{
    assert_int_equal(p->n_files, 2);
    const int word = strcmp(p->files[0].name, "filed.txt") != 0;
    assert_string_equal(p->files[word].name, "filed.txt");
    assert_int_equal(p->files[word].bytes, 4);
    assert_memory_equal(p->files[word].data, "word", 4);
    assert_null(p->files[2].name);
}

TEST_WITHIN(files_beside_it_and_in_it, unit_enter_folder, unit_leave_folder)
{
    struct piece piece;
    struct gate_error err;
    char beside[65], inside[65], other[65];
    write_library("filed.txt");
    assert_int_equal(read_piece(&piece, &err), GATE_OK);
    assert_word(&piece);
    piece_hash(&piece, beside);
    write_bytes("lib.so", piece.bytes.data, piece.bytes.len);
    piece_release(&piece);
    remove("filed.txt");
    assert_int_equal(read_piece(&piece, &err), GATE_OK);
    assert_word(&piece);
    piece_release(&piece);
    assert_int_equal(piece_hash_file("lib.so", inside, NULL, &err), GATE_OK);
    assert_string_equal(beside, inside);
    write_library("filed.txt");
    write_text("filed.txt", "work");
    assert_int_equal(piece_hash_file("lib.so", other, NULL, &err), GATE_OK);
    assert_string_not_equal(beside, other);
}

TEST_WITHIN(names_that_are_none, unit_enter_folder, unit_leave_folder)
{
    static const struct {
        const char *name, *says;
        enum gate_status status;
    } cases[] = {
        {"../passwd", "which is no name of a file", GATE_WRONG},
        {"fil d.txt", "which is no name of a file", GATE_WRONG},
        {"-iled.txt", "which is no name of a file", GATE_WRONG},
        {"other-fil", "of the file 'other-fil', which belongs to it", GATE_IO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct piece piece;
        struct gate_error err;
        write_library(cases[i].name);
        assert_int_equal(read_piece(&piece, &err), cases[i].status);
        assert_non_null(strstr(err.message, cases[i].says));
    }
}

TEST_WITHIN(a_piece_that_is_damaged, unit_enter_folder, unit_leave_folder)
{
    struct piece piece;
    struct gate_error err;
    write_library("filed.txt");
    assert_int_equal(read_piece(&piece, &err), GATE_OK);
    char *bytes = piece.bytes.data;
    const size_t n = piece.bytes.len;
    char mark[8];
    memcpy(mark, bytes + n - sizeof mark, sizeof mark);
    for (size_t at = n - TAIL - 2 * 8; at < n - 8; at += 4) { /* each half of the three sizes */
        struct piece damaged;
        bytes[at] ^= 0x41;
        write_bytes("lib.so", bytes, n);
        bytes[at] ^= 0x41;
        assert_int_equal(read_piece(&damaged, &err), GATE_WRONG);
        assert_non_null(strstr(err.message, "the files that belong to it are"));
    }
    for (size_t cut = 1; cut <= TAIL + 2 * 8; cut += 5) { /* with the mark at its end */
        struct piece damaged;
        memcpy(bytes + n - cut - sizeof mark, mark, sizeof mark);
        write_bytes("lib.so", bytes, n - cut);
        assert_int_equal(read_piece(&damaged, &err), GATE_WRONG);
    }
    piece_release(&piece);
}

TEST_WITHIN(libraries_without_files, unit_enter_folder, unit_leave_folder)
{
    struct piece piece;
    struct gate_error err;
    write_text("lib.so", "no shared object");
    assert_int_equal(read_piece(&piece, &err), GATE_OK);
    assert_int_equal(piece.n_files, 0);
    assert_int_equal(piece.bytes.len, piece.object_bytes);
    piece_release(&piece);
    write_text("lib.so", "");
    assert_int_equal(read_piece(&piece, &err), GATE_USAGE);
    assert_int_equal(piece_read("lib.so/none", MOST, &piece, &err), GATE_IO);
}
