#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crosscheck.py [--filter GLOB] [--profiler GLOB] RUN.json LIBRARY: wins over vendors, measured by
other tools.

Takes the cases of a `gate run --json` in which the candidate is faster than every vendor, and times
its LIBRARY and PyTorch's own call for the same problem by two tools that share no code with the
gate: CUDA events of PyTorch around recorded launches, both sides in turn, and Triton's do_bench,
which clears the L2 before each launch. The vendor is what PyTorch calls: cuBLAS, and for attention
the fastest of its backends. Both results are compared before anything is timed. Prints a table,
and a reason for each case in which the tools disagree about who is faster; exit code 1: a result
is wrong, or a disagreement has no reason. Needs a python3 with torch and triton, and a GPU.

With --profiler the vendor's own profiler, Nsight Compute, is a third tool for the cases that match:
the time of each kernel of a launch, added up, after the L2 was cleared.
"""
import argparse
import csv
import ctypes
import fnmatch
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

DTYPES = {"fp16": 1, "bf16": 2, "fp32": 3, "tf32": 3}
SIZES = {"attention_fwd": ("b", "kv_heads", "h", "sq", "s", "d"), "gemv": ("m", "k")}
CAUSAL, TF32 = 1, 2
HOST, CUDA = 1, 2
RANK_MAX, TENSORS_MAX, SIZES_MAX, PARAMS_MAX = 6, 12, 12, 8
SAMPLE_US = 2000
ROUNDS = 20
PROFILED_ROUNDS = 5
PROFILED_MAX_S = 100
MARK = "spin_kernel"  # what torch.cuda._sleep() launches: one stands before each profiled launch
TIE = 0.02       # closer than this nobody is faster
SHORT_US = 20.0  # from here down the launch itself counts where launches are timed one by one
ERROR_MAX = {"fp16": 5e-3, "bf16": 3e-2, "fp32": 1e-4, "tf32": 5e-3}  # relative, Frobenius


# ---- kernel.h ----

class Size(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


class Param(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class Problem(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("op", ctypes.c_char_p),
                *((name, ctypes.c_uint32) for name in ("n_sizes", "n_params", "n_in", "n_out")),
                ("size", Size * SIZES_MAX), ("param", Param * PARAMS_MAX),
                ("dtype", ctypes.c_uint32 * TENSORS_MAX)]


class Device(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("kind", ctypes.c_uint32),
                *((name, ctypes.c_int32) for name in ("ordinal", "cc_major", "cc_minor",
                                                      "sm_count")),
                ("l2_bytes", ctypes.c_int64), ("shared_bytes_optin", ctypes.c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_uint32), ("rank", ctypes.c_uint32),
                ("shape", ctypes.c_int64 * RANK_MAX), ("stride", ctypes.c_int64 * RANK_MAX)]


class Args(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("n_in", ctypes.c_uint32),
                ("n_out", ctypes.c_uint32), ("inputs", Tensor * TENSORS_MAX),
                ("outputs", Tensor * TENSORS_MAX), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64), ("stream", ctypes.c_void_p),
                ("plan", ctypes.c_void_p)]


ASK = [ctypes.POINTER(Problem), ctypes.POINTER(Device)]


class Kernel(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("op", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("supports", ctypes.CFUNCTYPE(ctypes.c_int, *ASK)),
                ("prepare", ctypes.CFUNCTYPE(ctypes.c_int, *ASK, ctypes.c_void_p)),
                ("workspace_bytes", ctypes.CFUNCTYPE(ctypes.c_uint64, *ASK, ctypes.c_void_p)),
                ("launch", ctypes.CFUNCTYPE(ctypes.c_int, ASK[0], ctypes.POINTER(Args))),
                ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class Table(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("abi_version", ctypes.c_uint32),
                ("provider", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("device_kind", ctypes.c_uint32), ("n_kernels", ctypes.c_uint32),
                ("kernels", ctypes.POINTER(ctypes.POINTER(Kernel))),
                ("open", ctypes.CFUNCTYPE(ctypes.c_int, ASK[1])),
                ("close", ctypes.CFUNCTYPE(None))]


def dense(pointer, dtype, shape):
    """A tensor of that shape without gaps."""
    t = Tensor(data=pointer, dtype=dtype, rank=len(shape))
    stride = 1
    for i in reversed(range(len(shape))):
        t.shape[i], t.stride[i] = shape[i], stride
        stride *= shape[i]
    return t


class Library:
    """A kernel library, opened for one device."""

    def __init__(self, path, device):
        self.device = device
        self.file = ctypes.CDLL(path)
        self.file.kg_library.restype = ctypes.POINTER(Table)
        self.table = self.file.kg_library().contents
        if self.table.open and self.table.open(ctypes.byref(device)):
            sys.exit(f"crosscheck.py: '{path}' cannot be opened for this device")

    def prepare(self, problem):
        """The first kernel that takes the problem, the workspace that it needs, and its plan."""
        plan = ctypes.c_void_p()
        ask = ctypes.byref(problem), ctypes.byref(self.device)
        for i in range(self.table.n_kernels):
            kernel = self.table.kernels[i].contents
            if kernel.op == problem.op and kernel.supports(*ask):
                if kernel.prepare and kernel.prepare(*ask, ctypes.addressof(plan)):
                    break
                size = kernel.workspace_bytes(*ask, plan) if kernel.workspace_bytes else 0
                return kernel, size, plan
        return None, 0, None


def launch_args(inputs, outputs, workspace=None, workspace_bytes=0, stream=None, plan=None):
    args = Args(struct_bytes=ctypes.sizeof(Args), n_in=len(inputs), n_out=len(outputs),
                workspace=workspace, workspace_bytes=workspace_bytes, stream=stream, plan=plan)
    for i, t in enumerate(inputs):
        args.inputs[i] = t
    for i, t in enumerate(outputs):
        args.outputs[i] = t
    return args


# ---- cases ----

def problem_of(name):
    """The problem of a case's id, and the shapes of its inputs and outputs."""
    op, dtype, sizes, *flags = name.split("/")
    if any(flag not in ("causal", "full") for flag in flags):
        raise ValueError(f"'{name}' has a flag that is not known")
    size = {key: int(value) for key, value in re.findall(r"([a-z]+)(\d+)", sizes)}
    if op == "attention_fwd":
        size["kv_heads"], size["sq"] = size.get("kv", size["h"]), size.get("sq", size["s"])
        q, kv = (tuple(size[key] for key in keys) for keys in (("b", "h", "sq", "d"),
                                                               ("b", "kv_heads", "s", "d")))
        shapes = [q, kv, kv], [q]
    else:
        m, n, k = (size.get(key, 0) for key in "mnk")
        shapes = {"gemm": ([(m, k), (k, n)], [(m, n)]), "gemv": ([(m, k), (k,)], [(m,)]),
                  "linear_relu": ([(m, k), (n, k), (n,)], [(m, n)]),
                  "linear_relu_bwd": ([(m, n), (m, k), (n, k), (m, n)], [(m, k), (n, k), (n,)])}[op]
    names = SIZES.get(op, "mnk")
    p = Problem(struct_bytes=ctypes.sizeof(Problem), op=op.encode(), n_sizes=len(names),
                n_params=op == "attention_fwd", n_in=len(shapes[0]), n_out=len(shapes[1]),
                flags=(CAUSAL if "causal" in flags else 0) | (TF32 if dtype == "tf32" else 0))
    for i, key in enumerate(names):
        p.size[i] = Size(key.encode(), size[key])
    if op == "attention_fwd":
        p.param[0] = Param(b"scale", size["d"] ** -0.5)
    for i in range(p.n_in + p.n_out):
        p.dtype[i] = DTYPES[dtype]
    return p, *shapes


