# SPDX-License-Identifier: Apache-2.0
"""Ops of a user's: those of examples/ as they are, their faults and references."""

import json
import os
import shutil
import subprocess
import unittest

import block_mutants
import index_mutants
from harness import GATE, ROOT, Gate, read_file, write_file

ROW = "(float *)y->data + i * y->stride[0]"
OUT = "y[j] = (x[j] - mean) * scale * gamma[j] + beta[j];"
REFERENCE_OUT = "y[j] = (x[j] - mean) / sqrt(variance + kg_param(p, \"eps\")) * gamma[j] + beta[j];"

# What is replaced in layernorm.c, by what.
MUTANTS = {
    "eps_forgotten": ("+ eps)", ")"),
    "mean_of_another_row": ("norm_row((const float *)x->data + i * x->stride[0]",
                            "norm_row((const float *)x->data + i / 2 * 2 * x->stride[0]"),
    "tail_not_written": (f"j < n; j++)\n        {OUT}", f"j < n / 16 * 16; j++)\n        {OUT}"),
    "variance_in_fp16": ("variance += (x[j] - mean) * (x[j] - mean);",
                         "variance = (float)(_Float16)(variance + (x[j] - mean) * (x[j] - mean));"),
    "stride_of_output_ignored": (ROW, '(float *)y->data + i * kg_size(p, "n")'),
    "scale_kept": ("const float scale = 1 / sqrtf(variance / (float)n + eps);",
                   "static float kept[4096];\n    static const float *of[4096];\n"
                   "    const size_t at = (size_t)x / 4 % 4096;\n    if (of[at] != x)\n"
                   "        kept[at] = 1 / sqrtf(variance / (float)n + eps);\n    of[at] = x;\n"
                   "    const float scale = kept[at];"),
    "sample_variance": ("variance / (float)n", "variance / (float)(n - 1)"),
    "gamma_of_the_neighbour": ("gamma[j]", "gamma[j ? j - 1 : 0]"),
    "writes_past_a_row": (OUT, OUT + "\n    y[n] = 0;"),
    "usual_eps_alone": ('(float)kg_param(p, "eps")', "1e-5f"),
}

RIGHT = {
    "in_double": ("float mean = 0, variance = 0;", "double mean = 0, variance = 0;"),
    "by_welford": ("variance += (x[j] - mean) * (x[j] - mean);",
                   "variance += (x[j] - mean) * (x[j] - mean) * (float)(j + 1) / (float)(j + 1);"),
}

# The same of delta_rule.c, whose state is updated in place.
UPDATE = "*s = g * *s + k[i] * u;\n                o += *s * q[i];"
STATE_MUTANTS = {
    "old_state_forgotten": ("g * *s + k", "k"),
    "updated_twice": ("for (int64_t j = 0; j < V; j++) {",
                      "for (int64_t n = 0; n < 2 * V; n++) {\n            int64_t j = n % V;"),
    "not_written_back": (UPDATE, "o += (g * *s + k[i] * u) * q[i];"),
    "output_of_the_old_state": (UPDATE, "o += *s * q[i];\n                *s = g * *s + k[i] * u;"),
    "neighbour_decays_too": ("return KG_OK;", "row(state, 0)[V - 1] *= 0.999f;\n    return KG_OK;"),
    "decays_by_the_neighbours_gate": ("args->in[3].data)[h]", "args->in[3].data)[h / 2 * 2]"),
    "stride_of_state_ignored": ("state->stride[1]", "V"),
    "state_kept_elsewhere": (
        "    for (int64_t h = 0;",
        "    static float kept[1 << 16], *of;\n"
        "    const size_t n = kg_elements(state) > 1 << 16 || !kg_is_dense(state) ? 0\n"
        "                     : (size_t)kg_elements(state) * sizeof *kept;\n"
        "    if (of == state->data)\n        memcpy(of, kept, n);\n    of = state->data;\n"
        "    for (int64_t h = 0;", "return KG_OK;", "memcpy(kept, of, n);\n    return KG_OK;"),
}

