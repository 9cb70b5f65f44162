# SPDX-License-Identifier: Apache-2.0
"""`gate compare`, and libraries that are built from a commit: of a baseline, or of one side."""
import glob
import json
import os
import shutil
import subprocess
import unittest

from harness import FIRST, GATE, HOST, SECOND, FakeRuns, mutant, read_file, write_file


HOST_CASE = "gemm/fp32/m4-n1-k3"
# The library is the file whose name stands outside the sources: as if another compiler came by.
MAKEFILE = """build/lib/kernel-gate/%.so:
\techo build >> "{folder}/builds"
\tmkdir -p $(@D)
\tcp "$$(cat "{folder}/product")" $@
"""
BROKEN = """build/lib/kernel-gate/%.so:
\techo build >> "{folder}/builds"
\t@mkdir -p $(@D) && echo half > $@
\t@echo "kernel.cu(7): error: identifier is undefined" >&2; exit 3
"""


class Commits(FakeRuns):
    """The folder of the runs is a repository whose Makefile makes a library, or fails to."""

    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.makes(HOST)

    def git(self, *args):
        env = dict(os.environ, GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@t", GIT_COMMITTER_NAME="t",
                   GIT_COMMITTER_EMAIL="t@t", GIT_CONFIG_GLOBAL="/dev/null")
        return subprocess.run(["git", *args], cwd=self.folder, env=env, check=True, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True).stdout

    def commit(self, makefile):
        write_file(self.path("Makefile"), makefile.format(folder=self.folder))
        self.git("add", "Makefile")
        self.git("commit", "-q", "-m", "how it is built")
        return self.git("rev-parse", "HEAD").strip()

    def makes(self, library):
        write_file(self.path("product"), library)

    def builds(self):
        if not os.path.exists(self.path("builds")):
            return 0
        with open(self.path("builds"), encoding="utf-8") as file:
            return len(file.readlines())

    def artifacts(self):
        return sorted(glob.glob(self.path("cache/artifacts/*")))

    def assert_no_worktree(self):
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)
        self.assertEqual([n for n in glob.glob(self.path("cache/worktrees/*"))
                          if not n.endswith(".lock")], [])


