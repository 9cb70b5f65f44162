# SPDX-License-Identifier: Apache-2.0
"""The whole story of tests/e2e/test_adopt.py on a GPU, with the CUDA library of the example."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import test_adopt

MISSING = [tool for tool in ("git", "cmake", "make", "nvcc") if not shutil.which(tool)] + \
    ["GPU"] * (not os.path.exists("/dev/nvidia0"))


@unittest.skipIf(MISSING, f"no {', '.join(MISSING)}")
class OnGpu(test_adopt.Story):
    SOURCE, LIBRARY = "mykernels.cu", "build/libmykernels_cuda.so"
    FAST = "        sum +="
    SLOW = FAST + " (__nanosleep(100), 0.0f) +"
    KERNEL = "static __global__"
    OTHER_CODE = "s/sum +=/sum += 1e-30f +/"  # and as right
    REFUSED = "kernel 1 of 1 has other device code: refused"

    def adapt(self):
        self.replace("CMakeLists.txt", "CMAKE_CUDA_ARCHITECTURES 80 90",
                     "CMAKE_CUDA_ARCHITECTURES native")
        # Debug information with a path in it: each build is another file of the same code.
        added = "add_library(mykernels_cuda MODULE mykernels.cu)"
        self.replace("CMakeLists.txt", added,
                     added + "\n  target_compile_options(mykernels_cuda PRIVATE -Xcompiler=-g)")


if __name__ == "__main__":
    unittest.main()
