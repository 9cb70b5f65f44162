#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dearest.py BUILD [DATABASE]: the addresses of gate-server that take longest, with the parameters
that openapi.json documents: each value alone, and each two together.

Without DATABASE a history is made of 10 million points of 10,000 cases (POINTS=N: fewer). It gets
100,000 alerts, and over HTTP, as from runners, two runs of 5,000 cases and 2,000 of 20 cases, each
of a merge request of its own. Each address is asked once; the 25 dearest then five times more, each
time after a write, which makes the server forget its answers. Then 64 readers of one IP address ask
for a long run and do not read it, and 8 of another one ask for that run as CSV over and over, while
/healthz is asked for. The last lines say whether its p99 and the dearest address's median are
within 100 ms, and the server's resident memory within 200 MiB.
"""

import gzip
import http.client
import itertools
import json
import multiprocessing
import os
import re
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

from latency import (DEVICE, Client, all_cases, cpu_seconds, run_document, start_server,
                     quantile, token_headers, wait_until_idle)

POINTS = os.environ.get("POINTS", "10000000")
LIMIT_MS = 100
N_BRANCHES = 2000
N_CASES = 5000  # of a long run: a document has a largest size
N_AGAIN, TIMES = 25, 5
SLOW_READERS, DEAR_READERS, N_HEALTH = 64, 8, 400
MOST_RESIDENT_MIB = 200


# Of each kind and state some are rare, so that a page of them lies far apart.
PUT_ALERTS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
INSERT INTO alert (device_id, track_id, series_id, kind, state, time_ms, run_id, before_value,
    after_value, change, reason, who, updated_ms, closed_ms, by_vendor, confirmed)
SELECT t.device_id, t.id, 2 * t.id - 1,
    CASE WHEN i % 50000 = 7 THEN 'wrong' WHEN i % 1000 = 3 THEN 'error'
        WHEN i % 3 = 0 THEN 'improvement' ELSE 'regression' END,
    CASE WHEN i % 25000 = 11 THEN 'acknowledged' WHEN i % 500 = 9 THEN 'ignored'
        WHEN i % 10 = 0 THEN 'accepted' WHEN i % 3 = 1 THEN 'new' ELSE 'fixed' END,
    r.time_ms, r.id, 100, 110, 0.1, 'a reason', 'gate-server', r.time_ms, NULL, 0, 0
FROM n CROSS JOIN track t ON t.id = 1 + i * 7919 % (SELECT count(*) FROM track)
CROSS JOIN run r ON r.id = 1 + i * 31 % (SELECT count(*) FROM run);
INSERT INTO alert_event (alert_id, time_ms, who, to_state, reason)
SELECT id, time_ms, who, 'new', '' FROM alert;
INSERT INTO alert_count (device_id, kind, state, n)
SELECT device_id, kind, state, count(*) FROM alert GROUP BY device_id, kind, state;
"""


def make_history(build, db):
    subprocess.run([os.path.join(build, "tests", "tools", "history"), "--db", db, "--series",
                    "40000", "--points", POINTS], check=True)
    connection = sqlite3.connect(db)
    connection.executescript(PUT_ALERTS)
    connection.commit()
    connection.close()


def post_runs(client, build, db, cases):
    """The uuids of the two long runs."""
    headers = token_headers(build, db)
    now = int(time.time() * 1000)
    runs = [run_document(cases[:N_CASES] if i < 2 else cases[20 * i % len(cases):][:20], i,
                         now - 4 * 86400000, "") for i in range(2 + N_BRANCHES)]
    for i, run in enumerate(runs):
        run["git"]["branch"] = f"mr/{i}" if i >= 2 else "main"
        client.timed("/api/v1/runs", "POST", gzip.compress(json.dumps(run).encode(), 1), headers)
    return [run["uuid"] for run in runs[:2]]


def resolve(document, node):
    while "$ref" in node:
        path = node["$ref"].split("/")[1:]
        node = document
        for name in path:
            node = node[name]
    return node


def values_of(parameter, schema, known):
    """Names that are there and one that is not; all words; the ends of numbers."""
    name = parameter["name"]
    if name in known:
        return known[name]
    values = schema.get("enum") or [schema[k] for k in ("minimum", "maximum") if k in schema]
    return [v for v in values if v is not None]


def addresses(document, known):
    for path, item in document["paths"].items():
        if "get" not in item or "{" in path and "{uuid}" not in path and "{id}" not in path:
            continue
        parameters = [resolve(document, p) for p in item["get"].get("parameters", [])]
        base = path.replace("{uuid}", known["uuid"][0]).replace("{id}", "1")
        needed = [(p["name"], known[p["name"]][0]) for p in parameters
                  if p["in"] == "query" and p.get("required")]
        pairs = [(p["name"], v) for p in parameters if p["in"] == "query"
                 for v in values_of(p, resolve(document, p.get("schema", {})), known)]
        for n in range(3):
            for chosen in itertools.combinations(pairs, n):
                query = dict(needed) | dict(chosen)
                if len({name for name, _ in chosen}) == n:
                    yield base + ("?" + urllib.parse.urlencode(query) if query else "")


