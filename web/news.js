// news.js: says when the server has runs that the page does not show yet.

import { get } from "./api.js";

const INTERVAL_MS = 30000;

async function state() {
    const { devices } = await get("devices");
    return JSON.stringify(devices.map((d) => [d.model, d.runs, d.newest.uuid]));
}

/** Shows `button` when there is something new; `show` is called when it is pressed. */
export function watch(button, show) {
    let seen = null;

    async function look() {
        if (document.hidden) return;
        let now;
        try {
            now = await state();
        } catch {
            return; // the next look may succeed; a view that fails says so itself
        }
        if (seen !== null && seen !== now) {
            if (seen === "[]") show();
            else button.hidden = false;
        }
        seen ??= now;
        if (seen === "[]") seen = now;
    }

    button.addEventListener("click", async () => {
        button.hidden = true;
        seen = null;
        await show();
        await look();
    });
    document.addEventListener("visibilitychange", look);
    setInterval(look, INTERVAL_MS);
    look();
}
