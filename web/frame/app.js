// SPDX-License-Identifier: Apache-2.0
// app.js: finds the view that the address names and shows it.

import { ApiError, token } from "./api.js";
import { h } from "./dom.js";
import { listen } from "./glossary.js";
import { centre, newest, watch } from "./news.js";
import { askSite } from "./parts.js";
import { scrolled } from "./places.js";

// A view is the module of its name, which is loaded when it is wanted.
const VIEWS = ["", "alerts", "case", "change", "compare", "explore", "help", "leaderboard",
    "machines", "roofline", "run", "runs", "vendor"];

// A page that is not in the navigation belongs to the list that leads to it.
const PARENT = { case: "", change: "", help: "", run: "runs", vendor: "leaderboard" };

const main = document.getElementById("main");
const announcer = document.getElementById("announcer");
let current = null; // the abort controller of the view that is shown or on its way
let followed = ""; // where a link led, which is shown from its top, not where the reader was

function parse(hash) {
    const [path, query] = hash.replace(/^#\/?/, "").split("?", 2);
    const [name, rest] = path.split("/", 2);
    return { name, rest: rest ?? "", query: new URLSearchParams(query ?? "") };
}

/** The view of that name. A file that is not there means that another build serves by now. */
async function viewOf(name) {
    if (!VIEWS.includes(name)) throw new ApiError(404, "The page has no view of this name.");
    try {
        return (await import(`../views/${name || "overview"}.js`)).view;
    } catch (error) {
        console.warn(error);
        throw new ApiError(0, "A part of the page could not be loaded. The server may be down, " +
            "or it may have a newer version of the page. Reload the page.");
    }
}

function failure(error) {
    if (error.content) return error.content;
    if (error.status === 401) {
        const box = h("section", { class: "empty" },
            h("h1", {}, "This server is private"), h("p", {}, token() ? error.message
                : "Reading it needs a token. Ask the person who runs the server for one."));
        import("./token_form.js").then(({ tokenForm }) => box.append(tokenForm(() => show())));
        return box;
    }
    const unknown = error instanceof ApiError && error.status === 404;
    const title = unknown ? "Not found"
        : error.status === 0 ? "The server cannot be reached" : "The page cannot show this";
    return h("section", { class: "empty" },
        h("h1", {}, title), h("p", {}, error.message),
        h("p", {}, error.status === 400 && [
            h("a", { href: location.hash.split("?", 1)[0] }, "Remove the choices"), " · "],
        unknown || error.status === 400 ? h("a", { href: "#/" }, "All cases") : [
            h("button", { type: "button", click: () => show() }, "Try again"), " ",
            h("button", { type: "button", click: () => location.reload() }, "Reload the page"),
        ]));
}

function markNavigation(name) {
    for (const link of document.querySelectorAll("#views a")) {
        if (link.dataset.view === (PARENT[name] ?? name)) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    centre();
}

async function show() {
    const first = current === null;
    current?.abort();
    const mine = new AbortController();
    current = mine;
    const { hash } = location;
    const { name, rest, query } = parse(hash);
    const fresh = followed === hash;
    followed = "";
    main.setAttribute("aria-busy", "true");
    markNavigation(name);
    let shown;
    try {
        const [view] = await Promise.all([viewOf(name), askSite()]);
        shown = await view({ rest, query, signal: mine.signal });
    } catch (error) {
        if (current !== mine || error.name === "AbortError") return;
        if (!(error instanceof ApiError)) console.error(error);
        shown = { title: "Error", content: failure(error) };
    }
    if (current !== mine) return;
    // A control that changed the address keeps the focus, if the view has it again.
    const control = main.contains(document.activeElement) ? document.activeElement.name : "";
    main.replaceChildren(...[shown.content].flat(Infinity).filter(Boolean));
    shown.attached?.(); // what needs its width is drawn before the first paint
    document.title = shown.title ? `${shown.title} · Kernel Gate` : "Kernel Gate";
    main.removeAttribute("aria-busy");
    if (first) return;
    announcer.textContent = document.title;
    if (fresh) main.focus({ preventScroll: true });
    else if (control) main.querySelector(`[name="${CSS.escape(control)}"]`)?.focus();
    window.scrollTo(0, fresh ? 0 : (scrolled.get(hash) ?? 0));
}

history.scrollRestoration = "manual";
document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link) return;
    if (link.getAttribute("href") === "#main") {
        event.preventDefault();
        main.focus();
    } else followed = link.hash;
});
window.addEventListener("hashchange", (event) => {
    scrolled.set(new URL(event.oldURL).hash, window.scrollY);
    show();
});
listen();
const before = newest();
await show();
watch(show, await before);
