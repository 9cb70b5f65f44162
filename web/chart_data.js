// chart_data.js: the answer of /trends as lanes over one axis.
//
// A lane is one provider under one contract: numbers of different contracts never share a line. All
// lanes share the axis x; lane.at[i] is the row of the lane at x[i], or -1.

const SHOWN = new Set(["candidate", "provider"]);

/** Both in order; what they have in common comes once. */
function merge(a, b) {
    const out = [];
    let i = 0;
    let j = 0;
    while (i < a.length && j < b.length) {
        if (a[i] < b[j]) out.push(a[i++]);
        else if (a[i] > b[j]) out.push(b[j++]);
        else {
            out.push(a[i++]);
            j++;
        }
    }
    while (i < a.length) out.push(a[i++]);
    while (j < b.length) out.push(b[j++]);
    return out;
}

const same = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);

/** Candidate first, then by name; of one provider the contract with the newest row first. */
function orderLanes(a, b) {
    const newest = (s) => s.columns.time_ms.at(-1);
    return (b.role === "candidate") - (a.role === "candidate") ||
        (a.provider < b.provider ? -1 : a.provider > b.provider ? 1 : newest(b) - newest(a));
}

/** Rows of one run share a place; a commit's runs lie side by side, commits by their first run. */
function placesByCommit(lanes) {
    const first = new Map();
    const runs = new Map();
    for (const { columns } of lanes)
        columns.run.forEach((run, row) => {
            const time = columns.time_ms[row];
            const commit = columns.commit[row] ?? run;
            if (!(first.get(commit) <= time)) first.set(commit, time);
            if (!runs.has(run)) runs.set(run, { run, time, commit });
        });
    const places = [...runs.values()].sort((a, b) =>
        first.get(a.commit) - first.get(b.commit) ||
        (a.commit < b.commit ? -1 : a.commit > b.commit ? 1 : a.time - b.time));
    return {
        indexOf: new Map(places.map((p, i) => [p.run, i])),
        times: places.map((p) => first.get(p.commit)),
    };
}

function nearest(sorted, value) {
    let lo = 0;
    let hi = sorted.length - 1;
    while (hi - lo > 1) {
        const middle = (lo + hi) >> 1;
        if (sorted[middle] <= value) lo = middle;
        else hi = middle;
    }
    return value - sorted[lo] <= sorted[hi] - value ? lo : hi;
}

/** Most often all providers ran in the same runs: x is theirs then, and each row in its place. */
function byTime(lanes) {
    const x = lanes.map((l) => l.columns.time_ms).reduce((a, b) => (same(a, b) ? a : merge(a, b)));
    const inPlace = new Int32Array(x.length).map((_, i) => i);
    for (const lane of lanes) {
        const times = lane.columns.time_ms;
        lane.straight = times.length === x.length;
        lane.at = lane.straight ? inPlace : new Int32Array(x.length).fill(-1);
        if (lane.straight) continue;
        for (let i = 0, row = 0; i < x.length && row < times.length; i++)
            if (x[i] === times[row]) lane.at[i] = row++;
    }
    return { x, toX: (time) => time, toTime: (value) => value };
}

function byCommit(lanes) {
    const { indexOf, times } = placesByCommit(lanes);
    for (const lane of lanes) {
        lane.at = new Int32Array(times.length).fill(-1);
        lane.columns.run.forEach((run, row) => { lane.at[indexOf.get(run)] = row; });
    }
    return {
        x: times.map((_, i) => i),
        toX: (time, run) => indexOf.get(run) ?? nearest(times, time),
        toTime: (value) => times[Math.min(times.length - 1, Math.max(0, Math.round(value)))],
    };
}

/**
 * { x, lanes, toX(time_ms, run), toTime(x), nearest(x) }. x is milliseconds, or with order "commit"
 * the place in the sequence of runs, whose time is that of the commit's first run. A lane:
 * { provider, role, contract, index (of its colour), former (an older contract), columns, at,
 * straight (row i is at x[i]) }.
 */
export function arrange(trend, order) {
    const colours = new Map();
    const lanes = trend.series
        .filter((s) => SHOWN.has(s.role) && s.columns.time_ms.length > 0)
        .sort(orderLanes)
        .map((s) => {
            const former = colours.has(s.provider);
            if (!former) colours.set(s.provider, colours.size);
            return { ...s, index: colours.get(s.provider), former, at: null, straight: false };
        });
    const axis = order === "commit" ? byCommit(lanes) : byTime(lanes);
    return { ...axis, lanes, nearest: (value) => nearest(axis.x, value) };
}

/**
 * A column of a lane over x: undefined where the lane has no row (the line goes on), null where the
 * row does not know it (the line breaks). `divisor`: the name of a column to divide by, or null.
 */
export function values(model, lane, name, divisor) {
    const column = lane.columns[name];
    const by = divisor ? lane.columns[divisor] : null;
    if (column && !by && lane.straight) return column;
    const out = new Array(model.x.length);
    const { at } = lane;
    for (let i = 0; i < out.length; i++) {
        const row = at[i];
        if (row < 0) continue;
        const value = column?.[row] ?? null;
        out[i] = !by || value === null ? value : by[row] > 0 ? value / by[row] : null;
    }
    return out;
}

/** Whether any row of the lanes knows the column. */
export function knows(lanes, name) {
    return lanes.some(({ columns }) => columns[name]?.some((v) => v !== null));
}
