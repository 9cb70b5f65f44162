/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/send.h"

#include "gate/worker/protocol.h"

void send_message(FILE *out, const struct shape *shape, const void *message)
{
    struct buf line;
    buf_init(&line, PROTOCOL_LINE_MAX);
    fields_write(shape, message, &line);
    buf_putc(&line, '\n');
    if (!line.failed) {
        fwrite(line.data, 1, line.len, out);
        fflush(out);
    }
    buf_release(&line);
}

void send_phase(FILE *out, const char *phase, const char *provider, const char *on)
{
    send_message(
        out, &message_phase_shape,
        &(struct message_phase){.phase = phase, .provider = provider, .on = *on ? on : NULL});
}