# Most states explode when they are updated a few times by what one update takes.
STATE_RIGHT = {
    "in_double": ("+ j, known = 0, o = 0;", "+ j;\n            double known = 0, o = 0;"),
    "by_the_input": ("&args->out[0];", "&args->in[5];"),
    "refuses_an_exploded_state": (UPDATE, UPDATE + "\n                if (!(*s * *s < 1e8f))\n"
                                  "                    return KG_LAUNCH_FAILED;"),
}

# What is replaced in layernorm_reference.c, by what, and what the gate says of it.
REFERENCES = {
    "crashes": ("double *y = args->out[0].data;", "double *y = NULL;", "crashed (Segmentation"),
    "ends": ("return KG_OK;", "_exit(3);", "ended its process with code 3"),
    "fails": ("return KG_OK;", "return KG_LAUNCH_FAILED;", "returned 'launch failed'"),
    "writes_past": (REFERENCE_OUT, REFERENCE_OUT + "\n        y[n] = 0;",
                    "crashed beyond the memory of an output"),
    "writes_before": (REFERENCE_OUT, REFERENCE_OUT + "\n        y[-1] = 0;",
                      "crashed beyond the memory of an output"),
    "writes_beside": (REFERENCE_OUT, REFERENCE_OUT + "\n        y[-1] = 0;",
                      "wrote beside its output 'y' of layernorm/fp32/m33-n1000"),
    "writes_an_input": (REFERENCE_OUT, REFERENCE_OUT + "\n        ((double *)x)[0] = 0;",
                        "wrote to an input"),
    "leaves_out": (f"j < n; j++)\n            {REFERENCE_OUT}",
                   f"j < n - 1; j++)\n            {REFERENCE_OUT}", "leaves out elements"),
    "changes": ("double mean = 0, variance = 0;",
                "static double calls;\n        double mean = 0, variance = calls += 1e-3;",
                "disagrees with itself"),
    "makes_no_number": (REFERENCE_OUT, REFERENCE_OUT + "\n        if (m > 1)\n"
                        "            y[1] = NAN;",
                        "makes nan of finite inputs for element [0, 1] of 'y'"),
    "makes_an_infinity": ("variance + kg_param(p, \"eps\")", "0 * variance",
                          "of finite inputs for element [0, 0] of 'y'"),
    "is_of_another_op": ('"layernorm", supports', '"rmsnorm", supports',
                         "it has no kernel of this op"),
    "supports_nothing": ("return 1;", "return 0;", "does not support"),
}


# Rows that integers choose and a mask keeps, and sums of products: ops of all that a file can say.
TAKE = {"schema": "gate-op/1", "name": "take", "reference": "take.so",
        "sizes": [{"name": "m", "kind": "length"}, {"name": "n", "kind": "length"},
                  {"name": "b", "kind": "count"}, {"name": "v", "kind": "given", "values": [64]}],
        "flag": {"name": "negate", "yes": "minus", "no": "plus"},
        "tensors": [{"name": "x", "role": "in", "axes": ["b", "v", "n"]},
                    {"name": "at", "role": "in", "axes": ["m"], "dtype": "int32",
                     "fill": "integers", "least": 0, "end": "v"},
                    {"name": "keep", "role": "in", "axes": ["b", "m"], "dtype": "bool",
                     "fill": "mask"},
                    {"name": "y", "role": "out", "axes": ["b", "m", "n"]}],
        "flops": "b * m * n"}
DOT = {"schema": "gate-op/1", "name": "dot", "reference": "take.so",
       "sizes": [{"name": "m", "kind": "length"}, {"name": "k", "kind": "length"}],
       "multilinear": True,
       "tensors": [{"name": "a", "role": "in", "axes": ["m", "k"]},
                   {"name": "b", "role": "in", "axes": ["m", "k"]},
                   {"name": "c", "role": "out", "axes": ["m"], "whole": ["k"]}],
       "flops": "2 * m * k"}

