#include <stdio.h>

#include "gate/base/environment.h"
#include "gate/base/json.h"
#include "gate/cli/cmd_common.h"
#include "gate/cli/commands.h"
#include "gate/tracker/http_client.h"
#include "gate/run/target.h"

struct doctor_arguments {
    const char *device;
    bool json;
};

static const struct option_def options[] = {
    {.name = "device",
     .value = "auto|host|cuda:N",
     .help = "the device to open",
     .type = OPTION_TEXT,
     .at = offsetof(struct doctor_arguments, device),
     .fallback = "auto"},
    {.name = "json",
     .help = "print a JSON document",
     .type = OPTION_FLAG,
     .at = offsetof(struct doctor_arguments, json)},
    {0},
};

const struct command command_doctor = {
    .name = "doctor",
    .summary = "report what this machine has and what the gate can do on it",
    .about = "Opens the device as a run would, and says what is there: device, driver, kernel "
             "libraries, which providers are absent and why, whether there is a libcurl, which "
             "`gate push` needs, and the environment variables of the gate.",
    .groups = {{options, 0}},
    .ending = "Exit code 4 when the device is missing or busy.\n",
    .main = cmd_doctor,
};

static void print_field(const cJSON *o, const char *label, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(o, key);
    if (cJSON_IsNumber(value))
        printf("  %-14s %.0f\n", label, value->valuedouble);
    else
        printf("  %-14s %s\n", label, json_string(o, key, ""));
}

static void print_libcurl(void)
{
    char version[32];
    struct gate_error why;
    if (http_client_version(version, &why))
        printf("tracking server\n  %-14s %s\n", "libcurl", version);
    else
        printf("tracking server\n  %-14s absent: %s\n", "libcurl", why.message);
}

static const char *shown(const struct environment_variable *v)
{
    const char *value = environment_get(v->name);
    return value && v->is_secret ? "(set)" : value;
}

static void print_environment(void)
{
    printf("environment\n");
    for (const struct environment_variable *v = environment_variables; v->name; v++) {
        const char *value = shown(v);
        printf("  %-20s%s%s%s\n", v->name, value ? value : "", value ? "; " : "", v->what);
    }
}

static void print_greeting(const cJSON *greeting)
{
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(greeting, "device"), *item;
    printf("device\n");
    print_field(device, "name", "name");
    print_field(device, "model", "model");
    print_field(device, "uuid", "uuid");
    print_field(device, "capability", "capability");
    print_field(device, "SMs or threads", "sm_count");
    print_field(device, "cache bytes", "l2_bytes");
    print_field(device, "memory bytes", "memory_bytes");
    print_field(device, "driver", "driver");
    print_field(device, "runtime", "runtime");
    printf("contract\n  %s\n", json_string(greeting, "contract", ""));
    if (!json_bool(greeting, "launch_order_checked", true))
        printf("  the order of launches is not checked: CUDA tells it from 12.3 on\n");
    printf("libraries\n");
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(greeting, "libraries"))
        printf("  %-14s %s, %s, sha256 %.16s...\n", json_string(item, "provider", ""),
               json_string(item, "file", ""), json_string(item, "version", ""),
               json_string(item, "sha256", ""));
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(greeting, "absent"))
        printf("  %-14s absent: %s\n", json_string(item, "provider", ""),
               json_string(item, "reason", ""));
    print_libcurl();
}

static void print_json(const cJSON *greeting)
{
    char version[32];
    struct buf text;
    cJSON *all = cJSON_Duplicate(greeting, true);
    buf_init(&text, (size_t)1 << 20);
    cJSON_AddItemToObject(all, "libcurl",
                          http_client_version(version, NULL) ? cJSON_CreateString(version)
                                                             : cJSON_CreateNull());
    cJSON *environment = cJSON_AddObjectToObject(all, "environment");
    for (const struct environment_variable *v = environment_variables; v->name; v++)
        cJSON_AddItemToObject(environment, v->name,
                              shown(v) ? cJSON_CreateString(shown(v)) : cJSON_CreateNull());
    json_write(all, true, &text);
    fputs(text.failed ? "" : text.data, stdout);
    buf_release(&text);
    cJSON_Delete(all);
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_arguments a = {0};
    struct target target = {0};
    struct supervisor *s = NULL;
    struct gate_error err = {0};
    int exit_code;
    if (!options_read(&command_doctor, &a, 0, argc, argv, NULL, &exit_code))
        return exit_code;
    const struct target_choice choice = {.device = a.device};
    enum gate_status status = target_resolve(&choice, &target, &err);
    if (!status)
        status = supervisor_start(&target.options, &s, &err);
    if (!status && a.json)
        print_json(supervisor_greeting(s));
    else if (!status)
        print_greeting(supervisor_greeting(s));
    if (!a.json)
        print_environment();
    supervisor_stop(s);
    return status ? command_failed(&command_doctor, &err) : GATE_OK;
}
