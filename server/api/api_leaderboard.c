/* SPDX-License-Identifier: Apache-2.0 */
/* api_leaderboard.c: the lowest verified p50 of each provider; see api.h. */
#include <inttypes.h>

#include "server/api/api_call.h"

#define LEADERS_DEFAULT 1000
#define LEADERS_MAX 5000

static void put_leader(struct emit *e, const struct store_leader *row)
{
    emit_row_begin(e);
    emit_string_member(e, "case", row->case_id);
    emit_string_member(e, "device", row->device_model);
    emit_string_member(e, "provider", row->provider);
    emit_string_member(e, "role", row->role);
    emit_string_member(e, "kernel", row->kernel);
    emit_string_member(e, "contract", row->contract);
    emit_known_string(e, "commit", row->commit);
    emit_known_string(e, "subject", row->subject);
    emit_known_string(e, "author", row->author);
    emit_known_string(e, "branch", row->branch);
    emit_string_member(e, "run", row->run_uuid);
    emit_integer_member(e, "time_ms", row->time_ms);
    emit_known_real(e, "p50_ns", row->p50_ns);
    emit_known_real(e, "tflops", row->tflops);
    emit_known_real(e, "gbps", row->gbps);
    emit_known_string(e, "newest_run", row->newest_run);
    emit_known_real(e, "newest_p50_ns", row->newest_p50_ns);
    emit_row_end(e);
}

static void put_empty_leader(struct call *c, struct emit *e)
{
    (void)c;
    put_leader(e, &(struct store_leader){0});
}

static bool leader_row(void *context, const struct store_leader *row)
{
    struct page *p = context;
    if (!page_has_room(p, "%s,%s,%" PRId64 ",%s", row->case_id, row->device_model, row->p50_ps,
                       row->provider))
        return false;
    put_leader(&p->call->emit, row);
    return true;
}

static bool read_leader_key(struct call *c, char text[API_MAX_KEY + 1],
                            struct store_leader_key *key)
{
    const char *parts[4];
    bool found;
    *key = (struct store_leader_key){0};
    if (!read_key(c, text, parts, 4, &found))
        return false;
    if (!found)
        return true;
    *key = (struct store_leader_key){parts[0], parts[1], parse_count(parts[2]), parts[3]};
    if (key->p50_ps > 0)
        return true;
    refuse_after(c);
    return false;
}

enum gate_status get_leaderboard(struct call *c)
{
    const char *device;
    const char *branch;
    struct store_leader_key after;
    struct page page = {.call = c};
    char text[API_MAX_KEY + 1];
    if (!read_format(c) || !read_row_columns(c, put_empty_leader) || !read_branch(c, &branch) ||
        !read_device(c, false, &device) || !read_limit(&page, LEADERS_DEFAULT, LEADERS_MAX) ||
        !read_leader_key(c, text, &after))
        return GATE_OK;
    list_open(c, "leaders");
    enum gate_status status = store_leaderboard(c->store, branch, device, after, page.limit + 1,
                                                leader_row, &page, &c->err);
    page_end(&page);
    if (list_lacks_header(c))
        put_empty_leader(c, &c->emit);
    list_close(c);
    return status;
}
