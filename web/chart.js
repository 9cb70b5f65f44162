// chart.js: p50 of a case over its runs, drawn as SVG.
//
// Runs have equal distances, so that a busy day is as readable as a quiet month. The line of a
// provider breaks where the contract changes or a run has no verified timing. The chart is one tab
// stop: the arrow keys move through the runs, Enter opens one.

import { address, h, s } from "./dom.js";
import { change, dateText, dayText, duration, shortCommit, unitOf } from "./format.js";
import { badge, mark, word } from "./verdict.js";

const HEIGHT = 320;
const MARGIN = { top: 14, right: 18, bottom: 34, left: 66 };
const MANY = 80; // runs; above it, points that pass have no mark of their own
const SHAPES = ["circle", "square", "diamond", "cross", "bar"];

const clamp = (value, last) => Math.min(last, Math.max(0, value));

/** A step of 1, 2 or 5 times a power of ten. */
function niceStep(span, count) {
    const rough = span / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((f) => f * power).find((step) => step >= rough);
}

function shape(kind, x, y) {
    switch (kind) {
    case "square":
        return s("rect", { x: x - 2.6, y: y - 2.6, width: 5.2, height: 5.2 });
    case "diamond":
        return s("path", { d: `M${x} ${y - 3.8}l3.8 3.8-3.8 3.8-3.8-3.8z` });
    case "cross":
        return s("path", { class: "open", d: `M${x - 3} ${y - 3}l6 6m0-6l-6 6` });
    case "bar":
        return s("path", { class: "open", d: `M${x - 3.5} ${y}h7` });
    default:
        return s("circle", { cx: x, cy: y, r: 2.8 });
    }
}

/** Runs of indices in which the series has points of one contract. */
function stretches(runs, provider) {
    const all = [];
    let open = null;
    runs.forEach((run, i) => {
        const point = run.points.get(provider);
        if (!point) {
            open = null;
        } else if (open && open.contract === point.contract) {
            open.points.push([i, point]);
        } else {
            open = { contract: point.contract, points: [[i, point]] };
            all.push(open);
        }
    });
    return all.map((stretch) => stretch.points);
}

function range(runs, names) {
    let lo = Infinity;
    let hi = -Infinity;
    for (const run of runs) {
        for (const name of names) {
            const p = run.points.get(name);
            if (!p) continue;
            lo = Math.min(lo, p.p50_lo_ns ?? p.p50_ns);
            hi = Math.max(hi, p.p50_hi_ns ?? p.p50_ns);
        }
        if (run.best_p50_ns) {
            lo = Math.min(lo, run.best_p50_ns);
            hi = Math.max(hi, run.best_p50_ns);
        }
    }
    if (lo > hi) return [0, 1];
    const pad = (hi - lo) * 0.08 || hi * 0.02;
    return [Math.max(0, lo - pad), hi + pad];
}