def wins(document):
    """id: (candidate, fastest vendor) in us, where the candidate is faster than all vendors."""
    found = {}
    for case in document["cases"]:
        times = {"candidate": [], "provider": []}
        for arm in case["arms"]:
            if arm["timing"] and arm["verify"] and arm["verify"]["ok"] and arm["role"] in times:
                times[arm["role"]].append(arm["timing"]["p50_ns"] / 1000)
        if times["candidate"] and times["provider"] and \
                times["candidate"][0] < min(times["provider"]):
            found[case["id"]] = (times["candidate"][0], min(times["provider"]))
    return found


def faster(times):
    """-1: the candidate, 1: the vendor, 0: neither."""
    ratio = times[0] / times[1]
    return 0 if abs(ratio - 1) < TIE else -1 if ratio < 1 else 1


def disagreement(gate, tools):
    """Why tools disagree with the gate: None where they agree, "" where no reason is known. tools:
    the name of each, its times, and what would explain that it says something else."""
    said = faster(gate)
    reasons = []
    for name, times, cause in tools:
        if faster(times) == said:
            continue
        if 0 in (faster(times), said) and abs(times[0] / times[1] - gate[0] / gate[1]) < 2 * TIE:
            cause = f"a tie within {100 * TIE:.0f} % on one side"
        if not cause:
            return ""
        reasons.append(f"{name}: {cause}")
    return "; ".join(reasons) or None


