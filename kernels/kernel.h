/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h: the ABI between the gate and a kernel library.
 *
 * A kernel library is a shared object that exports one function, `kg_library`, which returns a
 * constant table of kernels. The gate uses nothing else of it. This header is all that you need to
 * write one: it is plain C11 (and C++17), and includes no CUDA header. problem.h beside it has
 * small helpers.
 *
 *     static const struct kg_kernel my_gemm = {
 *         .struct_bytes = sizeof(struct kg_kernel), .op = "gemm", .name = "my_gemm",
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
 *   2. open(device, files)           once, optional; create handles and load modules here
 *   3. supports(problem, device)     a pure function
 *   4. prepare(problem, device, &plan)   optional; choose algorithms, set attributes; may allocate
 *   5. workspace_bytes(problem, device, plan)
 *   6. launch(problem, args)         many times, also while the stream is being captured
 *   7. release(plan)                 optional, once for each prepare() that succeeded
 *   8. close()                       once, optional
 * A plan is what prepare() leaves in *plan, of any type; NULL: there is none. launch() gets it in
 * args->plan. Several problems may be prepared at a time, each with a plan of its own, and one
 * problem more than once. All plans are released before close(). A plan is not freed while what was
 * captured with it may be replayed.
 * The gate may load a library twice and time both copies. Each copy has its own memory and gets its
 * own calls. KG_FILE() names files that belong to a library, such as cubins, and lie beside it;
 * open() gets their content. The gate hashes, stores and pushes them with the library. A stored
 * copy is in no folder: what it opens by a path is not there, or not what was measured. Both copies
 * share the libraries that they depend on, and the symbols that the loader makes unique in a
 * process (g++: -fno-gnu-unique avoids them).
 *
 * Rules of launch():
 *  - It only enqueues work on args->stream and returns a status. It allocates nothing, frees
 *    nothing, never synchronises, and keeps no state between calls: the plan is only read.
 *  - It writes to `out` and `workspace` only. Their contents on entry are garbage, with one
 *    exception: a tensor that its op declares as updated in place is an input and an output, which
 *    are the same memory and begin with the input's contents. No built-in op has one.
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
 *  - NaN and infinity occur only in A, B and x of gemm, batched_gemm, grouped_gemm, gemv, gemm_fp8
 *    and gemm_fp8_block. They must propagate to every sum that uses them, and zero times infinity
 *    is NaN. An infinity may arrive as a NaN, because a kernel that splits a factor into parts
 *    subtracts it from itself. In the other ops a maximum, a mask or a ReLU may drop a NaN, as the
 *    fast instructions do.
 *  - Numbers, products and sums smaller than 2^-126, which are subnormal in fp32 and bf16, may
 *    count as zero, as in fast arithmetic. Subnormal numbers of fp16 and fp8 may not, neither as
 *    factors nor as results: they are normal numbers in fp32, in which all sums are computed.
 *  - TF32 rounds factors to 10 bits of mantissa in any way, including truncation, which the tensor
 *    cores apply to an fp32 number. It keeps the range of fp32. Neither a bias nor the scale of
 *    attention is such a factor: TF32 does not round them.
 *  - Scaled attention scores are below 2^16 in size, where fp32 still resolves 1/128. Their error,
 *    and that of a log-sum-exp over splits, is allowed.
 *  - Scales of fp8 are from 2^-40 to 2^40, each for itself: neighbours differ as they like. So a
 *    kernel may multiply with them one after the other or together, before or after it sums.
 *  - Products of fp8 factors are exact in fp32, but tensor cores keep 14 bits of their sum: a unit
 *    of it is 2^-13 of the power of two of its largest part, and what is below that is cut off. So
 *    at most 128 products are summed like this, and such sums in fp32. cuBLASLt does it too, but
 *    for its fast accumulation, which is not allowed.
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

#define KG_ABI_VERSION 2u
#define KG_MAX_RANK 6
#define KG_MAX_TENSORS 12 /* inputs and outputs together */
#define KG_MAX_SIZES 12
#define KG_MAX_PARAMS 8

#define KG_EXPORT __attribute__((visibility("default")))

/* What is computed: an op by its name, with its sizes, parameters and tensors in the order given
 * here, all of one dtype: fp16, bf16 or fp32 (L is fp32). Those of fp8 have A and B of e4m3, scales
 * of fp32 and C of bf16. Ops of your own: docs/ops.md. Matrices are row-major, but for their
 * strides. Sums are in fp32 or wider, and rounded once to the output's dtype.
 * attention_fwd    in: Q[b,h,sq,d]  K[b,kv_heads,s,d]  V[b,kv_heads,s,d]  out: O[b,h,sq,d]
 *                  sizes b kv_heads h sq s d, parameter scale, flag KG_FLAG_CAUSAL
 *                  O = softmax(scale * Q K^T) V, softmax in fp32; its weights may be rounded to
 *                  V's dtype before they multiply V. Query head i reads KV head i / (h / kv_heads).
 *                  With KG_FLAG_CAUSAL query i sees keys j <= i + (s - sq) (bottom-right aligned);
 *                  a row that sees no key is all zeros.
 * attention_bwd    in: Q[b,h,sq,d]  K[b,kv_heads,s,d]  V[b,kv_heads,s,d]  O[b,h,sq,d]
 *                      dO[b,h,sq,d]  L[b,h,sq]
 *                  out: dQ[b,h,sq,d]  dK[b,kv_heads,s,d]  dV[b,kv_heads,s,d]
 *                  sizes b kv_heads h sq s d, parameter scale, flag KG_FLAG_CAUSAL
 *                  P = exp(scale * Q K^T - L), 0 where masked;  dV = P^T dO;  D = sums of O dO
 *                  dS = P (dO V^T - D);  dQ = scale * dS K;  dK = scale * dS^T Q
 *                  O and L, the log of each query's sum of exp(scale * Q K^T), are inputs like the
 *                  others. P and dS may be rounded to Q's dtype before they multiply, D may not.
 * attention_paged  in: Q[b,sq,h,d]  K[blocks,page,kv_heads,d]  V[blocks,page,kv_heads,d]
 *                      table[b,t]  lengths[b]   out: O[b,sq,h,d]
 *                  sizes b kv_heads h sq t blocks page d, parameter scale;  attention_fwd, causal,
 *                  of 1 to t page keys a sequence i: lengths[i]. Key j is row j % page of block
 *                  table[i,j / page]; both are int32. Blocks may be shared; other rows are any.
 * gemm             in: A[m,k]  B[k,n]       out: C[m,n]     sizes m n k;  C = A B
 * batched_gemm     in: A[b,m,k]  B[b,k,n]   out: C[b,m,n]   sizes b m n k;  C = A B, for each b
 * grouped_gemm     in: A[m,k]  B[g,k,n]  offsets[g+1]   out: C[m,n]   sizes g m n k;
 *         C = A B[i] in rows offsets[i] to below offsets[i + 1]: int32, from 0 to m, never falling
 * gemv             in: A[m,k]  x[k]         out: y[m]       sizes m k;  y = A x
 * linear_relu      in: X[m,k]  W[n,k]  b[n]   out: Y[m,n]   sizes m n k;  Y = max(0, X W^T + b)
 * linear_relu_bwd  in: dY[m,n]  X[m,k]  W[n,k]  Y[m,n]                out: dX[m,k]  dW[n,k]  db[n]
 *        sizes m n k;  G = dY where Y > 0, else 0;  dX = G W;  dW = G^T X;  db = column sums of G
 * gemm_fp8         in: A[m,k]  B[n,k]  SA[1]  SB[1]   out: C[m,n]   sizes m n k;  C = SA SB A B^T
 * gemm_fp8_block   in: A[m,k]  B[n,k]  SA[m,K]  SB[N,K]               out: C[m,n]
 *                  sizes m n k, from which K = k / 128 and N = n / 128, rounded up
 *                  C[i,j] = sum of SA[i,l / 128] A[i,l] SB[j / 128,l / 128] B[j,l] over l
 * rmsnorm          in: X[m,n]  w[n]                                   out: Y[m,n]
 *                  sizes m n, parameter eps;  Y = X / sqrt(mean of X^2 over a row + eps) * w
 */

/* Storage type of a tensor's elements. Those of 4 bits lie two in a byte, the low half first; their
 * strides count elements too, and no row but the last begins within a byte. */
enum kg_dtype {
    KG_F16 = 1,
    KG_BF16 = 2,
    KG_F32 = 3,
    KG_F64 = 4,
    KG_E4M3 = 5, /* fp8: largest 448, NaN, no infinity */
    KG_E5M2 = 6, /* fp8: as fp16 cut after 8 bits */
    KG_E8M0 = 7, /* a scale: 2^(code - 127); 255 is NaN */
    KG_E2M1 = 8, /* fp4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives */
    KG_I8 = 9,
    KG_I4 = 10, /* -8 to 7 */
    KG_I32 = 11,
    KG_I64 = 12,
    KG_BOOL = 13, /* a byte: 0 or 1 */
};

enum kg_flag {
    KG_FLAG_CAUSAL = 1u << 0, /* attention only */
    KG_FLAG_TF32 = 1u << 1,   /* fp32 storage; products may be rounded to TF32 (10-bit mantissa) */
    KG_FLAG_OWN = 1u << 16,   /* the flag of an op of your own */
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

struct kg_named_size {
    const char *name;
    int64_t value; /* in elements */
};

struct kg_named_param {
    const char *name;
    double value;
};

/* An op with its sizes, and the dtypes of its tensors. Strings are the gate's, and live as long as
 * the library is loaded. */
struct kg_problem {
    uint32_t struct_bytes; /* sizeof(struct kg_problem) of the caller */
    uint32_t flags;        /* enum kg_flag, or-ed */
    const char *op;
    uint32_t n_sizes, n_params, n_in, n_out;
    struct kg_named_size size[KG_MAX_SIZES];
    struct kg_named_param param[KG_MAX_PARAMS];
    uint32_t dtype[KG_MAX_TENSORS]; /* enum kg_dtype; inputs first */
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
    void *plan;   /* what prepare() made for this problem; NULL: nothing */
};

enum kg_kernel_flag {
    KG_KERNEL_NONDETERMINISTIC = 1u << 0, /* repeats may differ in the last bits (atomics) */
};

/* One implementation of one op. A library may have several for an op; the first whose supports()
 * returns non-zero is its default for that problem. */
struct kg_kernel {
    uint32_t struct_bytes;
    uint32_t flags;   /* enum kg_kernel_flag */
    const char *op;   /* its name */
    const char *name; /* unique in the library, [a-z0-9_.-]+, at most 63 characters */
    int (*supports)(const struct kg_problem *, const struct kg_device *); /* non-zero: yes */
    enum kg_status (*prepare)(const struct kg_problem *, const struct kg_device *,
                              void **plan); /* or NULL; *plan is NULL on entry */
    uint64_t (*workspace_bytes)(const struct kg_problem *, const struct kg_device *,
                                void *plan); /* or NULL */
    enum kg_status (*launch)(const struct kg_problem *, const struct kg_args *);
    void (*release)(void *plan); /* or NULL: plans need no release */
};

/* A file that belongs to the library, in memory until close() has returned. */
struct kg_file {
    const char *name; /* without a folder; NULL ends a list of files */
    const void *data;
    uint64_t bytes;
};

/* Names a file in a section of the library, where the gate finds it without running code; outside
 * of functions, once for each file, at most 64: KG_FILE(decode, "decode_sm90.cubin") */
#define KG_FILE(id, name)                                                                          \
    static const char kg_file_##id[] __attribute__((section("kg_files"), used)) = name

struct kg_library {
    uint32_t struct_bytes;
    uint32_t abi_version; /* KG_ABI_VERSION */
    const char *provider; /* name: "ours", "cublas", ... [a-z0-9_.-]+, at most 31 characters */
    const char *version;  /* free text, at most 63 characters */
    uint32_t device_kind; /* enum kg_device_kind */
    uint32_t n_kernels;
    const struct kg_kernel *const *kernels;
    enum kg_status (*open)(const struct kg_device *, const struct kg_file *files); /* or NULL */
    void (*close)(void);                                                           /* or NULL */
};

/* The one exported symbol. The table lives as long as the library is loaded. */
KG_EXPORT const struct kg_library *kg_library(void);

typedef const struct kg_library *(*kg_library_fn)(void);
#define KG_LIBRARY_SYMBOL "kg_library"

#ifdef __cplusplus
}
#endif

#endif
