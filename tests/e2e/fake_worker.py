#!/usr/bin/env -S python3 -IS
# SPDX-License-Identifier: Apache-2.0
"""A worker by gate/worker/PROTOCOL.md that measures nothing: it answers as $FAKE says.

FAKE is a JSON object: "greeting" and "record" are merged into the answers, "before" is written to
standard output before the record, "act" is what to do instead of answering a case:
die, silence, end, flood, phases. "starts" is a file that counts starts: after "starts_max" of them
the GPU is busy. "only" restricts "act" and "record" to one case id; "marker" names a
file: the act happens only while it does not exist, and creates it; "act_from" is the number of the
first process that acts ("count"); with "act_when" it happens in tasks of that kind alone.
"p50" maps case ids to the
candidate's time (1000 ns), "cycles" to its ratio to the baseline in cycles (that of the times),
"ratio" to its ratio to the baseline and "widths" to the half-width of that; "budgets" is a file
takes case and budget of each task; "ceilings" is the answer to --ceilings, or "die"; "timing" is
merged into what is said of the candidate's times,
"baseline_fails" is the message of a baseline that is wrong, "baseline_is_lost" leaves it out of
all but the first process, "baseline_kernels" are those that it launches; "blame" is what is found
by a transplant.
"drift" is a file that counts processes: the control of each is 1 % slower than that of the one
before. "count" is a file that counts processes
that are given cases; of the n-th one "p50s" maps case ids to lists of the candidate's time,
"log_ratio" to lists of ln of its ratio to the baseline, "freshs" to lists of what it takes on fresh
inputs over repeated ones, "records" to lists of what is merged into the answer, "sets" to lists
of the input sets that it rotates over (null: as many as the task asks for) (the last entry stays).
In a calibration
each process is a little slower than the last, by turns of three; "noise" maps case ids to how
much (0.0005). With "by_file", the times of candidate and baseline stand in their files,
"time=1040", a file with "wrong" is wrong, one with "idles=1.05" takes that much more on fresh
inputs, one with "error=0.0005" has that error, and each process is off by a normal error of this
standard deviation.
"""
import math
import os
import sys
import time
from _json import encode_basestring_ascii as quoted

# Thousands of these start, in half of the time without OpenSSL, json, re and random.
try:
    from _sha256 import sha256
except ImportError:
    from hashlib import sha256


def read_json(text):
    """Of the gate and of the tests themselves, whose JSON is Python with three names."""
    return eval(text, {"null": None, "true": True, "false": False})  # pylint: disable=eval-used


