/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops/dtype.h"
#include "gate/base/json.h"
#include "gate/base/process.h"
#include "gate/base/utf8.h"

#define FINISH_GRACE_S 5.0
#define TIMEOUT_MIN_S 60.0 /* opening a GPU takes seconds, whatever the time-out for cases */

static enum gate_status read_answer(const struct buf *line, struct run_ceilings *out,
                                    struct gate_error *err)
{
    struct fields_taken taken;
    struct message_refusal refusal;
    struct message_ceilings message;
    struct field_fault fault;
    enum gate_status status = GATE_OK;
    TRY(json_check("worker", 1, line->data, line->len, GATE_WRONG, err));
    if (fields_pick(&message_refusal_shape, line->data, line->len, &refusal, &taken, &fault))
        status = gate_fail(err, GATE_ENVIRONMENT, "%s",
                           refusal.message ? refusal.message : "the worker refuses");
    else if (!fields_pick(&message_ceilings_shape, line->data, line->len, &message, &taken, &fault))
        status = gate_fail(err, GATE_WRONG, "the worker does not measure it");
    else {
        out->document = message.ceilings;
        out->document.message = out->document.measured_in = NULL; /* which are taken.texts' */
        fields_release(&message_ceilings_shape, &message);
    }
    free(taken.texts);
    return status;
}

static enum gate_status ask(const struct supervisor_options *o, struct run_ceilings *out,
                            struct gate_error *err)
{
    struct supervisor_options alone = {
        .worker = o->worker, .device = o->device, .timeout_s = o->timeout_s};
    struct process process;
    struct buf line;
    TRY(worker_start(&alone, NULL, 0, false, &process, err));
    buf_init(&line, PROTOCOL_LINE_MAX + 1);
    enum process_event event =
        process_read_line(&process, fmax(o->timeout_s, TIMEOUT_MIN_S), &line);
    if (event == PROCESS_LINE)
        process_finish(&process, FINISH_GRACE_S);
    else
        process_kill(&process, NULL, 0);
    const char *last = process_last_words(&process);
    enum gate_status status = event == PROCESS_LINE
                                  ? read_answer(&line, out, err)
                                  : gate_fail(err, GATE_ENVIRONMENT, "its worker %s%s%.200s",
                                              event == PROCESS_SILENCE ? "hung" : "failed",
                                              *last ? "; its last words: " : "", last);
    buf_release(&line);
    return status;
}

void run_ceilings_measure(const struct supervisor_options *options,
                          const struct document_device *device, struct run_ceilings *out)
{
    struct gate_error err = {0};
    out->asked = device->kind == DEVICE_CUDA;
    if (!out->asked || !ask(options, out, &err))
        return;
    fields_clear(&document_ceilings_shape, &out->document);
    utf8_print(out->message, sizeof out->message, "%.399s", err.message);
    out->document.message = out->message;
}

double run_ceilings_share(const struct document_ceilings *c, const char *dtype,
                          const struct document_timing *timing)
{
    const struct dtype *row = dtype_by_name(dtype);
    const double of[RATES] = {
        [RATE_FP16] = c->fp16_tflops,
        [RATE_BF16] = c->bf16_tflops,
        [RATE_TF32] = c->tf32_tflops,
        [RATE_FP32] = fmax(c->fp32_tflops, c->tf32_tflops / 3),
    };
    double gbps = fmax(c->read_gbps, c->copy_gbps), tflops = row ? of[row->rate] : NAN;
    if (!(gbps > 0) || !(tflops > 0))
        return NAN;
    return fmax(timing->gbps / gbps, timing->tflops / tflops);
}
