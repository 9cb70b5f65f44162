# SPDX-License-Identifier: Apache-2.0
"""The jobs that `gate init` writes and those of ci/templates, by the schemas that GitHub and GitLab
publish."""

import os
import subprocess
import tempfile
import unittest

from harness import GATE, PATIENCE, ROOT, read_file, write_file

CHECK = os.path.join(ROOT, "tests", "templates", "check.mjs")
MODULES = os.path.join(ROOT, "tests", "templates", "node_modules", ".package-lock.json")
BUILD = """make -j8 "KIND=a: b" && printf '%s # {}' "$HOME" | grep -v '^[&*!]'"""


@unittest.skipUnless(os.path.isfile(MODULES), "npm has not brought the schemas")
class Templates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        subprocess.run(["git", "init", "-q", "-b", "release/1.x", self.folder], check=True)

    def check(self, kind, path):
        return subprocess.run(["node", CHECK, kind, path], capture_output=True, text=True,
                              check=False, timeout=PATIENCE)

    def assert_right(self, kind, path, key):
        """By the schema; and without that key it would not be."""
        done = self.check(kind, path)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = read_file(path)
        self.assertIn(key, text)
        broken = os.path.join(self.folder, "broken.yml")
        write_file(broken, text.replace(key, "no-such-key:"))
        self.assertEqual(self.check(kind, broken).returncode, 1)

    def init(self, system, name, folder=""):
        os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
        subprocess.run([GATE, "init", "--force", "--ci", system, "--build", BUILD],
                       cwd=os.path.join(self.folder, folder), check=True, capture_output=True)
        return os.path.join(self.folder, name)

    def test_what_init_writes_for_github(self):
        path = self.init("github", ".github/workflows/kernel-gate.yml")
        self.assert_right("workflow", path, "runs-on:")

    def test_what_init_writes_for_gitlab(self):
        self.assert_right("gitlab", self.init("gitlab", ".gitlab-ci.yml"), "script:")

    def test_what_init_writes_below_the_root(self):
        self.assert_right("workflow", self.init("github", ".github/workflows/kernel-gate.yml",
                                                "gpu"), "runs-on:")
        self.assert_right("gitlab", self.init("gitlab", ".gitlab-ci.yml", "gpu"), "script:")

    def test_what_the_comment_needs_is_in_the_pipeline_of_the_merge_request(self):
        """GitLab refuses a pipeline in which a job needs one that is not there."""
        component = os.path.join(ROOT, "ci", "templates", "gitlab-component", "kernel-gate.yml")
        for path in (component, self.init("gitlab", ".gitlab-ci.yml")):
            jobs = read_file(path).split("\nkernel-gate")
            for job in jobs[1:3]:
                self.assertIn('- if: $CI_PIPELINE_SOURCE == "merge_request_event"', job)
            self.assertIn("needs: [kernel-gate]", jobs[2])
            self.assertIn("tags:", jobs[2])

    def test_those_of_the_tree(self):
        for kind, name, key in (("workflow", "github-comment.yml", "runs-on:"),
                                ("action", "github-action/action.yml", "runs:"),
                                ("gitlab", "gitlab-component/kernel-gate.yml", "script:")):
            self.assert_right(kind, os.path.join(ROOT, "ci", "templates", name), key)


if __name__ == "__main__":
    unittest.main()
