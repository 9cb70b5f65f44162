// preload.js: fetches all modules of the view that the address names at once, which else would ask
// for one after the other; and none of another view. It runs before app.js, as it needs nothing.

// Beside those that all views need, which the page itself names.
const MARKS = "chart_marks chart_palette chart_thin";
const MODULES = {
    "": "view_overview case_table filters glyphs scope strip",
    alerts: `view_alerts alert_parts alert_steps lists token_form ${MARKS}`,
    calibration: "view_calibration calibration lists",
    case: "view_case branches scope trend uplot chart_data chart_events chart_input chart_plot " +
        `chart_point chart_specs chart_tip chart_tools ${MARKS}`,
    compare: `view_compare compare_data lists ${MARKS}`,
    leaderboard: "view_leaderboard lists",
    roofline: "view_roofline lists roofline",
    run: "view_run calibration evidence lists reproduce run_case samples",
    runs: "view_runs",
};

function preload() {
    const [name] = location.hash.replace(/^#\/?/, "").split(/[/?]/, 1);
    if (!Object.hasOwn(MODULES, name)) return;
    for (const module of MODULES[name].split(" ")) {
        const link = document.createElement("link");
        link.rel = "modulepreload";
        link.href = new URL(`${module}.js`, import.meta.url);
        document.head.append(link);
    }
    delete MODULES[name];
}

addEventListener("hashchange", preload);
preload();
