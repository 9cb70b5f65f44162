/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h: `gate worker`, which the supervisor starts; see PROTOCOL.md. */
#ifndef GATE_WORKER_WORKER_H
#define GATE_WORKER_WORKER_H

/* As the commands of cli/commands.h: returns the exit code. */
int cmd_worker(int argc, char **argv);

#endif
