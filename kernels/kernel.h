/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h: the ABI between the gate and a kernel library.
 *
 * A kernel library is a shared object that exports one function, `kg_library`, which returns a
 * constant table of kernels. The gate uses nothing else of it. This header is all that you need to
 * write one: it is plain C11 (and C++17), and includes no CUDA header.
 *
 *     static const struct kg_kernel my_gemm = {
 *         .struct_bytes = sizeof(struct kg_kernel), .op = KG_OP_GEMM, .name = "my_gemm",
 *         .supports = my_supports, .launch = my_launch,
 *     };
 *     static const struct kg_kernel *const table[] = {&my_gemm};
 *     static const struct kg_library lib = {
 *         .struct_bytes = sizeof(struct kg_library), .abi_version = KG_ABI_VERSION,
 *         .provider = "mine", .version = "1.0", .device_kind = KG_DEVICE_CUDA,
 *         .n_kernels = 1, .kernels = table,
 *     };
 *     KG_EXPORT const struct kg_library *kg_library(void) { return &lib; }
 *
 * Calls, in this order, all from one thread of a worker process:
 *   1. kg_library()                  once; must not touch a device
 *   2. open(device)                  once, optional; create handles and load modules here
 *   3. supports(problem, device)     a pure function
 *   4. prepare(problem, device)      optional; choose algorithms, set attributes; may allocate
 *   5. workspace_bytes(problem, device)
 *   6. launch(problem, args)         many times, also while the stream is being captured
 *   7. close()                       once, optional
 * The gate may load a library twice and time both copies. Each copy has its own memory and gets its
 * own calls; the second copy is in no folder, so it finds no files beside itself. Both copies share
 * the libraries that they depend on, and the symbols that the loader makes unique in a process
 * (g++: -fno-gnu-unique avoids them).
 *
 * Rules of launch():
 *  - It only enqueues work on args->stream and returns a status. It allocates nothing, frees
 *    nothing, never synchronises, and keeps no state between calls.
 *  - It writes to `out` and `workspace` only. Their contents on entry are garbage.
 *  - Its work begins after the work of the previous launch has ended. Within a launch, a kernel may
 *    be a programmatic dependent launch, but not the first one, which would overlap with the
 *    previous launch. If it uses another stream, that stream first waits for all earlier work on
 *    args->stream, and args->stream then waits for it.
 *  - On the host device it computes in the calling thread or in its own threads, and returns when
 *    the result is written.
 *
 * No call, including open() and prepare(), changes global state of the process or the device:
 * limits, modes, signals, the current folder, the clock, scheduling. A library may allocate memory
 * for itself, but not most of the device's.
 *
 * Inputs are any numbers of their dtype, over its whole range and mixed, with these exceptions:
 *  - NaN and infinity occur only in GEMM and GEMV, in either input. They must propagate to every
 *    sum that uses them, and zero times infinity is NaN. An infinity may arrive as a NaN, because
 *    a kernel that splits a factor into parts subtracts it from itself. In the other ops a
 *    maximum, a mask or a ReLU may drop a NaN, as the fast instructions do.
 *  - Numbers, products and sums smaller than 2^-126, which are subnormal in fp32 and bf16, may
 *    count as zero, as in fast arithmetic. Subnormal numbers of fp16 may not, neither as factors
 *    nor as results, because they are normal numbers in fp32, in which all sums are computed.
 *  - TF32 rounds factors to 10 bits of mantissa in any way, including truncation, which the tensor
 *    cores apply to an fp32 number. It keeps the range of fp32. A bias is not a factor: TF32 does
 *    not round it.
 *  - Scaled attention scores are below 2^16 in size, where fp32 still resolves 1/128. Their error,
 *    and that of a log-sum-exp over splits, is allowed.
 *
 * Results are rounded to nearest, ties to even, and only once. So neither the product of a linear
 * layer before its bias nor a part of a split sum may be kept in 16 bits, as cuBLAS and cuBLASLt do
 * for some shapes. A sum of finite inputs that is too large for the output's dtype is infinity, not
 * NaN, unless partial sums may overflow with both signs. The scale has any size and sign, and may
 * be zero (cuDNN gives NaN for a negative scale, so its provider does not support one). A kernel
 * may apply the mask by multiplying weights with zero.
 *
 * Memory between rows, and before and behind a tensor, may contain anything, such as a NaN, or may
 * not be mapped. launch() touches no byte there, with one exception: it may read bytes that share
 * an aligned 16 bytes with an element, but no result may depend on them. Each tensor has its own
 * strides and alignment.
 */
#ifndef KG_KERNEL_H
#define KG_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KG_ABI_VERSION 1u
#define KG_MAX_RANK 4
#define KG_MAX_TENSORS 6

#define KG_EXPORT __attribute__((visibility("default")))

/*
 * What is computed. All matrices are row-major unless their strides say otherwise. Sums are in fp32
 * or wider, and the result is rounded once to the output's dtype. Tensors in `in` and `out` have
 * the order given here.
 *
 * ATTENTION_FWD    in: Q[B,H,Sq,D]  K[B,Hkv,Skv,D]  V[B,Hkv,Skv,D]     out: O[B,H,Sq,D]
 *                  O = softmax(scale * Q K^T) V, softmax in fp32; its weights may be rounded to
 *                  the dtype of V before they multiply V. Query head h reads KV head
 *                  h / (H / Hkv). With KG_FLAG_CAUSAL query i sees keys j <= i + (Skv - Sq)
 *                  (bottom-right aligned); a row that sees no key is all zeros.
 * GEMM             in: A[M,K]  B[K,N]                                  out: C[M,N] = A B
 * GEMV             in: A[M,K]  x[K]                                    out: y[M] = A x
 * LINEAR_RELU      in: X[M,K]  W[N,K]  b[N]                            out: Y[M,N]
 *                  Y = max(0, X W^T + b)
 * LINEAR_RELU_BWD  in: dY[M,N]  X[M,K]  W[N,K]  Y[M,N]                 out: dX[M,K]  dW[N,K]  db[N]
 *                  G = dY where Y > 0, else 0;  dX = G W;  dW = G^T X;  db = column sums of G
 */
