/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_scene.h: a throw-away git repository whose commits can be built, and what came of it.
 *
 * Each test stands in "repository", which has no commit; the cache is "cache" beside it. A function
 * that cannot do what it says fails the running test.
 */
#ifndef TESTS_UNIT_BUILD_SCENE_H
#define TESTS_UNIT_BUILD_SCENE_H

#include "gate/baseline/artifact.h"
#include "gate/baseline/revision.h"

#define LIBRARY "libtest.so"
#define RECIPE(file) (&(const struct rebuild_recipe){.library = (file)})
#define NO_COMMIT "0123456789abcdef0123456789abcdef01234567"

/* Of a test: it has a scene of its own. */
int scene_enter(void **state);

/* What a commit's build does: makes the library; writes an error and asks standard input. */
extern const char scene_builds[], scene_fails[];

/* Sets an environment variable to a path of the scene. */
void scene_variable(const char *variable, const char *name);

void scene_shell(const char *command);

/* The first line of what a command prints. */
void scene_line(const char *command, char *line, int size);

/* Commits the repository with another "how". */
void scene_commit(const char *how, char id[41]);

void scene_resolve(const char *what, struct revision *r);

/* Checkouts for builds; locks stay. */
int scene_worktrees(void);

void assert_library_of(const struct revision *r, const char *id);

/* So many builds in all. */
void assert_builds(int expected);

/* Neither on the disk nor in git's books. */
void assert_no_worktree(void);

#endif
