/* SPDX-License-Identifier: Apache-2.0 */
/* store_thin.c: drops raw samples from old documents; see store_care.h. */
#include "gate/store/store_care.h"
#include "gate/store/store_private.h"

#include "gate/document/document.h"

/* A document that is to be thinned. */
struct thin {
    struct store *store;
    int64_t before_ms, now_ms;
    int64_t run_id; /* the last that was done */
    bool found;
    struct buf text;
    enum gate_status status;
    struct gate_error *err;
};

static enum gate_status write_thinned(struct thin *t, const struct document *document)
{
    struct store_packed packed;
    buf_clear(&t->text);
    document_write(document, &t->text);
    if (t->text.failed)
        return gate_fail(t->err, GATE_INTERNAL, "out of memory");
    TRY(store_pack(t->text.data, t->text.len, &packed, t->err));
    enum gate_status status = store_write(
        t->store,
        "UPDATE document SET n_bytes = ?2, has_samples = 0, thinned_ms = ?3, packed = ?4 "
        "WHERE run_id = ?1",
        CELLS(cell_integer(t->run_id), cell_integer((int64_t)packed.n_bytes),
              cell_integer(t->now_ms), cell_bytes(packed.bytes, packed.len)),
        t->err);
    store_packed_release(&packed);
    return status ? status : store_touch(t->store, t->err);
}

/* One document, within a write. */
static enum gate_status thin_one(void *context, struct gate_error *err)
{
    struct thin *t = context;
    struct document document;
    t->err = err;
    struct query q = query_begin(
        t->store,
        "SELECT t.run_id, t.packed, t.n_bytes "
        "FROM document t INDEXED BY document_with_samples "
        "CROSS JOIN run r ON r.id = t.run_id "
        "WHERE t.has_samples = 1 AND t.run_id > ?2 AND r.time_ms < ?1 ORDER BY t.run_id LIMIT 1",
        CELLS(cell_integer(t->before_ms), cell_integer(t->run_id)));
    enum gate_status status = GATE_OK;
    t->found = query_row(&q);
    if (t->found) {
        t->run_id = column_int(&q, 0);
        status = column_document(&q, 1, &t->text, err);
    }
    enum gate_status done = query_done(t->store, &q, status ? NULL : err);
    if (status || done || !t->found)
        return status ? status : done;
    TRY(document_parse("a stored run", 1, t->text.data, t->text.len, GATE_IO, &document, err));
    for (size_t i = 0; i < document.n_cases; i++)
        for (size_t k = 0; k < document.cases[i].n_arms; k++)
            document.cases[i].arms[k].timing.samples_ns = NULL;
    document.thinned_ms = t->now_ms;
    status = write_thinned(t, &document);
    document_release(&document);
    return status;
}

enum gate_status store_thin(struct store *s, int64_t before_ms, int64_t now_ms, int64_t max_runs,
                            int64_t *n_thinned, struct gate_error *err)
{
    struct thin t = {.store = s, .before_ms = before_ms, .now_ms = now_ms, .found = true};
    enum gate_status status = GATE_OK;
    *n_thinned = 0;
    buf_init(&t.text, STORE_MAX_DOCUMENT);
    while (*n_thinned < max_runs && !status) {
        status = store_atomically(s, thin_one, &t, err);
        if (!t.found)
            break;
        *n_thinned += !status;
    }
    buf_release(&t.text);
    return status;
}
