#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_server.py BUILD [DATABASE]: gate-server, and nginx with files of the same size.

Both run on one processor, wrk on another, in turns, in one session of this machine. Each line says
requests a second of both, and their ratio; then what a request cost both in microseconds of the
server's processor time, and that ratio, which other work on the machine disturbs less. The last
lines are the targets, and whether each was met.

Without DATABASE a history of 2 million results is made (fill_history.py).
"""

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from fill_history import fill

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
SECONDS = os.environ.get("BENCH_SECONDS", "2")
CONNECTIONS = "16"

NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 1024; use epoll; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
    open_file_cache max=100; open_file_cache_valid 600s; default_type application/json;
    client_body_temp_path {folder}/n1; proxy_temp_path {folder}/n2; fastcgi_temp_path {folder}/n3;
    uwsgi_temp_path {folder}/n4; scgi_temp_path {folder}/n5;
    server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
}}
"""


MAX_START_MS, MAX_RESIDENT_MIB = 200, 96
MAX_ROW_US = 150  # of processor time, for an answer with one row
MAX_PAGE_MS = 20  # of the wall, and of a trend of 500 points: p99, asked for one by one
LEAST_OF_NGINX = 0.5  # for a file of the page
judged = []  # (what, what was seen, the target, was it met?)


def judge(what, seen, target, unit="", at_least=False):
    judged.append((what, f"{seen:.2f}{unit}", f"{'>=' if at_least else '<'} {target:g}{unit}",
                   seen >= target if at_least else seen < target))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def fetch(url, headers=None):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {})) as response:
        return response.read(), response.headers


def processor_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024


class Side:
    """A server, and what it has shown in the rounds of one line."""

    def __init__(self, pids, base, folder=None):
        self.pids, self.base, self.folder = pids, base, folder

    def load(self, processor, path, connections=CONNECTIONS):
        command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency"]
        if processor is not None:
            command = ["taskset", "-c", str(processor)] + command
        before = processor_seconds(self.pids)
        done = subprocess.run(command + [self.base + path], check=True, capture_output=True)
        used = processor_seconds(self.pids) - before
        text = done.stdout.decode()
        if "Non-2xx or 3xx" in text or "Socket errors" in text:
            raise SystemExit(f"bench: errors of {self.base}{path}:\n{text}")
        requests = int(re.search(r"(\d+) requests in", text).group(1))
        p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
        scale = {"us": 1e-3, "ms": 1, "s": 1e3}[p99.group(2)]
        rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
        return {"rate": rate, "cost": used / requests, "p99_ms": float(p99.group(1)) * scale}


def compare(name, gate, nginx, processor, path, **how):
    """Lays the answer beside nginx, which has no use for the query."""
    body = fetch(gate.base + path)[0]
    put_file(nginx.folder, name, body)
    rounds = [(gate.load(processor, path, **how),
               nginx.load(processor, f"/{name}?{path.partition('?')[2]}", **how))
              for _ in range(ROUNDS)]

    def median(of):
        return statistics.median(of(g, n) for g, n in rounds)

    found = {"ratio": median(lambda g, n: g["rate"] / n["rate"]),
             "us": median(lambda g, n: g["cost"] * 1e6),
             "p99_ms": median(lambda g, n: g["p99_ms"])}
    print(f"{name:<9}", f"{median(lambda g, n: g['rate']):>9.0f}",
          f"{median(lambda g, n: n['rate']):>9.0f}",
          f"{found['ratio']:>6.2f}", f"{found['us']:>9.1f}",
          f"{median(lambda g, n: n['cost'] * 1e6):>8.2f}",
          f"{median(lambda g, n: n['cost'] / g['cost']):>6.2f}", f"{found['p99_ms']:>8.2f}",
          f"{len(body):>8} bytes", flush=True)
    return found


def need(*programs):
    for program, package in programs:
        if not shutil.which(program):
            raise SystemExit(f"bench: {program} is not installed: apt-get install {package}")


