#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peers.py [--run RUN.json] [--filter GLOB]: PyTorch's attention on the canonical shapes.

Times scaled_dot_product_attention by its default, by cuDNN and by FlashAttention, by the contract
of gate/launch/session.h: CUDA graphs of about 1 ms, input sets that rotate over three times the
L2, rests in which the power recovers. With the document of a `gate run --json` the times of its
arms stand beside them, and the exit code is 1 where the provider `cudnn` and PyTorch's cuDNN are
more than 3 % apart. Needs a python3 with torch, and a GPU.
"""
import argparse
import fnmatch
import json
import os
import statistics
import sys

SUITES = ("../../kernels/suites", "../../share/kernel-gate/suites")
L2_MULTIPLE = 3
REPLAY_US = 1000
ROTATION_MAX_US = 10000
WORK_IN_A_ROW_US = 5000
LONG_SAMPLE_US = 2500
REST_MAX_US = 2500
ROUNDS = 30
HOLD_CYCLES = 200000  # keeps the device busy until the replay is enqueued behind it
LIMIT = 0.03


def case_id(case):
    sizes = [f"b{case['b']}", f"h{case['h']}"]
    if "kv_heads" in case:
        sizes.append(f"kv{case['kv_heads']}")
    if "sq" in case:
        sizes.append(f"sq{case['sq']}")
    sizes += [f"s{case['s']}", f"d{case['d']}"]
    name = f"attention_fwd/{case['dtype']}/{'-'.join(sizes)}"
    return name + ("/causal" if case["causal"] else "/full")


def canonical():
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in SUITES:
        path = os.path.join(here, folder, "canonical.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                cases = json.load(file)["cases"]
            return {case_id(c): c for c in cases if c["op"] == "attention_fwd"}
    sys.exit(f"peers.py: no canonical.json in {' or '.join(SUITES)} beside {here}")


def gate_times(document):
    """p50 in us of each arm of each case of a run document."""
    return {c["id"]: {a["provider"]: a["timing"]["p50_ns"] / 1000 for a in c["arms"]
                      if a["timing"] and a["role"] != "baseline"} for c in document["cases"]}


def check_version(document, version):
    """Ends where the provider opened another cuDNN than PyTorch's: its kernels are others."""
    torchs = f"cuDNN {version // 10000}.{version // 100 % 100}.{version % 100}"
    for library in document["libraries"]:
        if library["provider"] == "cudnn" and library["version"] != torchs:
            sys.exit(f"peers.py: the run was made with {library['version']}, PyTorch has {torchs}; "
                     "name PyTorch's libcudnn.so.9 in KG_CUDNN and run again")


