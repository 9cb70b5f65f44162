// chart_tip.js: where the tip of a point lies: beside it, and not over the line that it speaks of.

const TOP = 30; // CSS pixels
const BELOW = [12, 60]; // of the line that may be hidden before the tip goes below; out of sight
const FREE = 8; // about the line
const BESIDE = 16;

/** How many pixels of the height that the line has over [from, to] are within [top, bottom]. */
function covered({ u, near, line }, [from, to], [top, bottom]) {
    let [high, low] = [Infinity, -Infinity];
    const at = (px) => near(u.posToVal(px - u.over.offsetLeft, "x"));
    for (let i = at(from) - 1, end = at(to) + 1; i <= end; i++) {
        const value = line[i];
        if (value === null || value === undefined) continue;
        const py = u.over.offsetTop + u.valToPos(value, "y");
        [high, low] = [Math.min(high, py), Math.max(low, py)];
    }
    return Math.max(0, Math.min(bottom, low + FREE) - Math.max(top, high - FREE));
}

/**
 * Puts `tooltip` beside x of the plot `u`. `near(x)`: the index of the nearest place; `line`: the
 * values there. On a narrow `surface` the style sheet says how high.
 */
export function placeTip(chart) {
    const { tooltip, surface, u, x } = chart;
    const left = u.over.offsetLeft + u.valToPos(x, "x");
    const { offsetWidth: wide, offsetHeight: high } = tooltip;
    const room = Math.max(0, surface.clientWidth - wide);
    const sides = [left + BESIDE, left - BESIDE - wide].filter((v) => v >= 0 && v <= room);
    if (sides.length === 0) sides.push(Math.min(room, left + BESIDE));
    const floor = u.over.offsetTop + u.over.clientHeight;
    const tops = [TOP, floor - high, floor + TOP];
    const inWindow = surface.getBoundingClientRect().top + floor + TOP + high <= innerHeight;
    let best = null;
    for (const top of tops)
        for (const side of sides) {
            const cost = covered(chart, [side, side + wide], [top, top + high]) +
                (top > floor ? BELOW[inWindow ? 0 : 1] : 0);
            if (!best || cost < best.cost) best = { side, top, cost };
        }
    tooltip.style.left = `${best.side}px`;
    tooltip.style.top = room < wide ? "" : `${best.top}px`;
}
