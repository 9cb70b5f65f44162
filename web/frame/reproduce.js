// SPDX-License-Identifier: Apache-2.0
// reproduce.js: the commands that repeat a run or cases of it, and that accept what is slower.
// `gate` is on the PATH: the repository may be any that is measured with it.

import { apiUrl, token } from "./api.js";

const MOST = 5; // cases with a command each

/** A word that a shell takes as it is, or in quotes. */
function quoted(text) {
    return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** What the names have in common, as a pattern of --filter; "" where it would be any name. */
function filter(ids) {
    let start = ids[0] ?? "";
    for (const id of ids)
        while (!id.startsWith(start)) start = start.slice(0, -1);
    return ids.length === 1 ? start : start && `${start}*`;
}

/** Brings a run of this server into the clone's own history, from which a baseline is accepted. */
function fetchRun(uuid) {
    const url = new URL(apiUrl(`runs/${uuid}`), document.baseURI).href;
    const proof = token() ? '-H "Authorization: Bearer $GATE_TOKEN" ' : "";
    return `curl -sf ${proof}${quoted(url)} | gate import -`;
}

/** What accepts the new times of some cases of a run as their baselines. */
export function accept(uuid, model, ids, dirty) {
    const options = ["--device-model", model, "--run", uuid.slice(0, 8),
        ...(dirty ? ["--allow-dirty"] : []), "--reason", "WHY"];
    return [fetchRun(uuid), ...ids.map((id) =>
        ["gate", "baseline", "accept", id, ...options].map(quoted).join(" "))].join("\n");
}

/** The --filter of each command that measures these cases; none: the whole suite. */
function filters(ids) {
    const shared = filter(ids);
    if (shared) return [["--filter", shared]];
    return ids.length <= MOST ? ids.map((id) => ["--filter", id]) : [];
}

/** What to type in a clone of the tree; `ids`: of the cases that it is limited to. */
export function reproduce(run, ids = []) {
    const { git, policy, device } = run;
    const words = ["gate", "run", "--suite", run.suite, "--device",
        device.kind === "cuda" ? "cuda:0" : "host", "--seed", run.seed];
    if (policy.threshold !== 0.02)
        words.push("--threshold", `${Number((policy.threshold * 100).toPrecision(6))}%`);
    if (policy.host_threshold)
        words.push("--host-threshold", `${Number((policy.host_threshold * 100).toPrecision(6))}%`);
    if (policy.against && policy.against !== "baseline") words.push("--against", policy.against);
    const some = filters(ids);
    const commands = (some.length > 0 ? some : [[]])
        .map((own) => [...words, ...own].map(quoted).join(" "));
    return [git.commit && `git checkout ${git.commit}`, "# build the kernels, then",
        ids.length > 0 && some.length === 0 &&
            "# the whole suite, as no --filter fits these cases alone",
        ...commands].filter(Boolean).join("\n");
}
