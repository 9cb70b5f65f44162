// chart_palette.js: the page's colours for a canvas, which does not follow the style sheet itself.

const NAMES = [
    "ink", "quiet", "rule", "paper", "best", "band", "limit-fill", "s0", "s1", "s2", "s3", "s4",
    "pass", "regression", "improvement", "wrong", "no-verdict", "environment",
];
const QUERIES = [
    "(prefers-color-scheme: dark)", "(forced-colors: active)", "(prefers-contrast: more)", "print",
];

/** The colours as they are now, by the names of the custom properties without the dashes. */
export function readPalette(element) {
    const style = getComputedStyle(element);
    const colours = Object.fromEntries(NAMES.map((name) =>
        [name, style.getPropertyValue(`--${name}`).trim() || style.color]));
    return { ...colours, font: style.fontFamily };
}

/** Calls `redraw` when the reader's theme changes, and before and after the page is printed. */
export function watchPalette(redraw, signal) {
    for (const query of QUERIES)
        matchMedia(query).addEventListener("change", redraw, { signal });
    const observer = new MutationObserver(redraw);
    observer.observe(document.documentElement, { attributes: true });
    signal.addEventListener("abort", () => observer.disconnect());
}

/** Series 0 is the candidate; from the fifth on they look alike and differ by name. */
export const colourOf = (palette, index) => palette[`s${Math.min(index, 4)}`];

/** Dashes in CSS pixels, as the keys of the chart show them. */
export const DASHES = [[], [], [5, 3], [2, 3], [8, 3, 2, 3]];
export const dashOf = (index) => DASHES[Math.min(index, 4)];