def start_gate(build, db, processor):
    command = [os.path.join(build, "bin", "gate-server"), "--db", db, "--listen", "127.0.0.1:0"]
    begin = time.monotonic()
    process = subprocess.Popen((["taskset", "-c", str(processor)] if processor is not None else [])
                               + command, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    took = time.monotonic() - begin
    found = re.search(r"listening on (http://\S+)/", line)
    if not found:
        raise SystemExit(f"bench: gate-server did not start: {line}")
    print(f"start: {took * 1000:.0f} ms")
    judge("start", took * 1000, MAX_START_MS, " ms")
    # A pipe that nobody reads would stop the server.
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, found.group(1)


def start_nginx(folder, processor):
    port = free_port()
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(NGINX.format(folder=folder, port=port))
    process = subprocess.Popen((["taskset", "-c", str(processor)] if processor is not None else [])
                               + ["nginx", "-p", folder, "-c", path], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            if time.monotonic() > until or process.poll() is not None:
                raise SystemExit("bench: nginx did not start")
            time.sleep(0.02)
    worker = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, check=True)
    return process, [int(worker.stdout.split()[0])], f"http://127.0.0.1:{port}"


def put_file(folder, name, data):
    os.makedirs(os.path.join(folder, "www"), exist_ok=True)
    with open(os.path.join(folder, "www", name), "wb") as file:
        file.write(data)


def measure(build, db, folder):
    processors = sorted(os.sched_getaffinity(0))
    server_on, client_on = processors[:2] if len(processors) > 1 else (None, None)
    gate_process, gate_base = start_gate(build, db, server_on)
    nginx_process = None
    try:
        gate = Side([gate_process.pid], gate_base)
        case = json.loads(fetch(gate_base + "/api/v1/cases?limit=1")[0])["cases"][0]
        trend = "/api/v1/trends?" + urllib.parse.urlencode(
            {"case": case["id"], "device": case["device"], "provider": "ours", "points": 500})
        nginx_process, pids, nginx_base = start_nginx(folder, server_on)
        nginx = Side(pids, nginx_base, folder)
        print(f"{'':<9} {'gate/s':>9} {'nginx/s':>9}  ratio   gate us nginx us  ratio   p99 ms")
        style = re.search(r'"(files/\w+/style.css)"', fetch(gate_base + "/")[0].decode()).group(1)
        found = compare("file", gate, nginx, client_on, "/" + style)
        judge("a file of the page, times nginx", found["ratio"], LEAST_OF_NGINX, at_least=True)
        found = compare("row", gate, nginx, client_on, "/api/v1/runs?limit=1")
        judge("one row, processor time", found["us"], MAX_ROW_US, " us")
        for name, path in (("wall", "/api/v1/cases?limit=54"), ("trend", trend)):
            found = compare(name, gate, nginx, client_on, path, connections="1")
            judge(f"{name}, p99", found["p99_ms"], MAX_PAGE_MS, " ms")
        print(f"resident: {resident_mib(gate_process.pid):.1f} MiB")
        judge("resident", resident_mib(gate_process.pid), MAX_RESIDENT_MIB, " MiB")
    finally:
        for process in (gate_process, nginx_process):
            if process:
                process.send_signal(signal.SIGTERM)
                process.wait(30)


def show_targets():
    print("\ntargets")
    for what, seen, target, met in judged:
        print(f"  {what:<46} {seen:>12}  {target:>11}  {'met' if met else 'MISSED'}")


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: bench_server.py BUILD [DATABASE]")
    need(("wrk", "wrk"), ("nginx", "nginx-light"), ("taskset", "util-linux"))
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # nginx's worker is another user
        db = sys.argv[2] if len(sys.argv) == 3 else os.path.join(folder, "gate.db")
        if len(sys.argv) == 2:
            print(fill(build, db, 12000, 54), "results")
        measure(build, db, folder)
        show_targets()


if __name__ == "__main__":
    main()
