# SPDX-License-Identifier: Apache-2.0
"""What a run says of the commit that it measured: by options, by CI's variables, else by git."""

import json
import os
import stat
import subprocess
import unittest

from harness import WORKER, FakeRuns, write_file

OTHER = "0123456789abcdef0123456789abcdef01234567"
CI = ("GITHUB_", "GITLAB_CI", "CI_", "JENKINS_", "GIT_", "BRANCH_NAME", "CHANGE_", "BUILD",
      "TF_BUILD", "SYSTEM_", "CIRCLE", "SLURM_", "TAG_NAME")


class Origin(FakeRuns):
    def setUp(self):
        super().setUp()
        for name in [n for n in os.environ if n.startswith(CI)]:
            self.addCleanup(os.environ.__setitem__, name, os.environ.pop(name))
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "user.name", "A")
        self.base = self.commit("base")
        self.git("checkout", "-q", "-b", "faster")
        self.head = self.commit("work")
        self.git("checkout", "-q", "--detach", "main")
        self.git("merge", "-q", "--no-ff", "-m", "Merge work into base", "faster")
        self.merge = self.git("rev-parse", "HEAD")

    def git(self, *args):
        done = subprocess.run(["git", *args], cwd=self.folder, check=True, capture_output=True,
                              text=True)
        return done.stdout.strip()

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def origin(self, *args, **variables):
        with_variables = dict(os.environ)
        os.environ.update(variables)
        try:
            _, document, errors = self.run_gate(*args)
        finally:
            os.environ.clear()
            os.environ.update(with_variables)
        self.assertIsNotNone(document, errors)
        self.told = document["git"]
        return {k: v for k, v in self.told.items()
                if k not in ("dirty", "first_parents", "merge_base")}

    def history(self, **variables):
        """The subjects of the first parents, and of where the branch began."""
        self.origin(**variables)
        subject = lambda commit: self.git("log", "-1", "--format=%s", commit)
        base = self.told.get("merge_base")
        return [subject(c["commit"]) for c in self.told["first_parents"]], base and subject(base)

    def event(self, **change):
        path = self.path("change.json" if change else "push.json")
        write_file(path, json.dumps({"pull_request": change} if change else {}))
        return path

    def github(self, fork=False, **more):
        repo = {"full_name": "team/kernels"}
        event = self.event(
            number=12, base={"ref": "main", "repo": repo},
            head={"ref": "faster", "sha": self.head, "user": {"login": "alice"},
                  "repo": {"full_name": "alice/kernels"} if fork else repo})
        return dict({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request",
                     "GITHUB_SHA": self.merge, "GITHUB_REF": "refs/pull/12/merge",
                     "GITHUB_EVENT_PATH": event, "GITHUB_SERVER_URL": "https://github.com",
                     "GITHUB_REPOSITORY": "team/kernels", "GITHUB_RUN_ID": "7"}, **more)

    def of_change(self, **more):
        return dict({"commit": self.head, "parent": self.base, "subject": "work", "author": "A",
                     "branch": "faster", "base": "main", "change": "12"}, **more)

    # A merge request: the head, and never the temporary merge that is checked out.

    def test_github(self):
        job = "https://github.com/team/kernels/actions/runs/7"
        self.assertEqual(self.origin(**self.github()), self.of_change(job=job))
        self.assertEqual(self.origin(**self.github(fork=True)),
                         self.of_change(job=job, branch="alice:faster"))

    def test_a_job_for_a_pull_request_that_checked_out_the_base_measured_the_base(self):
        self.git("checkout", "-q", "--detach", "main")
        told = self.origin(**self.github(GITHUB_EVENT_NAME="pull_request_target",
                                         GITHUB_SHA=self.base))
        self.assertEqual((told["commit"], told["branch"]), (self.base, ""))
        self.assertNotIn("change", told)

    def test_gitlab(self):
        told = {"GITLAB_CI": "true", "CI_COMMIT_SHA": self.merge, "CI_MERGE_REQUEST_IID": "12",
                "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": self.head,
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "faster",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_JOB_URL": "https://x/1",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "team/kernels",
                "CI_MERGE_REQUEST_PROJECT_PATH": "team/kernels"}
        self.assertEqual(self.origin(**told), self.of_change(job="https://x/1"))
        told["CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"] = "alice/kernels"
        self.assertEqual(self.origin(**told)["branch"], "alice/kernels:faster")

    def test_azure(self):
        self.assertEqual(self.origin(
            TF_BUILD="True", BUILD_SOURCEVERSION=self.merge,
            BUILD_SOURCEBRANCH="refs/pull/12/merge",
            SYSTEM_PULLREQUEST_SOURCECOMMITID=self.head,
            SYSTEM_PULLREQUEST_SOURCEBRANCH="refs/heads/faster",
            SYSTEM_PULLREQUEST_TARGETBRANCH="refs/heads/main",
            SYSTEM_PULLREQUEST_PULLREQUESTID="12", SYSTEM_COLLECTIONURI="https://dev.azure.com/t/",
            SYSTEM_TEAMPROJECT="kernels", BUILD_BUILDID="9"),
            self.of_change(job="https://dev.azure.com/t/kernels/_build/results?buildId=9"))

    def test_jenkins_buildkite_circleci(self):
        self.git("checkout", "-q", "--detach", "faster")
        self.assertEqual(self.origin(
            JENKINS_URL="http://j/", GIT_COMMIT=self.head, CHANGE_ID="12", BRANCH_NAME="PR-12",
            CHANGE_BRANCH="faster", CHANGE_TARGET="main", BUILD_URL="http://j/1/"),
            self.of_change(job="http://j/1/"))
        self.assertEqual(self.origin(
            BUILDKITE="true", BUILDKITE_COMMIT=self.head, BUILDKITE_BRANCH="faster",
            BUILDKITE_PULL_REQUEST="12", BUILDKITE_PULL_REQUEST_BASE_BRANCH="main",
            BUILDKITE_BUILD_URL="https://b/1", BUILDKITE_REPO="git@github.com:Team/kernels.git",
            BUILDKITE_PULL_REQUEST_REPO="https://github.com/team/kernels/"),
            self.of_change(job="https://b/1"))
        told = self.of_change(job="https://c/1")
        del told["base"]  # it does not say
        self.assertEqual(self.origin(
            CIRCLECI="true", CIRCLE_SHA1=self.head, CIRCLE_BRANCH="faster",
            CIRCLE_PULL_REQUEST="https://github.com/team/kernels/pull/12",
            CIRCLE_BUILD_URL="https://c/1"), told)

    def test_a_fork_at_buildkite(self):
        self.git("checkout", "-q", "--detach", "faster")
        for repo, branch in (("git://github.com/alice/kernels.git", "alice:main"),
                             ("git@github.com:alice/kernels", "alice:main"),
                             ("git@github.com:team/other", "team:main"), ("x", "fork:main"),
                             ("", "fork:main"), ("git://github.com/team/kernels.git", "main")):
            told = self.origin(
                BUILDKITE="true", BUILDKITE_COMMIT=self.head, BUILDKITE_BRANCH="main",
                BUILDKITE_PULL_REQUEST="12", BUILDKITE_REPO="git@github.com:team/kernels.git",
                BUILDKITE_PULL_REQUEST_REPO=repo)
            self.assertEqual(told["branch"], branch, repo)

    # Other jobs.

    def test_a_push(self):
        self.git("checkout", "-q", "--detach", "main")
        told = self.origin(**self.github(GITHUB_EVENT_NAME="push", GITHUB_REF="refs/heads/main",
                                         GITHUB_SHA=self.base, GITHUB_EVENT_PATH=self.event()))
        self.assertEqual((told["commit"], told["branch"]), (self.base, "main"))
        self.assertNotIn("change", told)
        for name, value in (("BUILDKITE_PULL_REQUEST", "false"), ("BUILDKITE_PULL_REQUEST", "0")):
            told = self.origin(BUILDKITE="true", BUILDKITE_COMMIT=self.base,
                               BUILDKITE_BRANCH="main", **{name: value})
            self.assertEqual(told["branch"], "main")
            self.assertNotIn("change", told)

    # What came before.

    def test_first_parents_and_merge_base(self):
        self.assertEqual(self.history(**self.github()), (["work", "base"], "base"))
        when = int(self.git("log", "-1", "--format=%ct", self.head))
        self.assertEqual(self.told["first_parents"][0],
                         {"commit": self.head, "time_ms": 1000 * when})
        self.git("checkout", "-q", "--detach", self.merge)
        self.assertEqual(self.history(), (["Merge work into base", "base"], None))
        for i in range(300):
            self.git("commit", "-q", "--allow-empty", "-m", str(i))
        subjects, _ = self.history()
        self.assertEqual((len(subjects), subjects[0], subjects[-1]), (256, "299", "44"))
        self.origin(GIT_DIR="none")
        self.assertNotIn("first_parents", self.told)

    def test_what_is_not_known_is_no_branch(self):
        for variables in (
                {}, {"SLURM_JOB_ID": "5"}, {"JENKINS_URL": "x"},
                {"GITLAB_CI": "true", "CI_COMMIT_TAG": "main", "CI_COMMIT_REF_NAME": "main"},
                {"BUILDKITE": "true", "BUILDKITE_TAG": "main", "BUILDKITE_BRANCH": "main"},
                {"GITHUB_ACTIONS": "true", "GITHUB_REF": "refs/tags/main",
                 "GITHUB_REF_NAME": "main"},
                {"TF_BUILD": "True", "BUILD_SOURCEBRANCH": "refs/tags/main"}):
            self.assertEqual(self.origin(**variables)["branch"], "", variables)

    def test_an_author_is_a_name_and_no_address(self):
        self.git("config", "user.name", "a@example.org")
        self.commit("by an address")
        self.assertNotIn("author", self.origin())

    def test_author_and_subject_may_have_tabs(self):
        self.git("config", "user.name", "Ada\tByrne")
        self.commit("one\ttwo")
        told = self.origin()
        self.assertEqual((told["author"], told["subject"]), ("Ada\tByrne", "one\ttwo"))

    def test_a_merge_of_many(self):
        tree = self.git("rev-parse", "HEAD^{tree}")
        parents = [self.git("commit-tree", tree, "-m", str(i)) for i in range(120)]
        self.git("checkout", "-q", self.git("commit-tree", tree, "-m", "all of them",
                                            *(word for p in parents for word in ("-p", p))))
        told = self.origin()
        self.assertEqual((told["parent"], told["subject"]), (parents[0], "all of them"))

    def test_without_git_the_job_says_who_the_author_is(self):
        for author in "Ada Byrne <ada@example.org>", "Ada Byrne":
            self.assertEqual(self.origin(
                GIT_DIR="none", GITLAB_CI="true", CI_COMMIT_SHA=OTHER,
                CI_COMMIT_AUTHOR=author)["author"], "Ada Byrne")
        self.assertEqual(self.origin(
            GIT_DIR="none", BUILDKITE="true", BUILDKITE_COMMIT=OTHER,
            BUILDKITE_BUILD_AUTHOR="Ada Byrne")["author"], "Ada Byrne")
        for more in {"CI_COMMIT_AUTHOR": "ada@example.org"}, {
                "CI_COMMIT_AUTHOR": "Ada Byrne", "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": self.head}:
            self.assertNotIn("author", self.origin(
                GIT_DIR="none", GITLAB_CI="true", CI_COMMIT_SHA=OTHER, **more))

    def test_slurm(self):
        self.assertEqual(self.origin(SLURM_JOB_ID="5", SLURM_CLUSTER_NAME="big")["job"],
                         "slurm:big/5")

    def test_variables_about_another_commit_say_nothing_of_this_tree(self):
        told = self.origin(**self.github(GITHUB_SHA=OTHER, GITHUB_EVENT_PATH=self.event()))
        self.assertEqual((told["commit"], told["branch"]), (self.merge, ""))

    # The worker runs code that nobody has read.

    def test_the_worker_has_no_tokens(self):
        seen, worker = self.path("seen"), self.path("worker.sh")
        write_file(worker, f'#!/bin/sh\nenv > "{seen}"\nexec "{WORKER}" "$@"\n')
        os.chmod(worker, os.stat(worker).st_mode | stat.S_IXUSR)
        hidden = ("GATE_TOKEN", "GATE_TOKEN_FILE", "GITHUB_ENV", "GITHUB_TOKEN",
                  "ACTIONS_RUNTIME_TOKEN", "CI_JOB_TOKEN", "MY_API_KEY", "db_password",
                  "BUILDKITE_AGENT_ACCESS_TOKEN", "SYSTEM_ACCESSTOKEN", "BASH_ENV",
                  "BITBUCKET_STEP_OIDC")
        kept = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "MY_TUNING", "GATE_CACHE", "TOKENIZERS")
        self.origin("--worker", worker, **dict.fromkeys(hidden + kept, "hidden-or-kept"))
        with open(seen, encoding="utf-8") as file:
            names = {line.split("=", 1)[0] for line in file}
        self.assertEqual(names & set(hidden), set())
        self.assertEqual(names & set(kept), set(kept))


if __name__ == "__main__":
    unittest.main()
