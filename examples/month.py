#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""month.py DIR github|gitlab [GATE]: a repository of kernels as it looks after a month of gating.

DIR becomes a git repository with the files and the CI job of `gate init`, a month of history and
baselines in gate.db and baselines/, and two merge requests in merge-requests/:

- one that is red because its kernel is wrong. It is built and run here, on the CPU, and not merged;
- one that is red because its kernel is slower. What was measured is that of examples/recorded/,
  because the times of this machine would be others. It is accepted with a reason, and merged.

GATE is the program, ../build/bin/gate if it is not named. Takes some seconds; needs git, make and a
C compiler.
"""
import datetime
import json
import os
import subprocess
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
LOOP = "row[j] += x * from[j];"
MONTH = (2026, 9)


class Repository:
    """What one person types, on days of the month; commits and runs carry its date."""

    def __init__(self, folder, system, gate):
        self.folder, self.system, self.gate_program = folder, system, gate
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("GIT_", "CI", "GITHUB_", "GITLAB_"))}
        self.env.update(GATE_CACHE=os.path.join(folder, "build", "cache"))
        os.makedirs(folder)
        self.on(1)
        self.run("git", "init", "-q", "-b", "main")
        self.run("git", "config", "user.name", "Ada Example")
        self.run("git", "config", "user.email", "ada@example.org")

    def on(self, day):
        self.time = datetime.datetime(*MONTH, day, 9, tzinfo=datetime.timezone.utc)
        self.env.update(GIT_AUTHOR_DATE=self.time.isoformat(),
                        GIT_COMMITTER_DATE=self.time.isoformat())

    def run(self, *command, expect=0):
        done = subprocess.run(command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode != expect:
            raise SystemExit(f"month.py: '{' '.join(command)}' ended with {done.returncode}, "
                             f"expected {expect}:\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def gate(self, *arguments, expect=0):
        return self.run(self.gate_program, *arguments, expect=expect)

    def commit(self, subject):
        self.run("git", "add", "-A")
        self.run("git", "commit", "-q", "-m", subject)

    def change(self, old, new):
        path = os.path.join(self.folder, "mykernels.c")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert old in text, old
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))

    def record(self, name, branch="main", request=None):
        """Takes a recorded run into the history, as one of the commit that is checked out."""
        with open(os.path.join(HERE, "recorded", name + ".json"), encoding="utf-8") as file:
            document = json.load(file)
        document["uuid"] = str(uuid.uuid4())
        document["time_ms"] = int(self.time.timestamp() * 1000)
        document["git"] = {"commit": self.run("git", "rev-parse", "HEAD"), "branch": branch,
                           "parent": self.run("git", "log", "-1", "--format=%P").split(" ")[0],
                           "subject": self.run("git", "log", "-1", "--format=%s"),
                           "author": "Ada Example", "dirty": False}
        if request:
            document["git"].update(base="main", change=str(request))
        path = os.path.join(self.folder, "build", "run.json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        self.gate("import", "build/run.json")
        return document["uuid"]

    def keep_report(self, request, run):
        name = f"merge-requests/{request}.md"
        os.makedirs(os.path.join(self.folder, "merge-requests"), exist_ok=True)
        self.gate("report", "--run", run, "--format", "markdown", "--output", name)
        return name


def first_week(repository):
    repository.gate("init", "--example", "--ci", repository.system, "--library",
                    "build/libmykernels.so", "--build", "make build/libmykernels.so")
    repository.commit("Kernels, and their gate")
    repository.on(2)
    run = repository.record("first")
    repository.gate("baseline", "accept", "gemm/*", "--run", run, "--reason", "the first ones")
    repository.commit("First baselines")


def quiet_days(repository, first, last, what):
    """A run of main each working day."""
    for day in range(first, last + 1):
        repository.on(day)
        if repository.time.weekday() < 5:
            repository.record(what)


def wrong_request(repository):
    """A constant that is a little off: no time is looked at, and it stays unmerged."""
    repository.on(9)
    repository.run("git", "switch", "-q", "-c", "fold-the-scale")
    repository.change(LOOP, "row[j] += 1.001f * x * from[j];")
    repository.commit("Fold the scale into the product")
    repository.run("make", "build/libmykernels.so")
    repository.gate("run", "--device", "host", "--wait", "600", "--branch", "fold-the-scale",
                    "--base", "main", "--change", "12", "--report", "markdown=build/12.md",
                    expect=2)
    repository.run("git", "switch", "-q", "main")
    os.makedirs(os.path.join(repository.folder, "merge-requests"))
    os.rename(os.path.join(repository.folder, "build", "12.md"),
              os.path.join(repository.folder, "merge-requests", "12.md"))
    repository.commit("What the gate said of merge request 12")


def slow_request(repository):
    """Slower, wanted all the same: accepted on its branch, with a reason, and merged."""
    repository.on(21)
    repository.run("git", "switch", "-q", "-c", "divide")
    repository.change(LOOP, "row[j] += x * from[j] / 3 * 3;")
    repository.commit("Divide, as the paper does")
    run = repository.record("slow", "divide", 17)
    repository.keep_report(17, run)
    repository.gate("baseline", "accept", "gemm/*", "--run", run, "--reason",
                    "the division is needed: results must be those of the paper")
    repository.commit("Accept the slower gemm")
    repository.on(22)
    repository.run("git", "switch", "-q", "main")
    repository.run("git", "merge", "-q", "--no-ff", "-m", "Merge request 17: divide", "divide")


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in ("github", "gitlab"):
        sys.exit(__doc__)
    gate = sys.argv[3] if len(sys.argv) == 4 else os.path.join(HERE, "../build/bin/gate")
    repository = Repository(os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(gate))
    first_week(repository)
    quiet_days(repository, 3, 8, "pass")
    wrong_request(repository)
    quiet_days(repository, 10, 18, "pass")
    slow_request(repository)
    quiet_days(repository, 23, 30, "after")
    log = repository.run("git", "log", "--graph", "--format=%ad  %s", "--date=short", "--all")
    print("\n".join(line.rstrip() for line in log.splitlines()))


if __name__ == "__main__":
    main()
