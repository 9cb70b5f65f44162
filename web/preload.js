// preload.js: fetches all modules of the view that the address names at once, which else would ask
// for one after the other; and none of another view. For the first view of all, the wall without a
// choice, also what it asks the server. It runs before app.js, as it needs nothing.

// Beside those that all views need, which the page itself names.
const MARKS = "chart_marks chart_palette chart_thin";
const MODULES = {
    "": "view_overview case_table filters glyphs scope strip",
    alerts: `view_alerts alert_parts alert_steps lists token_form ${MARKS}`,
    calibration: "view_calibration calibration lists",
    case: "view_case branches scope trend uplot chart_data chart_events chart_input chart_plot " +
        `chart_point chart_specs chart_tip chart_tools ${MARKS}`,
    compare: `view_compare compare_data lists ${MARKS}`,
    leaderboard: "view_leaderboard lists scope",
    roofline: "view_roofline lists roofline scope",
    run: "view_run calibration evidence lists reproduce run_case samples",
    runs: "view_runs",
};

/** As view_overview.js asks for it; api.js finds it on its way. */
const ANSWERS = ["devices?watched=1", "cases?watched=1&sort=worst&limit=60",
    "alerts?state=new&limit=1000", "alerts?state=acknowledged&limit=1000"];

function hint(attributes) {
    document.head.append(Object.assign(document.createElement("link"), attributes));
}

function preload() {
    const [name] = location.hash.replace(/^#\/?/, "").split(/[/?]/, 1);
    if (!Object.hasOwn(MODULES, name)) return;
    for (const module of MODULES[name].split(" "))
        hint({ rel: "modulepreload", href: new URL(`${module}.js`, import.meta.url) });
    delete MODULES[name];
}

/** A token, which is all that the page stores, goes in a header that no hint can have. */
function preloadAnswers() {
    if (!["", "#/"].includes(location.hash) || sessionStorage.length > 0) return;
    for (const answer of ANSWERS)
        hint({ rel: "preload", as: "fetch", crossOrigin: "anonymous", href: `api/v1/${answer}` });
}

addEventListener("hashchange", preload);
preloadAnswers();
preload();
