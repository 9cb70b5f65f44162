#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_server.py BUILD [DATABASE]: gate-server against nginx with a file of the same size.

Both run on one processor, wrk on another, in turns, in one session of this machine; what counts is
the ratio. Each line says requests a second of both, and their ratio; then what a request cost both
in microseconds of the server's processor time, and that ratio, which other work on the machine
disturbs less. The last lines are the targets, and whether each was met.

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
N_SERIES_SHOWN = 200  # trends that are asked for in turn
N_POINTS = 100
# What a panel of Grafana draws of a case: the median with its interval.
PANEL = "time_ms,p50_ns,p50_lo_ns,p50_hi_ns"
# "panel" is a trend of 100 points; of answers of 29 KB there is no target.
TARGETS = {"small, fresh": 1.0, "small, 304": 1.0, "panel, SQLite": 0.25}

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

    def __init__(self, pids, base):
        self.pids, self.base = pids, base

    def load(self, processor, path, script=None, header=None):
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--latency"]
        if processor is not None:
            command = ["taskset", "-c", str(processor)] + command
        if header:
            command += ["-H", header]
        if script:
            command += ["-s", script]
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


def compare(name, gate, nginx, processor, gate_load, nginx_load):
    rounds = [(gate.load(processor, **gate_load), nginx.load(processor, **nginx_load))
              for _ in range(ROUNDS)]

    def median(of):
        return statistics.median(of(g, n) for g, n in rounds)

    ratio = median(lambda g, n: g["rate"] / n["rate"])
    cost = median(lambda g, n: n["cost"] / g["cost"])
    target = TARGETS.get(name)
    if target:
        judge(f"{name}, times nginx", ratio, target, at_least=True)
    columns = (f"{median(lambda g, n: g['rate']):>9.0f} {median(lambda g, n: n['rate']):>9.0f}",
               f"{ratio:>6.2f}", f"{median(lambda g, n: g['cost'] * 1e6):>8.2f}",
               f"{median(lambda g, n: n['cost'] * 1e6):>8.2f} {cost:>6.2f}",
               f"{median(lambda g, n: g['p99_ms']):>8.2f}",
               f"  target {target:.2f}" if target else "")
    print(f"{name:<14}", *columns, flush=True)


def many_trends(folder, base, paths):
    """A script for wrk that asks for one after the other."""
    path = os.path.join(folder, "trends.lua")
    with open(path, "w", encoding="utf-8") as file:
        file.write("local paths = {\n")
        for item in paths:
            file.write(f"  {json.dumps(item)},\n")
        file.write("}\nlocal i = 0\n"
                   "request = function()\n"
                   "  i = i % #paths + 1\n"
                   "  return wrk.format('GET', paths[i])\n"
                   "end\n")
    return path


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


def newest_points(base, cases):
    """The trends of the cases, each with the time from which on there are N_POINTS points."""
    out = []
    for case in cases:
        path = "/api/v1/trends?" + urllib.parse.urlencode(
            {"case": case["id"], "device": case["device"], "provider": "ours"})
        series = json.loads(fetch(f"{base}{path}&raw=1&limit=10000")[0])["series"]
        times = series[-1]["columns"]["time_ms"]
        out.append((path, times[-min(N_POINTS, len(times))]))
    return out


def measure(build, db, folder):
    processors = sorted(os.sched_getaffinity(0))
    server_on, client_on = processors[:2] if len(processors) > 1 else (None, None)
    gate_process, gate_base = start_gate(build, db, server_on)
    nginx_process = None
    try:
        gate = Side([gate_process.pid], gate_base)
        cases = json.loads(fetch(gate_base + "/api/v1/cases?limit=1000")[0])["cases"]
        cases = [c for c in cases if c["p50_ns"]][:N_SERIES_SHOWN]
        trends = newest_points(gate_base, cases)
        small = "/api/v1/runs?limit=1"
        body, headers = fetch(gate_base + small)
        put_file(folder, "small", body)
        trends_of = [f"{path}&from={ms}" for path, ms in trends]
        trend_bodies = [fetch(gate_base + t)[0] for t in trends_of[:50]]
        panels = [fetch(f"{gate_base}{t}&columns={PANEL}")[0] for t in trends_of[:50]]
        put_file(folder, "trend", max(trend_bodies, key=len))
        put_file(folder, "panel", max(panels, key=len))
        put_file(folder, "trend.gz", fetch(gate_base + trends_of[0],
                                           {"Accept-Encoding": "gzip"})[0])
        print(f"small: {len(body)} bytes; trend: {N_POINTS} points, all columns, "
              f"{statistics.median(len(b) for b in trend_bodies):.0f} bytes; panel: the same, "
              f"columns={PANEL}, {statistics.median(len(b) for b in panels):.0f} bytes; "
              f"{len(trends)} series")
        nginx_process, pids, nginx_base = start_nginx(folder, server_on)
        nginx = Side(pids, nginx_base)
        nginx_tag = fetch(nginx_base + "/small")[1]["ETag"]
        # Both read the same query, which nginx has no use for.
        small_file = "/small?" + small.partition("?")[2]
        trend_query = trends_of[0].partition("?")[2]
        print(f"{'requests/s':<14} {'gate':>9} {'nginx':>9}  ratio"
              "  gate us nginx us  ratio   p99 ms")
        compare("small, fresh", gate, nginx, client_on, {"path": small}, {"path": small_file})
        compare("small, 304", gate, nginx, client_on,
                {"path": small, "header": f"If-None-Match: {headers['ETag']}"},
                {"path": small_file, "header": f"If-None-Match: {nginx_tag}"})
        panel_query = f"{trend_query}&columns={PANEL}"
        compare("panel, kept", gate, nginx, client_on, {"path": f"{trends_of[0]}&columns={PANEL}"},
                {"path": f"/panel?{panel_query}"})
        compare("trend, kept", gate, nginx, client_on, {"path": trends_of[0]},
                {"path": f"/trend?{trend_query}"})
        compare("trend, gzip", gate, nginx, client_on,
                {"path": trends_of[0], "header": "Accept-Encoding: gzip"},
                {"path": f"/trend.gz?{trend_query}"})
        # More addresses than the cache has room for, so that each is made anew.
        for name, more in (("trend", ""), ("panel", f"&columns={PANEL}")):
            script = many_trends(folder, gate_base, [f"{path}&from={ms - i}{more}"
                                                     for i in range(40) for path, ms in trends])
            compare(f"{name}, SQLite", gate, nginx, client_on, {"path": "/", "script": script},
                    {"path": f"/{name}?{trend_query}{more}"})
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
            print(fill(build, db, 700, 1000), "results")
        measure(build, db, folder)
        show_targets()


if __name__ == "__main__":
    main()
