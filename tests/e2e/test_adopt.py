# SPDX-License-Identifier: Apache-2.0
"""A repository of its own, from `gate init` to a bisection, by its own build system, on the host.

What is timed here is faster or slower by a factor, and a threshold of 50 % tells that on a machine
that others use, too. A run that the machine spoils all the same is repeated."""

import glob
import json
import os
import re
import shutil
import subprocess
import unittest

from fake_services import GitHub, GitLab
from harness import GATE, ROOT, SANITIZED, Gate, read_file, write_file

CASE = "gemm/fp32/m33-n257-k65"
MARKS = re.compile(r"@[A-Z]+@")


class Repository(Gate):
    def setUp(self):
        super().setUp()
        self.repository = self.path("repository")
        os.mkdir(self.repository)
        self.git("init", "-q", "-b", "trunk")
        self.git("config", "user.email", "a@example")
        self.git("config", "user.name", "A")

    def file(self, name):
        return os.path.join(self.repository, name)

    def read(self, name):
        return read_file(self.file(name))

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)
        write_file(self.file(name), text)

    def replace(self, name, old, new):
        self.assertIn(old, self.read(name))
        self.write(name, self.read(name).replace(old, new))

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.repository, *arguments], check=True,
                              capture_output=True, text=True).stdout.strip()

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    def gate(self, *arguments, expect=0, folder=""):
        env = {k: v for k, v in os.environ.items() if not k.startswith("GATE_")}
        done = subprocess.run([GATE, *arguments], cwd=self.file(folder), capture_output=True,
                              text=True, check=False,
                              env=dict(env, GATE_CACHE=self.path("cache"), TMPDIR=self.folder,
                                       GATE_LOCKS=self.folder))
        if expect is not None:
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done


