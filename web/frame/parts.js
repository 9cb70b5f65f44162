// SPDX-License-Identifier: Apache-2.0
// parts.js: pieces that several views show.

import { ApiError, apiUrl, fetchFile, get, token } from "./api.js";
import { address, h, queryText, term } from "./dom.js";
import { isTie, number, providerName, shortCommit, versus } from "./format.js";

/** A case id, which may be broken at its slashes; the op stands out. */
export function caseName(id) {
    const [op, ...rest] = id.split("/");
    return [h("b", {}, op), rest.map((part) => ["/", h("wbr"), part])];
}

/** `branch`: of which the page tells then; "" is the main one. */
export function caseLink(id, device, text = null, branch = "") {
    return h("a", { class: text ? null : "case", href: address("case", { id, device, branch }) },
        text ?? caseName(id));
}

export function runLink(uuid, text = uuid.slice(0, 8)) {
    return h("a", { class: "mono", href: address(`run/${uuid}`), title: `Run ${uuid}` }, text);
}

export const alertLink = (id, text = `alert ${id}`) =>
    h("a", { href: address(`alerts/${id}`) }, text);

let told; // of the repository: { main_branch, commit_url }, the latter with %s for the commit

/** What the server was told of the repository, or what holds without an answer. */
export const site = () => told ?? { main_branch: "main", commit_url: null };

/** Asks for it, once there is an answer not again. */
export async function askSite() {
    told ??= await get("branches", { limit: 1 }).catch(() => undefined);
}

/** "gemv: 16-byte loads, Ada Byrne": the subject of a commit and its author, or what is known. */
export const subjectText = ({ subject, author }) => [subject, author].filter(Boolean).join(", ");

/** The commit of a row of the API, which leads to the forge. */
export function commitName({ commit, subject, author }) {
    if (!commit) return h("span", { class: "none" }, "no commit");
    const title = `${commit} ${subjectText({ subject, author })}`.trim();
    const href = site().commit_url?.replace("%s", encodeURIComponent(commit));
    return h(href ? "a" : "span", { class: "mono", title, href }, shortCommit(commit));
}

/** An address of the forge, next to that of a commit, on GitHub and the like, and on GitLab; null:
 *  it is not known. */
export function forge(hub, lab = hub) {
    const [root, gitlab] = /^(https?:\/\/.*?)(\/-)?\/commit\/%s$/.exec(site().commit_url)
        ?.slice(1) ?? [];
    return root ? `${root}${gitlab ? `/-${lab}` : hub}` : null;
}

/** What changed from one commit to another, on the forge. */
export function rangeLink(from, to, text) {
    const href = from && to && from !== to && forge(`/compare/${from}...${to}`);
    return href && h("a", { class: "diff", href }, text);
}

/** What an alert says, as the server tells it everywhere, without the case that stands beside it:
 *  "5.81 % slower: 24.95 us to 26.15 us since commit 0485d60a2". */
export const alertText = ({ text, case: id, device }) =>
    text.replace(`${id} on ${device} `, "").replace(/^is (a )?/, "");

/** Of an alert. */
export const stateBadge = (state) => h("span", { class: `state ${state}` }, state);

/** The commits of an alert, behind the one before it, as git writes them. */
export const commitRange = (alert) => (alert.machine
    ? ["another machine, ", h("span", { class: "mono" }, alert.machine)]
    : [alert.before_commit && [commitName({
        commit: alert.before_commit, subject: alert.before_subject, author: alert.before_author,
    }), ".."], commitName(alert), rangeLink(alert.before_commit, alert.commit, " diff")]);

/** Is it known which commit an alert is of? Of a range of several only the last was measured. */
export const isOneCommit = ({ before_commit: before, parent }) => !before || before === parent;

/** The subject of an alert's commit; of a range, that it is the last one's. */
export const causeSubject = (alert) => (alert.machine ? "the machine was exchanged"
    : alert.subject && !isOneCommit(alert) ? `the last: ${alert.subject}` : alert.subject);

/** And its author, who is not named for what another commit of the range, or changes that are in no
 *  commit, may have done. */
export const causeAuthor = (alert) => (isOneCommit(alert) && !alert.machine && !alert.dirty
    ? alert.author : null);

/** What a run was compared with: a commit in short, anything else as it is named. */
export const againstText = (against) =>
    (/^[0-9a-f]{40}$/.test(against) ? shortCommit(against) : against || "–");

/** "3f9d2c1b7+": what was measured, and that there were changes. */
export const commitText = (run) => [commitName(run),
    run.dirty && h("span", { class: "dirty", title: "The tree had uncommitted changes" }, "+")];

/** ", 1.04× cuBLAS's": the error of a `verify` over the vendor's; "" where no vendor was right. */
export function overVendor({ vendor, vendor_ratio: ratio }) {
    return ratio === undefined ? "" : `, ${number(ratio, 3)}× ${providerName(vendor)}'s`;
}

/** A table in a box of its own, which scrolls when it is wider than the page. */
export function tableBox(label, ...content) {
    return h("div", { class: "box", role: "region", "aria-label": label, tabindex: "0" },
        h("table", {}, content));
}

/** "1.04 times slower than cuBLAS", which stands out where ours is the faster one. */
export const vendorRatio = (ratio, vendor, span = null) => h("span",
    { class: `peer ${!ratio ? "none" : ratio < 1 && !isTie(span) ? "first" : ""}` },
    versus(ratio, vendor ?? "", span));

/** The interval of a case's ratio to the best vendor. */
export const peerSpan = ({ peer_lo: lo, peer_hi: hi }) => ({ lo, hi });