def ask(client, address):
    """Milliseconds; None: the two parameters exclude each other."""
    start = time.perf_counter()
    client.connection.request("GET", address)
    response = client.connection.getresponse()
    response.read()
    took = 1e3 * (time.perf_counter() - start)
    return took if response.status == 200 else None


def measure(client, pid, document, known, write):
    """Milliseconds of the dearest addresses, and of the server's processor time for them."""
    first = {}
    for address in addresses(document, known):
        if address not in first:
            first[address] = ask(client, address)
    taken = {a: ms for a, ms in first.items() if ms is not None}
    print(f"{len(taken)} addresses, {len(first) - len(taken)} refused", flush=True)
    again = {}
    for address in sorted(taken, key=taken.get)[-N_AGAIN:]:
        times, used = [], 0
        for i in range(TIMES):
            write(i)
            before = cpu_seconds(pid)
            times.append(ask(client, address))
            used += cpu_seconds(pid) - before
        again[address] = statistics.median(times), 1e3 * used / TIMES
    return again


def read_not(port, path):
    """A connection over which an answer is asked for, and not read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def read_for_ever(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, source_address=("127.0.0.2", 0))
    while True:
        connection.request("GET", path)
        connection.getresponse().read()


def measure_crowd(pid, port, uuid):
    """p50 and p99 of /healthz in ms, and the most MiB that were resident meanwhile."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    slow = [read_not(port, f"/api/v1/runs/{uuid}") for _ in range(SLOW_READERS)]
    dear = [multiprocessing.Process(target=read_for_ever, daemon=True,
                                    args=(port, f"/api/v1/runs/{uuid}?format=csv"))
            for _ in range(DEAR_READERS)]
    for reader in dear:
        reader.start()
    health = http.client.HTTPConnection("127.0.0.1", port, source_address=("127.0.0.3", 0))
    took = []
    for _ in range(N_HEALTH):
        start = time.perf_counter()
        health.request("GET", "/healthz")
        health.getresponse().read()
        took.append(1e3 * (time.perf_counter() - start))
        time.sleep(.02)
    for reader in dear:
        reader.kill()
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        resident = int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024
    for connection in slow:
        connection.close()
    return quantile(took, .5), quantile(took, .99), resident


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: dearest.py BUILD [DATABASE]")
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        db = sys.argv[2] if len(sys.argv) == 3 else os.path.join(folder, "gate.db")
        if len(sys.argv) == 2:
            make_history(build, db)
        process, port = start_server(build, db)
        try:
            client = Client(port)
            cases = all_cases(client)
            uuids = post_runs(client, build, db, cases)
            admin = token_headers(build, db, "admin")
            del admin["Content-Encoding"]
            branches = json.loads(client.timed("/api/v1/branches?limit=1000")[1])["branches"]
            commit = json.loads(client.timed("/api/v1/runs?limit=3")[1])["runs"][2]["commit"]
            document = json.loads(client.timed("/api/v1/openapi.json")[1])
            known = {"device": [DEVICE, "none"], "case": [cases[0]["id"], "none"],
                     "branch": ["main", branches[-1]["branch"], "none"],
                     "commit": [commit, "0" * 40], "a": [uuids[0], "main"], "b": [uuids[1]],
                     "machine": ["here", "none"], "q": ["gemm", "m64", "none"],
                     "op": ["gemm", "none"], "dtype": ["fp16", "none"], "provider": ["ours"],
                     "contract": ["paired-loop-v3"], "from_commit": [commit],
                     "to_commit": [commit], "columns": ["chain,main", "p50_ns"], "after": [],
                     "uuid": [uuids[0]], "from": [0], "to": [4102444800000]}
            wait_until_idle(process.pid)
            again = measure(client, process.pid, document, known, lambda i: client.timed(
                "/api/v1/alerts/1", "POST", json.dumps({"assignee": f"bench {i}"}), admin))
            p50, p99, resident = measure_crowd(process.pid, port, uuids[0])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    for address, (ms, used) in sorted(again.items(), key=lambda item: -item[1][0]):
        print(f"{ms:8.1f} ms, processor {used:4.0f} ms  {address}")
    worst = max(ms for ms, _ in again.values())
    print(f"/healthz in a crowd: p50 {p50:.1f} ms, p99 {p99:.1f} ms, wanted at most {LIMIT_MS} ms; "
          f"resident {resident:.0f} MiB, wanted at most {MOST_RESIDENT_MIB} MiB")
    print(f"dearest: {worst:.1f} ms, wanted at most {LIMIT_MS} ms: "
          f"{'met' if worst <= LIMIT_MS else 'MISSED'}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
