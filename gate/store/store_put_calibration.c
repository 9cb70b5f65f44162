/* SPDX-License-Identifier: Apache-2.0 */
/* store_put_calibration.c: what a machine could tell, by `gate calibrate`; see store_put.h. */
#include "gate/store/store_put.h"

static enum gate_status put_injected(const struct put *p, const struct document_calibrated *c,
                                     int place)
{
    enum gate_status status = GATE_OK;
    for (size_t i = 0; i < c->n_injected && !status; i++) {
        const struct document_injected *injected = &c->injected[i];
        struct query q = query_begin(p->store, SQL_PUT_INJECTED);
        bind_int(&q, p->run_id);
        bind_int(&q, place);
        bind_int(&q, (int64_t)i);
        bind_real(&q, injected->share);
        bind_int(&q, injected->decisions);
        bind_int(&q, injected->red);
        bind_int(&q, injected->pass);
        bind_int(&q, injected->no_verdict);
        status = store_finish(p->store, &q, p->err);
    }
    return status;
}

static enum gate_status put_calibrated(const struct put *p, const struct document_calibrated *c,
                                       int place)
{
    struct query q = query_begin(p->store, SQL_PUT_CALIBRATED);
    bind_int(&q, p->run_id);
    bind_int(&q, place);
    bind_text(&q, c->id);
    bind_real(&q, c->mde);
    bind_int(&q, c->resolved);
    enum gate_status status = store_finish(p->store, &q, p->err);
    return status == GATE_OK ? put_injected(p, c, place) : status;
}

enum gate_status put_calibration(const struct put *p)
{
    const struct document_calibration *calibration = &p->document->calibration;
    if (!p->document->has_calibration)
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_CALIBRATION);
    bind_int(&q, p->run_id);
    bind_int(&q, p->device_id);
    bind_id_or_null(&q, p->machine_id);
    bind_int(&q, p->document->time_ms);
    bind_real(&q, p->document->policy.threshold);
    bind_int(&q, calibration->processes);
    enum gate_status status = store_finish(p->store, &q, p->err);
    for (size_t i = 0; i < calibration->n_cases && !status; i++)
        status = put_calibrated(p, &calibration->cases[i], (int)i);
    return status;
}
