/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter.cpp: a function of PyTorch's tensors as a kernel library; here ATen's softmax, for the op
 * of ../triton. Put yours in the place of compute(): the function that you register by
 * TORCH_LIBRARY, linked without that registration, of which a process can have only one.
 */
#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

#include "problem.h"

/* Writes into `out`, and allocates nothing: a variant that returns a new tensor cannot be gated. */
static void compute(const at::Tensor &x, at::Tensor &out)
{
    at::_softmax_out(out, x, -1, false);
}

static at::Tensor tensor_of(const kg_tensor &t)
{
    const auto type = t.dtype == KG_F16 ? at::kHalf
                                        : t.dtype == KG_BF16 ? at::kBFloat16 : at::kFloat;
    return at::from_blob(t.data, {t.shape, t.rank}, {t.stride, t.rank},
                         at::TensorOptions().dtype(type).device(at::kCUDA));
}

/* PyTorch's own set-up is not for launch(). */
static kg_status start(const kg_device *, const struct kg_file *)
{
    return at::empty({1}, at::kCUDA).defined() ? KG_OK : KG_UNSUPPORTED;
}

static int supports(const kg_problem *p, const kg_device *device)
{
    const uint32_t dtype = kg_dtype(p);
    return device->kind == KG_DEVICE_CUDA && dtype >= KG_F16 && dtype <= KG_F32;
}

static kg_status launch(const kg_problem *, const kg_args *args)
{
    try {
        const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(
            static_cast<cudaStream_t>(args->stream), c10::cuda::current_device()));
        at::Tensor out = tensor_of(args->out[0]);
        compute(tensor_of(args->in[0]), out);
        return KG_OK;
    } catch (const c10::Error &) {
        return KG_LAUNCH_FAILED;
    }
}

static const kg_kernel kernel = {sizeof kernel, 0, "softmax", "torch_softmax", supports, NULL,
                                 NULL, launch, NULL};
static const kg_kernel *const kernels[] = {&kernel};
static const struct kg_library library = {sizeof library, KG_ABI_VERSION, "torch", "1",
                                          KG_DEVICE_CUDA, 1, kernels, start, NULL};

const struct kg_library *kg_library(void)
{
    return &library;
}
