# SPDX-License-Identifier: Apache-2.0
"""What of tests/gpu/crosscheck.py needs no GPU: kernel.h in Python, the wins, the reasons."""

import array
import ctypes
import json
import os
import re
import sys
import unittest

from harness import HOST, ROOT, SANITIZED, read_file

sys.path.insert(0, os.path.join(ROOT, "tests", "gpu"))
import crosscheck  # noqa: E402


class Binding(unittest.TestCase):
    def library(self):
        return crosscheck.Library(HOST, crosscheck.Device(
            struct_bytes=ctypes.sizeof(crosscheck.Device), kind=crosscheck.HOST, sm_count=1,
            l2_bytes=1 << 20))

    def launch(self, name, *values):
        """The first output of a case whose inputs are these numbers, in fp32."""
        problem, inputs, outputs = crosscheck.problem_of(name)
        kernel, size, plan = self.library().prepare(problem)
        self.assertIsNotNone(kernel, name)
        memory = [array.array("f", v) for v in values]
        for shape in outputs:
            n = 1
            for side in shape:
                n *= side
            memory.append(array.array("f", [-1] * n))
        tensors = [crosscheck.dense(m.buffer_info()[0], problem.dtype[0], shape)
                   for m, shape in zip(memory, inputs + outputs)]
        workspace = (ctypes.c_char * (size + 256))()
        start = -ctypes.addressof(workspace) % 256 + ctypes.addressof(workspace)
        args = crosscheck.launch_args(tensors[:len(inputs)], tensors[len(inputs):],
                                      start if size else None, size, plan=plan)
        self.assertEqual(kernel.launch(ctypes.byref(problem), ctypes.byref(args)), 0)
        return [list(m) for m in memory[len(inputs):]]

    @unittest.skipIf(SANITIZED, "python cannot load a library that was built with a sanitizer")
    def test_each_op(self):
        self.assertEqual(self.launch("gemm/fp32/m2-n3-k2", [1, 2, 3, 4], [1, 0, 2, 0, 1, 3]),
                         [[1, 2, 8, 3, 4, 18]])
        self.assertEqual(self.launch("gemv/fp32/m2-k2", [1, 2, 3, 4], [1, 10]), [[21, 43]])
        self.assertEqual(self.launch("linear_relu/fp32/m1-n2-k2", [1, 2], [1, 1, -1, -1], [1, 1]),
                         [[4, 0]])
        self.assertEqual(
            self.launch("linear_relu_bwd/fp32/m1-n2-k2", [5, 7], [1, 2], [1, 2, 3, 4], [1, 0]),
            [[5, 10], [5, 10, 0, 0], [5, 0]])

    def test_sizes_are_those_of_the_header(self):
        """Names of the members of each struct, in the order of kernel.h."""
        header = read_file(os.path.join(ROOT, "kernels", "kernel.h"))
        header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        other = {"inputs": "in", "outputs": "out"}
        for struct, name in ((crosscheck.Problem, "kg_problem"), (crosscheck.Device, "kg_device"),
                             (crosscheck.Tensor, "kg_tensor"), (crosscheck.Args, "kg_args"),
                             (crosscheck.Kernel, "kg_kernel"), (crosscheck.Table, "kg_library")):
            body = re.search(r"struct %s \{(.*?)\n\};" % name, header, re.S)[1]
            members = []
            for line in body.split(";"):
                pointer = re.search(r"\(\*(\w+)\)", line)
                line = re.sub(r"\[\w+\]", "", line)
                members += [pointer[1]] if pointer else \
                    [re.search(r"(\w+)\s*$", part)[1] for part in line.split(",") if part.strip()]
            self.assertEqual([other.get(field[0], field[0]) for field in struct._fields_], members)