# The reference reads doubles, the kernel floats and integers: one source for both.
TAKE_C = """
#include "problem.h"
static int supports(const struct kg_problem *p, const struct kg_device *d)
{
    return REFERENCE || p->dtype[0] == KG_F32;
}
static enum kg_status take(const struct kg_problem *p, const struct kg_args *a)
{
    const struct kg_tensor *x = &a->in[0], *y = &a->out[0];
    for (int64_t b = 0; b < x->shape[0]; b++)
        for (int64_t i = 0; i < y->shape[1]; i++)
            for (int64_t j = 0; j < y->shape[2]; j++)
                ((REAL *)y->data)[b * y->stride[0] + i * y->stride[1] + j] =
                    (p->flags & KG_FLAG_OWN ? -1 : 1) *
                    (float)((BYTE *)a->in[2].data)[b * a->in[2].stride[0] + i] *
                    ((REAL *)x->data)[b * x->stride[0] +
                                      (int64_t)((INTEGER *)a->in[1].data)[i] * x->stride[1] + j];
    return KG_OK;
}
static enum kg_status dot(const struct kg_problem *p, const struct kg_args *a)
{
    for (int64_t i = 0; i < a->out[0].shape[0]; i++) {
        REAL sum = 0;
        for (int64_t k = FROM; k < a->in[0].shape[1]; k++)
            sum += ((REAL *)a->in[0].data)[i * a->in[0].stride[0] + k] *
                   ((REAL *)a->in[1].data)[i * a->in[1].stride[0] + k];
        ((REAL *)a->out[0].data)[i] = sum;
    }
    return KG_OK;
}
static const struct kg_kernel one = {sizeof one, 0, "take", "take", supports, NULL, NULL, take},
                              two = {sizeof two, 0, "dot", "dot", supports, NULL, NULL, dot};
static const struct kg_kernel *const kernels[] = {&one, &two};
static const struct kg_library lib = {sizeof lib, KG_ABI_VERSION, "mine", "1", KG_DEVICE_HOST, 2,
                                      kernels};
KG_EXPORT const struct kg_library *kg_library(void) { return &lib; }
"""

# Rows in 8 bits with a scale each. The reference writes what it has before it is rounded.
QUANTISE = {"schema": "gate-op/1", "name": "quantise", "reference": "reference.so",
            "sizes": [{"name": "m", "kind": "length"}, {"name": "n", "kind": "length"}],
            "tensors": [{"name": "x", "role": "in", "axes": ["m", "n"], "fill": "any"},
                        {"name": "q", "role": "out", "axes": ["m", "n"], "whole": ["n"]},
                        {"name": "s", "role": "out", "axes": ["m"], "dtype": "fp32",
                         "whole": ["n"]}],
            "flops": "2 * m * n"}
QUANTISE_C = """
#include <math.h>
#include "problem.h"
static int supports(const struct kg_problem *p, const struct kg_device *d)
{
    return REFERENCE || p->dtype[0] == KG_F32;
}
static uint8_t e4m3(float x)
{
    int e;
    frexpf(x, &e);
    e = x == 0 || e < -5 ? -6 : e - 1;
    return (uint8_t)((int)rintf(ldexpf(fabsf(x), 3 - e)) + 8 * (e + 6) + (signbit(x) ? 128 : 0));
}
static int8_t int8(float x) { return (int8_t)rintf(x); }
static double doubles(double x) { return x; }
static enum kg_status launch(const struct kg_problem *p, const struct kg_args *a)
{
    for (int64_t i = 0; i < a->in[0].shape[0]; i++) {
        const REAL *x = (const REAL *)a->in[0].data + i * a->in[0].stride[0];
        REAL most = 0;
        for (int64_t j = 0; j < a->in[0].shape[1]; j++)
            most = fabs(x[j]) > most ? fabs(x[j]) : most;
        const REAL s = most > 0 ? most / MOST : 1;
        ((REAL *)a->out[1].data)[i] = s;
        for (int64_t j = 0; j < a->in[0].shape[1]; j++)
            ((STORED *)a->out[0].data)[i * a->out[0].stride[0] + j] =
                TO(REFERENCE ? x[j] / s : fmax(-MOST, fmin(MOST, x[j] / s)));
    }
    return KG_OK;
}
KG_LIBRARY_OF_ONE(KG_DEVICE_HOST, "quantise", supports, launch)
"""
EIGHT_BITS = (("e4m3", "uint8_t", "448"), ("int8", "int8_t", "127"))
QUANTISE_FAULTS = {"towards_zero": ("rintf", "truncf"),
                   "scale_a_percent_off": ("x[j] / s)))", "x[j] / s * 0.99)))"),
                   "scale_of_half_a_row": ("const REAL s", "if (i % 2)\n            most *= 0.5f;\n"
                                           "        const REAL s")}


