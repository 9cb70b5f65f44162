/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h: the ABI between the gate and a kernel library.
 *
 * A kernel library is a shared object that exports one function, `kg_library`, which returns a
 * constant table of kernels. Nothing else of it is looked at. This header is all that is needed to
 * write one: it is plain C11 (and C++17), and needs no CUDA header.
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
 *   2. open(device)                  once, optional; handles and module loading belong here
 *   3. supports(problem, device)     pure
 *   4. prepare(problem, device)      optional; choose algorithms, raise attributes; may allocate
 *   5. workspace_bytes(problem, device)
 *   6. launch(problem, args)         many times, also while the stream is being captured
 *   7. close()                       once, optional
 * The gate may load a library twice, to time both. Each copy has memory and calls of its own, and
 * the second one no folder; what both depend on is there once, as are symbols that the loader makes
 * unique in a process (g++: -fno-gnu-unique).
 *
 * Rules of launch(): it only enqueues work on args->stream, allocates nothing, frees nothing, never
 * synchronises, keeps no state between calls, writes to `out` and `workspace` alone, and returns a
 * status. On the host device it computes in the calling thread or in threads of its own and
 * returns when the result is written. The contents of `out` and `workspace` on entry are garbage.
 * Its work begins when that of the launch before it has ended: of its own kernels one may be a
 * programmatic dependent launch, but not the first, which would overlap with what it follows. A
 * stream of its own waits for all that args->stream was given so far, which then waits for it.
 *
 * No call, open() and prepare() included, changes what the process or the device has for all:
 * limits, modes, signals, the folder, the clock, scheduling. Memory of the library's own is fine,
 * most of the device's is not.
 *
 * What is in memory. Inputs are any numbers of their dtype, of its whole range and mixed, but for
 * this:
 *  - NaN and infinity come in GEMM and GEMV alone, in either input. They must reach each sum that
 *    they are part of, and zero times an infinity is a NaN. An infinity may reach it as a NaN: what
 *    splits a factor into parts subtracts it from itself. In the other ops a maximum, a mask or a
 *    ReLU may drop a NaN, as the fast instructions do.
 *  - Numbers, products and sums below 2^-126 in size, which are subnormal in fp32 and bf16, may
 * count as zero, as in fast arithmetic. Subnormal numbers of fp16 may not, neither as factors nor
 * as results: fp32, in which all are summed, has them as normal numbers.
 *  - TF32 rounds factors to 10 bits of mantissa in any way, cut off too, which is what the tensor
 *    cores do with an fp32 number. It keeps the range of fp32.
 *  - Scores of an attention, scaled, are below 2^16 in size, where fp32 still resolves 1/128. Their
 *    error, as that of a log-sum-exp of splits, is no fault.
 * A sum of finite inputs that is too large for the output's dtype is an infinity there, and no NaN,
 * unless a partial sum may be one of either sign. Results are rounded to nearest, halves to the
 * even neighbour: once, so that neither the product of a linear layer before its bias nor a part of
 * a split sum may be kept in 16 bits, as cuBLAS and cuBLASLt do for some shapes. The scale has any
 * size and sign (cuDNN gives NaN for a negative one, which its provider therefore does not serve).
 * A kernel may weigh keys that the mask hides by zero. What lies between rows, before a tensor and
 * behind it may be anything, a NaN or nothing at all: launch() touches no byte there, but those
 * that share an aligned 16 bytes with an element may be read, and no result may depend on them.
 * Each tensor has strides and an alignment of its own.
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
 * What is computed. All matrices are row-major unless their strides say otherwise; accumulation is
 * in fp32 or wider; the result is rounded once to the output's dtype. In and out tensors come in
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
    KG_UNSUPPORTED = 1,   /* this problem, device or layout is not served */
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

/* A view of memory. Strides are in elements; the last one is 1, the others are any that keep the
 * elements apart, so that offsets need 64 bits. data is aligned to 16 bytes, rows need not be. A
 * launch may refuse a layout with
 * KG_UNSUPPORTED, but never dense tensors of a problem that supports() took. */
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

/* One implementation of one op. Several may serve an op; the first whose supports() is non-zero
 * is the library's default for that problem. */
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
    const char *provider; /* whose: "ours", "cublas", ... [a-z0-9_.-]+, at most 31 characters */
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
