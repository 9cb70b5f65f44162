// chart_input.js: what a reader does to a chart, by mouse, touch and keyboard.
//
//   mouse     point: hover; open: click; zoom: drag, or Ctrl and the wheel; pan: Shift and drag
//   touch     point: tap; open: tap again; pan: drag sideways; zoom: two fingers
//   keyboard  arrows, Page Up and Down, Home, End: the point and the series; Enter: open;
//             + and -: zoom; Shift and an arrow: pan; 0: all; Escape: drop the point

import { h } from "./dom.js";

const CLICK = 5; // CSS pixels that a click may move
const WHEEL = 1.0015;

/** Keys that move the point; the step in points, or an end. */
const MOVES = {
    ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity,
};

/**
 * Listens on `surface`, until `signal`. `over()`: the rectangle of the plot area; `act`: { hover(x,
 * y), tap(x, y) (true when it was the point already), open(), step(n), lane(n), leave() (the
 * pointer went), drop(), zoom(factor, share), pan(share), select(from, to), all() }. x and y are
 * pixels in the plot area, shares parts of it.
 */
export function listen(surface, over, act, signal) {
    const selection = h("div", { class: "plot-selection", hidden: true });
    surface.append(selection);
    const fingers = new Map(); // pointer id to place
    let drag = null; // { x, y, moved, pan }
    let pinch = null; // { distance }

    function where(event) {
        const box = over();
        return { x: event.clientX - box.left, y: event.clientY - box.top, width: box.width, box };
    }

    function showSelection(from, to, box) {
        const outer = surface.getBoundingClientRect();
        const lo = Math.max(0, Math.min(from, to));
        const hi = Math.min(box.width, Math.max(from, to));
        selection.hidden = false;
        selection.style.left = `${box.left - outer.left + lo}px`;
        selection.style.top = `${box.top - outer.top}px`;
        selection.style.width = `${hi - lo}px`;
        selection.style.height = `${box.height}px`;
    }

    function pinchMove() {
        const [a, b] = [...fingers.values()];
        const distance = Math.max(20, Math.abs(a.x - b.x));
        const middle = (a.x + b.x) / 2 / a.width;
        if (pinch) act.zoom(pinch.distance / distance, middle);
        pinch = { distance };
    }

    surface.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || event.target.closest("a, button")) return;
        const at = where(event);
        fingers.set(event.pointerId, at);
        surface.setPointerCapture(event.pointerId);
        if (fingers.size > 1) {
            drag = null;
            selection.hidden = true;
            pinchMove();
            return;
        }
        const mouse = event.pointerType === "mouse";
        drag = { x: at.x, y: at.y, last: at.x, moved: false, pan: !mouse || event.shiftKey };
    });
    surface.addEventListener("pointermove", (event) => {
        const at = where(event);
        if (fingers.has(event.pointerId)) fingers.set(event.pointerId, at);
        if (fingers.size > 1) {
            pinchMove();
        } else if (!drag) {
            if (event.pointerType === "mouse") act.hover(at.x, at.y);
        } else {
            drag.moved ||= Math.abs(at.x - drag.x) > CLICK;
            if (!drag.moved) return;
            if (drag.pan) act.pan((drag.last - at.x) / at.width);
            else showSelection(drag.x, at.x, at.box);
            drag.last = at.x;
        }
    });
    surface.addEventListener("pointerup", (event) => {
        const at = where(event);
        fingers.delete(event.pointerId);
        if (fingers.size < 2) pinch = null;
        selection.hidden = true;
        if (!drag) return;
        const { x, moved, pan } = drag;
        drag = null;
        if (moved && !pan) act.select(x / at.width, at.x / at.width);
        else if (!moved && (act.tap(at.x, at.y) || event.pointerType === "mouse")) act.open();
    });
    // The browser takes a finger over to scroll the page.
    surface.addEventListener("pointercancel", (event) => {
        fingers.delete(event.pointerId);
        drag = null;
        pinch = null;
        selection.hidden = true;
    });
    surface.addEventListener("pointerleave", (event) => {
        if (!drag && event.pointerType === "mouse") act.leave();
    });
    surface.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
        event.preventDefault();
        const at = where(event);
        act.zoom(WHEEL ** event.deltaY, at.x / at.width);
    }, { passive: false });
    document.addEventListener("pointerdown", (event) => {
        // Escape, for a finger beside the chart and what belongs to it.
        if (event.pointerType !== "mouse" && !event.target.closest(".case-page")) act.drop();
    }, { signal });
    surface.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.target !== surface) return;
        if (event.shiftKey && event.key === "ArrowLeft") act.pan(-0.25);
        else if (event.shiftKey && event.key === "ArrowRight") act.pan(0.25);
        else if (Object.hasOwn(MOVES, event.key)) act.step(MOVES[event.key]);
        else if (event.key === "ArrowDown") act.lane(1);
        else if (event.key === "ArrowUp") act.lane(-1);
        else if (event.key === "Enter" || event.key === " ") act.open();
        else if (event.key === "Escape") act.drop();
        else if (event.key === "+" || event.key === "=") act.zoom(0.5, null);
        else if (event.key === "-") act.zoom(2, null);
        else if (event.key === "0") act.all();
        else return;
        event.preventDefault();
    });
}
