/* The schema interpreter: each keyword's fault with its pointer, and positions in the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gate/base/embed.h"
#include "gate/base/json.h"
#include "gate/base/schema.h"

static struct schema *compile(const char *text)
{
    struct gate_error err = {0};
    struct schema *s = schema_compile(text, strlen(text), &err);
    if (!s)
        fail_msg("%s", err.message);
    return s;
}

static void assert_fault(const char *schema, const char *text, const char *message)
{
    struct schema *s = compile(schema);
    struct gate_error err = {0};
    cJSON *value = NULL;
    enum gate_status status = schema_parse(s, "t", 1, text, strlen(text), GATE_USAGE, &value, &err);
    if (!message) {
        if (status != GATE_OK)
            fail_msg("%s: %s", text, err.message);
        cJSON_Delete(value);
    } else {
        if (status == GATE_OK)
            fail_msg("%s accepts %s", schema, text);
        assert_int_equal(status, GATE_USAGE);
        assert_string_equal(err.message, message);
    }
    schema_free(s);
}

/* More properties than a word has bits, in each order. */
static void test_many_properties(void **state)
{
    (void)state;
    for (int missing = 0; missing <= 70; missing++) {
        struct buf schema, text;
        char message[64];
        buf_init(&schema, 1 << 16);
        buf_init(&text, 1 << 16);
        buf_puts(&schema, "{\"additionalProperties\":false,\"required\":[\"k0\"");
        for (int i = 1; i < 70; i++)
            buf_printf(&schema, ",\"k%d\"", i);
        buf_puts(&schema, "],\"properties\":{\"k0\":{}");
        for (int i = 1; i < 70; i++)
            buf_printf(&schema, ",\"k%d\":{\"maximum\":%d}", i, i);
        buf_puts(&schema, "}}");
        for (int i = 69; i >= 0; i--) {
            if (i != missing)
                buf_printf(&text, "%c\"k%d\":%d", text.len ? ',' : '{', i, i);
        }
        buf_putc(&text, '}');
        snprintf(message, sizeof(message), "t:1:1: missing key 'k%d'", missing);
        assert_fault(schema.data, text.data, missing < 70 ? message : NULL);
        buf_release(&schema);
        buf_release(&text);
    }
}

static void test_keywords(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *text, *message;
    } cases[] = {
        {"{}", "[1, null]", NULL},
        {"{\"type\":\"integer\"}", "3", NULL},
        {"{\"type\":\"integer\"}", "3.0", NULL},
        {"{\"type\":\"integer\"}", "3.5", "t:1:1: must be an integer, is 3.5"},
        {"{\"type\":\"number\"}", "\"3\"", "t:1:1: must be a number, is '3'"},
        {"{\"type\":\"string\"}", "null", "t:1:1: must be a string, is null"},
        {"{\"type\":\"boolean\"}", "0", "t:1:1: must be true or false, is 0"},
        {"{\"type\":\"null\"}", "false", "t:1:1: must be null, is false"},
        {"{\"type\":\"object\"}", "[]", "t:1:1: must be an object, is an array"},
        {"{\"type\":\"array\"}", "{}", "t:1:1: must be an array, is an object"},
        {"{\"minimum\":1}", "-3", "t:1:1: must be at least 1, is -3"},
        {"{\"minimum\":1}", "1", NULL},
        {"{\"exclusiveMinimum\":0}", "0", "t:1:1: must be more than 0, is 0"},
        {"{\"maximum\":10}", "11", "t:1:1: must be at most 10, is 11"},
        {"{\"minimum\":1}", "\"text\"", NULL},
        {"{\"minLength\":2}", "\"\xe2\x82\xac\"", "t:1:1: must have at least 2 characters, has 1"},
        {"{\"maxLength\":2}", "\"\xe2\x82\xac\xe2\x82\xac\"", NULL},
        {"{\"maxLength\":2}", "\"abc\"", "t:1:1: must have at most 2 characters, has 3"},
        {"{\"pattern\":\"^[a-z]+$\"}", "\"ab\\nc\"", "t:1:1: must match ^[a-z]+$, is 'ab\nc'"},
        {"{\"const\":\"gate-run/1\"}", "\"gate-run/2\"",
         "t:1:1: must be 'gate-run/1', is 'gate-run/2'"},
        {"{\"enum\":[\"a\",1]}", "1", NULL},
        {"{\"enum\":[\"a\",1]}", "2", "t:1:1: must be one of 'a', 1; is 2"},
        {"{\"minItems\":1}", "[]", "t:1:1: must have at least 1 items, has 0"},
        {"{\"maxItems\":1}", "[1,2]", "t:1:1: must have at most 1 items, has 2"},
        {"{\"items\":{\"type\":\"null\"}}", "[null,\n 7]", "t:2:2: /1: must be null, is 7"},
        {"{\"required\":[\"a\"]}", "{\"b\":1}", "t:1:1: missing key 'a'"},
        {"{\"required\":[\"a\",\"b\"],\"properties\":{\"a\":{},\"b\":{},\"c\":{}}}",
         "{\"c\":1,\"b\":1,\"a\":1}", NULL},
        {"{\"required\":[\"a\",\"b\"],\"properties\":{\"a\":{},\"b\":{},\"c\":{}}}",
         "{\"c\":1,\"x\":1,\"a\":1}", "t:1:1: missing key 'b'"},
        {"{\"required\":[\"a\",\"x\"],\"properties\":{\"a\":{}}}", "{\"a\":1}",
         "t:1:1: missing key 'x'"},
        {"{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"a\":1,\n\"b\":2}",
         "t:2:1: /b: unknown key 'b'"},
        {"{\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"null\"}}",
         "{\"a\":1,\"b\":2}", "t:1:12: /b: must be null, is 2"},
        {"{\"properties\":{\"a\":{}},\"additionalProperties\":true}", "{\"b\":2}", NULL},
        {"{\"$ref\":\"#/$defs/n\",\"maximum\":5,\"$defs\":{\"n\":{\"type\":\"number\"}}}", "\"x\"",
         "t:1:1: must be a number, is 'x'"},
        {"{\"$ref\":\"#/$defs/n\",\"maximum\":5,\"$defs\":{\"n\":{\"type\":\"number\"}}}", "6",
         "t:1:1: must be at most 5, is 6"},
        {"{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"number\"}]}", "null", NULL},
        {"{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"number\"}]}", "[]",
         "t:1:1: must be null, is an array, or must be a number, is an array"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", "1",
         "t:1:1: fits more than one of the allowed forms"},
        {"{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"object\",\"properties\":{\"a\":"
         "{\"type\":\"null\"}}}]}",
         "{\"a\":1}", "t:1:6: /a: must be null, is 1"},
        {"{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"object\",\"properties\":{\"a\":{}},"
         "\"additionalProperties\":false}]}",
         "{\"b\":1}", "t:1:2: /b: unknown key 'b'"},
        {"{\"oneOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/o\"}],\"$defs\":{\"o\":"
         "{\"type\":\"object\",\"required\":[\"a\"]}}}",
         "{\"b\":1}", "t:1:1: missing key 'a'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_fault(cases[i].schema, cases[i].text, cases[i].message);
}

static void test_bad_schemas(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{\"typ\":\"null\"}",
        "{\"type\":\"nil\"}",
        "{\"type\":[\"null\"]}",
        "{\"minimum\":\"1\"}",
        "{\"pattern\":\"(\"}",
        "{\"uniqueItems\":true}",
        "{\"properties\":{\"a\":{\"format\":\"date\"}}}",
        "{\"properties\":[]}",
        "{\"items\":true}",
        "{\"required\":[1]}",
        "{\"oneOf\":[]}",
        "{\"enum\":[]}",
        "{\"$ref\":\"other.json\"}",
        "{\"$ref\":\"#/$defs/none\"}",
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}}}",
        "{\"properties\":{\"a\":{\"$defs\":{}}}}",
        "{\"type\":\"null\"",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct gate_error err = {0};
        if (schema_compile(texts[i], strlen(texts[i]), &err))
            fail_msg("compiled: %s", texts[i]);
        assert_true(err.message[0] != '\0');
    }
}