def as_json(value):
    if isinstance(value, dict):
        return "{%s}" % ",".join(f"{quoted(k)}:{as_json(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ",".join(map(as_json, value))
    if isinstance(value, str):
        return quoted(value)
    return "null" if value is None else repr(value).lower()


FAKE = read_json(os.environ.get("FAKE", "{}"))


def say(record):
    print(as_json(record), flush=True)


def case_id(case):
    return f"{case['op']}/{case['dtype']}/m{case['m']}-n{case['n']}-k{case['k']}"


def timing(p50):
    return {
        "p50_ns": p50, "p50_lo_ns": p50 * 0.999, "p50_hi_ns": p50 * 1.001, "p10_ns": p50 * 0.995,
        "p90_ns": p50 * 1.01,
        "samples": 40, "launches_per_sample": 10, "input_sets": 1, "cold": False, "tflops": 1.0,
        "gbps": 1.0, "ceiling": None, "sm_clock_mhz": 0, "single_p50_ns": None,
        "single_p90_ns": None, "single_samples": 0, "ratio_to_candidate": None,
        "ratio_cycles": None, "ratio_p90": None,
    }


def verify():
    return {"ok": True, "seeds": 3, "rel_fro": 1e-4, "limit": 6e-4, "max_abs": 0.01,
            "allclose_1e2": 1, "allclose_1e3": 0.9, "nonfinite": 0, "message": ""}


def merge(into, what):
    for key, value in what.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value
    return into


def options(name):
    return [v for n, v in zip(sys.argv, sys.argv[1:]) if n == name]


def library(path, role):
    with open(path, "rb") as file:
        digest = sha256(file.read()).hexdigest()
    return {"role": role, "provider": "fake", "version": "1", "file": os.path.basename(path),
            "sha256": digest}


def control_ns():
    if "drift" not in FAKE:
        return 1e6
    with open(FAKE["drift"], "a+", encoding="utf-8") as file:
        file.write("x")
        return 1e6 * 1.01 ** file.tell()


def greeting():
    candidate = library(options("--library")[0], "candidate")
    return merge({
        "hello": "gate-worker/2", "contract": "fake-v1", "absent": [], "control_ns": control_ns(),
        "device": {"kind": "cuda", "model": "fake-gpu", "name": "Fake GPU",
                   "uuid": "GPU-" + options("--device")[0].rpartition(":")[2],
                   "sm_count": 1, "l2_bytes": 1, "memory_bytes": 1, "capability": "0.0",
                   "driver": "1", "runtime": "1", "power_limit_mw": 0, "sm_clock_max_mhz": 0},
        "libraries": [candidate] + [library(path, "baseline") for path in options("--baseline")] +
                     [dict(candidate, role="provider", provider=p)
                      for p in FAKE.get("providers", [])],
    }, FAKE.get("greeting", {}))


def first_time():
    marker = FAKE.get("marker")
    if not marker:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def act(what):
    if what == "die":
        print("last words", file=sys.stderr, flush=True)
        os.abort()
    if what == "silence":
        time.sleep(3600)
    if what == "end":
        sys.exit(0)
    if what == "phases":
        while True:
            say({"phase": "verify", "provider": ""})
            time.sleep(0.2)
    if what == "flood":
        while True:
            sys.stdout.write("x" * 65536)


def count_process():
    if "count" not in FAKE:
        return 0
    with open(FAKE["count"], "a+", encoding="utf-8") as file:
        file.write("x")
        return file.tell() - 1


def of_process(key, name, process, otherwise):
    values = FAKE.get(key, {}).get(name)
    return values[min(process, len(values) - 1)] if values else otherwise


def around(ratio, half_width):
    return {"value": ratio, "lo": ratio * (1 - half_width), "hi": ratio * (1 + half_width)}


def baseline_arm(name, p50, d):
    arm = {"provider": "fake", "role": "baseline", "kernel": "k", "verify": verify(),
           "timing": None}
    if "baseline_fails" in FAKE:
        arm["verify"] = dict(verify(), ok=False, message=FAKE["baseline_fails"])
        return arm
    baseline = FAKE.get("baseline_p50", 1000.0)
    ratio = p50 / baseline if d is None else math.exp(d)
    arm["timing"] = dict(timing(baseline), ratio_p90=ratio,
                         ratio_to_candidate=around(FAKE.get("ratio", {}).get(name, ratio),
                                                   FAKE.get("widths", {}).get(name, 0)),
                         ratio_cycles=FAKE.get("cycles", {}).get(name, ratio))
    if "fresh" not in FAKE or name in FAKE["fresh"]:
        arm["timing"]["ratio_fresh"] = FAKE.get("fresh", {}).get(name, 1.0)
    if "calls" in FAKE:
        arm["timing"].update(call_ns=FAKE.get("call_ns", 2000.0),
                             ratio_calls=FAKE["calls"].get(name, 1.0))
    if "baseline_kernels" in FAKE:
        arm["timing"]["kernels"] = FAKE["baseline_kernels"]
    if FAKE.get("baseline_launches"):
        arm["timing"]["launches"] = FAKE["baseline_launches"]
    if "same_code" in FAKE:  # the cases whose code is the same
        arm["timing"]["same_code"] = name in FAKE["same_code"]
    return arm


def in_file(path):
    with open(path, "rb") as file:
        text = file.read()
    return (said(text, b"time=", 1000), b"wrong" in text, said(text, b"idles=", 1),
            said(text, b"error=", 1e-4))


def said(text, name, otherwise):
    rest = text.partition(name)[2]
    number = rest[:len(rest) - len(rest.lstrip(b"0123456789."))]
    return float(number or otherwise)


def normal(name):
    """One of a standard normal distribution, the same for each name."""
    digest = sha256(name.encode()).digest()
    first, second = ((int.from_bytes(half, "big") + 1) / 2 ** 128
                     for half in (digest[:16], digest[16:]))
    return math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)


