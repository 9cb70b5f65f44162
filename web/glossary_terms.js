// SPDX-License-Identifier: Apache-2.0
// glossary_terms.js: what the words mean, for glossary.js, which asks for it with the first word.

export const TERMS = {
    verdict: "What the gate decided about the newest result: wrong result, slower, faster, no " +
        "difference above the threshold, or not to be told here.",
    case: "One problem of a suite: the op, the data type and the sizes.",
    op: "What a kernel computes, such as gemm or attention_fwd.",
    trend: "p50 of the last runs, oldest left. The height spans at least 4 %, so that noise " +
        "looks like noise.",
    p50: "The median time of one launch.",
    p90: "Nine of ten samples took at most this long.",
    baseline: "The stored baseline: the lowest confirmed p50, with the library that made it, " +
        "until a " +
        "slower one is accepted in its place. Each run times that library anew.",
    change: "Time against the stored baseline, measured in the same processes; + is slower. " +
        "Beside " +
        "it the verdict's interval in percent, whose two sides need not be alike. The picture " +
        "has it between marks at the threshold.",
    mde: "Minimum detectable effect: the smallest change that this case could have told apart " +
        "from noise on this machine. Above the threshold, a pass means little.",
    verified: "The result was compared with a reference in double precision before it was " +
        "timed. The number is the largest relative error.",
    error: "Relative error against the reference (Frobenius norm), worst over all seeds; and " +
        "the limit of the data type.",
    vendor_error: "The relative error over that of the vendor's own kernel on the same inputs, " +
        "the first other library that is right: 1 is as accurate, 2 is twice as wrong.",
    provider: "Our time against that of the fastest other library in the same run, such as " +
        "cuBLAS or cuDNN, from pairs: 2 times slower takes twice as long.",
    ceiling: "Share of the speed of light: the time that the memory traffic or the arithmetic " +
        "must at least take on this device, over p50.",
    here: "Share of what the gate's own kernels reached on this GPU at the end of a run: they " +
        "only read and copy memory, or multiply, and so meet the power limit as a case does.",
    tflops: "Floating-point operations a second, by the count that the op needs.",
    gbps: "Compulsory bytes a second: each operand read once, each result written once.",
    measured: "When the newest run that has the case was made.",
    commit: "The commit that was checked out; + means that there were changes on top of it.",
    branch: "The branch that the run was of.",
    branches: "Whose runs count: those of the main branch (--main-branch of the server), of " +
        "another one, or of all.",
    other_branches: "Runs of merge requests and other branches. They stand beside the line, " +
        "which is the main branch.",
    machine: "The GPU, or the host where there is none. Two GPUs of one model are two machines.",
    fit: "Every case resolves the threshold, at most 5 % of the newest results have no verdict, " +
        "and the control kernel is at the level of the model.",
    off_level: "How far the control kernel is from its level on the machines of this model; " +
        "beyond three of their spreads it is told. Not known with less than three machines.",
    drift: "How far the control kernel moved within a run, from its first processes to the last.",
    contract: "How a number was measured. Numbers of different contracts are never compared.",
    epoch: "Driver, runtime and power limit: what changes times though no code changed.",
    control: "A fixed kernel that is timed in every process. When it drifts, the machine " +
        "changed, not the code.",
    threshold: "The slowdown that fails: the interval's evidence must lie above it, twice, in " +
        "fresh processes.",
    suite: "The list of cases that was measured.",
    against: "What the candidate was compared with: the stored baseline, or a file or commit.",
    process: "A fresh process measures candidate and baseline on the same buffers, in turns, and " +
        "gives one number. The verdict rests on several of them.",
    stage: "Processes of the first look, or of the confirmation that a suspicion needs.",
    swapped: "In every other process the baseline is loaded, recorded and started first. " +
        "What the " +
        "order adds is taken out where there are eight processes or more.",
    cycles: "The same change counted in clock cycles of the GPU, which a lower clock cannot " +
        "change.",
    ecdf: "The share of samples that took at most this long. A curve further to the left is " +
        "faster.",
    interval: "The range that holds the true median in 99 of 100 runs.",
    clock: "Mean clock of the multiprocessors while the samples were taken.",
    resources: "Registers of a thread, shared memory of a block, and what did not fit and went " +
        "to local memory, of the kernel that took longest.",
    history: "The last runs on this device, newest right.",
    by_time: "The runs by their time: what happened when.",
    by_commit: "The runs by their commit, in the order of each commit's first run: a busy day " +
        "has as much room as a quiet month.",
    over_baseline: "Each run's time over that of its baseline, measured in the same processes. " +
        "Baselines are linked by the ratio of the run that became the next one, so that 1 is " +
        "always the newest baseline. The quietest yardstick there is.",
    over_control: "Each time divided by the control kernel's of the same run. What the whole " +
        "machine did drops out, what the code did stays.",
    linear: "Equal distances are equal times.",
    log: "Equal distances are equal ratios.",
    fit_ours: "As high as our times, the baseline and the threshold need. " +
        "A provider that is far off " +
        "is named at the edge behind which it lies, with its newest time.",
    fit_all: "As high as all series need, though ours may become flat.",
    spread: "Dark: the 99 % interval of the median. Light: from p10 (from the median in runs " +
        "that did not record it) to p90.",
    bucket: "Too many runs for single points: each is the median of several, and the band goes " +
        "from their lowest to their highest. Zoom in for single runs.",
    geomean: "Geometric mean: half as long and twice as long are together no change.",
    intensity: "Operations for each byte that must be moved. Below the ridge of the roof memory " +
        "sets the limit, above it arithmetic.",
    roofline: "No kernel can be above its roof: the slope is the memory's bandwidth, the flat " +
        "part the arithmetic of the data type. They are derived from the recorded share of " +
        "the ceiling.",
    false_alarm: "Unchanged code that the gate called slower. Decisions are drawn anew from the " +
        "processes that were measured, so they are not independent of each other.",
    undecided_same: "Unchanged code that got no verdict: a run that says so has to be repeated, " +
        "on a quieter machine or with more processes.",
    missed: "Code made slower by more than the threshold that passed.",
    undecided: "Code made slower by more than the threshold that got no verdict: not green, and " +
        "not blamed either.",
    resolves: "The minimum detectable effect is at most the threshold: unchanged code passes, " +
        "and a pass means something.",
    covered_runs: "Runs, of any branch, that said what their verification covered.",
    covered_cases: "Cases that were verified in them.",
    covered_values: "Kinds of inputs: random, exact, whole ranges of exponents, NaN, infinity, " +
        "scores that are shifted or stretched, and others.",
    covered_shapes: "Shapes other than the cases' own.",
    covered_layouts: "Checks with tensors that are not dense.",
    covered_launches: "Launches whose outputs were looked at.",
    covered_skipped: "Checks that could not be made: a layout that the kernel refuses, a shape " +
        "that the library does not serve or that is too large.",
    covered_of: "Values of the inputs, shapes, layouts of the tensors, or how often was launched.",
    covered_class: "How many checks had such values or layouts, how many shapes were of the " +
        "class, and how many launches there were. docs/method.md says what each is for.",
    covered_pairs: "A size has classes: what it leaves modulo 8 to 512, and how large it is. Of " +
        "all pairs of classes of two sizes, so many met in the shapes of one case.",
    change_point: "A place in a trend where the level changed and stayed changed, found over " +
        "many runs.",
    alert_state: "new: nobody looked yet. acknowledged: someone does. accepted: it is meant to " +
        "be so. fixed: a later commit undid it. ignored: it is not real, or not of interest.",
    compare_change: "Time of B over that of A, from pairs where there are some; + is slower.",
    compare_judged: "As a verdict is: slower or faster by more than the runs' threshold, with an " +
        "interval beyond the half of it. Unclear: beyond the threshold, but not with the interval.",
    device: "The model of the GPU, or of the host, that the run was measured on.",
    driver: "Versions of the driver and the CUDA runtime; the power limit and the highest clock.",
    run_measured: "When the run began.",
    subject: "The first line of the commit's message, and the commit's author.",
    run: "The first digits of the run's name, which is unique.",
    who: "The user or the program that started the run.",
    gate: "The version of the gate that measured and judged.",
    since: "The first run at the new level.",
    level: "The level of p50 before the step and after it, each from several runs.",
    level_error: "The level of the relative error before the step and after it, each from " +
        "several runs.",
    first_run: "The first run at the new level: what it measured, and how.",
    first_commit: "From the last run at the old level to the first one at the new level: one of " +
        "these commits made the difference.",
    assignee: "Who looks into it.",
    leader: "The lowest verified p50 of this library, under the newest contract of the case.",
    red_share: "How many decisions were red when this share of its time was added to the code.",
    library: "Who made the library: ours, or another one that it is compared with.",
    role: "candidate: is judged. baseline: is compared with it. provider: is timed beside it.",
    library_version: "What the library says of itself.",
    file: "The file that was loaded.",
    sha256: "The hash of the file's bytes, which names it without doubt.",
    side: "ours: the code under test. baseline: its stored one. Others: the libraries beside it.",
    kernel: "The variant of the kernel that the library chose.",
    samples: "How many times were taken, over all processes.",
    quantile: "The time that this share of the samples did not exceed: p25 is a quarter.",
    seed: "All inputs of the run follow from this number.",
};