class OtherOps(Gate):
    def build(self, name, *flags, source=TAKE_C):
        write_file(self.path("take.c"), source)
        subprocess.run(["cc", "-O1", "-w", "-fPIC", "-shared", "-I" + os.path.join(ROOT, "kernels"),
                        *flags, self.path("take.c"), "-o", self.path(name), "-lm"], check=True)
        return self.path(name)

    def test_outputs_of_eight_bits(self):
        for dtype, stored, most in EIGHT_BITS:
            op = json.loads(json.dumps(QUANTISE))
            op["tensors"][1]["dtype"] = dtype
            write_file(self.path("quantise.op.json"), json.dumps(op))
            suite = write_file(self.path("suite.json"), json.dumps(
                {"schema": "gate-suite/1", "name": "s", "ops": ["quantise.op.json"],
                 "cases": [{"op": "quantise", "dtype": "fp32", "m": 40, "n": 70}]}))
            of = (f"-DMOST={most}", f"-DSTORED={stored}")
            self.build("reference.so", "-DREFERENCE=1", "-DREAL=double", "-DTO=doubles",
                       f"-DMOST={most}", "-DSTORED=double", source=QUANTISE_C)
            for fault, (right, wrong) in {"none": ("", ""), **QUANTISE_FAULTS}.items():
                with self.subTest(dtype=dtype, fault=fault):
                    source = QUANTISE_C.replace(right, wrong) if right else QUANTISE_C
                    done = self.gate("verify", "--device", "host", "--suite", suite, "--library",
                                     self.build("kernel.so", "-DREFERENCE=0", "-DREAL=float",
                                                f"-DTO={dtype}", *of, source=source))
                    self.assertEqual(done.returncode, 0 if fault == "none" else 2,
                                     done.stdout + done.stderr)

    def test_integers_flags_counts_and_sums_of_products(self):
        self.build("take.so", "-DREFERENCE=1", "-DREAL=double", "-DINTEGER=double",
                   "-DBYTE=double", "-DFROM=0")
        for op in (TAKE, DOT):
            write_file(self.path(op["name"] + ".op.json"), json.dumps(op))
        suite = write_file(self.path("suite.json"), json.dumps(
            {"schema": "gate-suite/1", "name": "s", "ops": ["take.op.json", "dot.op.json"],
             "cases": [{"op": "take", "dtype": "fp32", "m": 100, "n": 40, "b": 2, "v": 64,
                        "negate": True},
                       {"op": "dot", "dtype": "fp32", "m": 50, "k": 70}]}))
        kernel = ("-DREFERENCE=0", "-DREAL=float", "-DINTEGER=int32_t", "-DBYTE=uint8_t")
        for source, code, what in (("-DFROM=0", 0, "2 right, 0 wrong"),
                                   ("-DFROM=1", 2, "1 right, 1 wrong")):
            done = self.gate("verify", "--device", "host", "--suite", suite, "--library",
                             self.build("kernel.so", *kernel, source))
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertIn(what, done.stdout)
            self.assertIn("take/fp32/m100-n40-b2-v64/minus", done.stdout)
            self.assertIn("exact integers", done.stdout)