class Case:
    """Input sets of one shape, and launches on them in turn."""

    def __init__(self, torch, case):
        self.torch = torch
        sq, skv = case.get("sq", case["s"]), case["s"]
        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[case["dtype"]]
        q = (case["b"], case["h"], sq, case["d"])
        kv = (case["b"], case.get("kv_heads", case["h"]), skv, case["d"])
        # PyTorch's mask is aligned to the top left; a single query sees all keys.
        self.options = {"is_causal": case["causal"] and sq > 1, "enable_gqa": q[1] != kv[1]}
        size = 2 * (2 * q[0] * q[1] * q[2] * q[3] + 2 * kv[0] * kv[1] * kv[2] * kv[3])
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.sets = [[torch.randn(shape, device="cuda", dtype=dtype) for shape in (q, kv, kv)]
                     for _ in range(max(1, -(-L2_MULTIPLE * l2 // size)))]
        self.results = [None] * len(self.sets)

    def launch(self, n, n_sets):
        attention = self.torch.nn.functional.scaled_dot_product_attention
        for i in range(n):
            self.results[i % n_sets] = attention(*self.sets[i % n_sets], **self.options)

    def record(self, n, n_sets):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self.launch(n, n_sets)
        return graph

    def replay_us(self, graph):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda._sleep(HOLD_CYCLES)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000

    def ready(self):
        """A graph of about REPLAY_US by the backend that is chosen now, and its launches."""
        side = self.torch.cuda.Stream()
        with self.torch.cuda.stream(side):
            self.launch(2, 1)
        side.synchronize()
        once = self.record(1, 1)
        self.replay_us(once)
        us = self.replay_us(once)
        n_sets = len(self.sets) if us * len(self.sets) <= ROTATION_MAX_US else 1
        for _ in range(2):  # one launch alone carries the cost of a replay
            n = max(1, round(REPLAY_US / (us * n_sets))) * n_sets
            graph = self.record(n, n_sets)
            self.replay_us(graph)
            us = self.replay_us(graph) / n
        return graph, n

    def sample(self, graphs):
        """p50 and p90 of a launch in us of each graph; samples forth and back over all of them."""
        times, work = {name: [] for name in graphs}, 0
        for _ in range(ROUNDS):
            for name in [*graphs, *reversed(graphs)]:
                graph, n = graphs[name]
                us = self.replay_us(graph)
                times[name].append(us / n)
                work += us
                if us > LONG_SAMPLE_US:
                    work = self.rest(work)
            if work > WORK_IN_A_ROW_US:
                work = self.rest(work)
        return {name: (statistics.median(t), sorted(t)[len(t) * 9 // 10])
                for name, t in times.items()}

    def rest(self, work_us):
        us = min(work_us / 2, REST_MAX_US)
        self.torch.cuda._sleep(int(us * 1900))  # cycles: one thread that spins
        self.torch.cuda.synchronize()
        return 0


def backends(torch):
    kinds = torch.nn.attention.SDPBackend
    return {"default": None, "cudnn": kinds.CUDNN_ATTENTION, "flash": kinds.FLASH_ATTENTION}


def measure(torch, case):
    ready, graphs = Case(torch, case), {}
    for name, backend in backends(torch).items():
        try:
            if backend is None:
                graphs[name] = ready.ready()
            else:
                with torch.nn.attention.sdpa_kernel(backend):
                    graphs[name] = ready.ready()
        except RuntimeError as error:
            print(f"# {name}: {str(error).splitlines()[0]}")
    return ready.sample(graphs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", help="the document of a `gate run --json`")
    parser.add_argument("--filter", default="*", help="only the cases whose id matches")
    options = parser.parse_args()
    run = {"cases": [], "libraries": []}
    if options.run:
        with open(options.run, encoding="utf-8") as file:
            run = json.load(file)
    gate = gate_times(run)
    try:
        import torch
    except ImportError:
        sys.exit("peers.py: this python3 has no torch; run it by one that has")
    if not torch.cuda.is_available():
        sys.exit("peers.py: torch sees no GPU")
    check_version(run, torch.backends.cudnn.version())
    print(f"# torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
          f"{torch.cuda.get_device_name()}; p50 (p90) in us")
    print(f"{'case':<50} {'default':>16} {'cudnn':>16} {'flash':>16} {'gate: ours':>11} "
          f"{'cudnn':>9}  cudnn, gate / torch")
    apart = 0
    for name, case in canonical().items():
        if not fnmatch.fnmatch(name, options.filter):
            continue
        times, arms = measure(torch, case), gate.get(name, {})
        columns = [f"{times[b][0]:8.2f} ({times[b][1]:5.4g})" if b in times else "-"
                   for b in backends(torch)]
        known = [f"{arms[a]:.2f}" if a in arms else "-" for a in ("ours", "cudnn")]
        verdict = ""
        if "cudnn" in arms and "cudnn" in times:
            ratio = arms["cudnn"] / times["cudnn"][0]
            apart += abs(ratio - 1) > LIMIT
            verdict = f"{ratio:.3f}" + (" APART" if abs(ratio - 1) > LIMIT else "")
        print(f"{name:<50} {columns[0]:>16} {columns[1]:>16} {columns[2]:>16} {known[0]:>11} "
              f"{known[1]:>9}  {verdict}", flush=True)
    sys.exit(1 if apart else 0)


if __name__ == "__main__":
    main()
