/* SPDX-License-Identifier: Apache-2.0 */
/* api_calibrations.c: results of `gate calibrate`; see api.h. */
#include "server/api/api_call.h"

enum gate_status get_calibrations(struct call *c)
{
    static const struct list_of list = {"calibrations", STORE_CALIBRATIONS, 50, 200, "nn"};
    struct store_list_filter filter = {0};
    if (!read_format(c) || !read_device(c, false, &filter.device_model) ||
        !read_machine(c, &filter.machine))
        return GATE_OK;
    return put_list(c, &list, &filter);
}
