/*
 * json_tree.h: how json_parse.c makes a tree. Not for others.
 *
 * Nodes are cJSON's own, on the heap where the pool is NULL, so that cJSON_Delete() frees them.
 */
#ifndef GATE_BASE_JSON_TREE_H
#define GATE_BASE_JSON_TREE_H

#include "base/json.h"
#include "base/json_keys.h"

/* Forgets what is in the pool, but keeps a block of memory for what comes. */
void json_pool_clear(struct json_pool *pool);

/* These return NULL when memory is short. */
cJSON *json_new_node(struct json_pool *pool);
cJSON *json_add_node(struct json_pool *pool, cJSON *parent); /* behind its last child */
char *json_keep(struct json_pool *pool, const char *s, size_t len);
char *json_keep_key(struct json_pool *pool, struct json_name name);

void json_set_number(cJSON *node, double value);
void json_set_word(cJSON *node, int type); /* cJSON_True, cJSON_False or cJSON_NULL */

/* What strtod() makes of `len` (at most 63) characters that are a JSON number. */
double json_number_value(const char *text, size_t len);

#endif
