/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/launch/fingerprints.h"

#include <inttypes.h>
#include <stdio.h>

cJSON *fingerprints_write(const struct fingerprints *f)
{
    if (!f->known)
        return NULL;
    cJSON *array = cJSON_CreateArray();
    for (unsigned i = 0; i < VERIFY_SEEDS; i++) {
        char text[17];
        snprintf(text, sizeof text, "%016" PRIx64, f->of[i]);
        cJSON_AddItemToArray(array, cJSON_CreateString(text));
    }
    return array;
}

struct fingerprints fingerprints_read(const cJSON *array)
{
    struct fingerprints f = {false};
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != VERIFY_SEEDS)
        return f;
    for (int i = 0; i < VERIFY_SEEDS; i++) {
        const cJSON *item = cJSON_GetArrayItem(array, i);
        if (!cJSON_IsString(item) || sscanf(item->valuestring, "%16" SCNx64, &f.of[i]) != 1)
            return f;
    }
    f.known = true;
    return f;
}
