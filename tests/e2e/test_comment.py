# SPDX-License-Identifier: Apache-2.0
"""gate comment as a black box: one comment that is kept up to date, and no report that can lead it
elsewhere."""

import json
import os
import re
import subprocess
import unittest

from fake_services import HEAD, TOKEN, GitHub, GitLab, InJob
from harness import GATE, PATIENCE, read_file, sample_run, write_file

OTHER = "ffeeddccbbaa99887766554433221100ffeeddcc"
MARKER = "<!-- kernel-gate: gate -->"
ALICE = {"login": "alice", "type": "User", "id": 5}


class Commenting(InJob):
    @classmethod
    def setUpClass(cls):
        cls.sample = sample_run(HEAD)

    def file(self, name, value):
        write_file(self.path(name), json.dumps(value))
        return self.path(name)

    def report(self, name="report.json", **git):
        return self.file(name, dict(self.sample, git=dict(self.sample["git"], **git)))

    def red(self, n, reason="slower by 12 %"):
        cases = []
        for i in range(n):
            case = json.loads(json.dumps(self.sample["cases"][0]))
            cases.append(dict(case, id=f"gemm/fp16/m{i + 1}-n256-k{i + 7}", verdict="regression",
                              reason=reason))
        return self.file("red.json", dict(self.sample, cases=cases, verdict="regression",
                                          exit_code=1))

    def gate(self, *args, status=0):
        done = subprocess.run([GATE, "comment", *args], env=self.env, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn(TOKEN, done.stdout + done.stderr)
        return done

    def assert_an_older_job_writes_nothing(self):
        """Its variables and its event are of the time when it was started."""
        self.gate(self.report(commit=HEAD))
        early = {"schema": "gate-error/1", "exit_code": 4, "message": "busy"}
        self.service.head = OTHER
        for arguments in ([self.report(subject="late")], [self.file("early.json", early)],
                          [self.report(), "--change", "12"]):
            done = self.gate(*arguments, status=3)
            self.assertIn(f"of commit {HEAD[:12]}, but the head of", done.stderr)
            self.assertIn(f"12 is now {OTHER[:12]}: nothing was written", done.stderr)
        self.assertEqual(len(self.service.written()), 1)
        self.gate(self.report(commit=OTHER), "--change", "12")
        self.gate(self.report(commit=""), "--change", "12", status=3)
        self.assertEqual(len(self.service.written()), 2)
        self.service.head = "main"
        self.assertIn("does not say the head", self.gate(self.report(), status=74).stderr)
        self.assertEqual(self.service.strange, [])


class OnGitHub(Commenting):
    def setUp(self):
        super().setUp()
        self.service = self.start(GitHub(HEAD))
        self.env.update(self.service.variables())
        self.pull_request()

    def pull_request(self):
        repo = {"full_name": "team/kernels"}
        self.env.update(GITHUB_EVENT_NAME="pull_request", GITHUB_EVENT_PATH=self.file("event", {
            "pull_request": {"number": 12, "base": {"ref": "main", "repo": repo},
                             "head": {"ref": "faster", "sha": HEAD, "repo": repo}}}))

    def workflow_run(self, owner="alice", branch="faster"):
        """What a second job sees of a fork's run: no number."""
        self.env.update(GITHUB_EVENT_NAME="workflow_run", GITHUB_EVENT_PATH=self.file("event", {
            "workflow_run": {"head_sha": HEAD, "head_branch": branch, "pull_requests": [],
                             "head_repository": {"full_name": f"{owner}/kernels",
                                                 "owner": {"login": owner}}}}))

    def test_one_comment_is_updated_in_place(self):
        self.gate(self.report())
        self.gate(self.report(subject="another try"))
        ours, = self.service.comments
        self.assertTrue(ours["body"].startswith(MARKER + "\n"), ours["body"][:80])
        self.assertIn("another try", ours["body"])
        self.assertEqual(self.service.written(), [
            ("POST", "/repos/team/kernels/issues/12/comments"),
            ("PATCH", "/repos/team/kernels/issues/comments/1")])
        self.assertEqual(self.service.strange, [])

    def test_it_is_found_behind_many_others(self):
        for i in range(150):
            self.service.add(f"no {i}", ALICE)
        ours = self.service.add(MARKER + "\r\nold", self.service.me)
        self.gate(self.report())
        self.assertEqual(len(self.service.comments), 151)
        self.assertIn("Kernel Gate", ours["body"])

    def test_a_comment_of_another_is_left_alone(self):
        for me in ({"login": "github-actions[bot]", "type": "Bot"},
                   {"login": "gate", "type": "User"}):
            self.service.me = me
            self.service.comments.clear()
            theirs = [self.service.add(MARKER + "\nmine", ALICE),
                      self.service.add(f"> {MARKER}\n", me)]
            before = [dict(c) for c in theirs]
            self.gate(self.report())
            self.assertEqual(theirs, before)
            self.assertEqual(len(self.service.comments), 3)

    def test_names_are_comments_of_their_own(self):
        self.gate(self.report())
        self.gate(self.report(), "--name", "h200")
        self.gate(self.report(), "--name", "h200")
        self.assertEqual([c["body"].split("\n")[0] for c in self.service.comments],
                         [MARKER, "<!-- kernel-gate: h200 -->"])
        for name in ("a b", "-->", "a--b", ""):
            self.gate(self.report(), "--name", name, status=64)

    def test_a_lost_receipt_does_not_make_two(self):
        def lost(handler):
            handler.behave = lambda: None
            self.service.add(json.loads(handler.body)["body"], self.service.me)
            handler.reset()
        good = lambda handler: handler.behave()
        self.service.plan = [lambda h: h.json(502, {}), good, good, good, lost]
        self.gate(self.report())
        self.assertEqual(len(self.service.comments), 1)

    def test_what_is_refused_is_told_and_not_tried_again(self):
        self.env["GITHUB_TOKEN"] = "ghs_wrong"
        done = self.gate(self.report(), status=74)
        self.assertIn("401", done.stderr)
        self.assertEqual(len(self.service.seen), 1)

    def test_500_red_cases(self):
        self.gate(self.red(500, "slower by 12 % " + "and so on " * 60), "--link",
                  "https://gate.example.org/team")
        body = self.service.comments[0]["body"]
        self.assertLessEqual(len(body), 65536)
        self.assertGreater(len(body), 40000)
        left_out, = re.findall(r"(\d+) of 500 cases are left out", body)
        self.assertEqual(body.count("| ❌ regression |") + int(left_out), 500)
        self.assertIn("https://gate.example.org/team/#/run/" + self.sample["uuid"], body)
        change = re.search(r"/issues/(\d+)/comments", str(self.service.seen)).group(1)
        self.assertEqual(body.splitlines()[2], "[All pushes and devices of this change]"
                         f"(https://gate.example.org/team/#/change/{change})")
        self.assertIn("(https://gate.example.org/team/#/case?id=gemm/fp16/m1-n256-k7&device=", body)

    def test_annotations(self):
        report = self.red(12, "slow\n::add-mask::x\r::set-env name=PATH::/evil 100%")
        done = self.gate(report, "--annotations", "-")
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 10)
        for line in lines:
            self.assertRegex(line, r"^::error title=Kernel Gate%3A regression::gemm/\S+: slow%0A")
            self.assertNotIn("100%\n", line + "\n")
        self.assertIn("(and 2 more cases)", lines[-1])

    def test_a_run_that_ended_early_is_said_to_have(self):
        early = {"schema": "gate-error/1", "exit_code": 4,
                 "message": "cuda:0 is busy\n::error::x <img> @team"}
        done = self.gate(self.file("early.json", early), "--annotations", "-")
        body, = (c["body"] for c in self.service.comments)
        self.assertIn("Kernel Gate ended early (exit code 4)", body)
        self.assertIn("cuda:0 is busy ", body)
        self.assertNotRegex(body, r"<img|@team")
        self.assertEqual(done.stdout, "::error title=Kernel Gate%3A ended early (exit code 4)::"
                                      "cuda:0 is busy%0A::error::x <img> @team\n")
        self.gate(self.report())
        self.assertEqual(len(self.service.comments), 1)
        self.assertNotIn("ended early", self.service.comments[0]["body"])

    def test_one_that_ended_early_stands_beside_the_others_within_the_limit(self):
        early = {"schema": "gate-error/1", "exit_code": 70, "message": "&" * 1023}
        self.gate(self.report(), *[self.file("early.json", early)] * 20)
        body, = (c["body"] for c in self.service.comments)
        self.assertLessEqual(len(body.encode()), 65000)
        self.assertEqual(body.count("ended early"), 20)
        self.assertEqual(body.count("Kernel Gate: "), 1)

    def test_what_is_not_quite_a_run_that_ended_early_is_refused(self):
        early = {"schema": "gate-error/1", "exit_code": 4, "message": "busy"}
        for wrong in ({"exit_code": 0}, {"exit_code": 256}, {"message": "x" * 1024},
                      {"schema": "gate-error/2"}):
            self.gate(self.file("early.json", {**early, **wrong}), status=74)
        self.assertEqual(self.service.seen, [])

    # ---- forks ----

    def test_a_fork_s_pull_request_is_found_by_the_event(self):
        self.workflow_run()
        self.service.open_pull(3, OTHER)
        self.service.open_pull(4, HEAD, branch="other")
        self.service.open_pull(5, HEAD, owner="mallory")
        self.service.open_pull(12, HEAD)
        self.gate(self.report(change="4", base="main", job="https://evil.example/"))
        self.assertEqual(self.service.written(),
                         [("POST", "/repos/team/kernels/issues/12/comments")])
        self.assertEqual(self.service.strange, [])

    def test_a_branch_cannot_leave_its_place_in_the_address(self):
        for branch in ("a&head=team:main", "../../5#", "x?y%20z", "ü"):
            self.service.pulls.clear()
            self.workflow_run(branch=branch)
            self.service.open_pull(12, HEAD, branch=branch)
            self.gate(self.report())
        self.assertEqual(len(self.service.comments), 1)
        self.assertEqual(self.service.strange, [])

    def test_a_change_that_moved_on_gets_no_old_comment(self):
        self.gate(self.report(commit=OTHER), status=3)
        self.workflow_run()
        self.service.open_pull(12, OTHER)
        self.gate(self.report(), status=3)
        self.assertEqual(self.service.written(), [])

    def test_an_older_job_does_not_write_over_a_newer_one(self):
        self.assert_an_older_job_writes_nothing()

    def test_a_report_that_does_not_say_its_commit_is_none_of_this_change(self):
        self.gate(self.report(commit=""), status=3)
        self.assertEqual(self.service.written(), [])

    def test_hostile_reports(self):
        """Whatever a report holds: it is refused, or stays text in the one comment."""
        hostile = ("/close\n@team/owners #1 !1 $1 <img src=x onerror=y> [a](javascript:b) "
                   "https://evil.example www.evil.example --> <!-- kernel-gate: other -->")
        run = json.loads(json.dumps(self.sample))
        run["git"].update(change="1", branch=hostile, subject=hostile, job=hostile)
        run["suite"] = "canonical"
        run["who"] = run["device"]["name"] = run["device"]["driver"] = hostile
        for case in run["cases"]:
            case.update(verdict="regression", reason=hostile)
        for number, broken in enumerate((
                dict(run, uuid="../../../x"), dict(run, url="https://evil.example"),
                dict(run, git=dict(run["git"], commit="x")), [], "x", 12)):
            self.gate(self.file(f"broken{number}.json", broken), status=74)
        self.assertEqual(self.service.seen, [])
        self.gate(self.file("hostile.json", run))
        body, = (c["body"] for c in self.service.comments)
        self.assertEqual(self.service.written(),
                         [("POST", "/repos/team/kernels/issues/12/comments")])
        plain = re.sub(r"`[^`\n]*`", "", body)
        self.assertNotRegex(plain, r"(?m)^/")
        self.assertNotRegex(plain, r"[@#!$]\w")
        self.assertNotRegex(plain, r"://|www\.")
        self.assertNotIn("<img", plain)
        self.assertEqual(plain.count("<!--"), 1)

    def test_what_the_event_does_not_say_is_an_error(self):
        self.env["GITHUB_EVENT_PATH"] = self.file("push", {"ref": "refs/heads/main"})
        self.assertIn("--change", self.gate(self.report(), status=64).stderr)
        self.gate(self.report(), "--change", "12")
        self.assertEqual(len(self.service.comments), 1)
        for bad in ("0", "12/../13", "x", "-1"):
            self.gate(self.report(), "--change", bad, status=64)
        for bad in ("team", "team/../x", "team/kernels?x", "/kernels"):
            self.gate(self.report(), "--project", bad, status=64)