def explain(gate, events, bench, n_bytes, l2_bytes):
    return disagreement(gate, (
        ("events", events, n_bytes < l2_bytes and
         "its inputs stay in the L2 there, the gate's rotate"),
        ("do_bench", bench, min(gate) < SHORT_US and
         "it times launches one by one, and the launch counts in so few us")))


def explain_profile(gate, times, n_kernels):
    return disagreement(gate, (
        ("ncu", times, n_kernels > 1 and
         "it runs the kernels of a launch one by one, and adds up their times alone"),))


# ---- measuring ----

def torch_device(torch):
    p = torch.cuda.get_device_properties(0)
    return Device(struct_bytes=ctypes.sizeof(Device), kind=CUDA, ordinal=0, cc_major=p.major,
                  cc_minor=p.minor, sm_count=p.multi_processor_count, l2_bytes=p.L2_cache_size,
                  shared_bytes_optin=p.shared_memory_per_block_optin)


def vendor_calls(torch, name, x):
    """PyTorch's calls for a case, by name; each returns the list of outputs."""
    op, dtype, *_ = name.split("/")
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    if op == "gemm":
        return {"matmul": lambda: [torch.matmul(x[0], x[1])]}
    if op == "gemv":
        return {"mv": lambda: [torch.mv(x[0], x[1])]}
    if op == "linear_relu":  # with ReLU in the epilogue
        return {"addmm": lambda: [torch._addmm_activation(x[2], x[0], x[1].t())]}
    if op == "linear_relu_bwd":
        def backward():
            g = torch.where(x[3] > 0, x[0], 0)
            return [g @ x[2], g.t() @ x[1], g.sum(0)]
        return {"eager": backward}
    kinds = torch.nn.attention.SDPBackend
    causal = name.endswith("/causal") and x[0].shape[2] > 1

    def attention(backend):
        def call():
            with torch.nn.attention.sdpa_kernel(backend):
                return [torch.nn.functional.scaled_dot_product_attention(
                    *x, is_causal=causal, enable_gqa=x[0].shape[1] != x[1].shape[1])]
        return call
    return {"cudnn": attention(kinds.CUDNN_ATTENTION), "flash": attention(kinds.FLASH_ATTENTION)}


