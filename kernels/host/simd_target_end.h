/* SPDX-License-Identifier: Apache-2.0 */
/* simd_target_end.h: the end of what simd_target_begin.h began. */
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
