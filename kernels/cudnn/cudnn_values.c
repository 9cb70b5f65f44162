/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_values.c: compares cudnn_values.h with cuDNN's own header where the compiler finds it. */
#include "kernels/cudnn/cudnn_values.h"

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

#define CHECK(name, value)                                                                         \
    _Static_assert((int)name == K##name, #name " is another number in cuDNN's header");
#if CUDNN_VERSION >= 91300
CUDNN_VALUES(CHECK)
#endif

#endif