class Case:
    def __init__(self, torch, library, name):
        self.torch, self.name = torch, name
        self.dtype = name.split("/")[1]
        self.problem, inputs, outputs = problem_of(name)
        kind = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(self.dtype, torch.float32)
        new = lambda shape: torch.randn(shape, device="cuda", dtype=kind)
        self.inputs, self.outputs = [new(s) for s in inputs], [new(s) for s in outputs]
        self.n_bytes = sum(t.numel() * t.element_size() for t in self.inputs + self.outputs)
        self.kernel, size, self.plan = library.prepare(self.problem)
        if not self.kernel:
            sys.exit(f"crosscheck.py: the library has no kernel for {name} here")
        self.workspace = torch.empty(max(size, 1), device="cuda", dtype=torch.uint8)
        self.size = size

    def ours(self):
        tensors = [[dense(t.data_ptr(), self.problem.dtype[0], t.shape) for t in list_]
                   for list_ in (self.inputs, self.outputs)]
        args = launch_args(*tensors, self.workspace.data_ptr() if self.size else None, self.size,
                           self.torch.cuda.current_stream().cuda_stream, self.plan)
        if self.kernel.launch(ctypes.byref(self.problem), ctypes.byref(args)):
            sys.exit(f"crosscheck.py: the launch of {self.name} failed")
        return self.outputs

    def error(self, call):
        """Relative error of the candidate against a vendor's result, the largest of an output."""
        theirs = [t.double() for t in call()]
        return max(((a.double() - b).norm() / b.norm()).item()
                   for a, b in zip(self.ours(), theirs))

    def record(self, call, n):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(n):
                call()
        return graph

    def replay_us(self, graph):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000

    def events(self, calls):
        """Median us of a launch of each call, in the order A B B A."""
        graphs, times = [], [[] for _ in calls]
        for call in calls:
            side = self.torch.cuda.Stream()
            with self.torch.cuda.stream(side):
                call()
            side.synchronize()
            once = self.record(call, 1)
            n = max(1, round(SAMPLE_US / max(self.replay_us(once), self.replay_us(once))))
            graphs.append((self.record(call, n), n))
            self.replay_us(graphs[-1][0])
        for _ in range(ROUNDS):
            for i in [*range(len(calls)), *reversed(range(len(calls)))]:
                times[i].append(self.replay_us(graphs[i][0]) / graphs[i][1])
        return [statistics.median(t) for t in times]


def measure(torch, triton, library, name):
    """Times of candidate and fastest vendor by both tools, and what else a row needs."""
    case, calls = Case(torch, library, name), {}
    for vendor, call in vendor_calls(torch, name, case.inputs).items():
        try:
            call()
            calls[vendor] = call
        except RuntimeError as error:
            print(f"# {name}: {vendor}: {str(error).splitlines()[0]}")
    if not calls:
        return None
    error = case.error(next(iter(calls.values())))
    rows = [case.events([case.ours, call]) for call in calls.values()]
    best = min(range(len(rows)), key=lambda i: rows[i][1])
    call = list(calls.values())[best]
    bench = [triton.testing.do_bench(f, return_mode="median") * 1000 for f in (case.ours, call)]
    return {"vendor": list(calls)[best], "error": error, "limit": ERROR_MAX[case.dtype],
            "events": rows[best], "bench": bench, "n_bytes": case.n_bytes}


def print_row(name, vendor, pairs, reason, wrong=""):
    columns = [f"{a:9.2f} / {b:9.2f} {a / b:6.3f}" for a, b in pairs]
    print(f"{name:<50} {vendor:<7} {'  '.join(columns)}  {wrong}"
          f"{'agree' if reason is None else reason or 'DISAGREE, no reason known'}", flush=True)


# ---- the vendor's profiler ----

def launch_under_profiler(torch, library, cases):
    """Launches each (case, vendor) as the profiler is to see it: ours and the vendor's in turn."""
    sweep = torch.empty(4 * torch_device(torch).l2_bytes, device="cuda", dtype=torch.uint8)
    for name, vendor in cases:
        case = Case(torch, library, name)
        calls = [case.ours, vendor_calls(torch, name, case.inputs)[vendor]]
        for call in calls:
            call()
        for call in calls * PROFILED_ROUNDS:
            sweep.zero_()
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            torch.cuda._sleep(1)  # pylint: disable=protected-access
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


