/* SPDX-License-Identifier: Apache-2.0 */
/* api_openapi.c: the description of this API, server/api/openapi.json; see api.h. */
#include "server/api/api_call.h"
#include "gate/base/embed.h"

enum gate_status get_openapi(struct call *c)
{
    for (size_t i = 0; i < embedded_api_count; i++)
        buf_append(c->emit.out, embedded_api[i].data, embedded_api[i].size);
    return GATE_OK;
}