/** A choice of one of `options`, which are [value, text]. */
export function selectBox(attributes, options, value, change) {
    const select = h("select", { ...attributes, change: () => change(select.value) },
        options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
    return select;
}

/** A figure of a <dl> with its term. */
export function figure(name, label, ...value) {
    return h("div", {}, h("dt", {}, term(name, label)), h("dd", {}, value));
}

/** A cell; what needs attributes is one already. */
export const cellOf = (content, kind) => (content instanceof HTMLTableCellElement ? content
    : kind === "row" ? h("th", { scope: "row" }, content) : h("td", { class: kind }, content));

/**
 * The head and the rows of a table. A column is [term of the glossary or null, label, what a row
 * has in it, kind]: "row" makes it the row's name, anything else is a class of its cells. What is
 * no array is left out.
 */
export function columnsOf(all) {
    const columns = all.filter(Array.isArray);
    const classOf = (kind) => (kind === "row" ? null : kind);
    return {
        head: h("thead", {}, h("tr", {}, columns.map(([name, label, , kind]) => h("th",
            { scope: "col", class: classOf(kind) }, name ? term(name, label) : label)))),
        row: (item, ...rest) => h("tr", {}, columns.map(([, , show, kind]) =>
            cellOf(show(item, ...rest), kind))),
    };
}

/** A table with a row for each item; `current`: the one that is shown. */
export function tableOf(label, columns, items, current = null) {
    const { head, row } = columnsOf(columns);
    return tableBox(label, head, h("tbody", {}, items.map((item, i) => {
        const element = row(item, i);
        if (item === current) element.setAttribute("aria-current", "true");
        return element;
    })));
}

/** What opens something or folds it: `change(opens, itself)` does so. */
export function opener(label, change, attributes) {
    const button = h("button", {
        type: "button", class: "opener", "aria-expanded": "false", ...attributes, click() {
            const opens = button.getAttribute("aria-expanded") === "false";
            button.setAttribute("aria-expanded", String(opens));
            change(opens, button);
        },
    }, label);
    return button;
}

export function crumbs(...parts) {
    return h("nav", { class: "crumbs", "aria-label": "Where this is" },
        parts.map((part, i) => [i > 0 && h("span", { "aria-hidden": "true" }, "/"), part]));
}

/** What a database without a run shows: each way to the first numbers, with its command. */
export function nothingYet() {
    const server = new URL(".", document.baseURI).href.replace(/\/$/, "");
    return h("section", { class: "empty" },
        h("h1", {}, "No runs yet"),
        h("p", {}, "The history is empty. A run of the gate verifies each kernel, times it beside ",
            "its stored baseline, and stores the verdict here."),
        command("In a clone of the repository: measure the GPU, or the host if there is none",
            "make run"), command("If the server reads another database than ./gate.db",
            "gate run --device auto --db FILE"),
        command("From another machine, such as a CI runner, with a token of this server",
            `gate push --server ${server} --token-file FILE`),
        h("p", { class: "quiet" }, "This page notices the first run by itself."));
}

/** The devices that there are, unless there is no run at all: then how to come by one is shown. */
export async function knownDevices(signal) {
    const { devices } = await get("devices", null, signal);
    if (devices.length > 0) return devices;
    throw Object.assign(new ApiError(404, "No runs yet"), { content: nothingYet() });
}

/** A button that copies a text, and says so; `otherwise()`: where the page may not. */
export function copyButton(label, text, otherwise = () => prompt("Copy this", text())) {
    const button = h("button", { type: "button", click: () => Promise.resolve()
        .then(() => navigator.clipboard.writeText(text()))
        .then(() => { button.textContent = "Copied"; }, otherwise) }, label);
    return button;
}

/** A command to copy. */
export function command(label, text) {
    const code = h("code", {}, text);
    return h("div", { class: "command" }, h("p", { class: "quiet" }, label),
        h("pre", { tabindex: "0" }, code), copyButton("Copy", () => text,
            () => getSelection().selectAllChildren(code)));
}

/** A case outside of the page. */
export function badgeAndFeed({ id, device }) {
    const server = new URL(".", document.baseURI).href;
    return h("details", {}, h("summary", {}, "Badge and feed"),
        command("A badge of the newest result, for a README",
            `![${id}](${server}badge/${device}/${id}.svg)`),
        command("A feed of the alerts of this case",
            `${server}feed.atom${queryText({ device, case: id })}`));
}

const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/; // what a spreadsheet would run

function field(value) {
    const text = value === null ? "" : typeof value !== "string" ? String(value)
        : value.split(";").map((part) => (FORMULA.test(part) ? `'${part}` : part)).join(";");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Saves what is made here as a file. */
export function saveFile(blob, name) {
    const href = URL.createObjectURL(blob);
    h("a", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
}

/** Saves rows as CSV, as the server writes it (RFC 4180). */
export const saveCsv = (rows, name) => saveFile(new Blob(
    rows.map((row) => `${row.map(field).join(",")}\r\n`), { type: "text/csv" }), name);

/** The way out of a view: its rows as CSV, where the server has them, and its address. */
export const wayOut = (path, parameters) => h("span", { class: "actions" },
    path && download("CSV", apiUrl(path, { ...parameters, format: "csv" }), `${path}.csv`),
    copyButton("Copy the link", () => location.href));

/** A file of the API: a link, or a button where reading needs a token, which a link cannot send. */
export function download(label, url, name) {
    if (!token()) return h("a", { href: url, download: name }, label);
    return h("button", {
        type: "button", click: async () => saveFile(await fetchFile(url), name),
    }, label);
}
