// SPDX-License-Identifier: Apache-2.0
// keys.js: what a chart does on the keyboard, which uPlot does not know.
//
//   arrows, Page Up and Down, Home, End: the point and the series; Enter: open it; Escape: drop it;
//   + and -: zoom; Shift and an arrow: pan; 0: all

/** Keys that move the point; the step in points, or an end. */
const MOVES = {
    ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity,
};

/** `act`: { step(n), lane(n), open(), drop(), zoom(factor), pan(share), all() }. */
export function listenKeys(surface, act) {
    const others = {
        ArrowDown: () => act.lane(1), ArrowUp: () => act.lane(-1), Enter: act.open, " ": act.open,
        Escape: act.drop, "+": () => act.zoom(0.5), "=": () => act.zoom(0.5),
        "-": () => act.zoom(2), 0: act.all,
    };
    surface.addEventListener("keydown", (event) => {
        const { key, shiftKey, target } = event;
        if (event.ctrlKey || event.metaKey || event.altKey || target !== surface) return;
        if (shiftKey && Math.abs(MOVES[key]) === 1) act.pan(MOVES[key] / 4);
        else if (Object.hasOwn(MOVES, key)) act.step(MOVES[key]);
        else if (Object.hasOwn(others, key)) others[key]();
        else return;
        event.preventDefault();
    });
}
