// SPDX-License-Identifier: Apache-2.0
// vendor.js: how far ours is from the best vendor over time, from pairs: the geometric mean of all
// cases and of each op, and a small chart for each case.

import { DAYS, choice } from "../chart/tools.js";
import { address, h, term } from "../frame/dom.js";
import { dayText, plural, time, versus } from "../frame/format.js";
import { spark } from "../frame/glyphs.js";
import { allRows, chosenDevice, deviceTabs } from "../frame/lists.js";
import { caseLink, crumbs, knownDevices, wayOut } from "../frame/parts.js";
import { go } from "../frame/places.js";

const DAY = 86400e3;
const WIDE = [300, 52]; // pixels
const SMALL = [150, 34];
const EARLY = 0.2; // of the range, within which a case must begin to count in a mean

/** { id, op, times, ratios } by case. A ratio that was kept from an earlier run is drawn once. */
function seriesOf(rows) {
    return [...Map.groupBy(rows, (row) => row.case)].map(([id, all]) => {
        const own = all.filter((row, i) => i === 0 || row.ratio !== all[i - 1].ratio);
        return { id, op: all[0].op, times: own.map((r) => r.time_ms),
            ratios: own.map((r) => r.ratio) };
    });
}

const within = ({ times, ratios, ...rest }, from) => {
    const first = times.findIndex((t) => t >= from);
    return { ...rest, times: first < 0 ? [] : times.slice(first),
        ratios: first < 0 ? [] : ratios.slice(first) };
};

/** The geometric mean of the cases that are known from the start on, at each time of one of them;
 *  a mean of other cases would be another one. */
function meanOf(series) {
    const known = series.filter((one) => one.times.length > 0);
    const first = Math.min(...known.map((one) => one.times[0]));
    const last = Math.max(...known.map((one) => one.times.at(-1)));
    const same = known.filter((one) => one.times[0] <= first + EARLY * (last - first));
    const start = Math.max(...same.map((one) => one.times[0]));
    const times = [...new Set(same.flatMap((one) => one.times))].filter((t) => t >= start)
        .sort((a, b) => a - b);
    const ratios = times.map((t) => Math.exp(same.reduce((sum, one) =>
        sum + Math.log(one.ratios[one.times.findLastIndex((v) => v <= t)]), 0) / same.length));
    return { times, ratios, cases: same.length };
}

const day = (ms) => time(ms, dayText(ms));

/** "1.05 times slower on 3 Jun, 1.01 times slower on 5 Jul" */
const fromTo = ({ times, ratios }) => (times.length < 2 ? versus(ratios.at(-1)) : [
    versus(ratios[0]), " on ", day(times[0]), ", ", h("b", {}, versus(ratios.at(-1))), " on ",
    day(times.at(-1))]);

const figureOf = (name, one, size, words) => one.times.length > 0 && h("li", {},
    h("div", {}, name), spark(one.ratios, one.ratios.at(-1) < 1 ? "improvement" : "", size),
    h("p", { class: "note" }, words));

function body(all, days) {
    const newest = Math.max(...all.map((one) => one.times.at(-1)));
    const from = days ? newest - Number(days) * DAY : 0;
    const series = all.map((one) => within(one, from)).filter((one) => one.times.length > 0);
    const means = [["All cases", series], ...Map.groupBy(series, (one) => one.op)]
        .map(([name, some]) => [name, meanOf(some)]);
    const behind = (one) => -one.ratios.at(-1);
    return [
        h("h2", {}, "Geometric means"),
        h("ul", { class: "small-charts means" }, means.map(([name, mean]) => figureOf(
            h("b", {}, name), mean, WIDE, [fromTo(mean), ` (${plural(mean.cases, "case")})`]))),
        h("h2", {}, "Each case, furthest behind first"),
        h("ul", { class: "small-charts" }, series.sort((a, b) => behind(a) - behind(b))
            .map((one) => figureOf(caseLink(one.id, one.device), one, SMALL, fromTo(one)))),
    ];
}

export async function view({ query, signal }) {
    const devices = await knownDevices(signal);
    const selected = chosenDevice(devices, query.get("device"));
    const device = selected.model;
    const days = DAYS.some(([d]) => d === query.get("days")) ? query.get("days") : "";
    const rows = await allRows("vendor", "vendor", device, signal,
        { columns: "case,op,time_ms,ratio" });
    const all = seriesOf(rows).map((one) => ({ ...one, device }));
    return {
        title: `Against the vendor on ${device}`,
        content: [
            crumbs(h("a", { href: address("leaderboard", { device }) }, "Leaderboard"),
                "Over time"),
            h("h1", {}, "Against the vendor, over time"),
            deviceTabs(devices, selected, (model) => address("vendor", { device: model, days })),
            h("p", { class: "quiet" }, "Ours ÷ the ", term("provider", "best vendor"),
                ", measured in pairs in the same run of the main branch. Lower is better for us. ",
                "A wrong result has no place here."),
            all.length === 0 ? h("p", { class: "quiet", role: "status" },
                "No run of the main branch on this device timed a vendor beside ours.")
                : [h("div", { class: "chart-tools" }, choice("Days", "days", days, DAYS,
                    (value) => go(address("vendor", { device, days: value }))),
                wayOut("vendor", { device, limit: 5000 })), body(all, days)],
        ],
    };
}
