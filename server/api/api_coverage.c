/* SPDX-License-Identifier: Apache-2.0 */
/* api_coverage.c: what verification has covered over all runs; see api.h. */
#include "server/api/api_call.h"

enum gate_status get_coverage(struct call *c)
{
    static const struct list_of list = {"coverage", STORE_COVERAGE, INT32_MAX, INT32_MAX, ""};
    struct store_list_filter filter = {0};
    if (!read_format(c) || !read_device(c, false, &filter.device_model))
        return GATE_OK;
    return put_list(c, &list, &filter);
}
