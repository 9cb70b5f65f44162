/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_fixture.h: a writer on a database of its own, and how many of its jobs are done; for the
 * tests of the writer. What cannot be done fails the test.
 */
#ifndef TESTS_UNIT_WRITER_FIXTURE_H
#define TESTS_UNIT_WRITER_FIXTURE_H

#include <pthread.h>

#include "server/writer/writer.h"
#include "tests/unit/store_fixture.h"

struct writer_fixture {
    struct store_fixture *files;
    struct writer_options options; /* of the writer; `db` is that of `files` */
    struct writer *writer;
    pthread_mutex_t mutex; /* of what follows, and of what a test adds to it */
    pthread_cond_t changed;
    unsigned n_done;
};

/* `options` may be NULL; its `db` is not looked at. */
void writer_set_up(struct writer_fixture *w, const struct writer_options *options);
void writer_tear_down(struct writer_fixture *w);

/* The same database gets another writer, with these options, or the same ones: NULL. */
void writer_start_again(struct writer_fixture *w, const struct writer_options *options);

/* Until so many jobs were counted as done. */
void writer_wait_for(struct writer_fixture *w, unsigned n_done);

#endif