class OnGitLab(Commenting):
    def setUp(self):
        super().setUp()
        self.service = self.start(GitLab(HEAD))
        self.env.update(self.service.variables())

    def test_one_comment_is_updated_in_place(self):
        theirs = self.service.add(MARKER + "\nmine", ALICE)
        for _ in range(2):
            self.gate(self.report())
        self.assertEqual(theirs["body"], MARKER + "\nmine")
        self.assertEqual(self.service.written(), [
            ("POST", "/api/v4/projects/7/merge_requests/12/notes"),
            ("PUT", "/api/v4/projects/7/merge_requests/12/notes/2")])
        self.gate(self.report(), "--project", "team/kernels")
        self.assertEqual(len(self.service.comments), 2)
        self.assertEqual(self.service.strange, [])

    def test_an_older_job_does_not_write_over_a_newer_one(self):
        self.assert_an_older_job_writes_nothing()

    def test_500_red_cases(self):
        self.gate(self.red(500, "slower by 12 % " + "and so on " * 90))
        body = self.service.comments[0]["body"]
        self.assertLessEqual(len(body), 1000000)
        self.assertGreater(body.count("| ❌ regression |"), 100)

    def test_annotations(self):
        self.gate(self.red(60), "--annotations", "notes.json", status=64)
        self.gate(self.red(60), "--annotations", "notes.json", "--link", "https://gate.example.org")
        notes = json.loads(read_file(os.path.join(self.folder, "notes.json")))
        links = [item["external_link"] for item in notes["Kernel Gate"]]
        self.assertEqual(len(links), 50)
        self.assertEqual(links[0]["url"], "https://gate.example.org/#/run/" + self.sample["uuid"])
        self.assertIn("case?id=gemm/fp16/m1-n256-k7&device=", links[1]["url"])

    def test_a_stored_run_without_a_report(self):
        self.gate(status=74)
        subprocess.run([GATE, "import", self.report()], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL)
        self.gate()
        self.assertEqual(len(self.service.comments), 1)


class Printing(Commenting):
    def test_without_a_service(self):
        self.assertTrue(self.gate(self.report(), "--dry-run").stdout.startswith(MARKER))
        self.assertIn("--service", self.gate(self.report(), status=64).stderr)

    def test_several_reports_share_the_space(self):
        done = self.gate(self.red(500), self.report(), "--dry-run")
        self.assertEqual(done.stdout.count("Kernel Gate: "), 2)
        self.assertLessEqual(len(done.stdout), 65536)

    def test_as_many_reports_as_fit(self):
        report = self.report()
        done = self.gate(*[report] * 32, "--dry-run")
        self.assertEqual(done.stdout.count("Kernel Gate: "), 32)
        self.assertLessEqual(len(done.stdout.encode()), 65000)
        done = self.gate(*[report] * 33, "--dry-run", status=64)
        self.assertIn("it takes at most 32", done.stderr)
        long = self.report(subject="&" * 400, author="&" * 400)
        done = self.gate(*[long] * 32, "--dry-run", status=74)
        self.assertIn("are longer than a comment may be", done.stderr)


if __name__ == "__main__":
    unittest.main()
