#!/usr/bin/env python3
"""latency.py BUILD DATABASE: how long single answers take, and a run of 5,000 series, of a history
that build/tests/tools/history made. It writes into DATABASE.

Reads are asked for one by one, each time of another case, so that little of them is in a cache of
the server's. Then runs of 2,500 cases with a candidate and a provider are posted, one after
another: with nobody beside them, with two readers that ask 100 times a second in all, and with two
that ask as fast as they are answered. What is told of these is the time from the first byte of the
request to the 201, on the same machine: parsing, checking and the commit to the disk. The readers
and the client take processors too, those in tight loops all that there are, so beside it stands
what each run took of the server's own processor time, all threads, the watch that follows it and
what it read meanwhile included.
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
import time
import uuid

N_READS = int(os.environ.get("BENCH_READS", "400"))
N_RUNS = int(os.environ.get("BENCH_RUNS", "20"))
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
                                "127.0.0.1:0", "--read-rate", "1000000"], stderr=subprocess.PIPE)
    for line in process.stderr:
        ready = re.search(r"listening on http://127\.0\.0\.1:(\d+)/", line.decode())
        if ready:
            print(f"start {1e3 * (time.perf_counter() - start):.0f} ms")
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
                "reason": "within 2 % of the stored best, 5 processes",
                "best": {"p50_ns": one["p50_ns"] or 1000, "commit": "", "time_ms": 1600000000000},
                "mode": "number", "mde": .004, "ratio_p90": None, "same_library": False,
                "processes": [{"stage": "first", "swapped": False, "p50_ns": p50,
                               "best_p50_ns": None, "d": .001, "d_cycles": None, "d_p90": None,
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
            "contract": "paired-loop-v3", "policy": {"threshold": .02, "against": "best"},
            "seed": "0" * 16, "verdict": "pass", "exit_code": 0,
            "epoch": epoch, "control_drift": 0, "n_processes": 5,
            "cases": [case(c) for c in cases]}


def read_on(port, ids, stop, results, per_second):
    """Asks until it is to stop; per_second: how often, None: as fast as it is answered."""
    client, draw, seconds = Client(port), random.Random(os.getpid()), []
    due = time.perf_counter()
    while not stop.is_set():
        seconds.append(client.timed(
            f"/api/v1/trends?device={DEVICE}&case={draw.choice(ids)}")[0])
        if per_second:
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


def token_headers(build, db):
    token = subprocess.run([os.path.join(build, "bin", "gate-server"), "token", "create", "--db",
                            db, "--name", "bench", "--scope", "ingest"], check=True,
                           stdout=subprocess.PIPE).stdout.decode()
    return {"Authorization": f"Bearer {re.search('kg_[0-9A-Za-z_]+', token).group()}",
            "Content-Type": "application/json", "Content-Encoding": "gzip"}


def post_beside(pid, port, ids, headers, bodies, readers_per_second):
    """Posts all while so many readers ask, each so often; the times of both, and the server's."""
    stop, results = multiprocessing.Event(), multiprocessing.Queue()
    readers = [multiprocessing.Process(target=read_on, args=(port, ids, stop, results, rate))
               for rate in readers_per_second]
    for reader in readers:
        reader.start()
    client, before = Client(port), cpu_seconds(pid)
    try:
        seconds = [client.timed("/api/v1/runs", "POST", body, headers)[0] for body in bodies]
    finally:
        stop.set()
    reads = sum((results.get(timeout=60) for _ in readers), [])
    for reader in readers:
        reader.join()
    wait_until_idle(pid)
    return seconds, reads, cpu_seconds(pid) - before


def measure_writes(build, db, pid, port, cases):
    headers, ids = token_headers(build, db), [c["id"] for c in cases]
    _, newest = Client(port).timed(f"/api/v1/runs?device={DEVICE}&limit=1")
    epoch = json.loads(newest)["runs"][0]["epoch"]
    modes = (("alone", ()), ("with 100 reads/s", (50, 50)), ("with tight loops", (None, None)))
    first_ms = int(time.time() * 1000) - len(modes) * N_RUNS * 60000 - 3600000
    for number, (name, rates) in enumerate(modes):
        bodies = [json.dumps(run_document(cases, number * N_RUNS + i, first_ms,
                                          epoch)).encode()
                  for i in range(N_RUNS)]
        packed = [gzip.compress(b, 1) for b in bodies]
        if number == 0:
            print(f"a run: {2 * len(cases)} series, {len(bodies[0]) / 1e6:.1f} MB, "
                  f"{len(packed[0]) / 1e6:.2f} MB packed")
        seconds, reads, cpu = post_beside(pid, port, ids, headers, packed, rates)
        told(f"a run to its 201, {name}", seconds)
        print(f"  the server's CPU {1e3 * cpu / len(seconds):.0f} ms a run, {len(reads)} reads "
              f"included; load {os.getloadavg()[0]:.1f}; {resident_mib(pid)}", flush=True)
        if reads:
            told("  trends beside it", reads)


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
        measure_writes(build, db, process.pid, port, cases[:2500])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


if __name__ == "__main__":
    main()