function axes(scale, runs, [lo, hi]) {
    const { x, y, left, right, bottom } = scale;
    const group = s("g", { class: "axes" });
    const [unit, size] = unitOf(hi);
    const step = niceStep((hi - lo) / size, 5);
    const decimals = Math.max(0, -Math.floor(Math.log10(step)));
    const first = Math.ceil(lo / size / step);
    const last = Math.floor(hi / size / step);
    for (let i = first; i <= last; i++) {
        const at = y(i * step * size);
        const label = `${(i * step).toFixed(decimals)}${i === last ? `\u202f${unit}` : ""}`;
        group.append(s("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }),
            s("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, label));
    }
    const every = Math.max(1, Math.ceil(runs.length / Math.max(1, (right - left) / 84)));
    let before = "";
    for (let i = runs.length - 1; i >= 0; i -= every) {
        const label = dayText(runs[i].time_ms);
        if (label === before) continue;
        before = label;
        const at = Math.min(Math.max(x(i), left + 18), right - 14);
        group.append(s("line", { class: "tick", x1: x(i), x2: x(i), y1: bottom, y2: bottom + 4 }),
            s("text", { x: at, y: bottom + 20, "text-anchor": "middle" }, label));
    }
    return group;
}

const line = (points, scale, value) =>
    points.map(([i, p], n) => `${n ? "L" : "M"}${scale.x(i)} ${scale.y(value(p))}`).join("");

function band(points, scale) {
    if (points.length < 2) return null;
    const back = [...points].reverse();
    return s("path", {
        class: "band",
        d: `${line(points, scale, (p) => p.p50_hi_ns)}${line(back, scale, (p) => p.p50_lo_ns)
            .replace("M", "L")}Z`,
    });
}

function seriesGroup(runs, provider, index, scale) {
    const group = s("g", { class: `series s${Math.min(index, 4)}` });
    const candidate = provider.role === "candidate";
    for (const points of stretches(runs, provider.name)) {
        if (candidate) group.append(band(points, scale) ?? "");
        group.append(s("path", { class: "line", d: line(points, scale, (p) => p.p50_ns) }));
        if (runs.length <= MANY || points.length === 1)
            for (const [i, p] of points) {
                if (candidate && p.verdict !== "pass") continue;
                group.append(shape(SHAPES[Math.min(index, 4)], scale.x(i), scale.y(p.p50_ns)));
            }
    }
    if (candidate)
        runs.forEach((run, i) => {
            const p = run.points.get(provider.name);
            const y = p ? scale.y(p.p50_ns) : scale.bottom - 9;
            if (p ? p.verdict !== "pass" : run.verdict === "wrong")
                group.append(mark(run.verdict, scale.x(i), y, 11));
        });
    return group;
}

/** The stored best, as the step that it is. */
function bestPath(runs, scale) {
    let d = "";
    let last = null;
    runs.forEach((run, i) => {
        if (!run.best_p50_ns) {
            last = null;
            return;
        }
        const y = scale.y(run.best_p50_ns);
        d += last === null ? `M${scale.x(i)} ${y}` : `H${scale.x(i)}V${y}`;
        last = y;
    });
    return s("path", { class: "best", d });
}

function contractMarks(runs, scale) {
    const group = s("g", { class: "contracts" });
    runs.forEach((run, i) => {
        if (i === 0 || run.contract === runs[i - 1].contract) return;
        const at = (scale.x(i) + scale.x(i - 1)) / 2;
        group.append(s("line", { x1: at, x2: at, y1: scale.top, y2: scale.bottom }),
            s("text", { x: at + 4, y: scale.top + 10 }, run.contract));
    });
    return group;
}

function makeScale(width, runs, [lo, hi]) {
    const left = MARGIN.left;
    const right = width - MARGIN.right;
    const top = MARGIN.top;
    const bottom = HEIGHT - MARGIN.bottom;
    const step = runs.length > 1 ? (right - left - 16) / (runs.length - 1) : 0;
    const round = (v) => Math.round(v * 100) / 100;
    return {
        left, right, top, bottom,
        x: (i) => round(runs.length > 1 ? left + 8 + i * step : (left + right) / 2),
        y: (ns) => round(bottom - ((ns - lo) / (hi - lo)) * (bottom - top)),
        index: (x) => (step ? clamp(Math.round((x - left - 8) / step), runs.length - 1) : 0),
    };
}

/** What is known of one run, for the eye. */
function tip(run, providers) {
    return [
        h("p", {}, badge(run.verdict), h("span", { class: "mono" }, shortCommit(run.commit))),
        h("p", { class: "quiet" }, dateText(run.time_ms)),
        h("table", {}, h("tbody", {}, providers.map(({ name, index }) => {
            const p = run.points.get(name);
            return h("tr", {}, h("th", { scope: "row" }, swatch(index), name),
                h("td", { class: "number" }, p ? duration(p.p50_ns) : "–"),
                h("td", { class: "number quiet" },
                    p && run.best_p50_ns ? change(p.p50_ns / run.best_p50_ns) : ""));
        }), run.best_p50_ns && h("tr", {}, h("th", { scope: "row" }, swatch("best"), "best"),
            h("td", { class: "number" }, duration(run.best_p50_ns)), h("td", {})))),
    ];
}

/** The same for the ear. */
function spoken(run, providers) {
    const numbers = providers.filter(({ name }) => run.points.has(name))
        .map(({ name }) => `${name} ${duration(run.points.get(name).p50_ns)}`);
    if (numbers.length === 0) numbers.push("not timed");
    if (run.best_p50_ns) numbers.push(`best ${duration(run.best_p50_ns)}`);
    return [dateText(run.time_ms), `commit ${shortCommit(run.commit)}`, word(run.verdict),
        ...numbers].join(", ");
}

function swatch(index) {
    const best = index === "best";
    return s("svg", { class: "swatch", viewBox: "0 0 26 12", "aria-hidden": "true" },
        s("g", { class: best ? "" : `series s${Math.min(index, 4)}` },
            s("path", { class: best ? "best" : "line", d: "M1 6H25" }),
            !best && shape(SHAPES[Math.min(index, 4)], 13, 6)));
}

/**
 * The chart. `runs`: oldest first, { uuid, time_ms, commit, verdict, contract, best_p50_ns, points:
 * Map of provider to point }; `providers`: [{ name, role }], candidate first; `hidden`: Set of
 * names that are not drawn; `toggle(name)` changes it.
 */
export function trendChart({ runs, providers, hidden, toggle }) {
    const numbered = providers.map((p, index) => ({ ...p, index }));
    const picture = h("div", { class: "picture" });
    const tooltip = h("div", { class: "tooltip", hidden: true });
    const plot = h("div", {
        class: "plot", tabindex: "0", role: "slider", "aria-label": "p50 by run",
        "aria-valuemin": "1", "aria-valuemax": runs.length, "aria-orientation": "horizontal",
        title: "",
    }, picture, tooltip);
    let scale = null;
    let cursor = null;
    let at = runs.length - 1;

    const visible = () => numbered.filter((p) => !hidden.has(p.name));

    function describe() {
        plot.setAttribute("aria-valuenow", at + 1);
        plot.setAttribute("aria-valuetext", spoken(runs[at], visible()));
    }

    function draw() {
        const width = Math.max(280, Math.floor(plot.clientWidth));
        const extent = range(runs, visible().map((p) => p.name));
        scale = makeScale(width, runs, extent);
        const size = { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` };
        cursor = s("line",
            { class: "cursor", y1: scale.top, y2: scale.bottom, visibility: "hidden" });
        picture.replaceChildren(s("svg", { ...size, "aria-hidden": "true" },
            axes(scale, runs, extent), contractMarks(runs, scale), bestPath(runs, scale), cursor,
            [...visible()].reverse().map((p) => seriesGroup(runs, p, p.index, scale))));
        if (!tooltip.hidden) point(at);
    }

    function point(index) {
        at = index;
        const x = scale.x(index);
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
        cursor.setAttribute("visibility", "visible");
        tooltip.replaceChildren(...tip(runs[index], visible()));
        tooltip.hidden = false;
        const wide = tooltip.offsetWidth;
        const beside = x + 14 + wide <= plot.clientWidth ? x + 14 : x - 14 - wide;
        tooltip.style.left = `${Math.max(0, Math.min(beside, plot.clientWidth - wide))}px`;
        describe();
    }

    function leave() {
        tooltip.hidden = true;
        cursor?.setAttribute("visibility", "hidden");
    }

    const open = () => { location.hash = address(`run/${runs[at].uuid}`); };
    const where = (event) => scale.index(event.clientX - picture.getBoundingClientRect().left);
    const moves = {
        ArrowLeft: () => at - 1, ArrowDown: () => at - 1, ArrowRight: () => at + 1,
        ArrowUp: () => at + 1, PageDown: () => at - 10, PageUp: () => at + 10,
        Home: () => 0, End: () => runs.length - 1,
    };
    plot.addEventListener("pointermove", (event) => point(where(event)));
    plot.addEventListener("pointerleave", () => { if (document.activeElement !== plot) leave(); });
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) point(at); });
    plot.addEventListener("blur", leave);
    plot.addEventListener("click", (event) => {
        if (event.target.closest(".tooltip")) return;
        // A finger has no hover: its first tap shows the run, the second one opens it.
        const index = where(event);
        const known = !tooltip.hidden && index === at;
        point(index);
        if (event.pointerType === "mouse" || known) open();
    });
    plot.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (Object.hasOwn(moves, event.key)) {
            point(clamp(moves[event.key](), runs.length - 1));
        } else if (event.key === "Enter") {
            open();
        } else if (event.key === "Escape") {
            leave();
        } else {
            return;
        }
        event.preventDefault();
    });

    const legend = h("div", { class: "legend" }, numbered.map((p) => {
        const button = h("button", {
            type: "button", "aria-pressed": hidden.has(p.name) ? "false" : "true",
            title: "Show or hide",
            click: () => {
                toggle(p.name);
                button.setAttribute("aria-pressed", hidden.has(p.name) ? "false" : "true");
                draw();
                describe();
            },
        }, swatch(p.index), p.name,
        p.role === "candidate" && h("span", { class: "quiet" }, "with interval"));
        return button;
    }), h("span", { class: "key" }, swatch("best"), "best"));

    new ResizeObserver(draw).observe(plot);
    describe();
    return h("figure", { class: "chart" }, legend, plot,
        h("figcaption", { class: "quiet" },
            "Lower is faster. Each step is one run; point at one or use the arrow keys, " +
            "Enter opens it."));
}
