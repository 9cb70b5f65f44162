// SPDX-License-Identifier: Apache-2.0
// glyphs.js: the small pictures in table cells. The numbers beside them say the same.

import { round, s } from "./dom.js";

const SPARK = [84, 22];
const LEAST_SPAN = 0.04; // of the median, so that noise looks like noise

/** A line through the values, oldest left, its newest as a dot; null is a gap. `at`: the first
 *  value behind a step, which a line marks. */
export function spark(values, verdict, [width, height] = SPARK, at = -1) {
    const known = (values ?? []).filter((v) => v !== null);
    const svg = s("svg", {
        class: "spark", width, height, "aria-hidden": "true", viewBox: `0 0 ${width} ${height}`,
    });
    if (known.length === 0) return svg;
    const middle = (Math.min(...known) + Math.max(...known)) / 2;
    const range = Math.max(...known) - Math.min(...known);
    const span = Math.max(range, middle * LEAST_SPAN) || 1; // all are 0: a line
    const step = (width - 8) / Math.max(1, values.length - 1);
    const first = values.length === 1 ? width - 8 : 0; // a single value is the newest
    const x = (i) => round(4 + first + i * step);
    const y = (v) => round(height / 2 - ((v - middle) / span) * (height - 7));
    let path = "";
    values.forEach((v, i) => {
        if (v !== null) path += `${path && values[i - 1] !== null ? "L" : "M"}${x(i)} ${y(v)}`;
    });
    const last = values.findLastIndex((v) => v !== null);
    svg.append(
        at > 0 ? s("path", { class: "step", d: `M${x(at - 0.5)} 0V${height}` }) : "",
        s("path", { class: "line", d: path }),
        s("circle", { class: `dot ${verdict}`, cx: x(last), cy: y(values[last]), r: 2.4 }));
    return svg;
}

const CHANGE_WIDTH = 64;
const CHANGE_HEIGHT = 14;
const SPAN = 2.4; // thresholds to either side

/** The interval of a case's change between marks at its threshold; beyond the end, an arrow. */
export function changeGlyph({ ratio, ratio_lo: lo, ratio_hi: hi, threshold, verdict }) {
    const svg = s("svg", {
        class: "change", width: CHANGE_WIDTH, height: CHANGE_HEIGHT, "aria-hidden": "true",
        viewBox: `0 0 ${CHANGE_WIDTH} ${CHANGE_HEIGHT}`,
    });
    if (!ratio || !threshold) return svg;
    const full = SPAN * threshold;
    const inside = (v) => Math.max(-full, Math.min(full, v));
    const x = (v) => round(CHANGE_WIDTH / 2 + (inside(v - 1) / full) * (CHANGE_WIDTH / 2 - 5));
    const middle = CHANGE_HEIGHT / 2;
    const upright = (name, v, size) =>
        s("line", { class: name, x1: x(v), x2: x(v), y1: middle - size, y2: middle + size });
    const way = ratio > 1 ? 1 : -1;
    svg.append(
        upright("zero", 1, 5), upright("limit", 1 + threshold, 6),
        upright("limit", 1 - threshold, 6),
        s("line", { class: `range ${verdict}`, x1: x(lo ?? ratio), x2: x(hi ?? ratio),
            y1: middle, y2: middle }),
        Math.abs(ratio - 1) > full ? s("path", { class: `point ${verdict}`,
            d: `M${x(ratio) + 4 * way} ${middle}l${-6 * way} -4v8z` })
            : s("circle", { class: `point ${verdict}`, cx: x(ratio), cy: middle, r: 3 }));
    return svg;
}
