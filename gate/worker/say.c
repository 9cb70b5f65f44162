/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/say.h"

#include "gate/base/json.h"
#include "gate/worker/protocol.h"

void say(FILE *out, cJSON *record)
{
    struct buf line;
    buf_init(&line, PROTOCOL_LINE_MAX);
    json_write(record, false, &line);
    if (!line.failed) {
        fwrite(line.data, 1, line.len, out);
        fflush(out);
    }
    buf_release(&line);
    cJSON_Delete(record);
}

void say_phase(FILE *out, const char *phase, const char *provider, const char *on)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "phase", phase);
    cJSON_AddStringToObject(o, "provider", provider);
    if (*on)
        cJSON_AddStringToObject(o, "on", on);
    say(out, o);
}
