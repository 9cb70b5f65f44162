#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the gate against the kernels of catalogue.json and says how many it judged rightly.

    tests/mutants/suite.py [--build DIR] [--device host|cuda:0] [--seed HEX] [--passes N] [--jobs N]
                           [--untimed] [--write] [NAME...]

Each row is a kernel library with one fault, or an unusual one without, given to `gate verify`, or
where it says "timed" to `gate run`, since only timing finds it; where it says "baseline" that
run is held to a baseline of the library that is right, or of the mutant that it names. Its case is
one of the suite "smoke", or of that which it names. A row whose outcome is not what it must be is
printed with what was said; the last two lines are the recall (faults that were found, of all that
must be) and the false alarms (right kernels that were called wrong).

No vendor's library is beside a mutant: on a GPU opening them takes longer than judging it. N rows
are judged beside each other: 2 by default on the host, 1 on a GPU, where more need root (see
Gate.call). Rows that a GPU times come one after the other when the rest is done; --untimed leaves
them out. --write puts the table into README.md; what passes on a GPU saw is added up in
seen-cuda.json, so that the table is the same on machines without one; another gate begins anew.
Exit code: 0 when both figures are perfect.
"""
import argparse
import collections
import concurrent.futures
import datetime
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
README = os.path.join(FOLDER, "README.md")
SEEN_CUDA = os.path.join(FOLDER, "seen-cuda.json")
NOT_RUN = "not run"
NO_VENDOR = "none.so"  # is not there, and stands for those that the gate would open else
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
    if row.get("baseline"):
        return mark + "against a baseline"
    return mark + "timed" if row.get("timed") else ""


def key(row):
    return f"{title(row)} {row['case']}{how_timed(row, ' ')}"


def suite_of(row, build):
    """The name of one that is installed, or a file beside the mutants, where its ops are."""
    name = row.get("suite", "smoke")
    return os.path.join(build, "tests", "mutants", name) if name.endswith(".json") else name


def command_of(row, folder):
    if not is_timed(row):
        return ["verify", *row.get("options", [])]
    return ["run", "--allow-dirty", "--budget", "20", "--pause", "0",
            "--db", os.path.join(folder, "gate.db"),
            "--baselines", os.path.join(folder, "baselines"), *row.get("options", [])]


def answer(row, document):
    """The outcome of the one case in it, its reason, and its time over that of a baseline."""
    (case,) = document["cases"]
    if row.get("baseline") and case["verdict"] == "pass" and case["mode"] != "paired":
        return "nothing", "it was not timed beside the baseline", 0
    if is_timed(row):
        return case["verdict"], case["reason"], (case.get("ratio") or {}).get("value", 0)
    return {"right": "pass"}.get(case["outcome"], case["outcome"]), case["message"], 0


class Gate:
    """The gate, in a folder of its own: the same for all that is held to one baseline."""

    def __init__(self, build, device, seed, folder, beside=False):
        self.build, self.device, self.seed, self.folder = build, device, seed, folder
        self.beside = beside  # on a GPU, beside other gates
        self.original = os.path.join(build, "lib", "kernel-gate",
                                     "libhost.so" if device == "host" else "libours.so")

    def copy(self, folder):
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Gate(self.build, self.device, self.seed, folder, self.beside)

    def call(self, row, library, *args):
        """What hangs has a timeout of its own: on a busy machine what is right may be silent for
        longer."""
        env = dict(os.environ, CI="", GATE_MUTANT=row["name"], GATE_MUTANT_OF=self.original,
                   GATE_CACHE=os.path.join(self.folder, "cache"))
        # Gates keep apart by a lock, and on a GPU by looking for processes that use it: these run
        # beside each other all the same, each with process ids of its own.
        env["TMPDIR"] = env["GATE_LOCKS"] = self.folder
        alone = ["unshare", "--pid", "--fork", "--mount-proc"] if self.beside else []
        options = ["--device", self.device, "--suite", suite_of(row, self.build), "--filter",
                   row["case"], "--json", "--timeout", row.get("timeout", "600"),
                   "--library", library, "--provider", NO_VENDOR]
        if self.seed:
            options += ["--seed", self.seed]
        return subprocess.run([*alone, os.path.join(self.build, "bin", "gate"),
                               *command_of(row, self.folder), *options, *args], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def path_of(mutant, gate):
    return os.path.join(gate.build, "tests", "mutants", mutant + ".so")


def judge(row, gate):
    library = path_of(row["library"], gate)
    done = gate.call(row, library, *(["--accept-new"] if row.get("timed") else []))
    try:
        outcome, message, ratio = answer(row, json.loads(done.stdout))
    except ValueError:
        # A library that is refused as such has no document.
        outcome, message, ratio = "wrong" if done.returncode == 2 else "nothing", done.stderr, 0
    # What gets no verdict on a busy machine is not called faster either.
    if row["must"] == "not faster" and outcome in ("pass", "no-verdict", "environment"):
        outcome = "not faster"
    fits = (outcome == row["must"] and row.get("says", "") in message and
            ratio >= row.get("slower", 0))
    return Judgement(row, outcome, message, fits)


def baseline_of(row):
    return row["case"], row["baseline"]


def make_baselines(chosen, empty, folder):
    """A gate for each case and library that something is held to a baseline of."""
    baselines = {}
    for row in chosen:
        if row.get("baseline") and baseline_of(row) not in baselines:
            baseline = empty.copy(os.path.join(folder, f"baseline-{len(baselines)}"))
            library = (baseline.original if row["baseline"] is True
                       else path_of(row["baseline"], baseline))
            baseline.call(dict(row, name=""), library, "--accept-new")
            baselines[baseline_of(row)] = baseline
    return baselines


def is_timed(row):
    return bool(row.get("timed") or row.get("baseline"))


def is_disturbed(judgement, device):
    """By what runs beside it: on the host, by what takes the processor while it is timed."""
    if device == "host":
        return is_timed(judgement.row) and not judgement.right
    return judgement.outcome == "environment" or "cudaErrorMemoryAllocation" in judgement.message


def sample(chosen):
    """The first row of each library for each outcome, and one of 12 of the others, but for those
    that take as long as all these together."""
    there, kept = set(), []
    for i, row in enumerate(chosen):
        kind = (row["library"], row["must"])
        if (kind not in there or i % 12 == 0) and row["must"] != "not faster":
            kept.append(row)
        there.add(kind)
    return kept


def rest(chosen):
    """What is not in the sample."""
    sampled = sample(chosen)
    return [row for row in chosen if row not in sampled]


def judge_all(build, device, seed=None, names=(), jobs=None, untimed=False, of=lambda rows: rows,
              log=None):
    """The judgements of all rows; each is in the log, a file, as soon as it is there."""
    jobs = jobs or (2 if device == "host" else 1)
    chosen = [row for row in rows(device.split(":")[0])
              if (not names or row["name"] in names or row["library"] in names)
              and not (untimed and is_timed(row))]
    chosen = of(chosen)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "empty"))
        empty = Gate(build, device, seed, os.path.join(folder, "empty"),
                     device != "host" and jobs > 1)
        baselines = make_baselines(chosen, empty, folder)

        def in_its_own(i, again=""):
            row = chosen[i]
            gate = baselines[baseline_of(row)] if row.get("baseline") else empty
            found = judge(row, gate.copy(os.path.join(folder, f"{i}{again}")))
            if log:
                print(f"{title(row)} on {row['case']}: {found.outcome}", file=log, flush=True)
            return found
        # What a GPU times has it alone, and so has what another row disturbed, as by its memory.
        alone = [i for i, row in enumerate(chosen) if device != "host" and is_timed(row)]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            beside = pool.map(lambda i: None if i in alone else in_its_own(i), range(len(chosen)))
        return [in_its_own(i, "-again") if j is None or is_disturbed(j, device) else j
                for i, j in enumerate(beside)]


def is_alarm(row, outcome):
    return row["must"] == "pass" and outcome != "pass"


def is_found(row, outcome):
    return row["must"] != "pass" and outcome == row["must"]


def summary(outcomes):
    """Faults found of all faults, right kernels called wrong of all, from (row, outcome)."""
    musts = [(row, outcome) for row, outcome in outcomes if row["must"] != "pass"]
    others = [(row, outcome) for row, outcome in outcomes if row["must"] == "pass"]
    return [f"recall: {sum(is_found(*o) for o in musts)} of {len(musts)} faults were found",
            f"false alarms: {sum(is_alarm(*o) for o in others)} of {len(others)} right kernels "
            "were called wrong"]


def outcomes_of(judgements):
    return [(j.row, j.outcome) for j in judgements]


def seen_on_cuda():
    if not os.path.exists(SEEN_CUDA):
        return {"gate": "", "device": "", "date": "", "seen": {}}
    with open(SEEN_CUDA, encoding="utf-8") as file:
        return json.load(file)


def outcome_seen(row, seen):
    """The one outcome of all passes; where they differ, each with how often it came."""
    counts = seen["seen"].get(key(row), {})
    if len(counts) == 1:
        return list(counts)[0]
    return ", ".join(f"{outcome} {n}x" for outcome, n in counts.items()) or NOT_RUN


def table(host):
    """The part of README.md that this program writes, from (row, outcome) of the host."""
    seen = seen_on_cuda()
    cuda = [(row, outcome_seen(row, seen)) for row in rows("cuda")]
    times = [sum(counts.values()) for counts in seen["seen"].values()] or [0]
    often = ("once" if max(times) == 1 else f"{max(times)} times" if min(times) == max(times)
             else f"{min(times)} to {max(times)} times")
    ran = [(row, outcome) for row, outcome in cuda if outcome != NOT_RUN]
    later = f" {len(cuda) - len(ran)} rows came later." if len(ran) < len(cuda) else ""
    text = [BEGIN, "", "Host: " + "; ".join(summary(host)) + ".", "",
            f"CUDA, each row {often} on {seen['device']} with gate {seen['gate']}, the last on "
            f"{seen['date']}: " + "; ".join(summary(ran)) + "." + later, "",
            "| library:fault | like | case | fault or peculiarity | expected | seen |",
            "| --- | --- | --- | --- | --- | --- |"]
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
    fresh = text.replace(table_in_readme(), table(outcomes_of(judgements)))
    with open(README, "w", encoding="utf-8") as file:
        file.write(fresh)


def said_by_gate(build, device):
    """The version of the gate, and the model of the device."""
    gate = os.path.join(build, "bin", "gate")
    version = subprocess.run([gate, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    doctor = subprocess.run([gate, "doctor", "--json", "--device", device], check=True,
                            stdout=subprocess.PIPE, text=True)
    return version.stdout.split()[-1], json.loads(doctor.stdout)["device"]["model"]


def add_seen_cuda(judgements, build, device):
    gate, model = said_by_gate(build, device)
    with open(SEEN_CUDA + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # passes on several GPUs may end at once
        seen = seen_on_cuda()
        if (seen["gate"], seen["device"]) != (gate, model):
            seen = {"gate": gate, "device": model, "date": "", "seen": {}}
        seen["date"] = datetime.date.today().isoformat()
        for j in judgements:
            counts = seen["seen"].setdefault(key(j.row), {})
            counts[j.outcome] = counts.get(j.outcome, 0) + 1
        with open(SEEN_CUDA, "w", encoding="utf-8") as file:
            json.dump(seen, file, indent=1)
            file.write("\n")


def show(judgements, all_of_them):
    for j in judgements:
        if not j.right or all_of_them:
            print(f"{title(j.row)} on {j.row['case']}: must be {j.row['must']}"
                  f"{' and say ' + repr(j.row['says']) if 'says' in j.row else ''}, "
                  f"was {j.outcome}: {j.message}")
    print("\n".join(summary(outcomes_of(judgements))), flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--device", default="host")
    parser.add_argument("--seed")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--untimed", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.write and options.names and options.device == "host":
        parser.error("--write makes the table of all rows: without names")
    build = os.path.abspath(options.build)
    right = options.passes > 0
    for _ in range(options.passes):
        judgements = judge_all(build, options.device, options.seed, options.names, options.jobs,
                               options.untimed, log=sys.stderr)
        show(judgements, bool(options.names))
        right = right and judgements and all(j.right for j in judgements)
        if options.write and options.device != "host":
            add_seen_cuda(judgements, build, options.device)
        elif options.write:
            write_readme(judgements)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
