/* SPDX-License-Identifier: Apache-2.0 */
/* api_baselines.c: what runs were compared with, and how that changed; see api.h. */
#include <inttypes.h>

#include "server/api/api_call.h"
#include "gate/history/store_baseline.h"

#define BASELINES_DEFAULT 1000
#define BASELINES_MAX 5000
#define LOG_DEFAULT 200
#define LOG_MAX 1000

static void put_baseline(struct emit *e, const struct store_baseline *row)
{
    emit_row_begin(e);
    emit_string_member(e, "case", row->case_id);
    emit_string_member(e, "device", row->device_model);
    emit_string_member(e, "contract", row->contract);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_string(e, "commit", row->commit);
    emit_known_string(e, "subject", row->subject);
    emit_known_string(e, "author", row->author);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_known_string(e, "epoch", row->epoch);
    emit_string_member(e, "run", row->run_uuid);
    emit_row_end(e);
}

static bool baseline_row(void *context, const struct store_baseline *row)
{
    struct page *p = context;
    if (!page_takes(p, "%s,%s", row->case_id, row->device_model))
        return false;
    put_baseline(&p->call->emit, row);
    return true;
}

enum gate_status get_baselines(struct call *c)
{
    const char *device;
    struct page page = {.call = c};
    char text[API_MAX_KEY + 1];
    const char *parts[2];
    bool found;
    if (!read_format(c) || !read_device(c, false, &device) ||
        !read_limit(&page, BASELINES_DEFAULT, BASELINES_MAX) ||
        !read_key(c, text, parts, 2, &found))
        return GATE_OK;
    struct store_baseline_key after = {0};
    if (found)
        after = (struct store_baseline_key){parts[0], parts[1]};
    list_open(c, "baselines");
    enum gate_status status =
        store_baselines(c->store, device, after, page.limit + 1, baseline_row, &page, &c->err);
    page_end(&page);
    if (list_lacks_header(c))
        put_baseline(&c->emit, &(struct store_baseline){0});
    list_close(c);
    return status;
}

/* ---- the log ---- */

static void put_change(struct emit *e, const struct store_baseline_change *row)
{
    emit_row_begin(e);
    emit_string_member(e, "case", row->case_id);
    emit_string_member(e, "device", row->device_model);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_string_member(e, "run", row->run_uuid);
    emit_known_real(e, "from_ns", row->from_ns);
    emit_known_real(e, "to_ns", row->to_ns);
    emit_known_string(e, "commit", row->commit);
    emit_known_string(e, "subject", row->subject);
    emit_known_string(e, "author", row->author);
    emit_string_member(e, "kind", row->kind);
    emit_row_end(e);
}

static bool change_row(void *context, const struct store_baseline_change *row)
{
    struct page *p = context;
    if (!page_takes(p, "%" PRId64, row->id))
        return false;
    put_change(&p->call->emit, row);
    return true;
}

static enum gate_status read_log(struct page *p, const char *device, const char *case_id,
                                 int64_t before)
{
    struct call *c = p->call;
    int64_t track = 0;
    if (!case_id)
        return store_baseline_log(c->store, device, before, p->limit + 1, change_row, p, &c->err);
    enum gate_status status = store_track(c->store, case_id, device, &track, &c->err);
    if (status || track == 0)
        return status;
    return store_baseline_log_of_track(c->store, track, before, p->limit + 1, change_row, p,
                                       &c->err);
}

enum gate_status get_baseline_log(struct call *c)
{
    const char *device;
    const char *case_id;
    struct page page = {.call = c};
    int64_t before;
    if (!read_format(c) || !read_case(c, false, &case_id) ||
        !read_device(c, case_id != NULL, &device) || !read_limit(&page, LOG_DEFAULT, LOG_MAX) ||
        !read_number(c, "after", INT64_MAX, 1, INT64_MAX, &before))
        return GATE_OK;
    list_open(c, "log");
    enum gate_status status = read_log(&page, device, case_id, before);
    page_end(&page);
    if (list_lacks_header(c))
        put_change(&c->emit, &(struct store_baseline_change){0});
    list_close(c);
    return status;
}
