// SPDX-License-Identifier: Apache-2.0
// news.js: says when the server has runs that the page does not show yet, how many causes are open,
// and when it is away.

import { get } from "./api.js";
import { h } from "./dom.js";

const INTERVAL_MS = 30000;

const button = document.getElementById("news");
const offline = document.getElementById("offline");
const alerts = document.getElementById("alerts");

async function state() {
    const { devices } = await get("devices");
    return JSON.stringify(devices.map((d) => [d.model, d.runs, d.newest.uuid]));
}

/** What the server has now, or null. Asked before a view is: what comes meanwhile is news then. */
export const newest = () => state().catch(() => null);

/** On a narrow screen the names of the views scroll sideways: the current one into the middle. */
export function centre() {
    const link = document.querySelector("#views [aria-current]");
    const row = link?.parentElement;
    if (row) row.scrollLeft = link.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
}

/** The number of open causes, beside the link to the alerts. */
async function countCauses() {
    const { causes } = await get("alerts", { limit: 1 });
    alerts.replaceChildren(...(causes > 0
        ? [String(causes), h("span", { class: "hidden" }, " open causes")] : []));
    centre(); // the number has widened the row
}

/** Looks from time to time; `show` draws the view anew. `seen`: what it knows, of newest(). */
export function watch(show, seen) {
    let heard = Date.now(); // when the server last answered

    function away() {
        offline.textContent = "The server cannot be reached. The page shows the state of " +
            `${new Date(heard).toLocaleTimeString()}. It updates by itself when the server ` +
            "answers again.";
        offline.hidden = false;
    }

    async function look() {
        if (document.hidden) return;
        const back = !offline.hidden;
        let now;
        try {
            [now] = await Promise.all([state(), countCauses()]);
        } catch {
            return; // a server that is not there was told of by then
        }
        // The first runs of all are shown without being asked for, and so is what the server was
        // away for when it was first asked.
        const anew = back || seen === null || (seen === "[]" && seen !== now);
        if (anew) show();
        if (anew) seen = now;
        button.hidden = seen === now;
    }

    function reached() {
        heard = Date.now();
        offline.hidden = true;
    }

    button.addEventListener("click", async () => {
        button.hidden = true;
        const now = newest();
        await show();
        seen = await now;
        await look();
    });
    document.addEventListener("visibilitychange", look);
    window.addEventListener("online", look);
    window.addEventListener("alerts", look);
    window.addEventListener("offline", away);
    window.addEventListener("unreachable", away);
    window.addEventListener("reached", reached);
    setInterval(look, INTERVAL_MS);
    look();
}