def by_file(record, process):
    """Makes the record what the two files say."""
    (mine, wrong, idles, error), others = in_file(options("--library")[0]), options("--baseline")
    errors = [error]
    if wrong:
        record.update(outcome="wrong", message="as its file says")
    record["arms"][0]["timing"] = None if wrong else dict(timing(mine), **FAKE.get("timing", {}))
    if others and len(record["arms"]) > 1:
        other = in_file(others[0])[0]
        names = ":".join([options("--library")[0], others[0], str(process)])
        noise = FAKE["by_file"] * normal(names)
        FAKE["baseline_p50"] = other
        record["arms"][1] = baseline_arm(record["done"], mine, math.log(mine / other) + noise)
        record["arms"][1]["timing"]["ratio_fresh"] = idles
        errors.append(in_file(others[0])[3])
    for arm, error in zip(record["arms"], errors):
        if arm.get("verify"):
            arm["verify"]["rel_fro"] = error


def injected(name, shares, process):
    step = FAKE.get("noise", {}).get(name, 0.0005)
    return [math.log1p(share) + step * (process % 3) for share in shares]


def is_busy():
    if "starts" not in FAKE:
        return False
    with open(FAKE["starts"], "a+", encoding="utf-8") as file:
        file.write("x")
        return file.tell() > FAKE["starts_max"]


def main():
    if "--ceilings" in sys.argv:
        answer = FAKE.get("ceilings", {"refuse": "environment", "message": "a fake has none"})
        if answer == "die":
            act("die")
        say(answer)
        return
    if is_busy():
        say({"refuse": "environment", "message": "GPU 0 is busy"})
        return
    say(greeting())
    process = None
    for line in sys.stdin:
        task = read_json(line)
        process = count_process() if process is None else process
        name = case_id(task["case"])
        if "budgets" in FAKE:
            with open(FAKE["budgets"], "a", encoding="utf-8") as file:
                file.write(as_json([name, task["budget_ms"]]) + "\n")
        mine = FAKE.get("only", name) == name
        say({"phase": FAKE.get("phase", "verify"), "provider": FAKE.get("at_work", "fake")})
        skipped = set(FAKE.get("providers", [])) & set(task["skip"])
        if mine and FAKE.get("act") and process >= FAKE.get("act_from", 0) and not skipped \
                and FAKE.get("act_when", task["task"]) == task["task"] and first_time():
            act(FAKE["act"])
        p50 = of_process("p50s", name, process, FAKE.get("p50", {}).get(name, 1000.0))
        arms = [{"provider": "fake", "role": "candidate", "kernel": "k", "timing": timing(p50),
                 "verify": verify() if task["verify"] else None}]
        if "calls" in FAKE:
            arms[0]["timing"]["call_ns"] = (FAKE["calls"].get(name, 1.0)
                                            * FAKE.get("call_ns", 2000.0))
        arms[0]["timing"]["input_sets"] = of_process("sets", name, process, None) \
            or task.get("input_sets", 1)
        if mine:
            merge(arms[0]["timing"], FAKE.get("timing", {}))
        if "alone" in FAKE and not task["baseline"]:
            arms[0]["timing"]["ratio_fresh"] = of_process("alone", name, process, 1.0)
        if task["baseline"] and (task["verify"] or not FAKE.get("baseline_is_lost")):
            arms.append(baseline_arm(name, p50, of_process("log_ratio", name, process, None)))
            if arms[1]["timing"] and "freshs" in FAKE:
                arms[1]["timing"]["ratio_fresh"] = of_process("freshs", name, process, 1.0)
        record = {"done": name, "nonce": task["nonce"], "outcome": "measured", "message": "",
                  "spoiled": False, "arms": arms}
        if "shares" in task:
            record["log_ratio"] = injected(name, task["shares"], process)
        if task["task"] in ("profile", "transplant"):
            record["outcome"], arms[0]["timing"] = "verified", None
        if task["task"] == "transplant" and "blame" in FAKE:
            record["blame"] = FAKE["blame"]
        if "by_file" in FAKE:
            by_file(record, process)
        merge(record, of_process("records", name, process, {}))
        if mine:
            merge(record, FAKE.get("record", {}))
            sys.stdout.write(FAKE.get("before", ""))
        say(record)


main()
