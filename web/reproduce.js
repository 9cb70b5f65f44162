// SPDX-License-Identifier: Apache-2.0
// reproduce.js: the commands that repeat a run, or one case of it.

/** A word that a shell takes as it is, or in quotes. */
function quoted(text) {
    return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** What to type in a clone of the tree; `id` limits it to one case. */
export function reproduce(run, id = null) {
    const { git, policy, device } = run;
    const words = ["build/bin/gate", "run", "--suite", run.suite, "--device",
        device.kind === "cuda" ? "cuda:0" : "host", "--seed", run.seed];
    if (id) words.push("--filter", id);
    if (policy.threshold !== 0.02)
        words.push("--threshold", `${Number((policy.threshold * 100).toPrecision(6))}%`);
    if (policy.against && policy.against !== "baseline") words.push("--against", policy.against);
    const checkout = git.commit ? `git checkout ${git.commit} && ` : "";
    return `${checkout}make && ${words.map(quoted).join(" ")}`;
}