class Judgement(unittest.TestCase):
    def test_wins_of_a_run(self):
        document = json.loads(read_file(os.path.join(ROOT, "tests/data/run-h200.json")))
        found = crosscheck.wins(document)
        self.assertNotIn("attention_fwd/fp16/b1-h8-s512-d64", found)  # 10.42 us, cuDNN 9.05
        for name, (ours, theirs) in found.items():
            self.assertLess(ours, theirs, name)
            crosscheck.problem_of(name)
        case = document["cases"][0]
        case["arms"][0]["timing"]["p50_ns"] = 9000
        self.assertEqual(crosscheck.wins(document)[case["id"]], (9.0, 9.05))
        case["arms"][0]["verify"]["ok"] = False
        self.assertNotIn(case["id"], crosscheck.wins(document))

    def test_reasons(self):
        explain, large, l2 = crosscheck.explain, 1 << 30, 1 << 25
        self.assertIsNone(explain((90, 100), (91, 100), (80, 100), large, l2))
        self.assertEqual(explain((90, 100), (110, 100), (90, 100), large, l2), "")
        self.assertIn("L2", explain((90, 100), (110, 100), (90, 100), 1 << 20, l2))
        self.assertEqual(explain((90, 100), (90, 100), (110, 100), large, l2), "")
        self.assertIn("launch counts", explain((5, 7), (5, 7), (12, 11), large, l2))
        self.assertIn("tie", explain((97, 100), (99, 100), (96, 100), large, l2))

    def test_reasons_of_the_profiler(self):
        explain = crosscheck.explain_profile
        self.assertIsNone(explain((90, 100), (8, 10), 1))
        self.assertEqual(explain((90, 100), (11, 10), 1), "")
        self.assertIn("one by one", explain((90, 100), (11, 10), 2))
        self.assertIn("tie", explain((97, 100), (9.9, 10), 1))

    def test_flags_that_are_not_known(self):
        with self.assertRaises(ValueError):
            crosscheck.problem_of("attention_fwd/fp16/b1-h8-s512-d64/window")


def table(launches, unit="ns"):
    """What ncu writes for the kernels of these launches, in ns; the form is that of
    tests/data/ncu-h200.csv."""
    text = '==PROF== Connected to process 894 (python3.12)\n' \
           '"ID","Process ID","Kernel Name","CC","gpu__time_duration.sum"\n' \
           f'"","","","","{unit}"\n'
    for launch in launches:
        for name, time in [("spin_kernel", "1,024"), *launch]:
            text += f'"0","894","{name}","9.0","{time}"\n'
    return text


class Profile(unittest.TestCase):
    CASES = [["gemm/fp16/m4096-n4096-k4096", "matmul"], ["gemv/fp16/m2048-k2048", "mv"]]

    def read(self, text):
        return crosscheck.read_profile(text, self.CASES)

    def test_kernels_of_a_launch_are_added_up_and_the_median_is_taken(self):
        rounds = crosscheck.PROFILED_ROUNDS
        launches = []
        for i in range(rounds):
            launches += [[("ours", f"{1000 + i}")],
                         [("theirs", "1,500"), ("theirs, second", f"{500 + i}")]]
        launches += [[("a", "9000000" if i == 0 else "3000")] for i in range(2 * rounds)]
        found = self.read(table(launches))
        self.assertEqual(found[self.CASES[0][0]], ((1.002, 2.002), 2))
        self.assertEqual(found[self.CASES[1][0]], ((3.0, 3.0), 1))

    def test_what_is_no_such_table(self):
        whole = [[("k", "1000")]] * (4 * crosscheck.PROFILED_ROUNDS)
        self.read(table(whole))
        for text in ("", "==ERROR== ERR_NVGPUCTRPERM - no permission", table(whole[1:]),
                     table(whole + [[("k", "1")]]), table([[]] + whole[1:]), table(whole, "us"),
                     table([[("k", "n/a")]] + whole[1:])):
            with self.assertRaises(ValueError, msg=text[:200]):
                self.read(text)


if __name__ == "__main__":
    unittest.main()