class Init(Repository):
    ALWAYS_IGNORED = "gate.md\ngate.xml\ngate-run.json\n.gate-*.tmp\n"

    def test_it_writes_what_a_run_needs(self):
        os.mkdir(self.file(".github"))
        said = self.gate("init", "--library", "out/l.so", "--build", "ninja -C out l.so").stdout
        config = json.loads(self.read("gate.json"))
        self.assertEqual(config, {
            "schema": "gate-config/1", "library": "out/l.so", "build": "ninja -C out l.so",
            "suite": "kernels.json", "baselines": "baselines", "main": "trunk",
            "database": "gate.db"})
        job = self.read(".github/workflows/kernel-gate.yml")
        self.assertIn("ninja -C out l.so", job)
        self.assertIn('"trunk"', job)
        self.assertIn("comment report/gate-run.json",
                      self.read(".github/workflows/kernel-gate-comment.yml"))
        self.assertIn("gate.db", self.read(".gitignore"))
        self.assertIsNone(MARKS.search(job))
        for name in ("gate.json", "kernels.json", ".github/workflows/kernel-gate.yml"):
            self.assertIn(f"wrote     {name}", said)
        self.assertFalse(os.path.exists(self.file("mykernels.c")))
        self.assertIn("cannot read kernel library 'out/l.so'", self.gate("run", expect=74).stderr)

    def test_others_can_read_what_it_writes(self):
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)
        self.gate("init", "--ci", "github", "--suite", "gpu/ours.json")
        for name, mode in ((".github", 0o755), (".github/workflows", 0o755), ("gpu", 0o755),
                           (".github/workflows/kernel-gate.yml", 0o644), ("gate.json", 0o644)):
            self.assertEqual(os.stat(self.file(name)).st_mode & 0o777, mode, name)

    def test_it_finds_the_system(self):
        for origin, name in (("git@gitlab.example.org:a/b.git", ".gitlab-ci.yml"),
                             ("https://github.com/a/b", ".github/workflows/kernel-gate.yml")):
            self.git("remote", "add", "origin", origin)
            self.gate("init", "--force")
            self.assertIsNone(MARKS.search(self.read(name)))
            self.git("remote", "remove", "origin")
            os.remove(self.file(name))
        self.assertIn("expected github,", self.gate("init", "--ci", "gitea", expect=64).stderr)
        self.gate("init", "--ci", "slurm")
        subprocess.run(["bash", "-n", self.file("kernel-gate.slurm.sh")], check=True)

    def test_below_the_root_of_the_repository_the_job_is_written_there(self):
        os.mkdir(self.file(".github"))
        os.makedirs(self.file("gpu/kernels"))
        said = self.gate("init", folder="gpu/kernels").stdout
        job = self.read(".github/workflows/kernel-gate.yml")
        self.assertIn('working-directory: "./gpu/kernels/"', job)
        self.assertRegex(job, r"\n +gpu/kernels/gate-run\.json\n")
        self.assertRegex(job, r"\n +gpu/kernels/baselines\n")
        self.assertIn("wrote     ../../.github/workflows/kernel-gate.yml", said)
        self.assertTrue(os.path.exists(self.file("gpu/kernels/gate.json")))
        self.assertFalse(os.path.exists(self.file("gpu/kernels/.github")))
        self.gate("init", "--ci", "gitlab", folder="gpu/kernels")
        self.assertIn('junit: "gpu/kernels/gate.xml"', self.read(".gitlab-ci.yml"))
        self.assertIn("kept", self.gate("init", "--ci", "github", folder="gpu/kernels").stdout)
        self.assertIn("kernel-gate.gitlab-ci.yml",
                      self.gate("init", "--ci", "gitlab", folder="gpu").stdout)
        self.assertTrue(os.path.exists(self.file("kernel-gate.gitlab-ci.yml")))

    def test_a_second_call_knows_its_own_pipeline(self):
        self.gate("init", "--ci", "gitlab")
        self.assertIn("kept      .gitlab-ci.yml", self.gate("init").stdout)
        said = self.gate("init", "--library", "out/l.so", "--force").stdout
        self.assertIn("replaced  .gitlab-ci.yml", said)
        self.assertIn("out/l.so", self.read(".gitlab-ci.yml"))
        self.assertFalse(os.path.exists(self.file("kernel-gate.gitlab-ci.yml")))

    def test_a_pipeline_that_is_there_stays(self):
        self.write(".gitlab-ci.yml", "mine: {}\n")
        self.assertIn("kernel-gate.gitlab-ci.yml", self.gate("init").stdout)
        self.assertEqual(self.read(".gitlab-ci.yml"), "mine: {}\n")

    def test_it_replaces_nothing_unless_it_is_told_to(self):
        self.write("kernels.json", "mine")
        self.assertIn("kept      kernels.json", self.gate("init").stdout)
        self.assertEqual(self.read("kernels.json"), "mine")
        self.assertIn("kept      kernels.json", self.gate("init", "--force").stdout)
        self.assertEqual(self.read("kernels.json"), "mine")
        self.assertIn("replaced  kernels.json",
                      self.gate("init", "--example", "--force").stdout)
        self.assertNotEqual(self.read("kernels.json"), "mine")

    def test_the_example_is_offered_to_who_has_no_library(self):
        self.assertNotIn("--example", self.gate("init", "--library", "out/l.so").stdout)
        os.remove(self.file("gate.json"))
        self.assertIn("with the working library of `gate init --example`", self.gate("init").stdout)

    def test_the_example_is_built_by_make_where_cmake_is_not(self):
        os.mkdir(self.file("bin"))
        os.symlink(shutil.which("git"), self.file("bin/git"))
        env = dict(os.environ, PATH=self.file("bin"), CUDA_HOME=self.repository)
        subprocess.run([GATE, "init", "--example"], cwd=self.repository, env=env, check=True,
                       stdout=subprocess.DEVNULL)
        config = json.loads(self.read("gate.json"))
        self.assertEqual(config["build"], "make " + config["library"])
        self.assertIn(config["library"] + ":", self.read("Makefile"))

    def test_force_changes_only_what_options_name(self):
        said = self.gate("init", "--library", "out/l.so", "--build", "ninja", "--ci", "github")
        self.assertIn("change it in gate.json and in the CI file", said.stdout)
        self.write("kernels.json", "mine")
        config = dict(json.loads(self.read("gate.json")), providers=["v.so"])
        text = json.dumps(config)
        self.write("gate.json", text)
        self.assertIn("kept      gate.json", self.gate("init", "--force").stdout)
        self.assertEqual(self.read("gate.json"), text)
        said = self.gate("init", "--main-branch", "dev", "--force", "--ci", "github").stdout
        self.assertIn("replaced  gate.json", said)
        self.assertEqual(json.loads(self.read("gate.json")), dict(config, main="dev"))
        self.assertEqual(self.read("kernels.json"), "mine")
        job = self.read(".github/workflows/kernel-gate.yml")
        for value in ("ninja", "out/l.so", '"dev"'):
            self.assertIn(value, job)

    def test_a_gate_json_that_is_kept_decides_what_the_others_say(self):
        config = {"schema": "gate-config/1", "library": "out/l.so", "build": "cd out\nninja l.so",
                  "suite": "gpu/ours.json", "baselines": "stored", "main": "dev",
                  "database": "runs/h.db"}
        text = json.dumps(config)
        self.write("gate.json", text)
        for ci, name in (("github", ".github/workflows/kernel-gate.yml"),
                         ("gitlab", ".gitlab-ci.yml"), ("slurm", "kernel-gate.slurm.sh")):
            said = self.gate("init", "--ci", ci).stdout
            job = self.read(name)
            self.assertRegex(job, r"\n( +)cd out\n\1ninja l\.so\n")
            self.assertNotIn("mykernels", job)
            if ci != "slurm":
                for value in ("out/l.so", '"dev"', "stored"):
                    self.assertIn(value, job)
                self.assertNotRegex(job, r'"trunk"|"baselines"')
        self.assertEqual(self.read("gate.json"), text)
        self.assertIn("git add stored &&", said)
        self.assertNotIn("guessed", said)
        self.assertEqual(json.loads(self.read("gpu/ours.json"))["schema"], "gate-suite/1")
        self.assertFalse(os.path.exists(self.file("kernels.json")))
        self.assertEqual(self.read(".gitignore"), "/out/l.so\nruns/h.db*\n" + self.ALWAYS_IGNORED)

    def test_options_that_a_kept_gate_json_contradicts_are_refused(self):
        self.write("gate.json", '{"schema": "gate-config/1", "library": "out/l.so"}')
        for option, value in (("library", "x.so"), ("build", "ninja"), ("main-branch", "dev")):
            said = self.gate("init", f"--{option}", value, expect=64).stderr
            self.assertIn(f"--{option} is '{value}', but the existing gate.json", said)
        self.assertEqual(os.listdir(self.repository).count("kernels.json"), 0)
        self.gate("init", "--library", "out/l.so")
        self.assertFalse(os.path.exists(self.file("kernels.json")))  # nothing would read it
        self.write("gate.json", "{}")
        for options in ((), ("--force",)):
            self.gate("init", *options, expect=64)
        os.remove(self.file("gate.json"))
        self.gate("init", "--library", "x.so", "--suite", "smoke")
        self.assertEqual(json.loads(self.read("gate.json"))["library"], "x.so")
        self.assertFalse(os.path.exists(self.file("smoke")))

    def test_what_is_built_is_ignored(self):
        self.write("libk.so", "as built")
        self.gate("init", "--library", "libk.so", "--ci", "none")
        self.git("check-ignore", "libk.so")

    def test_a_gitignore_keeps_its_lines(self):
        self.write(".gitignore", "*.o\nbuild/")
        for _ in range(2):
            self.gate("init", "--force")
            self.assertEqual(self.read(".gitignore"),
                             "*.o\nbuild/\ngate.db*\n" + self.ALWAYS_IGNORED)

    def test_a_build_that_is_guessed_is_said_to_be(self):
        guess = "guessed   that 'make build/libmykernels.so' builds the library"
        self.assertIn(guess, self.gate("init").stdout)
        for *options, in ((), ("--example", "--force"), ("--build", "ninja", "--force")):
            self.assertNotIn("builds the library", self.gate("init", *options).stdout)

    def test_the_main_branch_is_not_the_one_that_is_worked_on(self):
        def guessed():
            if os.path.exists(self.file("gate.json")):
                os.remove(self.file("gate.json"))
            said = self.gate("init").stdout
            return re.search("'(.*)' is the main branch, because (.*):", said).groups(), \
                json.loads(self.read("gate.json"))["main"]

        self.git("config", "init.defaultBranch", "trunk")
        self.git("commit", "-qm", "first", "--allow-empty")
        self.git("switch", "-qc", "feature")
        self.assertEqual(guessed(), (("trunk", "it exists, and git's init.defaultBranch names it"),
                                     "trunk"))
        self.git("config", "init.defaultBranch", "another")
        self.assertEqual(guessed(), (("feature", "it is the current one"), "feature"))
        for name in ("master", "main"):
            self.git("branch", name)
            self.assertEqual(guessed(), ((name, "a branch of this name exists"), name))
        self.git("update-ref", "refs/remotes/origin/another", "HEAD")
        self.assertEqual(guessed()[1], "another")
        self.git("update-ref", "refs/remotes/origin/dev", "HEAD")
        self.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/dev")
        self.assertEqual(guessed(), (("dev", "origin says so"), "dev"))
        said = self.gate("init", "--force", "--main-branch", "main").stdout
        self.assertNotIn("is the main branch", said)
        self.git("switch", "-q", "--detach")
        shutil.rmtree(self.file(".git"))
        self.assertEqual(guessed(), (("main", "git names no branch here"), "main"))

    def test_the_example_is_that_of_the_tree(self):
        self.gate("init", "--example")
        for path in glob.glob(os.path.join(ROOT, "examples/mykernels/*")):
            self.assertEqual(read_file(path), self.read(os.path.basename(path)))


