/* SPDX-License-Identifier: Apache-2.0 */
/* store_put_coverage.c: what the verification of a case covered; see store_put.h. */
#include "gate/store/store_put.h"

/* What a document does not say is -1. */
static int64_t known(int64_t n)
{
    return n > 0 ? n : 0;
}

enum gate_status put_coverage(const struct put *p, const struct document_case *c)
{
    const struct document_arm *arm = document_candidate(c);
    if (!arm || !arm->has_verify || known(arm->verify.values) + known(arm->verify.shapes) == 0)
        return GATE_OK;
    const struct document_verify *v = &arm->verify;
    struct query q = query_begin(p->store, SQL_PUT_COVERAGE);
    bind_int(&q, p->device_id);
    bind_text(&q, c->op);
    bind_int(&q, p->run_id);
    bind_int(&q, known(v->checks));
    bind_int(&q, known(v->shapes));
    bind_int(&q, known(v->layouts));
    bind_int(&q, known(v->launches));
    bind_int(&q, known(v->skipped));
    bind_int(&q, known(v->values));
    bind_int(&q, known(v->pairs));
    bind_int(&q, known(v->pairs_of));
    return store_finish(p->store, &q, p->err);
}
