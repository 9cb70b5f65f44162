/* SPDX-License-Identifier: Apache-2.0 */
/* probe_sm90.cu: see probe_sm90.h. */
#include "tests/gpu/probe_sm90.h"

#include "kernels/cuda/wgmma_sm90.cuh"
#include "kernels/cuda/launch.cuh"

namespace probe_sm90
{

constexpr int M = 64, K = 128;

/* Where A comes from. */
enum source { SHARED, REGISTERS };

/*
 * One warpgroup. The panels come through a ring of two stages, each K / 2 of A and of B, so that
 * the ring's second round is not needed but both of its barriers are.
 */
template <typename T, int N, int SOURCE, int TA, int TB>
__global__ void __launch_bounds__(128, 1)
    probe(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
          const __grid_constant__ CUtensorMap map_d, float *d)
{
    constexpr int PANEL = 128 / sizeof(T); /* elements of k or, MN-major, of m or n */
    constexpr int STEP = 32 / sizeof(T);   /* k of an instruction */
    constexpr int HALVES = K / PANEL;      /* panels of K, for K-major operands */
    constexpr int A_BYTES = M * K * sizeof(T), B_BYTES = N * K * sizeof(T);
    constexpr int B_PANEL = (TB ? K : N) * PANEL_ROW_BYTES, D_PANEL = M * PANEL_ROW_BYTES;
    extern __shared__ __align__(PANEL_ALIGNMENT) unsigned char shared[];
    __shared__ __align__(8) unsigned char barriers[ring<1>::BYTES];
    const uint32_t base =
        (ptx::shared_address(shared) + PANEL_ALIGNMENT - 1) & ~(uint32_t)(PANEL_ALIGNMENT - 1);
    const uint32_t a = base, b = a + A_BYTES;
    const uint32_t out = b + B_BYTES;
    const ring<1> ring = {ptx::shared_address(barriers)};
    const ring_place<1> at = {0, 0};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum[N / 2];

    if (threadIdx.x == 0) {
        ring.init(1);
        ptx::fence_mbarrier_init();
        ring.wait_empty(at);
        ring.expect(at, A_BYTES + B_BYTES);
        for (int p = 0; p < (TA ? 1 : HALVES); p++)
            ptx::tma_load(a + p * M * PANEL_ROW_BYTES, &map_a, ring.full(at), p * PANEL, 0);
        for (int p = 0; p < (TB ? N / PANEL : HALVES); p++)
            ptx::tma_load(b + p * B_PANEL, &map_b, ring.full(at), p * PANEL, 0);
    }
    __syncthreads();
    ring.wait_full(at);
    const uint32_t a_low = uniform(descriptor_low(a));
    const uint32_t b_low = uniform(TB ? descriptor_low(b, B_PANEL) : descriptor_low(b));
    auto step_of = [](int t, int mn_major, int panel_bytes) {
        return mn_major ? t * DESCRIPTOR_MN_STEP
                        : t / 4 * (panel_bytes / 16) + t % 4 * DESCRIPTOR_K_STEP;
    };

    uint32_t rows[K / STEP][4]; /* A in registers */
    if (SOURCE == REGISTERS) {
        const int row = warp * 16 + lane % 16;
#pragma unroll
        for (int t = 0; t < K / STEP; t++) {
            ptx::ldmatrix_x4(rows[t], a + t / 4 * M * PANEL_ROW_BYTES + row * PANEL_ROW_BYTES +
                                          ((t % 4 * 2 + lane / 16) ^ (row & 7)) * 16);
            ptx::keep(rows[t]);
        }
    }
    ptx::keep(sum);
    ptx::wgmma_fence();
#pragma unroll
    for (int t = 0; t < K / STEP; t++) {
        const uint64_t from_b = descriptor(b_low + step_of(t, TB, B_PANEL));
        if constexpr (SOURCE == REGISTERS)
            ptx::wgmma_rs<TB>(sum, rows[t], from_b, t > 0, T());
        else
            ptx::wgmma_ss<TA, TB>(sum, descriptor(a_low + step_of(t, TA, M * PANEL_ROW_BYTES)),
                                  from_b, t > 0, T());
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::keep(sum);

#pragma unroll
    for (int i = 0; i < N / 2; i++)
        d[(warp * 16 + lane / 4 + i % 4 / 2 * 8) * N + i / 4 * 8 + lane % 4 * 2 + i % 2] = sum[i];
    if constexpr (sizeof(T) == 2) {
        stage_out(out, D_PANEL, sum, T());
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int p = 0; p < (N + 63) / 64; p++)
                ptx::tma_store(&map_d, out + p * D_PANEL, p * 64, 0);
            ptx::tma_store_commit();
            ptx::tma_store_wait_read<0>();
        }
    }
}

