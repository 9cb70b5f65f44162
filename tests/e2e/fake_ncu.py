#!/usr/bin/env -S python3 -IS
# SPDX-License-Identifier: Apache-2.0
"""Stands for Nsight Compute on PATH: starts the program it is given and writes a table.

FAKE_NCU is a JSON object: "kernels" lists [name, {metric: value}] for each side, "new" and "old" by
the text of the library, and [MARK, {}] between two cases; a metric that is not named is 1. "units"
has units other than those of ncu. "act" is what it does instead: hang, flood, rubbish, cut,
forbidden, error, silent, dies.
"""
import json
import os
import subprocess
import sys
import time

FAKE = json.loads(os.environ["FAKE_NCU"])
HEADER = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
          "Block Size", "Grid Size", "Device", "CC"]


MARK = "_Z23kernel_gate_case_beginsv"


def option(name):
    return sys.argv[sys.argv.index(name) + 1]


def row(cells):
    return ",".join('"' + str(cell).replace('"', '""') + '"' for cell in cells) + "\n"


def unit(metric):
    if metric in FAKE.get("units", {}):
        return FAKE["units"][metric]
    return "%" if ".pct" in metric else "byte" if "bytes" in metric else ""


def table():
    # The raw page has much that nobody asked for, in front.
    metrics = [f"device__attribute_{i}" for i in range(350)] + option("--metrics").split(",")
    with open(option("--library"), encoding="utf-8") as file:
        side = file.read()
    text = "==PROF== Connected to process 77 (gate)\n" + row(HEADER + metrics) + \
        row([""] * len(HEADER) + [unit(m) for m in metrics])
    for number, (name, values) in enumerate([[MARK, {}]] + FAKE["kernels"][side]):
        text += row([number, 77, "gate", "127.0.0.1", name, 1, 7, "(128, 1, 1)", "(132, 1, 1)", 0,
                     "9.0"] + [values.get(m, "1") for m in metrics])
    return text


def main():
    act = FAKE.get("act")
    if act == "dies":
        sys.exit("ncu: cannot start")
    program = sys.argv[sys.argv.index("--metrics") + 2:]
    code = subprocess.run(program, check=False).returncode
    if act == "hang":
        time.sleep(3600)
    texts = {
        "flood": "x" * (5 << 20),
        "rubbish": '"ID","Kernel Name"\n"\x00\n',
        "cut": table()[:-40],
        "forbidden": "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n",
        "error": "==ERROR== Failed to find metric \x1b[31mx\n",
        "silent": "",
    }
    with open(option("--log-file"), "w", encoding="utf-8") as log:
        log.write(texts.get(act, table()))
    sys.exit(code)


main()
