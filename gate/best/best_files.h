/*
 * best_files.h: all files of stored bests of a folder, one device model after the other.
 */
#ifndef GATE_BEST_BEST_FILES_H
#define GATE_BEST_BEST_FILES_H

#include "gate/best/best.h"

typedef enum gate_status (*best_file_fn)(void *context, const char *device_model,
                                         const struct best *best, struct gate_error *err);

/* Calls fn for each DIR/<device-model>.json in the order of the names, or for one model alone (an
 * empty set where it has no file), until one fails. GATE_IO: as best_load(). */
enum gate_status best_files_each(const char *folder, const char *device_model, best_file_fn fn,
                                 void *context, struct gate_error *err);

#endif
