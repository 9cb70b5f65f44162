/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_fixture.h: what the tests of the store share. Each test has a folder of its own, and in it
 * the path of a database that is not made yet. What cannot be done fails the test.
 */
#ifndef TESTS_UNIT_STORE_FIXTURE_H
#define TESTS_UNIT_STORE_FIXTURE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "gate/store/store.h"
#include "tests/tools/sample_runs.h"

struct store_fixture {
    char folder[256];
    char path[512];
    struct gate_error err;
};

int store_set_up(void **state);
int store_tear_down(void **state);

struct store *open_store(struct store_fixture *f, enum store_mode mode);

extern const struct sample_plan plan;

/* Stores a document, which is freed. `existed` may be NULL. */
enum gate_status put(struct store_fixture *f, struct store *s, cJSON *document, bool *existed);
/* The same, and it must not fail. */
void must_put(struct store_fixture *f, struct store *s, cJSON *document);
void fill(struct store_fixture *f, struct store *s, const struct sample_plan *p);

/* A run of one case at a time: the number `index` of a history of its own, in which no commit is
 * linked to another. */
cJSON *run_at(int index, int64_t time_ms);

/* How many the list of runs has. */
enum gate_status count_runs(struct store_fixture *f, struct store *s, int *n);

/* Runs in a child, whose limits and rights are its own; true if `body` returned true. */
bool in_child(struct store_fixture *f, bool (*body)(struct store_fixture *f));

/* Through a connection of their own. */
int64_t scalar(const char *path, const char *sql);
/* `bound`: the value of ?1, or NULL. */
void text_of(const char *path, const char *sql, const char *bound, char *out, size_t size);
void execute(const char *path, const char *sql);
void assert_sound(const char *path); /* integrity and foreign keys */

/* Parts of a document, and how to change them. */
enum { CANDIDATE, BASELINE, RIVAL }; /* the arms of a GPU's case, before torch */
cJSON *item_of(cJSON *document, int index);
cJSON *arm_of(cJSON *document, int index, int arm);
cJSON *timing_of(cJSON *document, int index, int arm);
void set_number(cJSON *object, const char *key, double value);
void set_string(cJSON *object, const char *key, const char *value);

#endif
