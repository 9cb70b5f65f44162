# SPDX-License-Identifier: Apache-2.0
"""Small files as other tools write them, for `gate import --from`."""

import json

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def nvbench(*means, devices=("NVIDIA H200",), **state):
    """A benchmark `copy` with one state for each mean, in seconds; None: it was skipped."""
    def summaries(mean):
        rows = {"nv/cold/sample_size": ("int64", "500"),
                "nv/cold/time/gpu/mean": ("float64", mean)}
        return [{"tag": tag, "name": "x", "data": [{"name": "value", "type": kind, "value": value}]}
                for tag, (kind, value) in rows.items()]
    states = [{"name": f"Device={i % len(devices)}", "device": i % len(devices),
               "type_config_index": 0,
               "axis_values": [{"name": "T", "type": "string", "value": "F32"},
                               {"name": "Elements", "type": "int64", "value": str(1024 * (i + 1))}],
               "summaries": None if mean is None else summaries(mean),
               "is_skipped": mean is None, **state} for i, mean in enumerate(means)]
    return {"meta": {"argv": ["bench"], "version": {"nvbench": {"string": "0.1.0"}}},
            "devices": [{"id": i, "name": name, "sm_version": 900}
                        for i, name in enumerate(devices)],
            "benchmarks": [{"name": "copy", "index": 0, "devices": [0], "axes": [],
                            "states": states}]}


def pytest(**medians):
    """A benchmark for each median, in seconds."""
    return {"machine_info": {"node": "ci7", "cpu": {"brand_raw": "AMD EPYC 9554"}},
            "commit_info": {"id": COMMIT, "branch": "main", "dirty": False},
            "datetime": "2026-03-01T12:00:00.123456+02:00", "version": "4.0.0",
            "benchmarks": [{"name": name, "fullname": f"tests/test_a.py::{name}", "params": None,
                            "stats": {"min": median / 2, "max": 1, "median": median, "rounds": 25,
                                      "iterations": 4, "q1": median, "q3": median}}
                           for name, median in medians.items()]}


def google_row(name, time, unit="us", **more):
    return {"name": name, "run_name": name, "run_type": "iteration", "iterations": 9,
            "real_time": time, "cpu_time": time, "time_unit": unit, **more}


def google(*rows):
    return {"context": {"date": "2026-03-01T14:00:00+02:00", "host_name": "box",
                        "library_version": "v1.9.4", "num_cpus": 4}, "benchmarks": list(rows)}


def junit(*cases):
    return ('<?xml version="1.0" encoding="utf-8"?>\n<testsuites><testsuite name="pytest" '
            'hostname="box" timestamp="2026-03-01T12:00:00+00:00">\n' + "\n".join(cases) +
            "\n</testsuite></testsuites>\n")


def text_of(file):
    return file if isinstance(file, str) else json.dumps(file, indent=1)
