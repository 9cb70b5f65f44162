/* store_put_calibration.c: what a machine could tell, by `gate calibrate`; see store_put.h. */
#include "gate/history/store_put.h"

static enum gate_status put_injected(const struct put *p, const cJSON *item, int place)
{
    const cJSON *injected = NULL;
    int step = 0;
    cJSON_ArrayForEach (injected, json_member(item, "injected")) {
        struct query q = query_begin(p->store, SQL_PUT_INJECTED);
        bind_int(&q, p->run_id);
        bind_int(&q, place);
        bind_int(&q, step++);
        bind_real(&q, json_number(injected, "share", 0.0));
        bind_int(&q, json_integer(injected, "decisions", 0));
        bind_int(&q, json_integer(injected, "red", 0));
        bind_int(&q, json_integer(injected, "pass", 0));
        bind_int(&q, json_integer(injected, "no_verdict", 0));
        enum gate_status status = store_finish(p->store, &q, p->err);
        if (status)
            return status;
    }
    return GATE_OK;
}

static enum gate_status put_calibrated(const struct put *p, const cJSON *item, int place)
{
    struct query q = query_begin(p->store, SQL_PUT_CALIBRATED);
    bind_int(&q, p->run_id);
    bind_int(&q, place);
    bind_text(&q, json_string(item, "id", ""));
    bind_number_or_null(&q, json_member(item, "mde"));
    bind_int(&q, json_bool(item, "resolved", false));
    enum gate_status status = store_finish(p->store, &q, p->err);
    return status == GATE_OK ? put_injected(p, item, place) : status;
}

enum gate_status put_calibration(const struct put *p)
{
    const cJSON *calibration = json_member(p->document, "calibration");
    if (!cJSON_IsObject(calibration))
        return GATE_OK;
    struct query q = query_begin(p->store, SQL_PUT_CALIBRATION);
    bind_int(&q, p->run_id);
    bind_int(&q, p->device_id);
    bind_int(&q, p->time_ms);
    bind_positive_or_null(&q, json_number(json_member(p->document, "policy"), "threshold", 0.0));
    bind_int(&q, json_integer(calibration, "processes", 0));
    enum gate_status status = store_finish(p->store, &q, p->err);
    const cJSON *item = NULL;
    int place = 0;
    cJSON_ArrayForEach (item, json_member(calibration, "cases")) {
        if (!status)
            status = put_calibrated(p, item, place++);
    }
    return status;
}