def read_profile(text, cases):
    """{case: ((median us of ours, of the vendor's), most kernels of a launch)} of ncu's table."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError("ncu wrote no table: " + " ".join(text.split())[:200])
    header, units, *rows = csv.reader(lines[start:])
    name, time = header.index("Kernel Name"), header.index("gpu__time_duration.sum")
    if units[time] not in ("ns", "nsecond"):
        raise ValueError(f"ncu's unit of time is '{units[time]}'")
    launches = []
    for row in rows:
        if MARK in row[name]:
            launches.append([])
        else:
            launches[-1].append(float(row[time].replace(",", "")) / 1000)
    if len(launches) != 2 * PROFILED_ROUNDS * len(cases) or not all(launches):
        raise ValueError(f"ncu saw {len(launches)} launches of {len(cases)} cases")
    found = {}
    for i, (case, _) in enumerate(cases):
        of_case = launches[2 * PROFILED_ROUNDS * i:2 * PROFILED_ROUNDS * (i + 1)]
        found[case] = (tuple(statistics.median(map(sum, of_case[side::2])) for side in (0, 1)),
                       max(map(len, of_case)))
    return found


def profile(cases, run, library):
    """What ncu says of these (case, vendor), asked in a process of its own; {} and a line where it
    says nothing."""
    ncu = shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")
    if not ncu:
        print("# ncu is neither on PATH nor in /usr/local/cuda/bin")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "ncu.csv")
        command = [ncu, "--csv", "--page=raw", "--print-units=base", "--clock-control=none",
                   "--cache-control=none", "--profile-from-start=off", "--log-file", log,
                   "--metrics", "gpu__time_duration.sum", sys.executable,
                   os.path.abspath(__file__), "--launch", json.dumps(cases), run, library]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False, timeout=PROFILED_MAX_S)
            with open(log, encoding="utf-8", errors="replace") as file:
                return read_profile(file.read(), cases)
        except subprocess.TimeoutExpired:
            print(f"# ncu took more than {PROFILED_MAX_S} s")
        except (OSError, ValueError) as error:
            print(f"# {error}; {done.stderr.strip()[-300:]}")
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="*", help="only the cases whose id matches")
    parser.add_argument("--profiler", metavar="GLOB", help="ask ncu about the cases that match")
    parser.add_argument("--launch", metavar="CASES", help=argparse.SUPPRESS)  # what runs under ncu
    parser.add_argument("run", help="the document of a `gate run --json`")
    parser.add_argument("library", help="the candidate of that run")
    options = parser.parse_args()
    with open(options.run, encoding="utf-8") as file:
        won = {name: times for name, times in wins(json.load(file)).items()
               if fnmatch.fnmatch(name, options.filter)}
    if not won:
        sys.exit("crosscheck.py: the run has no win over a vendor that matches")
    try:
        import torch
        import triton
    except ImportError as error:
        sys.exit(f"crosscheck.py: {error}; run it by a python3 that has torch and triton")
    if not torch.cuda.is_available():
        sys.exit("crosscheck.py: torch sees no GPU")
    device = torch_device(torch)
    library, bad = Library(options.library, device), 0
    if options.launch:
        launch_under_profiler(torch, library, json.loads(options.launch))
        sys.exit(0)
    print(f"# torch {torch.__version__}, triton {triton.__version__}, "
          f"{torch.cuda.get_device_name()}; us of candidate / vendor, and the ratio")
    vendors = {}
    for name, gate in won.items():
        m = measure(torch, triton, library, name)
        if not m:
            print(f"{name:<50} PyTorch has no call for it")
            continue
        vendors[name] = m["vendor"]
        reason = explain(gate, m["events"], m["bench"], m["n_bytes"], device.l2_bytes)
        wrong = not m["error"] <= m["limit"]
        bad += wrong or reason == ""
        print_row(name, m["vendor"], (gate, m["events"], m["bench"]), reason,
                  f"WRONG, error {m['error']:.2g} " if wrong else "")
    asked = [(name, vendor) for name, vendor in vendors.items()
             if options.profiler and fnmatch.fnmatch(name, options.profiler)]
    if asked:
        print("# the same by the gate and by ncu")
        for name, (times, n) in profile(asked, options.run, options.library).items():
            reason = explain_profile(won[name], times, n)
            bad += reason == ""
            print_row(name, vendors[name], (won[name], times), reason)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