class Compare(Commits):
    def compare(self, *args, **env):
        done = subprocess.run(
            [GATE, "compare", "--json", "--device", "host", "--suite", "smoke", "--filter",
             HOST_CASE, "--budget", "1", "--threshold", "90%", "--timeout", "600", *args],
            cwd=self.folder,
            env=dict(os.environ, GATE_CACHE=self.path("cache"), GATE_MUTANT_OF=HOST, **env),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    def assert_refused(self, code, says, *args):
        got, document, errors = self.compare(*args)
        self.assertEqual((got, document), (code, None), errors)
        self.assertIn(says, errors)
        self.assertEqual(os.path.exists(self.path("gate.db")), False)

    def test_two_files(self):
        """What is measured on a busy host is not the matter: no verdict, or the machine's fault.
        Nobody knows which commit made them, whatever is checked out here."""
        self.commit(MAKEFILE)
        code, document, errors = self.compare("--report", "text=r.txt", mutant("right"), HOST)
        self.assertIn(code, (0, 1, 3, 4), errors)
        (case,) = document["cases"]
        self.assertEqual((case["mode"], case["same_library"]), ("paired", False))
        self.assertEqual(document["policy"]["against"], HOST)
        self.assertEqual([l["file"] for l in document["libraries"] if l["role"] != "provider"],
                         ["right.so", "libhost.so"])
        self.assertGreaterEqual(len(case["processes"]), 5)
        for file in ("gate.db", "baselines"):
            self.assertFalse(os.path.exists(self.path(file)), file)
        text = read_file(self.path("r.txt"))
        self.assertIn("against " + HOST, text)
        self.assertRegex(text, "(?m)^commit +not known$")
        self.assertEqual([document["git"][name] for name in ("commit", "branch", "subject")],
                         ["", "", ""])

    def test_a_wrong_candidate(self):
        code, document, errors = self.compare(mutant("host_zeros"), HOST)
        self.assertEqual((code, document["cases"][0]["verdict"]), (2, "wrong"), errors)

    def test_a_wrong_other_side_is_no_verdict(self):
        # The mutant opens its original by path: a copy keeps it apart from the candidate.
        copy = shutil.copy(HOST, self.path("copy.so"))
        code, document, errors = self.compare(copy, mutant("host_zeros"))
        (case,) = document["cases"]
        self.assertEqual((code, case["verdict"], case["mode"]), (3, "no-verdict", "none"), errors)
        self.assertIn("this case has nothing to be compared with; the old one could not be "
                      "measured here", case["reason"])
        self.assertNotIn("baseline", case["reason"])

    def test_commits(self):
        """Each is built once, and what a build leaves behind is its artifact alone."""
        right = self.commit(MAKEFILE)
        code, document, errors = self.compare(mutant("host_zeros"), right)
        self.assertEqual(code, 2, errors)
        self.assertEqual(document["policy"]["against"], right)
        _, document, _ = self.compare(right, mutant("host_zeros"))
        self.assertEqual(document["git"]["commit"], right)
        self.git("commit", "-q", "--allow-empty", "-m", "later")
        with open(self.path("Makefile"), "a", encoding="utf-8") as file:
            file.write("# changed\n")
        _, document, _ = self.compare(right, mutant("host_zeros"))
        self.assertEqual([document["git"][name] for name in ("commit", "subject", "branch")],
                         [right, "how it is built", ""])
        self.assertFalse(document["git"]["dirty"])
        self.assertEqual((self.builds(), len(self.artifacts())), (1, 1))
        self.assert_no_worktree()

    def test_nothing_is_built_for_a_side_that_does_not_exist(self):
        self.assert_refused(64, "neither a regular file", self.commit(MAKEFILE), "no-such-branch")
        self.assertEqual(self.builds(), 0)

    def test_a_commit_that_does_not_build(self):
        broken = self.commit(BROKEN)
        for sides in ((HOST, broken), (broken, HOST)):
            self.assert_refused(4, "error: identifier is undefined", *sides)
            self.assertEqual(self.artifacts(), [])
            self.assert_no_worktree()

    def test_libraries_that_are_none(self):
        plain = write_file(self.path("plain.so"), "not a shared object")
        suite = self.path("suite.json")  # a manifest is JSON too, but says so
        nothing = "neither a regular file nor a revision"
        # The candidate's fault is 2, that of what it is compared with is the environment's.
        for code, other, says, bad in ((64, 64, nothing, "nowhere.so"),
                                       (64, 64, nothing, "0" * 40),
                                       (64, 64, nothing, "no-such-branch"),
                                       (64, 64, "empty text", ""),
                                       (2, 4, "kernel ABI 3", mutant("wrong_abi")),
                                       (2, 4, "cannot be loaded", plain),
                                       (2, 4, f"'{suite}': manifest:1:", suite)):
            with self.subTest(bad=bad):
                self.assert_refused(code, says, bad, HOST)
                self.assert_refused(other, says, HOST, bad)

    def test_words(self):
        for args in ([], [HOST]):
            self.assert_refused(64, "two libraries or commits are needed", *args)
        self.assert_refused(64, "unexpected argument 'x'", HOST, HOST, "x")
        self.assert_refused(64, "unknown or unexpected option '--ratchet'", "--ratchet", HOST, HOST)
        self.assert_refused(64, "unknown device 'tpu'", "--device", "tpu", HOST, HOST)
        self.assert_refused(64, "'all'; use 'auto', 'host' or 'cuda:N'\n", "--device", "all", HOST,
                            HOST)


class Baselines(Commits):
    """The library of a baseline is not in the cache, and its commit is built again."""

    def run_gate(self, *arguments, **options):
        recipe = ["--build", "make build/lib/kernel-gate/libours.so",
                  "--built", "build/lib/kernel-gate/libours.so"]
        return super().run_gate(*recipe, *arguments, **options)

    def accept_and_lose(self, makefile):
        commit = self.commit(makefile)
        self.accept()
        self.makes(self.path("old.so"))
        shutil.rmtree(self.path("cache"))
        return commit

    def test_a_commit_that_still_gives_it(self):
        self.accept_and_lose(MAKEFILE)
        code, document, errors = self.run_gate()
        self.assertEqual(code, 0, errors)
        self.assertEqual({c["mode"] for c in document["cases"]}, {"paired"})
        self.assertEqual(self.builds(), 1)
        self.assert_no_worktree()

    def test_a_commit_that_no_longer_builds(self):
        """There is no verdict, the case says why, and the build is tried once a run."""
        commit = self.accept_and_lose(BROKEN)
        code, document, errors = self.run_gate("--report", "text=r.txt")
        self.assertEqual(code, 3, errors)
        for case in document["cases"]:
            self.assertEqual((case["mode"], case["verdict"]), ("number", "no-verdict"))
            self.assertIn(f"of commit {commit[:12]} cannot be built here", case["reason"])
            self.assertIn("'gate baseline fetch --server URL' brings the library", case["reason"])
        self.assertEqual(self.builds(), 1)
        self.assert_no_worktree()
        log, = glob.glob(self.path(f"cache/logs/{commit}-build-*.log"))
        self.assertIn("error: identifier is undefined", read_file(log))

        code, document, _ = self.run_gate(greeting={"device": {"driver": "2"}})
        self.assertEqual((code, document["cases"][0]["mode"]), (3, "none"))
        self.assertIn("its number is of another epoch", document["cases"][0]["reason"])

    def test_the_same_sources_give_another_file(self):
        """Another compiler makes other machine code of them: that is not the baseline's library."""
        self.accept_and_lose(MAKEFILE)
        self.makes(write_file(self.path("other.txt"), "not a shared object"))
        code, document, errors = self.run_gate()
        self.assertEqual(code, 3, errors)
        for case in document["cases"]:
            self.assertEqual(case["mode"], "number")
            self.assertIn("differs from the file of the stored baseline", case["reason"])
        self.assertEqual(self.builds(), 1)
        self.assert_no_worktree()

    def test_a_candidate_that_was_built_again(self):
        """Other bytes and other machine code of the same sources are compared like any
        candidate is; with the same machine code they are a control of the run."""
        self.commit(MAKEFILE)
        self.accept()
        slower = {FIRST: 1100.0, SECOND: 1100.0}
        code, document, errors = self.run_gate(library="again", p50=slower, same_code=[SECOND])
        self.assertEqual(code, 1, errors)
        cases = self.cases(document)
        self.assertEqual(document["git"]["commit"], cases[FIRST]["baseline"]["commit"])
        self.assertEqual([(cases[n]["verdict"], cases[n]["same_library"], cases[n]["same_code"])
                          for n in (FIRST, SECOND)],
                         [("regression", False, False), ("environment", False, True)])
        self.assertEqual(self.run_gate(library="again")[0], 0)


if __name__ == "__main__":
    unittest.main()
