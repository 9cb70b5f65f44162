// SPDX-License-Identifier: Apache-2.0
// lists.js: long lists: all pages of an answer, and tables that show a part of their rows.

import { get } from "./api.js";
import { h } from "./dom.js";
import { plural } from "./format.js";
import { columnsOf, selectBox, tableBox } from "./parts.js";
import { go, here, note, parameter } from "./places.js";

const SHOWN = 100; // rows of a table, until more are asked for

/** All answers of an address that has pages. */
async function* pages(path, asked, signal) {
    let after = null;
    do {
        const answer = await get(path, { ...asked, after }, signal);
        yield answer;
        after = answer.next;
    } while (after);
}

/** All rows of a device, a scope (scope.js) and other parameters. */
export async function allRows(path, name, device, signal, scope) {
    const all = [];
    for await (const answer of pages(path, { ...scope, device, limit: 1000 }, signal))
        all.push(...answer[name]);
    return all;
}

/** A trend with each of its points: all answers as one. */
export async function wholeTrend(asked, signal) {
    let trend = null;
    for await (const answer of pages("trends", { ...asked, raw: 1, limit: 5000 }, signal)) {
        trend ??= { ...answer, series: [] };
        for (const series of answer.series) {
            const known = trend.series.find((s) => s.provider === series.provider &&
                s.contract === series.contract);
            if (!known) trend.series.push(series);
            else
                for (const [name, values] of Object.entries(series.columns))
                    known.columns[name] = known.columns[name].concat(values);
        }
    }
    return trend;
}

/* `columns`: members of a row with commas between; the others are not asked for. */
export const allCases = (device, signal, scope, columns) =>
    allRows("cases", "cases", device, signal, { ...scope, spark: 0, columns });
/** With the p50 and the run of the newest run of the case; of a provider that it did not time, of
 *  the lowest time. One that is wrong there has none. */
export const allLeaders = async (device, signal, scope, columns) =>
    (await allRows("leaderboard", "leaders", device, signal,
        { ...scope, columns: `${columns},run,p50_ns,newest_run,newest_p50_ns,wrong` }))
        .map((l) => ({ ...l, lowest_ns: l.p50_ns, run: l.newest_run ?? l.run,
            p50_ns: l.wrong ? null : l.newest_p50_ns ?? l.p50_ns }));

/**
 * A table of `items`, whose rows beyond SHOWN come on request; the parameter `name` of the address
 * has their number. `least`: so many rows at first. `group`: makes a tbody of its own for each
 * item, where the columns say nothing of rows.
 */
export function longTable(label, columns, items, { least = 0, group = null, name = "rows" } = {}) {
    const { head, row } = columnsOf(columns);
    const box = tableBox(label, head, !group && h("tbody"));
    const body = box.querySelector(group ? "table" : "tbody");
    const more = h("button", {
        type: "button",
        click: () => {
            draw(count + SHOWN);
            note(here({ [name]: count }));
        },
    });
    let count = 0;

    function draw(wanted) {
        const from = count;
        count = Math.min(wanted, items.length);
        body.append(...items.slice(from, count).map(group ?? row));
        const left = items.length - count;
        more.hidden = left === 0;
        more.textContent = `Show ${Math.min(left, SHOWN)} of ${plural(left, "more row")}`;
    }

    draw(Math.max(SHOWN, least, Number(parameter(name)) || 0));
    return [box, h("p", {}, more)];
}

/** A choice with its label. It is named, so that the focus finds it again in the view that a choice
 *  brings. */
export const picker = (label, options, value, change) => h("label", { class: "picker" },
    h("span", {}, label),
    selectBox({ name: label.toLowerCase().replaceAll(" ", "-") }, options, value, change));

/** A field with its label, that offers names, or [name, what it is]. */
export const field = (label, name, names, attributes) => h("label", { class: "picker" },
    h("span", {}, label), h("input", { name, list: `of-${name}`, autocomplete: "off",
        spellcheck: "false", ...attributes }),
    h("datalist", { id: `of-${name}` }, names.map((one) => {
        const [value, text] = [one].flat();
        return h("option", { value }, text);
    })));

/** The values of a member, each once, sorted. */
export const distinct = (items, member) => [...new Set(items.map((item) => item[member]))].sort();

/** Of items with op and dtype: { some: those that the address leaves, pickers, chosen }. */
export function byKind(items, query, addressOf) {
    const chosen = { op: query.get("op") ?? "", dtype: query.get("dtype") ?? "" };
    const pick = (label, name) => picker(label,
        [["", "all"], ...distinct(items, name).map((v) => [v, v])], chosen[name],
        (value) => go(addressOf({ ...chosen, [name]: value })));
    return { chosen, pickers: [pick("Op", "op"), pick("Type", "dtype")], some: items.filter((c) =>
        (!chosen.op || c.op === chosen.op) && (!chosen.dtype || c.dtype === chosen.dtype)) };
}

const byName = (devices) => [...devices].sort((a, b) => (a.model < b.model ? -1 : 1));

/** Links to the devices, one of which is shown. */
export function deviceTabs(devices, selected, link) {
    return devices.length > 1 && h("nav", { class: "tabs", "aria-label": "Devices" },
        byName(devices).map((d) => h("a", {
            href: link(d.model), "aria-current": d === selected && "true",
        }, d.newest.device_name)));
}

/** The device that the address names; else a GPU, where there is one. */
export const chosenDevice = (devices, model) => devices.find((d) => d.model === model) ??
    byName(devices).find((d) => !d.model.startsWith("host")) ?? devices[0];

const DRAWING = [300, 1440]; // pixels

function inside() {
    const main = document.getElementById("main");
    const style = getComputedStyle(main);
    return main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
}

/** A drawing of the page's width, `make(width)`, anew whenever that changes. */
export function drawing(make, signal) {
    const box = h("div");
    let drawn = 0;
    const draw = () => {
        const width = Math.round(Math.min(DRAWING[1], Math.max(DRAWING[0], inside())));
        if (width === drawn) return;
        drawn = width;
        box.replaceChildren(make(width) ?? "");
    };
    draw();
    addEventListener("resize", draw, { signal });
    return box;
}

const DETAIL = [280, 29]; // the least width of a drawing in a row that opens, and its padding

/** How wide a drawing in a row that opens is, which is `wide` where there is room. */
export const detailWidth = (wide) =>
    Math.round(Math.min(wide, Math.max(DETAIL[0], inside() - DETAIL[1])));