class Example(Gate):
    """A copy of examples/OP, made. `small`: the case by which a second right kernel, and the faulty
    one, is told; the example itself is right in all cases, and a change is wrong in one of all."""
    small = "*"

    def setUp(self):
        super().setUp()
        self.example = self.path("example")
        shutil.copytree(os.path.join(ROOT, "examples", self.op), self.example,
                        ignore=shutil.ignore_patterns("build"))
        self.make()

    def make(self, *targets):
        done = subprocess.run(["make", "-C", self.example, "-f", self.op + ".mk", *targets,
                               "CFLAGS=-O2 -w", f"KERNEL_GATE={os.path.join(ROOT, 'kernels')}"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def file(self, name):
        return os.path.join(self.example, name)

    def replace(self, name, old, new):
        text = read_file(self.file(name))
        self.assertIn(old, text)
        write_file(self.file(name), text.replace(old, new))

    def look(self, *arguments, library=None, command="verify", expect=0):
        library = library or f"lib{self.op}.so"
        done = self.gate(command, "--device", "host", "--suite", self.file(self.op + ".json"),
                         "--library", self.file("build/" + library), *arguments)
        if expect is not None:
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def look_at_changed(self, wrong, right, also=()):
        """The kernel as each change makes it; `also`: a change, and arguments for a second look."""
        name = self.op + ".c"
        source = read_file(self.file(name))
        for change, texts in {**wrong, **right}.items():
            with self.subTest(change):
                text = source
                for old, new in zip(texts[::2], texts[1::2]):
                    self.assertIn(old, text)
                    text = text.replace(old, new)
                write_file(self.file(name), text)
                self.make("-W", name)
                if change in wrong:
                    self.look(expect=2)
                else:
                    self.look("--filter", self.small)
                if change in also:
                    self.look(*also[1:], expect=2)


class Kernels:
    """What every example shows, and what is said of it and of its fault."""
    says, says_of_faulty, also = ("2 right, 0 wrong, 0 not served",), "0 right, 1 wrong", ()

    def test_the_example_is_right_and_its_fault_is_wrong(self):
        said = self.look()
        for what in self.says:
            self.assertRegex(said, what)
        self.make("build/libfaulty.so")
        said = self.look("--filter", self.small, library="libfaulty.so", expect=2)
        self.assertIn(self.says_of_faulty, said)
        self.assertNotIn("the reference of op", said)

    def test_faults_are_found_and_right_kernels_are_right(self):
        self.look_at_changed(self.wrong, self.right, self.also)


class State(Kernels, Example):
    op, wrong, right = "delta_rule", STATE_MUTANTS, STATE_RIGHT
    says_of_faulty = "output 'state'"

    def test_each_timed_launch_begins_with_the_same_state(self):
        run = ("--baselines", self.path("baselines"), "--threshold", "50%", "--filter", "*k64*",
               "--budget", "5", "--pause", "0")
        name = "delta_rule.c"
        source = read_file(self.file(name))
        write_file(self.file(name), source.replace(*STATE_RIGHT["refuses_an_exploded_state"]))
        self.make("-W", name)
        self.look("--accept-new", *run, command="run", expect=0)
        report = self.path("run.json")
        self.look("--report", "json=" + report, *run, command="run", expect=None)
        case = json.loads(read_file(report))["cases"][0]
        self.assertEqual(case["mode"], "paired", case)
        timing = case["arms"][0]["timing"]
        self.assertEqual(timing["launches_per_sample"], timing["input_sets"])


class Groups(Kernels, Example):
    op, small = "moe_up", "*/g3-*"
    wrong, right = index_mutants.GROUPED_WRONG, index_mutants.GROUPED_RIGHT


class Blocks(Kernels, Example):
    op, wrong, right = "block_scales", block_mutants.WRONG, block_mutants.RIGHT
    says = ("2 right, 0 wrong, 0 not served",
            r"mxfp4/m20-n64-k256 +right +block_scales +\S+ +0.004 ",
            r"int4/m33-n48-k96 +right +block_scales +\S+ +2e-05 ")
    says_of_faulty = "0 right, 2 wrong"

    def test_rows_of_four_bits_have_no_half_bytes(self):
        self.replace("block_scales.op.json", '"k % 32 == 0"', '"k % 33 == 0"')
        self.replace("block_scales.op.json", '"k / 32"', '"k / 33"')
        self.replace("block_scales.json", '"k": 256', '"k": 264')
        self.replace("block_scales.json", '"k": 96', '"k": 99')
        self.assertIn("the sizes break 'q' of 'block_scales': a row of numbers of 4 bits has an "
                      "even number of them", self.look(expect=64))

    def test_what_is_no_variant_is_no_dtype(self):
        self.replace("block_scales.json", '"mxfp4"', '"bf16"')
        self.assertIn("unknown dtype 'bf16'; there are mxfp4, int4", self.look(expect=64))


class Pages(Kernels, Example):
    op, small = "paged_decode", "*/b3-*"
    wrong, right = index_mutants.PAGED_WRONG, index_mutants.PAGED_RIGHT

    def test_a_table_that_has_too_few_numbers_is_no_case(self):
        self.replace("paged_decode.json", '"blocks": 9, "t": 5', '"blocks": 9, "t": 10')
        self.assertIn("paged_decode.json:7:12: the sizes break 'table' of 'paged_decode': a row "
                      "has 10 different numbers below 9", self.look(expect=64))


class ForGpus(Gate):
    def test_the_faulty_kernels_in_cuda_are_others(self):
        """What makes them from the right ones replaces a piece of text, which has to be there."""
        for op in ("delta_rule", "moe_up", "paged_decode"):
            with self.subTest(op):
                example = self.path(op)
                shutil.copytree(os.path.join(ROOT, "examples", op), example)
                subprocess.run(["make", "-s", "-C", example, "-f", op + ".mk", "-B",
                                "build/faulty.cu"], check=True)
                right = read_file(os.path.join(example, op + ".cu"))
                self.assertNotEqual(read_file(os.path.join(example, "build/faulty.cu")), right)


class OwnOps(Kernels, Example):
    op, wrong, right = "layernorm", MUTANTS, RIGHT
    says, says_of_faulty = ("3 right, 0 wrong, 0 not served",), "layernorm/fp32/m256-n512"
    also = ("usual_eps_alone", "--filter", "*m256*")  # nor is it right where no case has another

    def test_a_faulty_reference_is_named_and_no_kernel_is_blamed(self):
        source = read_file(self.file("layernorm_reference.c"))
        for name, (old, new, what) in REFERENCES.items():
            with self.subTest(name):
                self.assertIn(old, source)
                write_file(self.file("layernorm_reference.c"),
                           source.replace(old, new).replace("<math.h>", "<math.h>\n#include "
                                                            "<stdlib.h>\n#include <unistd.h>"))
                self.make("-W", "layernorm_reference.c")
                said = self.look("--filter", "*m33*" if "m33" in what else "*m256*",
                                 expect=64 if "no kernel of" in what else 4)
                self.assertIn("the reference of op 'layernorm'", said)
                self.assertIn(what, said)
                self.assertNotIn(" wrong ", said.replace(" 0 wrong", ""))

    def test_a_second_reference_has_to_agree(self):
        self.replace("layernorm.op.json", '"sizes"',
                     '"second_reference": "build/libsecond.so",\n  "sizes"')
        source = "#define _GNU_SOURCE\n#include <signal.h>\n#include <stdlib.h>\n" \
            "#include <unistd.h>\n" + read_file(self.file("layernorm_reference.c"))
        cases = (("mean += x[j] / (double)n;", "mean += x[n - 1 - j] / (double)n;", 0, "3 right"),
                 ("return KG_OK;", "signal(SIGALRM, (void (*)(int))abs), siginterrupt(SIGALRM, 1);"
                  "\n    ualarm(5000, 5000);\n    return KG_OK;", 0, "3 right"),
                 (' + kg_param(p, "eps")', ' + kg_param(p, "eps") * (1 + 1e-5)', 4,
                  "and the second one, '"),
                 ("y[j] = (x", "y[j] = i ? NAN : (x", 4, "element 512 of 'y'"),
                 ("return KG_OK;", "return KG_LAUNCH_FAILED;", 4,
                  "libsecond.so', returned 'launch failed'"))
        for old, new, code, what in cases:
            with self.subTest(new):
                self.assertIn(old, source)
                write_file(self.file("second.c"), source.replace(old, new))
                self.make("build/libsecond.so")
                said = self.look(expect=code)
                self.assertIn(what, said)
                self.assertNotIn(" wrong ", said.replace(" 0 wrong", ""))
        os.remove(self.file("build/libsecond.so"))
        self.assertIn("libsecond.so': No such file or directory; build it first",
                      self.look(expect=74))

    def test_nan_of_which_both_references_are_sure_is_meant(self):
        self.replace("layernorm.op.json", '"sizes"',
                     '"second_reference": "build/libsecond.so",\n  "sizes"')
        old, new, _ = REFERENCES["makes_no_number"]
        self.replace("layernorm_reference.c", old, new)
        shutil.copy(self.file("layernorm_reference.c"), self.file("second.c"))
        self.make("-W", "layernorm_reference.c", "all", "build/libsecond.so")
        said = self.look("--filter", "*m256*", expect=2)
        self.assertIn("elements must be NaN or infinity and are not", said)

    def test_a_reference_that_does_not_end_is_named(self):
        self.replace("layernorm_reference.c", "return KG_OK;", "for (;;)\n        ;")
        self.make("-W", "layernorm_reference.c")
        said = self.look("--timeout", "2", "--filter", "*m256*", expect=4)
        self.assertIn("the reference of op 'layernorm' did not end", said)

    def test_a_reference_that_is_missing_is_said(self):
        os.remove(self.file("build/liblayernorm_reference.so"))
        self.assertIn("liblayernorm_reference.so': No such file or directory; build it first",
                      self.look(expect=74))

    def test_it_cannot_take_the_place_of_a_built_in_op(self):
        self.replace("layernorm.op.json", '"name": "layernorm"', '"name": "rmsnorm"')
        said = self.look(expect=64)
        self.assertIn("layernorm.op.json:3:11: /name: 'rmsnorm' is the name of an op that is "
                      "built in", said)

    def test_sizes_that_it_does_not_allow_are_no_case(self):
        for old, new, what in (('"n": 512', '"n": 511', "break 'n % 8 == 0'"),
                               ('"n": 512', '"n": 24', "does not allow 24; it allows 32"),
                               ('"n": 512', '"k": 512', "takes no 'k'; it takes m, n, eps")):
            with self.subTest(new):
                suite = read_file(self.file("layernorm.json"))
                self.replace("layernorm.json", old, new)
                said = self.look(expect=64)
                write_file(self.file("layernorm.json"), suite)
                self.assertIn(what, said)

    def test_init_writes_an_op(self):
        def gate(*arguments, expect=0):
            done = subprocess.run([GATE, *arguments], cwd=self.folder, capture_output=True,
                                  text=True, check=False, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
            return done.stdout + done.stderr
        self.assertIn("expected a new name", gate("init", "--op", "gemm", expect=64))
        self.assertIn("take one of them", gate("init", "--op", "a", "--example", expect=64))
        said = gate("init", "--op", "row_norm")
        self.assertIn("make -f row_norm.mk", said)
        self.assertIn("the files of 'row_norm' compute a layer norm", said)
        self.assertNotIn("layernorm", read_file(self.path("row_norm.op.json")))
        subprocess.run(["make", "-s", "-C", self.folder, "-f", "row_norm.mk"], check=True)
        self.assertIn("3 right", gate("verify", "--device", "host"))

    def test_it_is_measured_and_gated(self):
        baselines = self.path("baselines")
        run = ("--baselines", baselines, "--threshold", "50%", "--filter", "*m64*", "--budget", "5",
               "--pause", "0")
        self.look("--accept-new", *run, command="run", expect=0)
        report = self.path("run.json")
        self.look("--report", "json=" + report, *run, command="run", expect=None)
        case = json.loads(read_file(report))["cases"][0]
        self.assertEqual((case["op"], case["mode"]), ("layernorm", "paired"))
        verified = case["arms"][0]["verify"]
        self.assertIn("exact integers", verified["not_declared"])
        # It is remembered, unless it is drawn to be verified anew: here all are.
        self.replace("layernorm.op.json", "8 * m * n", "9 * m * n")
        self.look("--report", "json=" + report, *run, command="run", expect=3)
        changed = json.loads(read_file(report))["cases"][0]
        self.assertNotEqual(changed["op_sha256"], case["op_sha256"])
        self.assertIn("its file or its reference has changed", changed["reason"])
        self.look("--accept-new", *run, command="run", expect=0)
        self.look("--report", "json=" + report, *run, command="run", expect=None)
        self.assertEqual(json.loads(read_file(report))["cases"][0]["mode"], "paired")


if __name__ == "__main__":
    unittest.main()
