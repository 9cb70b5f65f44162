/* SPDX-License-Identifier: Apache-2.0 */
/* api_baselines.c: what runs were compared with, and how that changed; see api.h. */
#include "server/api/api_call.h"

enum gate_status get_baselines(struct call *c)
{
    static const struct list_of list = {"baselines", STORE_BASELINES, 1000, 5000, "ss"};
    struct store_list_filter filter = {0};
    if (!read_format(c) || !read_device(c, false, &filter.device_model))
        return GATE_OK;
    return put_list(c, &list, &filter);
}

enum gate_status get_baseline_log(struct call *c)
{
    static const struct list_of list = {"log", STORE_BASELINE_LOG, 200, 1000, "n"};
    struct store_list_filter filter = {0};
    if (!read_format(c) || !read_case(c, false, &filter.case_id) ||
        !read_device(c, filter.case_id != NULL, &filter.device_model))
        return GATE_OK;
    return put_list(c, &list, &filter);
}