static void test_recursive_definition(void **state)
{
    (void)state;
    static const char tree[] = "{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":\"array\","
                               "\"items\":{\"$ref\":\"#/$defs/t\"}}}}";
    assert_fault(tree, "[[],[[]]]", NULL);
    assert_fault(tree, "[[],[[1]]]", "t:1:7: /1/0/0: must be an array, is 1");
}

static void test_embedded_schema(void **state)
{
    (void)state;
    assert_null(schema_open("none.schema.json"));
    struct schema *s = schema_open("run.schema.json");
    assert_non_null(s);
    struct gate_error err = {0};
    cJSON *value = NULL;
    static const char text[] = "{\"schema\": \"gate-run/1\",\n  \"suit\": \"smoke\"}";
    assert_int_equal(schema_parse(s, "run.json", 1, text, strlen(text), GATE_IO, &value, &err),
                     GATE_IO);
    assert_string_equal(err.message, "run.json:2:3: /suit: unknown key 'suit'");
    schema_free(s);
}

/* A schema that uses a keyword which the interpreter does not know would check nothing at all. */
static void test_all_embedded_schemas_compile(void **state)
{
    (void)state;
    assert_true(embedded_schemas_count >= 3);
    for (size_t i = 0; i < embedded_schemas_count; i++) {
        struct gate_error err = {0};
        struct schema *s =
            schema_compile((const char *)embedded_schemas[i].data, embedded_schemas[i].size, &err);
        if (!s)
            fail_msg("%s: %s", embedded_schemas[i].name, err.message);
        schema_free(s);
    }
}

static void test_number_that_is_not_finite(void **state)
{
    (void)state;
    struct schema *s = compile("{\"type\":\"number\"}");
    struct schema_fault fault;
    cJSON *v = cJSON_CreateNumber(NAN);
    assert_false(schema_check(s, v, &fault));
    cJSON_Delete(v);
    schema_free(s);
}

/* Keys of any length and content, in pointers and messages that have fixed sizes. */
static void test_long_keys(void **state)
{
    (void)state;
    struct schema *s = compile("{\"additionalProperties\":{\"additionalProperties\":false}}");
    struct buf text;
    struct gate_error err = {0};
    cJSON *value = NULL;
    buf_init(&text, 100000);
    buf_puts(&text, "{\"~/\":{\"");
    for (int i = 0; i < 5000; i++)
        buf_puts(&text, "\xe2\x82\xac");
    buf_puts(&text, "\":1}}");
    assert_int_equal(schema_parse(s, "t", 1, text.data, text.len, GATE_IO, &value, &err), GATE_IO);
    assert_memory_equal(err.message, "t:1:7: /~0~1: unknown key '", 27);
    assert_string_equal(err.message + strlen(err.message) - 3, "...");
    buf_release(&text);
    schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keywords),
        cmocka_unit_test(test_many_properties),
        cmocka_unit_test(test_bad_schemas),
        cmocka_unit_test(test_recursive_definition),
        cmocka_unit_test(test_embedded_schema),
        cmocka_unit_test(test_all_embedded_schemas_compile),
        cmocka_unit_test(test_number_that_is_not_finite),
        cmocka_unit_test(test_long_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
