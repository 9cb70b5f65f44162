// chart_thin.js: as many points as a plot has pixels for, without losing a peak.

const ENOUGH = 6; // points a pixel, below which all are drawn

/** The first index whose x is at least `value`. */
export function firstFrom(x, value) {
    let lo = 0;
    let hi = x.length;
    while (lo < hi) {
        const middle = (lo + hi) >> 1;
        if (x[middle] < value) lo = middle + 1;
        else hi = middle;
    }
    return lo;
}

/** Of the points in one pixel: the extremes of each tracked column. */
function keep(columns, from, to, out) {
    const picked = [];
    for (const column of columns) {
        let low = -1;
        let high = -1;
        for (let i = from; i < to; i++) {
            const v = column[i];
            if (v === null || v === undefined) continue;
            if (low < 0 || v < column[low]) low = i;
            if (high < 0 || v > column[high]) high = i;
        }
        if (low >= 0) picked.push(low, high);
    }
    picked.sort((a, b) => a - b);
    for (const i of picked) if (i !== out.at(-1)) out.push(i);
}

/** Lowest of `los` and highest of `his` where both are known, from index `from` to before `to`. */
export function envelope(los, his, from, to) {
    let lo = Infinity;
    let hi = -Infinity;
    for (let i = from; i < to; i++) {
        const a = los[i];
        const b = his[i];
        if (a === null || a === undefined || b === null || b === undefined) continue;
        if (a < lo) lo = a;
        if (b > hi) hi = b;
    }
    return lo <= hi ? [lo, hi] : null;
}

/**
 * The columns of `data` (x first) as x from lo to hi needs them in `width` pixels; the same arrays,
 * when there are not too many points. `tracked`: the columns whose peaks must stay.
 */
export function thin(data, tracked, [lo, hi], width) {
    const [x] = data;
    if (x.length <= ENOUGH * width) return data;
    const first = Math.max(0, firstFrom(x, lo) - 1);
    const end = Math.min(x.length, firstFrom(x, hi) + 2);
    if (end - first <= ENOUGH * width) return data.map((column) => column.slice(first, end));
    const columns = tracked.map((i) => data[i]);
    const indices = [];
    for (let pixel = 0, from = first; pixel <= width && from < end; pixel++) {
        const next = pixel === width ? end
            : Math.min(end, firstFrom(x, lo + ((pixel + 1) * (hi - lo)) / width));
        if (next > from) keep(columns, from, next, indices);
        from = Math.max(from, next);
    }
    return data.map((column) => indices.map((i) => column[i]));
}

/** A column of steps without what only repeats: undefined, where the level goes on. */
export function changes(column) {
    const last = column.length - 1;
    return column.map((v, i) => (i < last && v === column[i - 1] ? undefined : v));
}
