/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_target_begin.h: compiles what follows, up to simd_target_end.h, for the instruction sets
 * named in SIMD_TARGET, whatever the flags of the build say. To be included after all system
 * headers: their inline functions must not end up compiled for a machine that may be absent.
 */
#define SIMD_PRAGMA_TEXT(text) _Pragma(#text)
#define SIMD_PRAGMA(text) SIMD_PRAGMA_TEXT(text)
#if defined(__clang__)
SIMD_PRAGMA(clang attribute push(__attribute__((target(SIMD_TARGET))), apply_to = function))
#else
#pragma GCC push_options
SIMD_PRAGMA(GCC target SIMD_TARGET)
#endif
