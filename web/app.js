// app.js: finds the view that the address names and shows it.

import { ApiError } from "./api.js";
import { h } from "./dom.js";
import { watch } from "./news.js";
import { caseView } from "./view_case.js";
import { leaderboardView } from "./view_leaderboard.js";
import { overviewView } from "./view_overview.js";
import { runView } from "./view_run.js";
import { runsView } from "./view_runs.js";

const VIEWS = {
    "": overviewView,
    case: caseView,
    leaderboard: leaderboardView,
    run: runView,
    runs: runsView,
};

// A page that is not in the navigation belongs to the list that leads to it.
const PARENT = { case: "", run: "runs" };

const main = document.getElementById("main");
const places = new Map(); // how far down the page was, by address
let current = null; // { hash, abort }
let followed = false; // the address changed by a link, not by the back button

function parse(hash) {
    const [path, query] = hash.replace(/^#\/?/, "").split("?", 2);
    const [name, rest] = path.split("/", 2);
    return { name, rest: rest ?? "", query: new URLSearchParams(query ?? "") };
}

function failure(error) {
    const retry = h("button", { type: "button", click: () => show() }, "Try again");
    const unknown = error instanceof ApiError && error.status === 404;
    return h("section", { class: "empty" },
        h("h1", {}, unknown ? "There is no such thing here" : "This cannot be shown"),
        h("p", {}, error.message),
        h("p", {}, unknown ? h("a", { href: "#/" }, "All cases") : retry));
}

function markNavigation(name) {
    for (const link of document.querySelectorAll("#views a")) {
        if (link.dataset.view === (PARENT[name] ?? name)) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
}

async function show() {
    const first = current === null;
    const hash = location.hash;
    if (current) {
        current.abort.abort();
        places.set(current.hash, window.scrollY);
    }
    const mine = { hash, abort: new AbortController() };
    current = mine;
    const { name, rest, query } = parse(hash);
    const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : null;
    const fresh = followed;
    followed = false;
    main.setAttribute("aria-busy", "true");
    let shown;
    try {
        if (!view) throw new ApiError(404, "This address is none of the page's.");
        shown = await view({ rest, query, signal: mine.abort.signal });
    } catch (error) {
        if (current !== mine || error.name === "AbortError") return;
        if (!(error instanceof ApiError)) console.error(error);
        shown = { title: "Error", content: failure(error) };
    }
    if (current !== mine) return;
    main.replaceChildren(...[shown.content].flat());
    document.title = shown.title ? `${shown.title} · Kernel Gate` : "Kernel Gate";
    markNavigation(name);
    main.removeAttribute("aria-busy");
    if (!first && fresh) main.focus({ preventScroll: true });
    window.scrollTo(0, fresh ? 0 : (places.get(hash) ?? 0));
}

history.scrollRestoration = "manual";
document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link) return;
    if (link.getAttribute("href") === "#main") {
        event.preventDefault();
        main.focus();
    } else {
        followed = true;
    }
});
window.addEventListener("hashchange", show);
watch(document.getElementById("news"), show);
show();