@unittest.skipIf(SANITIZED, "it asks how fast code is; each command has tests of its own")
@unittest.skipUnless(shutil.which("cmake"), "no cmake")
class Story(Repository):
    """The example, built by CMake. tests/gpu/test_story.py does the same on a GPU."""

    SOURCE, LIBRARY = "mykernels.c", "build/libmykernels.so"
    FAST = "row[j] += x * from[j];"
    SLOW = "for (volatile int again = 0; again < 4; again++)\n                    " \
           "row[j] += x * from[j] / 4;"
    KERNEL = "/* Row-major"  # where it begins
    OTHER_CODE = "s/x \\* from/from/"
    REFUSED = "runs other machine code: refused. Builds differ with another compiler, toolkit or " \
        "option, and with paths (__FILE__)"

    def setUp(self):
        super().setUp()
        self.gate("init", "--example", "--ci", "none", "--library", self.LIBRARY)
        self.adapt()
        self.head = self.commit("kernels")
        self.build()

    def adapt(self):
        # Debug information with a path in it: each build is another file of the same code.
        self.replace("CMakeLists.txt", "-Wall -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.",
                     "-Wall -g")
        self.replace("CMakeLists.txt", "check_language(CUDA)", "")

    def build(self):
        subprocess.run(["sh", "-c", json.loads(self.read("gate.json"))["build"]], check=True,
                       cwd=self.repository, stdout=subprocess.DEVNULL)

    def change(self, old, new):
        self.replace(self.SOURCE, old, new)
        self.build()
        return self.commit("a change")

    def measure(self, *arguments, expect=0, folder="", verdict=None):
        """A busy machine may leave a run without a verdict, or an improvement as a pass, and never
        a slower or a faster kernel with a wrong one."""
        spoilt = {3, 4} - {expect}
        for again in range(4):
            if again:
                self.git("checkout", "-q", "--", ".")  # a pass may have moved a baseline, too
            done = self.gate("run", "--json", "--filter", CASE, "--budget", "20", "--pause", "0",
                             "--threshold", "50%", "--seed", "1", *arguments, expect=None,
                             folder=folder)
            if done.returncode in spoilt:
                continue
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
            case, = json.loads(done.stdout)["cases"]
            if verdict in (None, case["verdict"]):
                return case
        return self.skipTest("this machine is too busy for a verdict: " + done.stderr[-300:])

    def baseline(self):
        entry, = json.loads(self.gate("baseline", "show", "--json").stdout)
        return entry

    def comment(self, service, **variables):
        """On the red merge request, twice: the second one updates the first."""
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        for _ in range(2):
            subprocess.run([GATE, "comment", "../red.json"], cwd=self.repository, check=True,
                           capture_output=True, env=dict(env, **variables))
        comment, = service.comments
        self.assertEqual(service.strange, [])
        self.assertRegex(comment["body"], rf"\| `{CASE}` .*\| ❌ regression \|")

    def comments(self, head):
        github, gitlab = GitHub(head), GitLab(head)
        self.addCleanup(github.stop)
        self.addCleanup(gitlab.stop)
        repo = {"full_name": "team/kernels"}
        write_file(self.path("event.json"), json.dumps({"pull_request": {
            "number": 12, "base": {"ref": "trunk", "repo": repo},
            "head": {"ref": "slower", "sha": head, "repo": repo}}}))
        self.comment(github, GITHUB_EVENT_NAME="pull_request",
                     GITHUB_EVENT_PATH=self.path("event.json"), **github.variables())
        self.comment(gitlab, **gitlab.variables())

    def bisect(self):
        """Of three commits the last changes the code: test_bisect.py has longer histories."""
        self.replace(self.SOURCE, '#include "problem.h"',
                     '#include "problem.h"\n#include "notes.h"')
        commits = []
        for i in range(3):
            if i == 2:
                self.replace(self.SOURCE, self.FAST, self.SLOW)
            self.write("notes.h", f"/* {i} */\n")
            commits.append(self.commit(f"commit {i}"))
        for _ in range(4):
            done = self.gate("bisect", "--case", CASE, "--good", commits[0], "--budget",
                             "20", "--pause", "0", "--threshold", "50%", "--seed", "1", "--build",
                             f"make {self.LIBRARY}", expect=None)
            if done.returncode not in (3, 4):
                break
        else:
            self.skipTest("this machine is too busy for a verdict: " + done.stderr[-300:])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{commits[2]} is the first bad commit\n", done.stdout)

    def test_the_whole_story(self):
        self.gate("verify", "--seed", "1")
        self.measure(expect=3)
        said = self.gate("run", "--accept-new", "--budget", "20", "--threshold", "50%", "--filter",
                         CASE).stderr
        self.assertRegex(said, "gate run: 'baselines/.*.json' has changed: commit it\n")
        self.commit("the first baselines")
        self.assertEqual(self.baseline()["commit"], self.head)
        self.assertEqual(self.measure()["mode"], "paired")

        slow = self.change(self.FAST, self.SLOW)
        self.measure("--report", f"json={self.path('red.json')}", expect=1, verdict="regression")
        self.comments(slow)
        os.remove(self.file(self.LIBRARY))
        said = self.gate("baseline", "accept", CASE, "--reason", "wanted").stdout
        self.assertRegex(said, r"\ncommit baselines/.*\.json: the next run compares with it\n$")
        self.assertEqual(self.baseline()["commit"], slow)
        self.commit("accepted")

        # Its binary was kept by the red run: the candidate is now another one.
        self.change(self.SLOW, self.FAST)
        case = self.measure("--ratchet", verdict="improvement")
        self.assertEqual(case["mode"], "paired")
        lowered = self.baseline()
        self.assertNotEqual(lowered["commit"], slow)
        self.assertGreaterEqual(lowered["p90_ns"], lowered["p50_ns"])
        log = json.loads(self.gate("baseline", "log", "--json").stdout)
        self.assertEqual([(change["action"], change["author"]) for change in log],
                         [(action, "A <a@example>") for action in
                          ("accept-new", "accept", "ratchet")])
        self.commit("lowered")
        self.bisect()

    def test_a_baseline_whose_binary_is_lost_is_built_by_the_repository_s_own_build(self):
        self.measure("--accept-new")
        self.commit("baselines")
        stored = self.baseline()["library_sha256"]
        self.change(self.KERNEL, "\n" + self.KERNEL)
        shutil.rmtree(self.path("cache"))
        os.mkdir(self.file("below"))
        case = self.measure(folder="below")
        self.assertEqual(case["mode"], "paired")
        self.assertIn("another file with the same machine code", case["reason"])
        kept = os.listdir(self.path("cache/artifacts"))  # what was built, and the candidate
        self.assertEqual((len(kept), stored + ".so" in kept), (2, False))

        # Other code under the same commit is not what the baseline was. Its number alone is left,
        # which a busy machine may be far off: a pass it never is.
        shutil.rmtree(self.path("cache"))
        build = json.loads(self.read("gate.json"))["build"]
        done = self.gate("run", "--json", "--filter", CASE, "--budget", "20", "--pause", "0",
                         "--threshold", "50%", "--seed", "1", "--build",
                         f"sed -i '{self.OTHER_CODE}' {self.SOURCE} && {build}", expect=None)
        self.assertIn(done.returncode, (1, 3, 4), done.stderr)
        case, = json.loads(done.stdout)["cases"]
        self.assertEqual(case["mode"], "number")
        self.assertIn(self.REFUSED, case["reason"])

    def test_a_run_that_is_accepted_on_another_machine_may_be_built_anew(self):
        self.measure("--report", f"json={self.path('run.json')}", expect=3)
        shutil.rmtree(self.path("cache"))
        os.remove(self.file("gate.db"))
        os.mkdir(self.file("baselines"))
        self.gate("import", "../run.json")
        said = self.gate("baseline", "accept", CASE, "--reason", "wanted").stdout
        self.assertIn(f"or rebuilds commit {self.head[:12]}", said)
        # By which a build of another file is known as the same code, as in the test above.
        stored = [json.loads(read_file(path)) for path in glob.glob(self.file("baselines/*.json"))]
        self.assertEqual([len(file["cases"][CASE]["code_sha256"]) for file in stored], [64])

    def test_the_candidate_s_own_file_may_be_the_baseline(self):
        self.measure("--accept-new")
        self.commit("baselines")
        shutil.rmtree(self.path("cache"))
        # Once: the run keeps it, so that a second one would find it in the cache.
        done = self.gate("run", "--json", "--filter", CASE, "--budget", "20", "--pause", "0",
                         "--threshold", "50%", "--seed", "1", "--build", "false", expect=None)
        case, = json.loads(done.stdout)["cases"]
        self.assertEqual((case["mode"], case["same_library"]), ("paired", True))
        self.assertEqual(len(glob.glob(self.path("cache/artifacts/*.so"))), 1)

    def test_commits_are_compared(self):
        """By what is told in one process: that the result is another one."""
        subprocess.run(["sed", "-i", self.OTHER_CODE, self.file(self.SOURCE)], check=True)
        wrong = self.commit("another result")
        done = self.gate("compare", wrong, self.head, "--filter", CASE, "--seed", "1", expect=2)
        self.assertLess(done.stderr.count("no GPU found"), 2)

    def test_without_a_build_command_it_is_said_what_is_missing(self):
        self.replace("gate.json", json.loads(self.read("gate.json"))["build"], "false")
        done = self.gate("compare", "HEAD", "HEAD", expect=4)
        self.assertIn("'false' ended with exit code 1", done.stderr)
        config = json.loads(self.read("gate.json"))
        del config["build"]
        self.write("gate.json", json.dumps(config))
        self.assertIn("set 'build' and 'library' in gate.json",
                      self.gate("compare", "HEAD", "HEAD", expect=64).stderr)


if __name__ == "__main__":
    unittest.main()
