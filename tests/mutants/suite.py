#!/usr/bin/env python3
"""Holds the gate against the kernels of catalogue.json and says how many it judged rightly.

    tests/mutants/suite.py [--build DIR] [--device host|cuda:0] [--seed HEX] [--write] [NAME...]

Each row is a kernel library with one fault, or an unusual one without, given to `gate verify`, or
where it says "timed" to `gate run`, since it must be timed to be told; where it says "best" that
run is held to a best of the library that is right. A row whose outcome is not what it must be is
printed with what was said; the last two lines are the recall (faults that were found, of all that
must be) and the false alarms (right kernels that were called wrong). --write puts the table into
README.md; what a GPU run saw is kept in seen-cuda.json, so that the table is the same on machines
without one. Exit code: 0 when both figures are perfect.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
README = os.path.join(FOLDER, "README.md")
SEEN_CUDA = os.path.join(FOLDER, "seen-cuda.json")
BEGIN, END = "<!-- suite.py --write makes what follows -->", "<!-- to here -->"

Judgement = collections.namedtuple("Judgement", "row outcome message right")


def catalogue():
    with open(os.path.join(FOLDER, "catalogue.json"), encoding="utf-8") as file:
        return json.load(file)


def rows(device):
    """The rows of the catalogue for this kind of device, host or cuda."""
    return [row for row in catalogue()["mutants"] if row.get("device", "host") == device]


def absent(device):
    """The rows of the survey that have no kernel on this kind of device."""
    return [row["like"] for row in catalogue()["absent"] if row["device"] in (device, "both")]


def title(row):
    return f"{row['library']}:{row['name']}" if row["name"] else row["library"]


def how_timed(row, mark):
    if row.get("best"):
        return mark + "against a best"
    return mark + "timed" if row.get("timed") else ""


def key(row):
    return f"{title(row)} {row['case']}{how_timed(row, ' ')}"


def command_of(row, folder):
    if not (row.get("timed") or row.get("best")):
        return ["verify"]
    return ["run", "--budget", "20", "--pause", "0", "--db", os.path.join(folder, "gate.db"),
            "--baselines", os.path.join(folder, "baselines")]


def answer(row, document):
    """The outcome of the one case in it, what was said of it, and its time by that of a best."""
    (case,) = document["cases"]
    if row.get("best") and case["verdict"] == "pass" and case["mode"] != "paired":
        return "nothing", "it was not timed beside the best", 0
    if row.get("timed") or row.get("best"):
        return case["verdict"], case["reason"], (case.get("ratio") or {}).get("value", 0)
    return {"right": "pass"}.get(case["outcome"], case["outcome"]), case["message"], 0


def judge(row, build, device, seed=None):
    """Gives one row to the gate. What hangs has a timeout of its own: on a busy machine what is
    right may be silent for longer."""
    original = os.path.join(build, "lib", "kernel-gate",
                            "libhost.so" if device == "host" else "libours.so")
    env = dict(os.environ, GATE_MUTANT=row["name"], GATE_MUTANT_OF=original)
    options = ["--device", device, "--suite", "smoke", "--filter", row["case"], "--json",
               "--timeout", row.get("timeout", "60")]
    if seed:
        options += ["--seed", seed]
    if row.get("timed"):
        options.append("--accept-new")
    library = os.path.join(build, "tests", "mutants", row["library"] + ".so")
    # On the host several run beside each other: gates keep apart by a lock in TMPDIR.
    with tempfile.TemporaryDirectory() as folder:
        env["GATE_CACHE"] = os.path.join(folder, "cache")
        if device == "host":
            env["TMPDIR"] = folder

        def gate(*args):
            return subprocess.run([os.path.join(build, "bin", "gate"), *command_of(row, folder),
                                   *options, *args], env=env, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
        if row.get("best"):
            gate("--accept-new", "--library", original)
        done = gate("--library", library)
    try:
        outcome, message, ratio = answer(row, json.loads(done.stdout))
    except ValueError:
        # A library that is refused as such has no document.
        outcome, message, ratio = "wrong" if done.returncode == 2 else "nothing", done.stderr, 0
    fits = (outcome == row["must"] and row.get("says", "") in message and
            ratio >= row.get("slower", 0))
    return Judgement(row, outcome, message, fits)


def judge_all(build, device, seed=None, names=(), jobs=2):
    chosen = [row for row in rows(device.split(":")[0])
              if not names or row["name"] in names or row["library"] in names]
    with concurrent.futures.ThreadPoolExecutor(1 if device != "host" else jobs) as pool:
        return list(pool.map(lambda row: judge(row, build, device, seed), chosen))


def figures(judgements):
    """Faults found and all faults; right kernels called wrong and all right kernels."""
    musts = [j for j in judgements if j.row["must"] != "pass"]
    others = [j for j in judgements if j.row["must"] == "pass"]
    return (sum(j.outcome == j.row["must"] for j in musts), len(musts),
            sum(j.outcome != "pass" for j in others), len(others))


def summary(judgements):
    found, musts, alarms, others = figures(judgements)
    return [f"recall: {found} of {musts} faults were found",
            f"false alarms: {alarms} of {others} right kernels were called wrong"]


def seen_on_cuda():
    if not os.path.exists(SEEN_CUDA):
        return {}
    with open(SEEN_CUDA, encoding="utf-8") as file:
        return json.load(file)["seen"]


def table(judgements):
    """The part of README.md that this program writes."""
    lines = summary(judgements)
    text = [BEGIN, "", f"Host: {lines[0]}; {lines[1]}.", "",
            "| library:fault | like | held to | what is unusual | must be | seen |",
            "| --- | --- | --- | --- | --- | --- |"]
    host = [(j.row, j.outcome) for j in judgements]
    seen = seen_on_cuda()
    cuda = [(row, seen.get(key(row), "not run here")) for row in rows("cuda")]
    for row, outcome in host + cuda:
        case = f"`{row['case']}`{how_timed(row, ', ')}"
        text.append(f"| {title(row)} | {row['like']} | {case} | {row['fault']} | {row['must']} | "
                    f"{outcome} |")
    text += ["", "Rows of the survey without a kernel:", "", "| like | device | why |",
             "| --- | --- | --- |"]
    text += [f"| {row['like']} | {row['device']} | {row['why']} |"
             for row in catalogue()["absent"]]
    return "\n".join(text + ["", END])


def table_in_readme():
    with open(README, encoding="utf-8") as file:
        text = file.read()
    return text[text.index(BEGIN):text.index(END) + len(END)]


def write_readme(judgements):
    with open(README, encoding="utf-8") as file:
        text = file.read()
    fresh = text.replace(table_in_readme(), table(judgements))
    with open(README, "w", encoding="utf-8") as file:
        file.write(fresh)


def write_seen_cuda(judgements):
    seen = {key(j.row): j.outcome for j in judgements}
    with open(SEEN_CUDA, "w", encoding="utf-8") as file:
        json.dump({"seen": seen}, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--device", default="host")
    parser.add_argument("--seed")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    judgements = judge_all(os.path.abspath(options.build), options.device, options.seed,
                           options.names)
    for j in judgements:
        if not j.right or options.names:
            print(f"{title(j.row)} on {j.row['case']}: must be {j.row['must']}"
                  f"{' and say ' + repr(j.row['says']) if 'says' in j.row else ''}, "
                  f"was {j.outcome}: {j.message}")
    if options.write and options.device != "host":
        write_seen_cuda(judgements)
    elif options.write:
        write_readme(judgements)
    print("\n".join(summary(judgements)))
    return 0 if judgements and all(j.right for j in judgements) else 1


if __name__ == "__main__":
    sys.exit(main())
