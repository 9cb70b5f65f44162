// SPDX-License-Identifier: Apache-2.0
// glossary_terms.js: what the words mean, for glossary.js, which asks for it with the first word.

export const TERMS = {
    verdict: "What the gate decided about the newest result: wrong, slower, faster, no " +
        "difference above the threshold (pass), or not enough evidence for a decision. Foreign: " +
        "another tool measured it, and the gate decided nothing.",
    case: "One problem of a suite: the op, the data type and the sizes.",
    op: "What a kernel computes, such as gemm or attention_fwd.",
    trend: "The newest 24 times ÷ the baseline from pairs, else p50; oldest left, at least 4 % " +
        "high.",
    p50: "The median time of one launch.",
    p90: "Nine of ten samples took at most this long.",
    baseline: "The stored baseline: the lowest confirmed p50, with the library that reached it, " +
        "until a slower one is accepted in its place. Each run times that library again.",
    change: "Time compared with the stored baseline, measured in the same processes; + is " +
        "slower. Beside it is the interval of the verdict, in percent. The picture shows the " +
        "interval between two marks at the threshold.",
    mde: "Minimum detectable effect: the smallest change that can be detected in this case on " +
        "this machine. Where it is above the threshold, a pass means little.",
    verified: "Compared with a reference in double precision before it was timed. The number is " +
        "the largest relative error.",
    error: "Relative error against the reference (Frobenius norm), worst over all seeds; and the " +
        "limit of the data type.",
    vendor_error: "The relative error divided by that of the vendor's kernel on the same inputs: " +
        "1 is as accurate, 2 is twice the error. The vendor is the first other library with a " +
        "right result.",
    provider: "Our time compared with that of the fastest other library in the same run, such as " +
        "cuBLAS or cuDNN, measured in pairs: 2 times slower takes twice as long.",
    ceiling: "Share of the speed of light: the time that the memory traffic or the arithmetic " +
        "must at least take on this device, over p50.",
    here: "Share of the rates that the gate's own test kernels, which only copy or only " +
        "multiply, reached on this GPU.",
    tflops: "Floating-point operations a second, by the count that the op needs.",
    gbps: "Compulsory bytes a second: each operand read once, each result written once.",
    measured: "When the newest run with this case was measured.",
    commit: "The commit that was checked out. + means that there were uncommitted changes.",
    branch: "The branch that was measured.",
    branches: "Which runs are shown: of the main branch (gate-server --main-branch), of another, " +
        "or of all.",
    other_branches: "Runs of other branches, as single points. The line is the main branch.",
    other_baseline: "Runs that were compared with a baseline of before, which no run links to " +
        "the newest one. Each point is the time ÷ that older baseline.",
    machine: "The GPU, or the host where there is none. Two GPUs of one model are two machines.",
    fit: "Every case resolves the threshold, at most 5 % of the newest results have no verdict, " +
        "and the control kernel is at the level of the model.",
    off_level: "How far the control kernel's time is from its usual time on machines of this " +
        "model. It is marked beyond three times their spread. It is not known with fewer than " +
        "three machines.",
    drift: "How far the control kernel moved within a run, from its first processes to the last.",
    contract: "How a number was measured. Numbers of different contracts are never compared.",
    epoch: "Driver, runtime and power limit: they change times although the code is the same.",
    control: "A fixed kernel, timed in every process. When it drifts, the machine changed, not " +
        "the code.",
    threshold: "A slowdown above it fails, if fresh processes confirm it.",
    suite: "The list of cases that was measured.",
    against: "What the candidate was compared with: the stored baseline, or a file or commit.",
    process: "A fresh process measures candidate and baseline on the same buffers, in turns, and " +
        "gives one number. The verdict rests on several of them.",
    stage: "first: processes of the first measurement. confirmation: fresh ones that repeat a " +
        "suspicion.",
    swapped: "In every other process the baseline goes first, so that the order can be told from " +
        "the change.",
    cycles: "The same change in clock cycles of the GPU, which do not depend on the clock rate.",
    ecdf: "The share of samples that took at most this long. Further to the left is faster.",
    interval: "The range that holds the true median in 99 of 100 runs.",
    clock: "Mean clock of the multiprocessors while the samples were taken.",
    resources: "Registers of a thread, shared memory of a block, and bytes spilled, of the " +
        "slowest kernel.",
    history: "The last runs on this device, newest right.",
    over_baseline: "Each run's time divided by that of its baseline, measured in the same " +
        "processes. Older baselines are converted by the ratio of the run that became the next " +
        "baseline, so 1 is always the newest baseline. This has the least noise.",
    over_start: "Each time divided by the first one in the range, so that lines of any length " +
        "can be compared. Ours is told by its pairs with the baseline, where all are linked.",
    days: "How far back, from the newest run.",
    over_control: "Each time ÷ the control kernel's of the same run. What slows the whole " +
        "machine cancels out.",
    fit_ours: "The axis fits our times, the baseline and the threshold. What is outside is named " +
        "at the edge.",
    fit_all: "The axis fits all series, so ours may look flat.",
    spread: "Dark: the 99 % interval of the median. Light: from p10, or else the median, to p90.",
    geomean: "Geometric mean: half the time in one case and twice the time in another cancel out.",
    intensity: "Operations a byte moved. Below the ridge of the roof memory is the limit, above " +
        "it arithmetic.",
    roofline: "No kernel can be above its roof: the slope is the memory's bandwidth, the flat " +
        "part the arithmetic of the data type. They are derived from the recorded share of the " +
        "ceiling.",
    false_alarm: "Unchanged code that the gate called slower. Decisions are drawn anew from the " +
        "processes that were measured, so they are not independent of each other.",
    undecided_same: "Unchanged code that got no verdict. Such a run must be repeated, with more " +
        "processes.",
    missed: "The code was made slower by more than the threshold, but it passed.",
    undecided: "The code was made slower by more than the threshold, and got no verdict.",
    resolves: "Its minimum detectable effect is at most the threshold, so that a pass means " +
        "something.",
    change_point: "A place in a trend where the level changed and stayed so, in several runs on " +
        "both sides.",
    alert_state: "new: nobody has looked at it. acknowledged: someone works on it. accepted: it " +
        "is intended. fixed: a later commit undid it. ignored: it is not real, or not of interest.",
    compare_change: "Time of B compared with A's, from pairs where there are any; + is slower.",
    compare_bar: "The interval of the change, between marks at the threshold. An arrow goes on.",
    compare_judged: "Slower or faster: by more than the runs' threshold, with the whole interval " +
        "beyond half of it. Unclear: beyond the threshold, but the interval is too wide.",
    device: "The model of the GPU, or of the host, that the run was measured on.",
    driver: "Versions of the driver and the CUDA runtime; the power limit and the highest clock.",
    run_measured: "When the run began.",
    subject: "The first line of the commit's message, and the commit's author.",
    pick: "Two runs that are ticked are compared: the second tick opens the comparison.",
    run: "The first digits of the run's unique id.",
    who: "The user or the program that started the run.",
    gate: "The version of the gate that measured and judged.",
    since: "The first run at the new level. ≤: or a commit before it, which was not measured.",
    first_run: "The first run at the new level.",
    first_commit: "From the last run at the old level to the first at the new one: one of these " +
        "commits did it.",
    assignee: "Who works on it.",
    leader: "The verified p50 of this library in the newest run of the case, else its lowest.",
    red_share: "How many decisions were red when the code was slowed by this share of its time. " +
        "At the threshold itself half of them are: it is as often above it as below.",
    library: "The name of the library: ours, or one that ours is compared with.",
    role: "candidate: judged. baseline: what it is compared with. provider: timed beside the " +
        "candidate.",
    library_version: "The version that the library reports.",
    file: "The file that was loaded.",
    sha256: "The SHA-256 hash of the file's bytes.",
    side: "ours: the code under test. baseline: the stored one. Others are libraries timed " +
        "beside them.",
    kernel: "The variant of the kernel that the library chose.",
    seed: "All inputs of the run follow from this number.",
};
