#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""latency.py BUILD DATABASE: how long single answers take, and what a run of 54 cases costs, of a
history that build/tests/tools/history made. It writes into DATABASE.

Reads are asked for one by one, each time of another case, so that little of them is in a cache of
the server's. Then runs of 54 cases with a candidate and a provider are posted, one after another:
as fast as they are taken, with nobody beside them; and 20 a second, while two readers ask for
trends 100 times a second in all. Beside the time to each 201 stands what a run took of the server's
own processor time, all threads, with the watch that follows it.
"""

import gzip
import http.client
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid

N_READS = int(os.environ.get("BENCH_READS", "400"))
N_RUNS = int(os.environ.get("BENCH_RUNS", "100"))
N_CASES = 54
RUNS_PER_SECOND = 20  # beside readers
READS_PER_SECOND = 100
DEVICE = "nvidia-h200"


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def told(name, seconds):
    print(f"{name:34} p50 {1e3 * quantile(seconds, .5):8.2f} ms   "
          f"p99 {1e3 * quantile(seconds, .99):8.2f} ms   max {1e3 * max(seconds):8.2f} ms   "
          f"n {len(seconds)}", flush=True)


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def timed(self, path, method="GET", body=None, headers=None):
        start = time.perf_counter()
        self.connection.request(method, path, body, headers or {})
        response = self.connection.getresponse()
        content = response.read()
        seconds = time.perf_counter() - start
        if response.status not in (200, 201):
            raise SystemExit(f"{method} {path}: {response.status} {content[:300]}")
        return seconds, content


def start_server(build, db):
    start = time.perf_counter()
    process = subprocess.Popen([os.path.join(build, "bin", "gate-server"), "--db", db, "--listen",
                                "127.0.0.1:0"],
                               stderr=subprocess.PIPE)
    for line in process.stderr:
        ready = re.search(r"listening on http://127\.0\.0\.1:(\d+)/", line.decode())
        if ready:
            print(f"start {1e3 * (time.perf_counter() - start):.0f} ms")
            # A pipe that nobody reads would stop the server.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, int(ready.group(1))
    raise SystemExit("the server did not start")


def all_cases(client):
    cases, after = [], ""
    while after is not None:
        _, content = client.timed(f"/api/v1/cases?device={DEVICE}&limit=1000"
                                  + (f"&after={after}" if after else ""))
        page = json.loads(content)
        cases += page["cases"]
        after = page["next"]
    return cases


def measure_reads(client, cases):
    ids = [c["id"] for c in cases]
    newest = max(c["time_ms"] for c in cases)
    draw = random.Random(7)
    for name, more in (("trend, all points in 1000 buckets", ""),
                       ("trend, last 100 points", f"&from={newest - 100 * 43200000}"),
                       ("trend, by commit, 1000 buckets", "&order=commit"),
                       ("trend, 10000 points a series", "&points=10000"),
                       ("trend, raw page of 1000", "&raw=1&limit=1000")):
        told(name, [client.timed(f"/api/v1/trends?device={DEVICE}&case={draw.choice(ids)}{more}")[0]
                    for _ in range(N_READS)])
    told("cases, the worst 200",
         [client.timed(f"/api/v1/cases?device={DEVICE}&sort=worst&limit={200 - i}")[0]
          for i in range(50)])


def run_document(cases, index, first_ms, epoch):
    """A run of all cases, as the gate would write it, but for the number of processes. It goes on
    with the epoch of the history, so that the watch has all that there is to look at."""
    def verify():
        return {"ok": True, "seeds": 3, "rel_fro": 2.9e-4, "limit": 6e-4, "max_abs": 1e-3,
                "allclose_1e2": 1, "allclose_1e3": 1, "nonfinite": 0, "message": ""}

    def timing(p50, ratio):
        return {"p50_ns": p50, "p50_lo_ns": p50 * .999, "p50_hi_ns": p50 * 1.001,
                "p90_ns": p50 * 1.01, "samples": 200, "launches_per_sample": 8, "input_sets": 4,
                "cold": True, "tflops": 500, "gbps": 900, "ceiling": .5, "sm_clock_mhz": 1755,
                "single_p50_ns": None, "single_p90_ns": None, "single_samples": 0,
                "ratio_to_candidate": ratio}

    def case(one):
        p50 = (one["p50_ns"] or 1000) * random.gauss(1, .002)
        ratio = {"value": 1.001, "lo": .999, "hi": 1.002}
        return {"id": one["id"], "op": one["op"], "dtype": one["dtype"], "verdict": "pass",
                "reason": "within 2 % of the stored baseline, 5 processes",
                "baseline": {"p50_ns": one["p50_ns"] or 1000, "commit": "",
                              "time_ms": 1600000000000},
                "mode": "number", "mde": .004, "ratio_p90": None, "same_library": False,
                "processes": [{"stage": "first", "swapped": False, "p50_ns": p50,
                               "baseline_p50_ns": None, "log_ratio": .001,
                               "log_ratio_cycles": None, "log_ratio_p90": None,
                               "control_ns": random.gauss(1002300, 1000)} for _ in range(5)],
                "ratio": ratio,
                "arms": [{"provider": "ours", "role": "candidate", "kernel": "gemm_sm90_128x256",
                          "verify": verify(), "timing": timing(p50, None)},
                         {"provider": "cublas", "role": "provider", "kernel": "default",
                          "verify": verify(), "timing": timing(p50 * 1.02, ratio)}]}

    return {"schema": "gate-run/1", "uuid": str(uuid.uuid4()),
            "time_ms": first_ms + index * 60000, "duration_ms": 60000, "gate_version": "0.1.0",
            "git": {"commit": f"{random.getrandbits(160):040x}", "branch": "main", "parent": "",
                    "subject": "a load test", "dirty": False},
            "who": "bench@here", "suite": "canonical",
            "device": {"kind": "cuda", "model": DEVICE, "name": "NVIDIA GPU", "uuid": "",
                       "sm_count": 132, "l2_bytes": 52428800, "memory_bytes": 150754820096,
                       "capability": "9.0", "driver": "580.10", "runtime": "13.0",
                       "power_limit_mw": 700000, "sm_clock_max_mhz": 1980},
            "libraries": [{"role": "candidate", "provider": "ours", "version": "1", "file": "a.so",
                           "sha256": "0" * 64}],
            "contract": "paired-loop-v3", "policy": {"threshold": .02, "against": "baseline"},
            "seed": "0" * 16, "verdict": "pass", "exit_code": 0,
            "epoch": epoch, "control_drift": 0, "n_processes": 5,
            "cases": [case(c) for c in cases]}


def read_on(port, ids, stop, results, per_second):
    """Asks so often until it is to stop."""
    client, draw, seconds = Client(port), random.Random(os.getpid()), []
    due = time.perf_counter()
    while not stop.is_set():
        seconds.append(client.timed(
            f"/api/v1/trends?device={DEVICE}&case={draw.choice(ids)}")[0])
        due += 1 / per_second
        stop.wait(max(0, due - time.perf_counter()))
    results.put(seconds)


def cpu_seconds(pid):
    """User and system time of all threads of a process, by the clock tick."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_idle(pid):
    """Until a tenth of a second passes that the process has no use for: the watch has seen all."""
    before = -1
    while before != cpu_seconds(pid):
        before = cpu_seconds(pid)
        time.sleep(.1)


