// SPDX-License-Identifier: Apache-2.0
// bench_trend.mjs: how long a trend of many points takes from the data to the first paint.
//
//     node tests/browser/bench_trend.mjs URL-OF-A-GATE-SERVER [POINTS [PROVIDERS]]
//
// prints the times of ten charts in milliseconds, and their median. A figure, not a test: it
// depends on the machine and on what else it does.

import { launch } from "./harness.mjs";

const [base, points = "100000", providers = "1"] = process.argv.slice(2);
if (!base) {
    console.error("usage: bench_trend.mjs URL [POINTS [PROVIDERS]]");
    process.exit(64);
}

/** In the page: makes an answer of /trends, draws it, and waits until it is on the screen. */
async function draw({ count, lanes }) {
    const app = document.querySelector("script[type=module]").src;
    const { trendChart } = await import(new URL("trend.js", app));
    const column = (f) => Array.from({ length: count }, (_, i) => f(i));
    const series = Array.from({ length: lanes }, (_, k) => {
        const p50 = column((i) => 26000 + 3000 * k + 150 * Math.sin(i / 7) + (i * 7919) % 211);
        return {
            provider: k === 0 ? "ours" : `other-${k}`, role: k === 0 ? "candidate" : "provider",
            contract: "bench", total: count,
            columns: {
                time_ms: column((i) => 1.7e12 + i * 60e3), n: column(() => 1), p50_ns: p50,
                p50_lo_ns: p50.map((v) => v * 0.997), p50_hi_ns: p50.map((v) => v * 1.003),
                p90_ns: p50.map((v) => v * 1.01), baseline_p50_ns: column(() => (k ? null : 25900)),
                run: column((i) => `run-${i}`), commit: column((i) => `commit-${i}`),
                verdict: column((i) => (i % 1000 === 0 ? "regression" : "pass")),
            },
        };
    });
    const whole = {
        order: "time", bucketed: false, threshold: 0.02, series, epochs: [], change_points: [],
        events: [], baseline: null,
    };
    const main = document.getElementById("main");
    const stop = new AbortController();
    const frame = () => new Promise(requestAnimationFrame);
    await frame();
    const start = performance.now();
    const { chart } = trendChart({
        whole, csv: () => "#", save: () => {}, chosen: () => {},
        load: () => new Promise(() => {}), signal: stop.signal,
        state: {
            order: "time", y: "raw", fit: "ours", hide: new Set(), span: null,
            point: null,
        },
    });
    main.replaceChildren(chart);
    await frame(); // the size is known and the canvas drawn before this frame is painted
    await frame(); // and the next one begins when it has been
    const took = performance.now() - start;
    stop.abort();
    return took;
}

const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
await page.goto(base);
await page.waitForSelector("main:not([aria-busy])");
const took = [];
for (let i = 0; i < 10; i++)
    took.push(await page.evaluate(draw, { count: Number(points), lanes: Number(providers) }));
await browser.close();
const sorted = [...took].sort((a, b) => a - b);
console.log(`${points} points x ${providers}: ${took.map((t) => t.toFixed(1)).join(" ")} ms; ` +
    `median ${((sorted[4] + sorted[5]) / 2).toFixed(1)} ms`);
