/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_sm90.cuh: a ring of stages in shared memory between one producer thread and consumers
 * (sm_90a).
 *
 * A stage has two barriers. `full` ends its phase when the bytes of the stage have come, `empty`
 * when every consumer has let it go. The place in the ring is kept by each side for itself.
 *
 *     producer                                  consumer
 *     ring.wait_empty(at);                      ring.wait_full(at);
 *     ring.expect(at, bytes);                   use stage at.stage
 *     tma_load(.., ring.full(at), ..);          ring.release(at);     one thread a consumer
 *     at.next();                                at.next();
 */
#ifndef KG_RING_SM90_CUH
#define KG_RING_SM90_CUH

#include "kernels/cuda/ptx_sm90.cuh"

/* A place in a ring: the stage, and the parity of its phase. Starts as {0, 0} on both sides. */
template <int STAGES> struct ring_place {
    int stage, parity;

    __device__ __forceinline__ void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

template <int STAGES> struct ring {
    static constexpr int BYTES = 2 * STAGES * 8;
    uint32_t barriers; /* shared address of BYTES bytes, aligned to 8 */

    using place = ring_place<STAGES>;

    __device__ __forceinline__ uint32_t full(place at) const
    {
        return barriers + at.stage * 8;
    }
    __device__ __forceinline__ uint32_t empty(place at) const
    {
        return barriers + (STAGES + at.stage) * 8;
    }
    /* By one thread; then fence_mbarrier_init() and a barrier of the block or the cluster. */
    __device__ __forceinline__ void init(int consumers) const
    {
        for (int i = 0; i < STAGES; i++) {
            ptx::mbarrier_init(barriers + i * 8, 1);
            ptx::mbarrier_init(barriers + (STAGES + i) * 8, consumers);
        }
    }
    /* The first round finds all stages empty: parity 1 on a fresh barrier. */
    __device__ __forceinline__ void wait_empty(place at) const
    {
        ptx::mbarrier_wait(empty(at), at.parity ^ 1);
    }
    __device__ __forceinline__ void expect(place at, int bytes) const
    {
        ptx::mbarrier_arrive_expect(full(at), bytes);
    }
    __device__ __forceinline__ void wait_full(place at) const
    {
        ptx::mbarrier_wait(full(at), at.parity);
    }
    __device__ __forceinline__ void release(place at) const
    {
        ptx::mbarrier_arrive(empty(at));
    }
    /* The same in block `rank` of the cluster, whose stages are filled by multicast. */
    __device__ __forceinline__ void release_at(place at, uint32_t rank) const
    {
        ptx::mbarrier_arrive_at(empty(at), rank);
    }
};

#endif
