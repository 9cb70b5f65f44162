/* SPDX-License-Identifier: Apache-2.0 */
/* api_compare.c: which two runs are compared; compare.sql does it, case by case. */
#include <stdio.h>
#include <string.h>

#include "server/api/api_call.h"
#include "server/api/rows.h"

/* One of the runs. */
struct compare_side {
    const char *name;     /* "a" or "b" */
    const char *text;     /* as the address has it */
    struct store_run run; /* of no uuid: it was not found yet */
    bool by_time;         /* it is the main branch's newest before the other */
};

static bool note_base(void *context, const struct store_row *row)
{
    struct compare_side *s = context;
    snprintf(s->run.uuid, sizeof s->run.uuid, "%s", store_text_of(row, "uuid"));
    s->by_time = store_integer_of(row, "by_time") != 0;
    return false;
}

static bool is_base(const struct compare_side *s)
{
    return !strcmp(s->text, "parent") || !strcmp(s->text, "merge-base");
}

/*
 * The run of the nearest commit before that of the other that was measured on its device, or of the
 * main branch where its own began. The server has no repository: it knows the history that run
 * documents brought, and where that does not tell, time decides.
 */
static enum gate_status look_up_base(struct call *c, struct compare_side *s,
                                     const struct compare_side *other)
{
    bool is_parent = !strcmp(s->text, "parent");
    const struct rows_value values[] = {{"run", other->run.uuid},
                                        {"device", other->run.device_model},
                                        {"branch", is_parent ? NULL : c->site.main_branch},
                                        {NULL, NULL}};
    return rows_select(c, "base.sql", values, note_base, s);
}

/* False: the request was answered with a problem, or *status says what failed. */
static bool find_side(struct call *c, const char *device, struct compare_side *s,
                      const struct compare_side *other, enum gate_status *status)
{
    if (!is_base(s)) {
        /* A run, the newest one of a commit or, where there is none, of a branch. */
        *status = store_find_run(c->store, s->text, device, &s->run, &c->err);
        if (*status == GATE_USAGE)
            *status = store_newest_run(c->store, s->text, device, &s->run, &c->err);
    } else if (other->run.uuid[0] != '\0') {
        *status = look_up_base(c, s, other);
    }
    if (*status || s->run.uuid[0] != '\0')
        return *status == GATE_OK;
    if (is_base(s))
        reply_problem(c->reply, 404, "No run of the %s of '%s' is known on its device.", s->text,
                      other->name);
    else
        reply_problem(
            c->reply, 404,
            "No run, or more than one, is called '%s': name it by a branch, 7 or more digits of a "
            "commit, a uuid or 4 or more characters of its start, or 'parent' or 'merge-base' of "
            "the other.",
            is_name(s->text, "_-./+", 100) ? s->text : "...");
    return false;
}

/* What the runs say of themselves, beside the cases. */
static enum gate_status put_sides(struct call *c, void *context)
{
    const struct compare_side *sides = context;
    enum gate_status status = GATE_OK;
    for (int i = 0; i < 2 && !status; i++) {
        const struct rows_value values[] = {
            {"uuid", sides[i].run.uuid}, {"limit", "1"}, {NULL, NULL}};
        emit_key(&c->emit, sides[i].name);
        emit_open(&c->emit, '{');
        status = rows_put(c, "runs.sql", values, true, NULL);
        emit_close(&c->emit, '}');
    }
    emit_bool_member(&c->emit, "by_time", sides[0].by_time || sides[1].by_time);
    return status;
}

enum gate_status get_compare(struct call *c)
{
    const char *device;
    struct compare_side sides[] = {{.name = "a"}, {.name = "b"}};
    enum gate_status status = GATE_OK;
    if (!read_parameter(c, "device", false, &device))
        return status;
    for (int i = 0; i < 2; i++) {
        sides[i].text = request_parameter(c->request, sides[i].name);
        if (!sides[i].text) {
            reply_problem(c->reply, 400, "The parameter '%s' is missing.", sides[i].name);
            return status;
        }
    }
    int first = is_base(&sides[0]); /* the one that is a base of the other comes after it */
    if (!find_side(c, device, &sides[first], &sides[!first], &status) ||
        !find_side(c, device, &sides[!first], &sides[first], &status))
        return status;
    const struct rows_value values[] = {
        {"a", sides[0].run.uuid}, {"b", sides[1].run.uuid}, {NULL, NULL}};
    return rows_list(c, "compare.sql", values, put_sides, sides);
}
