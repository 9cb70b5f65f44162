// SPDX-License-Identifier: Apache-2.0
// run.test.mjs: the list of runs and a run.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
    HOST, REGRESSED, alter, dashboard, foundAlert, lines, lowContrast, settled, skip, until, walker,
} from "./harness.mjs";

const RUN = /\/api\/v1\/runs\/[0-9a-f-]{36}\?/; // in full or in short

describe("run", { skip }, () => {
    const it = dashboard();
    const openCaseOf = (page, uuid, id = REGRESSED) =>
        it.open(page, `#/run/${uuid}?case=${encodeURIComponent(id)}`);

    test("commits lead to the forge where the server knows one", async () => {
        const { file, uuids } = it.seed("forge.db", 2);
        const forge = ["--commit-url", "https://forge.example/c/%s?view=diff"];
        await it.withServer(file, forge, {}, async (page, url) => {
            const run = await it.ask(`runs/${uuids[0]}`, url);
            await it.open(page, `#/run/${uuids[0]}`, url);
            const link = page.locator("dl.facts a", { hasText: run.git.commit.slice(0, 9) });
            assert.equal(await link.getAttribute("href"),
                `https://forge.example/c/${run.git.commit}?view=diff`);
        });
        await it.withPage({}, async (page) => {
            await it.open(page, "#/runs");
            assert.equal(await page.locator("td:nth-child(5) a").count(), 0);
        });
    });

    it.test("a second comparison is told as a warning", {}, async (page) => {
        const id = "gemv/fp16/m8192-k8192";
        const ratio = { value: 1.05, lo: 1.04, hi: 1.06 };
        await alter(page, RUN, (answer) => {
            const run = answer.run ?? answer;
            Object.assign(run.policy, { against: "c".repeat(40), warn_against: "baseline" });
            if (answer.run)
                answer.cases.warning = answer.cases.id.map((name) =>
                    (name === id ? "regression" : "pass"));
            else
                answer.cases[0].warning = { verdict: "regression", reason: "by 5 %", ratio };
        });
        await openCaseOf(page, it.uuids[4], id);
        const warned = page.locator("tr.item", { hasText: "against baseline" });
        assert.equal(await warned.count(), 1);
        assert.match(await warned.innerText(), new RegExp(`${id}[\\s\\S]*regression`));
        assert.match((await page.locator(".detail:visible .inner").innerText())
            .replace(/\s+/g, " "),
        /Against baseline, as a warning: regression \+5\.00 %, \+4\.00 to \+6\.00: by 5 %/);
        assert.match(await page.locator("dl.facts").innerText(),
            /Against\s+c{9}\s[\s\S]*as a warning against baseline/);
    });

    /** Opens a regression of which the document has what `said(case)` gives, too. */
    const lookAt = (said, see) => it.withPage({}, async (page) => {
        await alter(page, RUN, (answer) => {
            for (const item of answer.run ? [] : answer.cases)
                Object.assign(item, { verdict: "regression", ...said(item) });
        });
        await openCaseOf(page, it.uuids[4], "gemv/fp16/m8192-k8192");
        const detail = page.locator(".detail:visible");
        await detail.locator(".command").first().waitFor();
        await see(detail);
    });

    test("a regression shows what differs in its kernels", async () => {
        const kernel = (name, code, figures) => ({ name, code_sha256: code.repeat(64),
            grid: "132 x 1 x 1", block: "128 x 1 x 1", shared_bytes: 0, registers: 96,
            ...figures });
        await lookAt(({ arms }) => {
            for (const { role, timing } of arms.filter((arm) => arm.timing))
                timing.kernels = role === "candidate"
                    ? [kernel("same", "a"), kernel("spills", "b", { registers: 128 }),
                        kernel("new", "c")]
                    : [kernel("same", "a"), kernel("spills", "d"), kernel("old", "e")];
        }, async (detail) => assert.deepEqual(
            await lines(detail.locator(".box[aria-label^='Kernels of'] tbody tr")), [
                "spills Registers 96 128", "new the baseline does not launch it",
                "old the baseline's, not launched any more"]));
    });

    test("a regression shows which node of its launch carries it, or why none does", async () => {
        const carries = (value) => ({ value, lo: value - 0.003, hi: value + 0.003 });
        await lookAt(() => ({ blame: { message: "they do not correspond",
            nodes: [{ name: "main" }, { name: "extra" }], baseline: ["main"] } }), async (detail) =>
            assert.match((await detail.innerText()).replace(/\s+/g, " "), new RegExp("Slower " +
                "node: none is known: they do not correspond; the candidate's are main, extra; " +
                "the baseline's are main\\.")));
        await lookAt(() => ({ blame: { slowdown: carries(1.1), nodes: [
            { name: "main", carries: carries(1.004) }, { name: "fill", message: "no kernel" },
            { name: "epilogue", carries: carries(1.096) }] } }), async (detail) => {
            const table = detail.locator(".box[aria-label^='Nodes of']");
            assert.match(await table.innerText(),
                /carries of the slowdown of 10\.00\s% ± 0\.30\s%/i);
            assert.deepEqual(await lines(table.locator("tbody tr")), ["1 main 0.40 % ± 0.30 %",
                "2 fill not known: no kernel", "3 epilogue 9.60 % ± 0.30 %"]);
            assert.deepEqual(await lines(table.locator("tbody b")), ["9.60 % ± 0.30 %"]);
        });
    });

    test("a regression shows which instructions changed, or why that is not known", async () => {
        const more = (loop, opcode, baseline, candidate, kernel = 0) => ({ kernel, loop, opcode,
            candidate, baseline });
        await lookAt(() => ({ instructions: { kernels: ["k"], changed: [] } }), async (detail) =>
            assert.match(await detail.innerText(), /Instructions: as many of each\./));
        const changed = [...[9, 8, 7, 6, 5, 4, 3, 2, 1].map((n) => more(0, `OP${n}`, 0, n)),
            more(2, "LDS", 4, 8, 1)];
        await lookAt(() => ({ instructions: { kernels: ["one", "two"], message: "no nvdisasm",
            changed } }), async (detail) => {
            const table = detail.locator(".box[aria-label^='Instructions of'] tbody");
            const rows = await lines(table.locator("tr"));
            assert.equal(rows.length, 9);
            assert.equal(rows[7], "one in all OP2 0 2");
            assert.equal(rows[8], "two loop 2 LDS 4 8");
            assert.match(await detail.innerText(), /Instructions: not known: no nvdisasm\./);
        });
    });

    test("a regression shows which hardware counters moved, or why none are known", async () => {
        const moved = (counter, candidate, baseline, by, kernel = 0) => ({ kernel, counter,
            candidate, baseline, moved: by });
        const look = (counters, see) => lookAt(() => ({ counters }), see);
        await look({ kernels: [], moved: [], message: "ncu is nowhere" }, async (detail) =>
            assert.match(await detail.innerText(), /Hardware counters: ncu is nowhere\./));
        await look({ kernels: ["one", "two"], moved: [
            moved("bank_conflicts", 12.6e6, 0, 4.2, 1), moved("occupancy", 12.5, 62.5, 1.5),
            moved("l2_bytes", 2.5e9, 1e9, 0.9), moved("dram_bytes", 1.01e9, 1e9, 0.01)],
        }, async (detail) => {
            const table = detail.locator(".box[aria-label^='Hardware counters of'] tbody");
            const rows = await lines(table.locator("tr"));
            assert.equal(rows.length, 3);
            assert.match(rows[0], /^bank conflicts ?two 0 12\.6 million extra turns/);
            assert.match(rows[1], /^occupancy ?one 62\.5 % 12\.5 % warps that an SM holds/);
            assert.match(rows[2], /^bytes of the L2 ?one 1\.00 GB 2\.50 GB/);
        });
    });

    // Story: my merge request is red. Its run's address stands in the comment and in the job's log.
    it.test("a red merge request: whose fault, the evidence, what to do next: 4 clicks",
        { permissions: ["clipboard-write"] }, async (page) => {
            const alert = await foundAlert(it.url, HOST);
            const wrong = "attention_fwd/bf16/b4-h32-s2048-d128";
            const walk = walker(page);
            const own = page.locator(".fault.own");
            const earlier = page.locator(".fault.earlier");
            await it.open(page, `#/run/${it.uuids.at(-1)}`);
            assert.match(await own.locator("h2").innerText(), /Caused by this change: 1 wrong/);
            assert.deepEqual(await own.locator("tr.item .case").allInnerTexts(), [wrong]);
            assert.match(await earlier.locator("h2").innerText(),
                /Already red on main since [0-9a-f]{9}\.\.[0-9a-f]{9}/);
            assert.match(await earlier.innerText(), /\+6\.\d\d.%[\s\S]*Alert \d+ new/);
            assert.deepEqual(await earlier.locator("tr.item .case").allInnerTexts(), [REGRESSED]);
            assert.equal(await page.locator("tr.item").count(), 12);

            await walk(own.locator(".opener"));
            assert.match(await own.innerText(), /relative error/);
            await walk(own.locator(".next .command button").first());
            await own.locator("button:text-is('Copied')").waitFor();
            assert.match(await own.locator(".next code").first().innerText(),
                new RegExp(` --filter ${wrong}$`));
            await earlier.locator("summary:text-is('What to do next')").click();
            assert.match(await earlier.locator(".next code").innerText(),
                new RegExp(` --filter ${REGRESSED}$`));
            assert.equal(await earlier.locator(".next button:text-is('Copy')").count(), 1);
            const since = earlier.locator(".next a:text-is('Compare the commits')");
            assert.match(await since.getAttribute("href"),
                /^#\/compare\?(?=.*a=[0-9a-f]{40})(?=.*b=[0-9a-f]{40})/);
            await walk(earlier.locator("a", { hasText: "Alert" }));
            assert.match(page.url(), new RegExp(`#/alerts/${alert}$`));
            await page.goBack();
            await settled(page);
            await walk("a:text-is('main where this branch began')");
            assert.match(await page.locator(".compare-side").first().innerText(), /main at/);
            assert.match(await page.locator(".compare-side").last().innerText(), /tune-tiles at/);
            assert.equal(walk.clicks, 4);
        });

    it.test("a case that is slower than on main is the change's own", {}, async (page) => {
        const id = await foundAlert(it.url, HOST);
        await alter(page, "**/api/v1/alerts?*limit=1000*", (answer) => {
            for (const alert of answer.alerts) if (alert.id === id) alert.change = 0.02;
        });
        // Main was as slow where the branch began, whatever the alert says.
        await it.open(page, `#/run/${it.uuids.at(-1)}`);
        const same = page.locator(".fault.same");
        assert.match(await same.locator("h2").innerText(), new RegExp("^Already on main: " +
            "1 case \\(\\+[56]\\.\\d\\d.% there, this change adds [+−]?[01]\\.\\d\\d.%\\)$"));
        assert.deepEqual(await same.locator("tr.item .case").allInnerTexts(), [REGRESSED]);
        await alter(page, "**/api/v1/compare?*", (json) => {
            for (const one of json.cases) one.judged = "slower";
        });
        await page.reload();
        await settled(page);
        assert.equal(await page.locator(".fault.earlier").count(), 0);
        const own = page.locator(".fault.own");
        assert.match(await own.locator("h2").innerText(), /2 cases, 1 wrong, \+6/);
        assert.match(await own.locator(".next code").last().innerText(), new RegExp(
            `^curl -sf ${it.url}api/v1/runs/[0-9a-f-]{36} \\| gate import -\\n` +
            `gate baseline accept ${REGRESSED} --device-model ${HOST} --run ` +
            `${it.uuids.at(-1).slice(0, 8)} --reason WHY$`));
    });

    it.test("the merge base acquits or not, whatever alert main had since", {}, async (page) => {
        const answer = { by_time: false, judged: "slower" };
        await alter(page, "**/api/v1/compare?*", (json) => {
            for (const one of json.cases) one.judged = answer.judged;
            return { ...json, by_time: answer.by_time };
        });
        const own = page.locator(".fault.own h2");
        await it.open(page, `#/run/${it.uuids.at(-1)}`);
        assert.match(await own.innerText(), /2 cases, 1 wrong/); // though the alert is as large
        assert.equal(await page.locator(".fault.earlier").count(), 0);
        answer.judged = "same";
        await page.reload();
        await settled(page);
        assert.match(await own.innerText(), /1 wrong case/);
        assert.equal(await page.locator(".fault.earlier .item").count(), 1);
        Object.assign(answer, { by_time: true, judged: "slower" }); // where it began is guessed
        await page.reload();
        await settled(page);
        assert.match(await page.locator(".fault.earlier h2").innerText(), /Already red on ma/);
    });

    it.test("red cases without a common name have a command each, many are the suite's",
        {}, async (page) => {
            const own = page.locator(".fault.own .next code").first();
            const redden = async (isRed) => {
                let red = [];
                const asked = `**/api/v1/runs/${it.uuids.at(-1)}?format=brief`;
                await alter(page, asked, ({ cases: { id, verdict } }) => {
                    verdict.forEach((_, i) => { verdict[i] = isRed(id[i]) ? "wrong" : "pass"; });
                    red = id.filter(isRed);
                });
                await it.open(page, "#/runs");
                await it.open(page, `#/run/${it.uuids.at(-1)}`);
                return [red, (await own.innerText()).split("\n")];
            };
            const [few, commands] = await redden((id) => /^(gemm\/fp16|linear_relu\/)/.test(id));
            assert.ok(few.length > 1 && few.length <= 5, few);
            assert.deepEqual(commands.slice(2).map((c) => c.split(" --filter ")[1]).sort(),
                [...few].sort());
            const [many, [, , words, command, ...rest]] = await redden(() => true);
            assert.equal(many.length, 12);
            assert.match(words, /^# the whole suite/);
            assert.match(command, /^gate run (?!.*--filter)/);
            assert.deepEqual(rest, []);
        });

    it.test("runs come in pages", {}, async (page) => {
        await it.open(page, "#/runs");
        assert.equal(await page.locator("tbody tr").count(), 50);
        await page.click("a:text-is('Older')");
        await until(page, () => document.querySelectorAll("tbody tr").length === 30);
        assert.equal(await page.locator("a:text-is('Older')").count(), 0);
        await page.goBack();
        await until(page, () => document.querySelectorAll("tbody tr").length === 50);
    });

    it.test("runs are found by a commit as the page writes it", {}, async (page) => {
        await it.open(page, "#/runs");
        const commit = (await page.locator("tbody .mono").first().innerText()).slice(0, 9);
        const field = page.locator("input[name=commit]");
        await field.fill(commit.slice(0, 6)); // too few, which the field says itself
        await field.press("Enter");
        assert.equal(await field.evaluate((e) => e.matches(":invalid")), true);
        assert.equal(await page.locator("tbody tr").count(), 50);
        await field.fill(commit);
        await field.press("Enter");
        await until(page, (c) => location.hash === `#/runs?commit=${c}`, commit);
        await settled(page);
        const found = await page.locator("tbody tr td:nth-child(6)").allInnerTexts();
        assert.ok(found.length > 0 && found.every((text) => text.startsWith(commit)));
    });

    it.test("a run shows every case, and every arm of a case with its verification",
        {}, async (page) => {
            await it.open(page, `#/run/${it.uuids.at(-2)}`);
            assert.equal(await page.locator("tr.item").count(), 12);
            assert.equal(await page.locator("tr.detail:not([hidden])").count(), 0);
            assert.match(await page.locator("tr.item").first().innerText(),
                /wrong[\s\S]*not timed/);
            assert.match(await page.locator("dl.facts").innerText(), /\d+\.\d+\/13.0\/700.W/);
            assert.match(await page.locator("dl.facts").innerText(), new RegExp("read 4530, " +
                "copy 4213 GB/s; fp16 835, bf16 835, tf32 835, fp32 835 TFLOP/s"));
            await page.setViewportSize({ width: 1440, height: 900 });
            const heights = await page.locator("tr.item:has(.verdict.pass)").evaluateAll((all) =>
                all.map((row) => row.getBoundingClientRect().height));
            assert.ok(Math.max(...heights) <= 34, `a row has one line: ${heights}`);
            for (const opener of (await page.locator(".opener").all()).slice(0, 2))
                await opener.click();
            await settled(page);
            assert.equal(await page.locator("tr.candidate").count(), 2);
            assert.match(await page.locator("tr.candidate").last().innerText(), /\d.% here/);
            const others = await lines(page.locator("tr.provider"));
            assert.deepEqual(others.map((text) => text.split(" ", 2).join(" ")),
                ["cudnn default", "torch sdpa", "cudnn default", "torch sdpa"]);
            assert.equal(await page.locator("tr.reference").count(), 1); // not of the wrong case
            assert.match(await page.locator("tr.reference").innerText(),
                /\d+ registers, [\d.]+ KiB shared, no spills/);
            assert.match(await page.locator(".message").innerText(), /relative error/);
            assert.match(await page.locator("tr.candidate").last().innerText(),
                /of 6\.0e-4, 1\.0\d× \w+'s/);
            assert.match(await page.locator("tr.candidate").first().innerText(), /not timed/);
            await page.click("summary:has-text('5 libraries')");
            assert.deepEqual(await lowContrast(page), []);
        });

    it.test("it is compared with its parent by one click", {}, async (page) => {
        await it.open(page, `#/run/${it.uuids.at(-2)}`);
        await page.click("a:text-is('Compare with its parent')");
        await settled(page);
        await page.waitForSelector(".compare-side");
        assert.match(page.url(), new RegExp(`a=parent&b=${it.uuids.at(-2)}`));
    });

    it.test("what is open is in the address, and the keyboard opens it", {}, async (page) => {
        await it.open(page, `#/run/${it.uuids.at(-2)}`);
        await page.locator(".opener", { hasText: REGRESSED }).focus();
        await page.keyboard.press("Enter");
        await until(page, (hash) => location.hash === hash,
            `#/run/${it.uuids.at(-2)}?case=${encodeURIComponent(REGRESSED)}`);
        await page.reload();
        await settled(page);
        const opener = page.locator(".opener", { hasText: REGRESSED });
        assert.equal(await opener.getAttribute("aria-expanded"), "true");
        assert.equal(await page.locator("tr.detail:not([hidden])").count(), 1);
        await opener.focus();
        await page.keyboard.press("Space");
        await until(page, (hash) => location.hash === hash, `#/run/${it.uuids.at(-2)}`);
    });

    it.test("a case of a run shows the processes that its verdict rests on", {}, async (page) => {
        await it.open(page, `#/run/${it.uuids.at(-2)}`);
        // 12 cases, one of them wrong and so without a picture
        assert.equal(await page.locator("tr.item svg.change .point").count(), 11);
        const regressed = page.locator(`tbody[id="case-${REGRESSED}"]`);
        await regressed.locator(".opener").click();
        await settled(page);
        const chart = regressed.locator(".panel svg.evidence");
        assert.equal(await chart.locator(".process circle").count(), 5);
        assert.equal(await chart.locator(".process.confirmation path").count(), 5);
        assert.equal(await chart.locator(".process.swapped").count(), 5);
        assert.equal(await chart.locator(".cycles").count(), 10);
        assert.match(await chart.getAttribute("aria-label"),
            /first: \+\d.\d\d.%, [\s\S]*; confirmation: \+\d/);
        // In order from left to right; all above the threshold, the interval around them.
        const at = await chart.evaluate((e) => {
            const box = (m) => m.getBoundingClientRect();
            const y = (m) => box(m).y + box(m).height / 2;
            const marks = [...e.querySelectorAll(".process")];
            return {
                x: marks.map((m) => box(m).x), y: marks.map(y),
                limit: y(e.querySelector("line.limit")), zero: y(e.querySelector("line.zero")),
                range: y(e.querySelector(".range")),
            };
        });
        assert.deepEqual(at.x, [...at.x].sort((a, b) => a - b));
        assert.ok(at.range < at.limit && at.limit < at.zero, JSON.stringify(at));
        for (const y of at.y) assert.ok(y < at.limit, JSON.stringify(at));
        await regressed.locator("summary", { hasText: "processes" }).click();
        assert.equal(await regressed.locator("details[open] tbody tr").count(), 10);

        const open20 = page.locator("tbody:has(tr.item .verdict.no-verdict)");
        await open20.locator(".opener").click();
        await settled(page);
        assert.equal(await open20.locator(".panel svg.evidence circle").count(), 20);
        assert.match(await open20.innerText(), /MDE 3.10.%, over the threshold of 2.00.%/);
    });

    it.test("raw samples of both sides are drawn", {}, async (page) => {
        await openCaseOf(page, it.uuids.at(-2));
        const ecdf = page.locator("svg.ecdf");
        assert.match(await ecdf.getAttribute("aria-label"),
            /ours, median 19.\d\d.µs; baseline, median 18.\d\d.µs/);
        assert.equal(await ecdf.locator(".series path").count(), 2);
    });

    it.test("a run says how to repeat it, and its numbers can be taken away", {}, async (page) => {
        await openCaseOf(page, it.uuids.at(-2));
        const one = await page.locator(".detail .command code").innerText();
        const all = await page.locator("h2:text-is('Repeat this run') ~ .command code")
            .innerText();
        assert.match(all, /^git checkout [0-9a-f]{40}\n# build .*\ngate run --su/);
        assert.match(all, / --device cuda:0 --seed [0-9a-f]{16}$/);
        assert.equal(one, `${all} --filter ${REGRESSED}`);
        const [saved] = await Promise.all([page.waitForEvent("download"),
            page.click(".actions a:text-is('JSON')")]);
        assert.equal(saved.suggestedFilename(), `run-${it.uuids.at(-2).slice(0, 8)}.json`);
    });

    it.test("a case says what its verification covered and what launch() takes on the host",
        {}, async (page) => {
            await alter(page, RUN, (answer) => {
                if (!answer.run) {
                    const [item] = answer.cases;
                    const arm = item.arms.find((one) => one.role === "candidate");
                    item.ratio_calls = { value: 1.5, lo: 1.4, hi: 1.6 };
                    arm.timing.call_ns = 4500;
                    Object.assign(arm.verify, { values: 21, shapes: 32, pairs: 163,
                        pairs_of: 171, layouts: 9, launches: 1280, skipped: 1 });
                }
            });
            await openCaseOf(page, it.uuids.at(-2));
            const text = (await page.locator(".detail:visible .inner").innerText())
                .replace(/\s+/g, " ");
            assert.match(text, new RegExp("Verification covered 21 kinds of inputs, 32 other " +
                "shapes, 163 of 171 pairs of their classes, 9 layouts, 1.?280 launches, " +
                "1 check could not be made."));
            assert.match(text, /launch\(\) takes 4\.500 .s on the host, \+50\.00.%, \+40/);
        });

    it.test("a run without what is optional shows what it has", {}, async (page) => {
        await alter(page, "**/api/v1/runs/*", (answer) => {
            const run = answer.run ?? answer;
            for (const key of ["epoch", "control_drift", "n_processes", "calibration"])
                delete run[key];
            delete run.policy.against;
            if (answer.run) {
                const none = answer.cases.id.map(() => null);
                const { id, verdict } = answer.cases;
                for (const key of Object.keys(answer.cases)) answer.cases[key] = none;
                Object.assign(answer.cases, { id, verdict, processes: none.map(() => []) });
            }
            for (const item of run.cases) {
                for (const key of ["mode", "mde", "ratio_p90", "same_library", "processes"])
                    delete item[key];
                for (const arm of item.arms) delete arm.timing?.samples_ns;
            }
        });
        await openCaseOf(page, it.uuids.at(-2));
        assert.equal(await page.locator("tr.item").count(), 12);
        assert.equal(await page.locator("tr.candidate").count(), 1);
        assert.equal(await page.locator(".evidence, .ecdf").count(), 0);
    });

    it.test("a case that was compared with a number has evidence too", {}, async (page) => {
        await it.open(page, `#/run/${it.uuids.at(-1)}`); // the host
        await page.locator(".opener").nth(1).click();
        await settled(page);
        assert.equal(await page.locator("svg.evidence").count(), 1);
        assert.equal(await page.locator("tr.reference").count(), 0);
        assert.equal(await page.locator(".panel .cycles").count(), 0);
        assert.match(await page.locator("tr.detail:not([hidden])").innerText(),
            /stored time, not in pairs/);
    });

    it.test("a run's calibration is shown with its machine", {}, async (page) => {
        await it.open(page, `#/run/${it.uuids.at(-2)}`);
        await page.click("a:has-text('can detect on its machine')");
        const table = page.locator("[aria-label=Calibration]");
        await table.waitFor();
        assert.deepEqual((await table.locator("thead th").allInnerTexts()).slice(3),
            ["Unchanged", "+0.5\u202f%", "+1\u202f%", "+2\u202f%", "+2.5\u202f%", "+3\u202f%",
                "+5\u202f%"]);
        const first = await table.locator("tbody tr").first().innerText();
        assert.match(first, /gemm\/fp16\/m4096[\s\S]*3.10.%\s+no\s/);
        const last = await table.locator("tbody tr").last().innerText();
        assert.match(last, /yes\s+0.%[\s\S]*100.%/);
        await it.open(page, `#/run/${it.uuids[0]}`);
        assert.equal(await page.locator("a:has-text('can detect on its')").count(), 0);
    });

    test("a run of many cases has its rows in pages, and opens what is named", async () => {
        const { file, uuids } = it.seed("large.db", 1, 700);
        await it.withServer(file, [], {}, async (page, url) => {
            const others = page.locator(".box[aria-label='Cases of the run'] tr.item");
            const rows = () => others.count();
            await it.open(page, `#/run/${uuids[0]}`, url);
            assert.equal(await rows(), 100);
            assert.equal(await others.locator("svg.change .point").count(), 100);
            await page.click("button:text-is('Show 100 of 597 more rows')");
            assert.equal(await rows(), 200);
            const name = await others.locator(".case").last().innerText();
            await page.locator(".opener").last().click();
            await until(page, () => location.hash.includes("case="));
            await page.reload();
            await settled(page);
            assert.equal(await rows(), 200);
            const open = page.locator("tr.item:has([aria-expanded=true])");
            assert.equal(await open.locator(".case").innerText(), name);
        });
    });

    it.test("dates are in the reader's zone, with UTC on hover", {}, async (page) => {
        await it.open(page, `#/run/${it.uuids[0]}`);
        const time = page.locator("dl.facts time").first();
        // 2025-06-15 15:06:40 UTC
        assert.equal(await time.getAttribute("datetime"), "2025-06-15T15:06:40.000Z");
        assert.match(await time.innerText(), /17:06/);
        assert.equal(await time.getAttribute("title"), "2025-06-15 15:06:40 UTC");
    });
});