def token_headers(build, db, scope="ingest"):
    token = subprocess.run([os.path.join(build, "bin", "gate-server"), "token", "create", "--db",
                            db, "--name", "bench", "--scope", scope], check=True,
                           stdout=subprocess.PIPE).stdout.decode()
    return {"Authorization": f"Bearer {re.search('kg_[0-9A-Za-z_]+', token).group()}",
            "Content-Type": "application/json", "Content-Encoding": "gzip"}


def post_all(port, headers, bodies, per_second):
    """The seconds of each, at so many a second; None: as fast as they are taken."""
    client, seconds, due = Client(port), [], time.perf_counter()
    for body in bodies:
        seconds.append(client.timed("/api/v1/runs", "POST", body, headers)[0])
        if per_second:
            due += 1 / per_second
            time.sleep(max(0, due - time.perf_counter()))
    return seconds


def post_beside_readers(port, ids, headers, bodies):
    """The seconds of the runs, and of the reads beside them."""
    stop, results = multiprocessing.Event(), multiprocessing.Queue()
    readers = [multiprocessing.Process(target=read_on,
                                       args=(port, ids, stop, results, READS_PER_SECOND / 2))
               for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        seconds = post_all(port, headers, bodies, RUNS_PER_SECOND)
    finally:
        stop.set()
    reads = sum((results.get(timeout=60) for _ in readers), [])
    for reader in readers:
        reader.join()
    return seconds, reads


def measure_writes(build, db, pid, port, cases):
    headers, ids = token_headers(build, db), [c["id"] for c in cases]
    _, newest = Client(port).timed(f"/api/v1/runs?device={DEVICE}&limit=1")
    epoch = json.loads(newest)["runs"][0]["epoch"]
    first_ms = int(time.time() * 1000) - 2 * N_RUNS * 60000 - 3600000
    bodies = [json.dumps(run_document(cases[:N_CASES], i, first_ms, epoch)).encode()
              for i in range(2 * N_RUNS)]
    packed = [gzip.compress(b, 1) for b in bodies]
    print(f"a run: {N_CASES} cases, {2 * N_CASES} series, {len(bodies[0]) / 1e3:.0f} KB, "
          f"{len(packed[0]) / 1e3:.0f} KB packed")
    before = cpu_seconds(pid)
    seconds = post_all(port, headers, packed[:N_RUNS], None)
    wait_until_idle(pid)
    told("a run to its 201, alone", seconds)
    print(f"a run took {1e3 * (cpu_seconds(pid) - before) / N_RUNS:.1f} ms of processor time; "
          f"load {os.getloadavg()[0]:.1f}; {resident_mib(pid)}", flush=True)
    seconds, reads = post_beside_readers(port, ids, headers, packed[N_RUNS:])
    told("a run to its 201, beside readers", seconds)
    told("trends while runs arrive", reads)
    print(f"after runs: {resident_mib(pid)}; load {os.getloadavg()[0]:.1f}", flush=True)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return " ".join(f"{name} {int(fields[name].split()[0]) / 1024:.1f} MiB"
                    for name in ("VmRSS", "VmHWM", "RssAnon"))


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: latency.py BUILD DATABASE")
    build, db = sys.argv[1:]
    process, port = start_server(build, db)
    try:
        client = Client(port)
        cases = all_cases(client)
        measure_reads(client, cases)
        print("after reads:", resident_mib(process.pid))
        measure_writes(build, db, process.pid, port, cases)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


if __name__ == "__main__":
    main()
