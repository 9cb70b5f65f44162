#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of a build folder: see tests/README.md.

    tests/fuzz/fuzz.py [--runs N | --seconds N] [--keep DIR] BUILD [TARGET...]

The inputs to begin with are made here, from tests/data, the suites and the schemas. An input that a
target fails on is kept in BUILD/crashes, and the command to run it again is printed. With --keep,
inputs that found something new are kept in DIR/TARGET for the next time. Exit 1: a target failed.
"""

import argparse
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGETS = ("run", "request", "gzip", "suite", "baseline", "op", "foreign", "bundle")
SEED = 20
MAX_LENGTH = 8192


def read_json(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return json.load(file)


def dense(document):
    return json.dumps(document, separators=(",", ":")).encode()


def edits():
    """A few edits of each kind, and none: the good document itself."""
    yield b"\x07"
    for kind in range(8):
        for value in (1, 9, 40, 77, 130):
            yield bytes([kind, 0, value, 0, 3]) + b"\x41\x42\x43\x44\x45\x46\x47\x48"


def run_seeds():
    document = read_json("tests", "data", "run-h200.json")
    for case in document["cases"]:
        one = dense(dict(document, cases=[case]))
        if len(one) <= MAX_LENGTH:
            yield one
            return


def requests_of(path, names, values):
    yield path.encode()
    query = "&".join(f"{name}={values.get(name, 'a%2Fb')}" for name in names)
    yield f"{path}?{query}".encode()


def request_seeds():
    """Each address of the API, bare and with all its parameters."""
    values = {"limit": "2", "format": "csv", "sort": "worst", "order": "commit", "points": "2",
              "raw": "1", "state": "new", "from": "0", "to": "99999999999999", "kind": "error",
              "device": "nvidia-h200", "verdict": "pass", "op": "gemm", "dtype": "fp16"}
    api = read_json("server", "api", "openapi_parts.json")
    lists = os.listdir(os.path.join(ROOT, "server", "queries"))
    for path, methods in api["paths"].items():
        named = [api["components"]["parameters"][name]
                 for name in methods.get("get", {}).get("parameters", ())]
        names = [p["name"] if isinstance(p, dict) else p.split()[1] for p in named]
        yield from requests_of(re.sub(r"\{[^}]*\}", "5a3b1e00", path), names, values)
    for file in lists:
        with open(os.path.join(ROOT, "server", "queries", file), encoding="utf-8") as sql:
            names = sorted(set(re.findall(r":([a-z]+)\b", sql.read()))) + ["format", "columns"]
        path = file.removesuffix(".sql").replace("_", "/")
        yield from requests_of(f"/api/v1/{path}", names, values)
    yield b"/badge/nvidia-h200/a%2Fb.svg"
    yield "/%C3%A9/é?a=%26&b=%00".encode()


def gzip_seeds():
    for text in (b"", b"a", b"abc" * 200, bytes(range(256)) * 4):
        yield b"\x10" + gzip.compress(text, mtime=0)
    yield b"\x02" + gzip.compress(b"x" * 5000, mtime=0)
    yield b"\x10" + gzip.compress(b"two", mtime=0) * 2


def foreign_seeds():
    """The first byte is the tool: three have edits of a good file, the others are text."""
    for edit in edits():
        for tool in range(3):
            yield bytes([tool]) + edit
    yield b"\x03" + (b'<?xml version="1.0"?><testsuites><testsuite timestamp="2026-03-01T12:00:00Z"'
                     b' hostname="h"><testcase classname="a.b" name="c&lt;&#60;" time="0.25"/>'
                     b'<testcase name="d" time="1"><failure message="x">y<![CDATA[<z>]]></failure>'
                     b'</testcase><!-- e --></testsuite></testsuites>')
    yield b'\x04name,p50_ns,p50_lo_ns,p50_hi_ns,p90_ns\r\n"a ""b"", c",15,14,16,\nd,2.5e3,,,9\n'


def suite_seeds():
    yield dense(read_json("kernels", "suites", "smoke.json"))[:MAX_LENGTH]
    yield from edits()


def seeds(target):
    if target == "run":
        yield from run_seeds()
        yield from edits()
    elif target in ("baseline", "op", "bundle"):
        yield from edits()
    else:
        yield from {"request": request_seeds, "gzip": gzip_seeds, "suite": suite_seeds,
                    "foreign": foreign_seeds}[target]()


def keys(schema):
    """All names of properties and all words of a schema."""
    if isinstance(schema, list):
        for value in schema:
            yield from keys(value)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from (w for w in schema.get("enum", []) if isinstance(w, str))
        for value in schema.values():
            yield from keys(value)


def dictionary(target):
    words = {"limit=", "after=", "format=csv", "%2F", "&", "%00"}
    if target == "foreign":
        words = {"<testcase ", "name=\"", "time=\"", "/>", "</", "<!--", "-->", "<![CDATA[", "]]>",
                 "&#x3c;", "<skipped/>", "p50_ns", "p90_ns", "samples", '""'}
    if target in ("run", "suite", "baseline", "op", "bundle"):
        words = {f'"{key}"' for key in keys(read_json("gate", "formats", f"{target}.schema.json"))}
    escape = {'"': '\\"', "\\": "\\\\"}
    return "".join('"%s"\n' % "".join(escape.get(c, c) for c in w) for w in sorted(words))


def run(build, target, limit, keep=None):
    """Fuzzes one target; returns its exit status and what it said."""
    build = os.path.abspath(build)
    crashes = os.path.join(build, "crashes", "")
    os.makedirs(crashes, exist_ok=True)
    # Files in memory, where there is such a folder: a disk would be waited for.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz.", dir=memory) as folder:
        first = os.path.join(folder, "seeds")
        os.mkdir(first)
        for i, seed in enumerate(seeds(target)):
            with open(os.path.join(first, f"{i:03}"), "wb") as file:
                file.write(seed)
        words = os.path.join(folder, "words")
        with open(words, "w", encoding="utf-8") as file:
            file.write(dictionary(target))
        corpus = os.path.join(os.path.abspath(keep), target) if keep else folder + "/found"
        os.makedirs(corpus, exist_ok=True)
        environment = dict(os.environ, TMPDIR=folder, UBSAN_OPTIONS="print_stacktrace=1",
                           ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=0")
        done = subprocess.run(
            [os.path.join(build, "tests", "fuzz", f"fuzz_{target}"), limit, f"-seed={SEED}",
             f"-max_len={MAX_LENGTH}", "-timeout=20", "-rss_limit_mb=2048", f"-dict={words}",
             "-print_final_stats=1", f"-artifact_prefix={crashes}{target}-", corpus, first],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace")


Statistics = collections.namedtuple("Statistics", "inputs edges")


def statistics(output):
    inputs = re.search(r"number_of_executed_units: (\d+)", output)
    edges = re.findall(r"cov: (\d+)", output)
    return Statistics(int(inputs.group(1)) if inputs else 0, int(edges[-1]) if edges else 0)


def main():
    parser = argparse.ArgumentParser(description="Runs the fuzz targets.")
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--runs", type=int, help="inputs for each target")
    limit.add_argument("--seconds", type=int, default=5, help="for each target (default: 5)")
    parser.add_argument("--keep", metavar="DIR", help="where inputs are kept for the next time")
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("targets", metavar="TARGET", nargs="*", help=", ".join(TARGETS))
    args = parser.parse_args()
    bound = f"-runs={args.runs}" if args.runs else f"-max_total_time={args.seconds}"
    failed = 0
    for target in args.targets or TARGETS:
        status, output = run(args.build, target, bound, args.keep)
        found = statistics(output)
        if status == 0 and found.inputs:
            print(f"  {target:10} ok, {found.inputs} inputs, {found.edges} edges", flush=True)
            continue
        failed += 1
        print(f"  {target:10} FAILED\n{output[-6000:]}", flush=True)
        path = re.search(r"Test unit written to (\S+)", output)
        if path:
            print(f"again: {args.build}/tests/fuzz/fuzz_{target} {path.group(1)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