template <typename T> constexpr uint32_t dtype_of = KG_F32;
template <> constexpr uint32_t dtype_of<__half> = KG_F16;
template <> constexpr uint32_t dtype_of<__nv_bfloat16> = KG_BF16;

/* A row-major [rows, columns] matrix, moved in boxes of 128 bytes of all rows. */
template <typename T> enum kg_status map_of(CUtensorMap *map, const void *data, int rows, int cols)
{
    const struct tensor_map_shape shape = {
        2, {cols, rows}, {1, cols}, {(int)(128 / sizeof(T)), rows}};
    return tensor_map_encode(map, dtype_of<T>, data, &shape);
}

template <typename T, int N, int SOURCE, int TA, int TB>
enum kg_status launch(const void *a, const void *b, float *d, void *rounded, void *stream)
{
    constexpr size_t shared = PANEL_ALIGNMENT + (M + N) * K * sizeof(T) + 4 * M * 128;
    CUtensorMap map_a, map_b, map_d;
    enum kg_status status = tensor_map_open();
    if (status == KG_OK)
        status = map_of<T>(&map_a, a, TA ? K : M, TA ? M : K);
    if (status == KG_OK)
        status = map_of<T>(&map_b, b, TB ? K : N, TB ? N : K);
    if (status == KG_OK)
        status = map_of<T>(&map_d, sizeof(T) == 2 ? rounded : d, M, N);
    if (status == KG_OK)
        status = allow_shared(probe<T, N, SOURCE, TA, TB>, shared);
    if (status != KG_OK)
        return status;
    return launch_kernel(probe<T, N, SOURCE, TA, TB>, dim3(1), dim3(128), shared, stream, map_a,
                         map_b, map_d, d);
}

} // namespace probe_sm90

using namespace probe_sm90;

#define PROBE(type, n, source, ta, tb)                                                             \
    {                                                                                              \
#type " n" #n " A " #source " " #ta " B " #tb, dtype_of < type>, n, ta, tb, launch < type, \
            n, source, ta, tb>                                                                     \
    }

const struct probe probes_sm90[] = {
    PROBE(__half, 16, SHARED, 0, 0),         PROBE(__half, 32, SHARED, 0, 0),
    PROBE(__half, 64, SHARED, 0, 0),         PROBE(__half, 80, SHARED, 0, 0),
    PROBE(__half, 128, SHARED, 0, 0),        PROBE(__half, 192, SHARED, 0, 0),
    PROBE(__half, 256, SHARED, 0, 0),        PROBE(__half, 64, SHARED, 0, 1),
    PROBE(__half, 128, SHARED, 0, 1),        PROBE(__half, 256, SHARED, 0, 1),
    PROBE(__half, 128, SHARED, 1, 0),        PROBE(__half, 128, SHARED, 1, 1),
    PROBE(__half, 64, REGISTERS, 0, 1),      PROBE(__half, 128, REGISTERS, 0, 1),
    PROBE(__half, 256, REGISTERS, 0, 0),     PROBE(__nv_bfloat16, 128, SHARED, 0, 0),
    PROBE(__nv_bfloat16, 256, SHARED, 1, 1), PROBE(__nv_bfloat16, 128, REGISTERS, 0, 1),
    PROBE(float, 64, SHARED, 0, 0),          PROBE(float, 128, REGISTERS, 0, 0),
    PROBE(float, 192, SHARED, 0, 0),
};
const unsigned n_probes_sm90 = sizeof(probes_sm90) / sizeof(probes_sm90[0]);
