// SPDX-License-Identifier: Apache-2.0
// data.js: the answer of /trends as lanes over one axis.
//
// A lane is one provider under one contract: numbers of different contracts never share a line. All
// lanes share the axis x; lane.at[i] is the row of the lane at x[i], undefined where it has none.

import uPlot from "../uplot.js";

const SHOWN = new Set(["candidate", "provider"]);

/** Candidate first, then by name; of one provider the contract with the newest row first. */
function orderLanes(a, b) {
    const newest = (s) => s.columns.time_ms.at(-1);
    return (b.role === "candidate") - (a.role === "candidate") ||
        (a.provider < b.provider ? -1 : a.provider > b.provider ? 1 : newest(b) - newest(a));
}

/**
 * { x (times in ms), lanes } of the answer. A lane: { provider, role, contract, index (of its
 * colour), former (an older contract), columns, at }.
 */
export function arrange(trend) {
    const colours = new Map();
    const lanes = trend.series
        .filter((s) => SHOWN.has(s.role) && s.columns.time_ms.length > 0)
        .sort(orderLanes)
        .map((s) => {
            const former = colours.has(s.provider);
            if (!former) colours.set(s.provider, colours.size);
            return { ...s, index: colours.get(s.provider), former };
        });
    const [x = [], ...at] = uPlot.join(lanes.map(({ columns: { time_ms: times } }) =>
        [times, times.map((_, row) => row)]));
    return { x, lanes: lanes.map((lane, i) => ({ ...lane, at: at[i] })) };
}

/**
 * A column of a lane over x: undefined where the lane has no row (the line goes on), null where the
 * row does not know it (the line breaks). `divisor`: the name of a column to divide by, or null.
 */
export function values({ x }, { at, columns }, name, divisor = null) {
    const column = columns[name];
    const by = divisor && columns[divisor];
    return Array.from(x, (_, i) => {
        if (at[i] === undefined) return undefined;
        const value = column?.[at[i]] ?? null;
        return !by || value === null ? value : by[at[i]] > 0 ? value / by[at[i]] : null;
    });
}

/** Whether any row of the lanes knows the column. */
export function knows(lanes, name) {
    return lanes.some(({ columns }) => columns[name]?.some((v) => v !== null));
}
