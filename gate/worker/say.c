/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/worker/say.h"

#include "gate/worker/protocol.h"

void say(FILE *out, const struct shape *shape, const void *message)
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

void say_phase(FILE *out, const char *phase, const char *provider, const char *on)
{
    say(out, &message_phase_shape,
        &(struct message_phase){.phase = phase, .provider = provider, .on = *on ? on : NULL});
}
