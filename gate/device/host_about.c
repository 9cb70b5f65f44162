/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/device/host.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <gnu/libc-version.h>

#include "gate/base/file.h"

/* Some systems report the sum over all slices of a socket; no core holds more than its own. */
#define CACHE_MAX_BYTES ((int64_t)64 << 20)

/* Copies the value of "key : value" from a /proc file; false when it is not there. */
static bool proc_value(const char *path, const char *key, char *value, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, size, "%s", colon);
        found = true;
    }
    fclose(f);
    return found;
}

void host_model_key(const char *prefix, const char *name, char *key, size_t size)
{
    size_t n = (size_t)snprintf(key, size, "%s", prefix);
    for (; *name && n + 1 < size; name++) {
        if (isalnum((unsigned char)*name))
            key[n++] = (char)tolower((unsigned char)*name);
        else if (n && key[n - 1] != '-')
            key[n++] = '-';
    }
    while (n && key[n - 1] == '-')
        n--;
    key[n] = '\0';
}

static int64_t memory_from_proc(const char *key)
{
    char text[64];
    return proc_value("/proc/meminfo", key, text, sizeof text) ? strtoll(text, NULL, 10) * 1024 : 0;
}

static const char *instruction_set(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return "avx512";
    return __builtin_cpu_supports("avx2") ? "avx2" : "sse2";
#elif defined(__aarch64__)
    return "neon";
#else
    return "generic";
#endif
}

static int usable_threads(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

static int64_t last_level_cache_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0)
        bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes <= 0)
        return (int64_t)8 << 20;
    return bytes < CACHE_MAX_BYTES ? bytes : CACHE_MAX_BYTES;
}

void host_describe(struct device_info *info)
{
    struct utsname system;
    char hash[65];
    *info = (struct device_info){
        .kg = {.struct_bytes = sizeof info->kg,
               .kind = KG_DEVICE_HOST,
               .sm_count = usable_threads(),
               .l2_bytes = last_level_cache_bytes()},
        .memory_bytes = memory_from_proc("MemTotal"),
        .memory_free_bytes = memory_from_proc("MemAvailable"),
    };
    if (!proc_value("/proc/cpuinfo", "model name", info->name, sizeof info->name))
        snprintf(info->name, sizeof info->name, "unknown CPU");
    host_model_key("host-", info->name, info->model, sizeof info->model);
    bool known = !file_sha256("/etc/machine-id", hash, NULL);
    snprintf(info->uuid, sizeof info->uuid, "HOST-%.16s", known ? hash : "unknown");
    snprintf(info->capability, sizeof info->capability, "%s", instruction_set());
    if (!uname(&system))
        snprintf(info->driver, sizeof info->driver, "%.63s", system.release);
    snprintf(info->runtime, sizeof info->runtime, "glibc %s", gnu_get_libc_version());
}
