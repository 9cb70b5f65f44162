// calibration.js: what `gate calibrate` found on a machine: the rates of red, case by case.

import { h } from "./dom.js";
import { percent, plural } from "./format.js";
import { caseLink, tableBox } from "./parts.js";

/** Red decisions of all entries with that share, or null when there were none. */
function tally(item, share) {
    const entries = item.injected.filter((e) => e.share === share);
    const sum = (key) => entries.reduce((n, e) => n + e[key], 0);
    return { red: sum("red"), decisions: sum("decisions") };
}

/** "99.64 %", never rounded to 0 or 100 when it is not. */
function rate({ red, decisions }) {
    if (decisions === 0) return "–";
    const exact = (100 * red) / decisions;
    if (exact === 0 || exact === 100) return percent(red / decisions, 0);
    if (exact < 0.01) return `< ${percent(0.0001, 2)}`;
    return exact > 99.99 ? `> ${percent(0.9999, 2)}` : percent(red / decisions, 2);
}

function shareName(share) {
    return share === 0 ? "Unchanged" : `+${Number((share * 100).toPrecision(3))}\u202f%`;
}

/** Worst first, as the reports have it: unresolved, false fails, minimum detectable effect. */
function order(a, b) {
    return a.resolved - b.resolved || tally(b, 0).red - tally(a, 0).red ||
        (b.mde ?? Infinity) - (a.mde ?? Infinity) || 0;
}

export function calibrationSection(run) {
    const { calibration } = run;
    if (!calibration) return null;
    const cases = [...calibration.cases].sort(order);
    const shares = [...new Set(cases.flatMap((c) => c.injected.map((e) => e.share)))]
        .sort((a, b) => a - b);
    const resolved = cases.filter((c) => c.resolved).length;
    const unchanged = cases.map((c) => tally(c, 0)).reduce((a, b) =>
        ({ red: a.red + b.red, decisions: a.decisions + b.decisions }), { red: 0, decisions: 0 });
    const heads = ["Case", "MDE", `Resolves ${percent(run.policy.threshold)}`,
        ...shares.map(shareName)];
    return h("section", { class: "calibration" },
        h("h2", {}, "Calibration"),
        h("p", {}, `${resolved} of ${plural(cases.length, "case")} resolve the threshold here; ` +
            `unchanged code was red in ${unchanged.red} of ${unchanged.decisions} decisions.`),
        h("p", { class: "quiet" },
            "Decisions that were red, by the share of time that was added, from " +
            `${plural(calibration.processes, "process", "processes")} a case, worst first.`),
        tableBox("Calibration",
            h("thead", {}, h("tr", {}, heads.map((label, i) =>
                h("th", { scope: "col", class: i > 0 && "number" }, label)))),
            h("tbody", {}, cases.map((c) => h("tr", {},
                h("th", { scope: "row" }, caseLink(c.id, run.device.model)),
                h("td", { class: "number" }, percent(c.mde)),
                h("td", { class: "number" }, c.resolved ? "yes" : h("b", {}, "no")),
                shares.map((share) => h("td", { class: "number" }, rate(tally(c, share)))))))));
}
