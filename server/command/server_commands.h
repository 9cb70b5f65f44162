/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_commands.h: what gate-server can be asked to do.
 *
 * Each takes its own name as argv[0], prints its result on standard output, and returns the exit
 * status with a message in *err.
 */
#ifndef SERVER_COMMAND_SERVER_COMMANDS_H
#define SERVER_COMMAND_SERVER_COMMANDS_H

#include "gate/base/error.h"

enum gate_status server_serve(int argc, char **argv, struct gate_error *err); /* the default */
enum gate_status server_check(int argc, char **argv, struct gate_error *err);
enum gate_status server_backup(int argc, char **argv, struct gate_error *err);
enum gate_status server_restore(int argc, char **argv, struct gate_error *err);
enum gate_status server_thin(int argc, char **argv, struct gate_error *err);
enum gate_status server_routes(int argc, char **argv, struct gate_error *err);
enum gate_status server_token(int argc, char **argv, struct gate_error *err);

#endif
