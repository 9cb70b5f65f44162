// SPDX-License-Identifier: Apache-2.0
// api.js: asks the server. The browser keeps answers and asks again with their tag.
//
// The reader's token, for servers that are private and for what only some may do, stays in this tab
// until that is closed, and goes to this server alone: the page's policy allows no other.

import { queryText } from "./dom.js";

const KEY = "kernel-gate-token";
const TRIES = 10;

/** The token, or null. */
export function token() {
    return sessionStorage.getItem(KEY);
}

/** Keeps it, or forgets it: null. */
export function keepToken(value) {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
}

export class ApiError extends Error {
    constructor(status, detail) {
        super(detail);
        this.status = status;
    }
}

/** The address of an answer, for links as well. */
export const apiUrl = (path, parameters) =>
    `api/v1/${path}${queryText(parameters).replaceAll("+", "%20")}`; // the server takes + as itself

/** An address has few long answers at once: the server refuses more, and says when to ask again. */
async function fetchInTurn(url, options) {
    for (let tries = 1; ; tries++) {
        const response = await fetch(url, options);
        if (response.status !== 429 || tries === TRIES) return response;
        const wait = Number(response.headers.get("Retry-After"));
        await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    }
}

/** The page says at once when the server is away, and when it is back: news.js. */
async function send(url, options) {
    const headers = { ...options.headers };
    if (token()) headers.Authorization = `Bearer ${token()}`;
    try {
        const response = await fetchInTurn(url, { ...options, headers });
        window.dispatchEvent(new Event("reached"));
        return response;
    } catch (error) {
        if (error.name === "AbortError") throw error;
        window.dispatchEvent(new Event("unreachable"));
        throw new ApiError(0, "The server cannot be reached. Is gate-server running?");
    }
}

async function ask(url, options) {
    const response = await send(url, options);
    const body = await response.json().catch((error) => {
        if (error.name === "AbortError") throw error;
        return null;
    });
    if (!response.ok || body === null)
        throw new ApiError(response.status,
            body?.detail ?? `The server answered ${response.status}.`);
    return body;
}

/** The JSON of /api/v1/<path>; throws ApiError, with status 0 when the server cannot be reached. */
export function get(path, parameters, signal) {
    return ask(apiUrl(path, parameters), { signal });
}

/** Posts JSON; the server wants a token for it. */
export function post(path, body, signal) {
    return ask(apiUrl(path), {
        method: "POST", body: JSON.stringify(body),
        headers: { "Content-Type": "application/json" }, signal,
    });
}

/** The bytes of an address as a file: what a link cannot do where reading needs a token. */
export async function fetchFile(url) {
    const response = await send(url, {});
    if (!response.ok)
        throw new ApiError(response.status, `The server answered ${response.status}.`);
    return response.blob();
}
