#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pathologies.py FOLDER: builds libours.so with some of its kernels made worse, for test_diagnosis.

Each row of WORSE is a change of a line or two in a kernel of this repository, the case that it
makes slower, and the statement that must name the reason. The rows of a library touch different
kernels, so that its cases do not share a change. The libraries are built in a copy of this tree,
with the environment that `make` has (CUDA_ARCHS), and put into FOLDER as worse-1.so and so on.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = "build/lib/kernel-gate/libours.so"
BWD, ATTENTION = "kernels/linear_relu/", "kernels/attention_fwd/"
GEMM, TILES = "kernels/gemm/gemm_sm90.cu", "kernels/gemm/gemm_sm90.cuh"


def linear(op, dtype, m, k, n):
    return {"op": op, "dtype": dtype, "m": m, "k": k, "n": n}


def attention(s, d, b, h):
    return {"op": "attention_fwd", "dtype": "fp16", "b": b, "h": h, "s": s, "d": d,
            "causal": False}


# Library, reason, case, the statement that names it, and (file, old, new) of each change.
WORSE = [
    (1, "bank conflicts", linear("linear_relu_bwd", "tf32", 256, 256, 512),
     r"^counter bank conflicts ",
     [(BWD + "relu_transpose.cuh", "tile[ROWS][COLUMNS + 1]", "tile[ROWS][COLUMNS]")]),
    (1, "lost multicast", linear("linear_relu", "fp16", 1024, 784, 2048),
     r"^counter bytes of the L2 ",
     [(TILES, "product<T, 128, 6, 2,", "product<T, 128, 6, 1,")]),
    (1, "spills", linear("linear_relu_bwd", "fp16", 1024, 784, 2048),
     r"^counter local memory |bytes of local stores 0 -> \d+",
     [(BWD + "linear_relu_bwd.cu", "__launch_bounds__(THREADS) mask_kernel",
       "__launch_bounds__(THREADS, 8) mask_kernel")]),
    (1, "low occupancy", {"op": "gemv", "dtype": "fp16", "m": 8192, "k": 8192},
     r"^counter occupancy |shared bytes 32 -> \d{6}",
     [("kernels/gemv/gemv.cu", "    const enum kg_status status =\n        launch_kernel(vector",
       "    allow_shared(gemv_kernel<T, RUN>, 200 << 10);\n    const enum kg_status status =\n"
       "        launch_kernel(vector"),
      ("kernels/gemv/gemv.cu", "dim3(THREADS), 0, stream, p);",
       "dim3(THREADS), vector ? 200 << 10 : 0, stream, p);")]),
    (1, "a smaller tile", {"op": "gemm", "dtype": "fp16", "m": 4096, "n": 4096, "k": 4096},
     r"^counter bytes of the L2 |^counter bytes into SMs ",
     [(GEMM, "gemm_sm90::run<__half, false, false>(m, n, k, call)",
       "gemm_sm90::run_choice<__half, false, false>({GEMM_SM90_TURNED_96, 1, false}, call)")]),
    (1, "disabled overlap", attention(2048, 128, 2, 16),
     r"shared bytes \d+ -> \d+|^counter waiting for memory ",
     [(ATTENTION + "policy_sm90.cuh", "K_STAGES = D_ == 64 ? 8 : 2, V_STAGES",
       "K_STAGES = D_ == 64 ? 8 : 1, V_STAGES")]),
    (1, "a barrier too many", attention(2048, 64, 2, 32),
     r"^counter waiting at barriers ",
     # Eight stages has the long kernel at D = 64; its four consumers see all keys here.
     [(ATTENTION + "key_stream_sm90.cuh",
       "        issue_s();\n        issue_o(j > 1);",
       "        if constexpr (Tile::K_STAGES == 8)\n"
       "            ptx::barrier_sync(1, 512);\n"
       "        issue_s();\n        issue_o(j > 1);")]),
    (2, "uncoalesced stores", linear("linear_relu_bwd", "fp32", 256, 256, 512),
     r"^counter sectors a store ",
     [(BWD + "relu_transpose.cuh", "            it.to[line + half + lane] = x;\n", ""),
      (BWD + "relu_transpose.cuh", "        if (which > 0 || row >=",
       "        if (row < it.rows && column < it.columns)\n"
       "            it.to[column * it.to_leading + row] = x[i];\n"
       "        if (which > 0 || row >=")]),
    (2, "an extra launch", linear("linear_relu_bwd", "fp16", 1024, 784, 2048),
     r"launches 1 -> 2",
     [(BWD + "linear_relu_bwd_sm90.cu",
       "    status = linear_relu_bwd_mask(problem, &t, &plan, workspace, stream);\n",
       "    status = linear_relu_bwd_mask(problem, &t, &plan, workspace, stream);\n"
       "    if (status == KG_OK)\n"
       "        status = linear_relu_bwd_mask(problem, &t, &plan, workspace, stream);\n")]),
    (2, "half of the SMs", attention(2048, 64, 2, 32), r"grid \d+ x 1 x 1 -> \d+ x 1 x 1",
     [(ATTENTION + "attention_fwd_long_sm90.cu", "items < sm_count ? items : sm_count;",
       "items < sm_count ? items : sm_count / 2;")]),
    (2, "fewer stages", {"op": "gemm", "dtype": "fp16", "m": 512, "n": 4096, "k": 4096},
     r"shared bytes \d+ -> \d+|^counter waiting for memory ",
     [(TILES, "product<T, 128, 6, 2,", "product<T, 128, 2, 2,")]),
]
LIBRARIES = sorted({row[0] for row in WORSE})


def change(folder, path, old, new):
    with open(os.path.join(folder, path), encoding="utf-8") as file:
        text = file.read()
    if text.count(old) != 1:
        sys.exit(f"pathologies.py: what is to be changed must stand once in {path}:\n{old}")
    with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def build(rows, out):
    """Makes the library of a copy of this tree that has the changes of these rows."""
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        shutil.copytree(ROOT, tree, symlinks=True,
                        ignore=shutil.ignore_patterns(".git", "node_modules", "build"))
        for _, _, _, _, changes in rows:
            for path, old, new in changes:
                change(tree, path, old, new)
        subprocess.run(["make", "-s", LIBRARY], cwd=tree, check=True, stdin=subprocess.DEVNULL)
        shutil.copy(os.path.join(tree, LIBRARY), out)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for library in LIBRARIES:
        out = os.path.join(sys.argv[1], f"worse-{library}.so")
        build([row for row in WORSE if row[0] == library], out)
        print(out, flush=True)


if __name__ == "__main__":
    main()
