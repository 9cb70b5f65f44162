/* SPDX-License-Identifier: Apache-2.0 */
/* writer_fixture.c: see writer_fixture.h. */
#include "tests/unit/unit.h"
#include "tests/unit/writer_fixture.h"

static void start(struct writer_fixture *w, const struct writer_options *options)
{
    if (options)
        w->options = *options;
    w->options.db = w->files->path;
    assert_int_equal(writer_open(&w->options, &w->writer, NULL), GATE_OK);
}

void writer_set_up(struct writer_fixture *w, const struct writer_options *options)
{
    void *files = NULL;
    assert_int_equal(store_set_up(&files), 0);
    w->files = files;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->n_done = 0;
    w->options = (struct writer_options){0};
    start(w, options);
}

void writer_tear_down(struct writer_fixture *w)
{
    void *files = w->files;
    writer_close(w->writer);
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->changed);
    assert_int_equal(store_tear_down(&files), 0);
}

void writer_start_again(struct writer_fixture *w, const struct writer_options *options)
{
    writer_close(w->writer);
    start(w, options);
}

void writer_wait_for(struct writer_fixture *w, unsigned n_done)
{
    pthread_mutex_lock(&w->mutex);
    while (w->n_done < n_done)
        pthread_cond_wait(&w->changed, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
}