enum kg_op {
    KG_OP_ATTENTION_FWD = 1,
    KG_OP_GEMM = 2,
    KG_OP_GEMV = 3,
    KG_OP_LINEAR_RELU = 4,
    KG_OP_LINEAR_RELU_BWD = 5,
};

/* Storage type of a tensor's elements. */
enum kg_dtype {
    KG_F16 = 1,
    KG_BF16 = 2,
    KG_F32 = 3,
};

enum kg_flag {
    KG_FLAG_CAUSAL = 1u << 0, /* attention only */
    KG_FLAG_TF32 = 1u << 1,   /* fp32 storage; products may be rounded to TF32 (10-bit mantissa) */
};

enum kg_device_kind {
    KG_DEVICE_HOST = 1,
    KG_DEVICE_CUDA = 2,
};

enum kg_status {
    KG_OK = 0,
    KG_UNSUPPORTED = 1,   /* this problem, device or layout is not supported */
    KG_BAD_ARGUMENT = 2,  /* the call breaks the rules of this header */
    KG_LAUNCH_FAILED = 3, /* the device API refused the launch */
};

/*
 * An op with its sizes. All tensors of a problem have the same dtype. Sizes are element counts,
 * unused ones are 0.
 */
struct kg_problem {
    uint32_t struct_bytes; /* sizeof(struct kg_problem) of the caller */
    uint32_t op;           /* enum kg_op */
    uint32_t dtype;        /* enum kg_dtype */
    uint32_t flags;        /* enum kg_flag, or-ed */
    int64_t m, n, k;       /* GEMM family */
    int64_t batch, heads, kv_heads, seqlen_q, seqlen_kv, head_dim; /* attention */
    double scale;                                                  /* attention: factor of Q K^T */
};

/* Where a kernel runs. On the host device the CUDA fields are 0. */
struct kg_device {
    uint32_t struct_bytes;
    uint32_t kind;              /* enum kg_device_kind */
    int32_t ordinal;            /* CUDA ordinal; the gate has made it current */
    int32_t cc_major, cc_minor; /* CUDA compute capability */
    int32_t sm_count;           /* multiprocessors, or hardware threads to use on the host */
    int64_t l2_bytes;
    int64_t shared_bytes_optin; /* largest dynamic shared memory of a block */
};

/* A view of memory. Strides are in elements. The last one is 1; the others may have any value for
 * which elements do not overlap, so offsets need 64 bits. data is aligned to 16 bytes; rows need
 * not be. A launch may refuse a layout with KG_UNSUPPORTED, but never the dense tensors of a
 * problem that supports() accepted. */
struct kg_tensor {
    void *data;
    uint32_t dtype; /* enum kg_dtype */
    uint32_t rank;
    int64_t shape[KG_MAX_RANK];
    int64_t stride[KG_MAX_RANK];
};

struct kg_args {
    uint32_t struct_bytes;
    uint32_t n_in, n_out;
    struct kg_tensor in[KG_MAX_TENSORS];
    struct kg_tensor out[KG_MAX_TENSORS];
    void *workspace; /* workspace_bytes() bytes, aligned to 256; NULL when that is 0 */
    uint64_t workspace_bytes;
    void *stream; /* cudaStream_t; NULL on the host device */
};

enum kg_kernel_flag {
    KG_KERNEL_NONDETERMINISTIC = 1u << 0, /* repeats may differ in the last bits (atomics) */
};

/* One implementation of one op. A library may have several for an op; the first whose supports()
 * returns non-zero is its default for that problem. */
struct kg_kernel {
    uint32_t struct_bytes;
    uint32_t op;      /* enum kg_op */
    uint32_t flags;   /* enum kg_kernel_flag */
    const char *name; /* unique in the library, [a-z0-9_.-]+, at most 63 characters */
    int (*supports)(const struct kg_problem *, const struct kg_device *); /* non-zero: yes */
    enum kg_status (*prepare)(const struct kg_problem *, const struct kg_device *);   /* or NULL */
    uint64_t (*workspace_bytes)(const struct kg_problem *, const struct kg_device *); /* or NULL */
    enum kg_status (*launch)(const struct kg_problem *, const struct kg_args *);
};

struct kg_library {
    uint32_t struct_bytes;
    uint32_t abi_version; /* KG_ABI_VERSION */
    const char *provider; /* name: "ours", "cublas", ... [a-z0-9_.-]+, at most 31 characters */
    const char *version;  /* free text, at most 63 characters */
    uint32_t device_kind; /* enum kg_device_kind */
    uint32_t n_kernels;
    const struct kg_kernel *const *kernels;
    enum kg_status (*open)(const struct kg_device *); /* or NULL */
    void (*close)(void);                              /* or NULL */
};

/* The one exported symbol. The table lives as long as the library is loaded. */
KG_EXPORT const struct kg_library *kg_library(void);

typedef const struct kg_library *(*kg_library_fn)(void);
#define KG_LIBRARY_SYMBOL "kg_library"

#ifdef __cplusplus
}
#endif

#endif
