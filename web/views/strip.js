// SPDX-License-Identifier: Apache-2.0
// strip.js: one card a device: its newest verdict, what was measured, and the runs before it; and
// the open merge requests.

import { get } from "../frame/api.js";
import { address, h, term } from "../frame/dom.js";
import { ago, bothTimes, plural, shortCommit, time, versus } from "../frame/format.js";
import { spark } from "../frame/glyphs.js";
import { commitText, runLink, subjectText } from "../frame/parts.js";
import { scopeOf } from "../frame/scope.js";
import { ORDER, badge, counts, icon, rank, word } from "../frame/verdict.js";

const N_TICKS = 28;
const STRIP = 6; // merge requests
const SAME_CASES = 0.1; // so far the numbers of cases of two means may differ

/** "12 regression, 15 pass": how many runs ended how, worst first. */
function tally(runs) {
    return ORDER.map((v) => [v, runs.filter((r) => r.verdict === v).length])
        .filter(([, n]) => n > 0).map(([v, n]) => `${n} ${word(v)}`).join(", ");
}

/** The runs of a device as a row of marks that leads to their list; they come later. */
function history(device, scope, vendor, signal) {
    const { newest } = device;
    const row = h("a", { class: "ticks", href: address("runs", { device: device.model }),
        "aria-label": `Runs on ${device.model}` });
    const asked = { ...scopeOf(scope), device: device.model, limit: N_TICKS };
    get("runs", asked, signal).then(({ runs: all }) => {
        const runs = all.filter((run) => newest.verdict === "foreign" || run.verdict !== "foreign");
        row.setAttribute("aria-label",
            `Runs on ${device.model}; the last ${runs.length}: ${tally(runs)}`);
        row.append(...runs.reverse().map((run) => h("span", {
            class: `verdict ${run.verdict}`,
            title: `${word(run.verdict)}, ${shortCommit(run.commit)} ${subjectText(run)}, ` +
                `${bothTimes(run.time_ms)}`,
        }, icon(run.verdict))));
        if (vendor)
            vendor.append(" ", spark(runs.map((run) => // a mean of other cases is another one
                (Math.abs(run.vendor_cases / newest.vendor_cases - 1) <= SAME_CASES
                    ? run.vendor_ratio : null)), "pass"));
    }).catch(() => {}); // the card says enough without it
    return row;
}

function card(device, state, scope, signal) {
    const run = device.newest;
    const vendor = run.vendor_ratio && h("span", { class: "vendor-mean" },
        term("geomean", versus(run.vendor_ratio, "the best vendor")));
    return h("article", { class: `card ${run.verdict}`, "aria-current":
        device.model === state.device && "true" },
        h("header", {},
            h("h2", {}, h("a",
                { href: address("", { device: device.model, branch: state.branch }) },
                run.device_name)),
            badge(run.verdict, "large"),
            h("span", { class: "quiet", title: `suite ${run.suite}` },
                time(run.time_ms, ago(run.time_ms)))),
        h("p", { class: "line" }, counts(run.verdicts, true), vendor),
        h("p", { class: "line" }, commitText(run), " ",
            run.branch && h("span", { class: "quiet" }, run.branch), " ",
            h("span", { class: "subject", title: subjectText(run) }, subjectText(run))),
        h("div", { class: "before" }, term("history", plural(device.runs, "run")),
            history(device, scope, vendor, signal),
            runLink(run.uuid)));
}

/** `scope`: the branch that the state names, or all where none is of the main one. */
export function deviceStrip(devices, state, scope, signal) {
    return h("section", { class: "cards", "aria-label": "Devices" },
        [...devices].sort((a, b) => rank(a.newest.verdict) - rank(b.newest.verdict))
            .map((d) => card(d, state, scope, signal)));
}

/** What was measured regularly and is no longer; nothing where all is. */
export const silenceStrip = (silences) => silences.length > 0 && h("details", { class: "changes" },
    h("summary", {}, h("b", {}, silences[0].text), silences.length > 1 &&
        h("span", { class: "quiet" }, `and ${silences.length - 1} more`)),
    h("ul", {}, silences.map((s) => h("li", {}, s.text, ", ", runLink(s.run)))));

/** The merge requests that are open, as far as runs tell, newest first; nothing where none is. */
export const changeStrip = (changes) => changes.length > 0 && h("p", { class: "changes" },
    "Merge requests: ", changes.slice(0, STRIP).map((c) => h("a", {
        href: address(`change/${encodeURIComponent(c.change)}`),
        title: `${c.branch ?? ""}: ${subjectText(c)}`,
        class: `verdict ${c.red > 0 ? "regression" : "pass"}`,
    }, icon(c.red > 0 ? "regression" : "pass"), c.change, " ",
    h("span", { class: "quiet" }, c.red > 0 ? `${c.red} red` : "", " ", ago(c.time_ms)))));
