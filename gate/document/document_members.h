/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_members.h: the members of a run document and their limits, as
 * gate/formats/run.schema.json publishes them. document.h makes structs of them, document.c the
 * tables by which they are read and written. fields_table.h says what a kind takes.
 */
/* clang-format off */

#define MEMBERS_OF document_commit
BEGIN
    F(FORMED, commit, REQUIRED, FORM_COMMIT, TEXT_MAX)
    F(SIZE, time_ms, REQUIRED) /* of its committer, since 1970 UTC */
END
#undef MEMBERS_OF

#define MEMBERS_OF document_git
BEGIN
    F(FORMED, commit, REQUIRED, FORM_COMMIT, TEXT_MAX)
    F(TEXT, branch, REQUIRED, TEXT_MAX)
    F(FORMED, parent, REQUIRED, FORM_COMMIT, TEXT_MAX)
    F(TEXT, subject, REQUIRED, TEXT_MAX)
    F(FORMED, author, 0, FORM_PERSON, TEXT_MAX) /* of the commit, a name */
    F(BOOL, dirty)
    F(TEXT, base, 0, TEXT_MAX)
    F(TEXT, change, 0, TEXT_MAX)
    F(TEXT, job, 0, TEXT_MAX)
    F(FORMED, merge_base, 0, FORM_COMMIT, TEXT_MAX) /* with `base` */
    /* the commit, its first parent, that one's, ... */
    F(LIST, first_parents, 0, 0, DOCUMENT_FIRST_PARENTS_MAX, document_commit)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_device
BEGIN
    F(WORD, kind, REQUIRED, kinds) /* enum document_device_kind */
    F(FORMED, model, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(TEXT, name, REQUIRED, TEXT_MAX)
    F(TEXT, uuid, REQUIRED, TEXT_MAX)
    F(SIZE, sm_count, REQUIRED)
    F(SIZE, l2_bytes, REQUIRED)
    F(SIZE, memory_bytes, REQUIRED)
    F(TEXT, capability, REQUIRED, TEXT_MAX)
    F(TEXT, driver, REQUIRED, TEXT_MAX)
    F(TEXT, runtime, REQUIRED, TEXT_MAX)
    F(SIZE, power_limit_mw, REQUIRED) /* 0: not known, and in the next */
    F(SIZE, sm_clock_max_mhz, REQUIRED)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_library
BEGIN
    F(WORD, role, REQUIRED, document_roles) /* enum document_role */
    F(FORMED, provider, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(TEXT, version, REQUIRED, TEXT_MAX)
    F(TEXT, file, REQUIRED, TEXT_MAX)
    F(FORMED, sha256, REQUIRED, FORM_SHA256, TEXT_MAX)
    F(FORMED, code_sha256, 0, FORM_SHA256, TEXT_MAX) /* machine_code_of_file() */
END
#undef MEMBERS_OF

/* A provider that was asked for and is not on this machine. */
#define MEMBERS_OF document_absent
BEGIN
    F(FORMED, provider, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(TEXT, reason, REQUIRED, TEXT_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_policy
BEGIN
    F(NUMBER, threshold, REQUIRED | ABOVE, 0, 10)
    F(NUMBER, host_threshold, ABOVE, 0, 10) /* of a call of launch() */
    F(TEXT, against, 0, TEXT_MAX)
    /* the branch that HEAD left at `against`; NULL: that is no merge base */
    F(TEXT, base, 0, TEXT_MAX)
    F(TEXT, warn_against, 0, TEXT_MAX) /* what `warning` of each case is about */
    F(TEXTS, changed, 0, 64, TEXT_MAX) /* thresholds that the change moved, as sentences */
END
#undef MEMBERS_OF

/* ---- cases ---- */

/* As it was on record before the run. */
#define MEMBERS_OF document_baseline
BEGIN
    F(TIME, p50_ns, REQUIRED)
    F(TEXT, commit, REQUIRED, TEXT_MAX)
    F(SIZE, time_ms, REQUIRED)
    F(FORMED, library_sha256, 0, FORM_SHA256, TEXT_MAX)
    F(CHOICE, made_by, 0, field_actions)
    F(TIME, again_ns, NULLABLE) /* of its library in this run */
    F(YES_NO, off)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_process
BEGIN
    F(WORD, stage, REQUIRED, document_stages) /* enum document_stage */
    F(BOOL, swapped)
    F(TIME, p50_ns, REQUIRED)
    F(SHARE, half_width, 0)
    F(TIME, baseline_p50_ns, REQUIRED | NULLABLE)
    F(ANY, log_ratio, REQUIRED | NULLABLE) /* ln of candidate over baseline, as the next four */
    F(ANY, log_ratio_cycles, REQUIRED | NULLABLE)
    F(ANY, log_ratio_p90, REQUIRED | NULLABLE)
    F(ANY, log_ratio_calls, 0)
    F(ANY, log_ratio_fresh, 0)
    F(SHARE, control_ns, REQUIRED)
END
#undef MEMBERS_OF

/* One of several outputs of an op. */
#define MEMBERS_OF document_output
BEGIN
    ASIDE(const char *name;) /* its key */
    F(SHARE, rel_fro, NULLABLE)
END
#undef MEMBERS_OF

/* How often verification checked a class; the names are those of the members. */
#define MEMBERS_OF document_covered_values
BEGIN
    F(COUNT, random_normal, 0, COUNT_MAX)
    F(COUNT, random_uniform, 0, COUNT_MAX)
    F(COUNT, exact_integers, 0, COUNT_MAX)
    F(COUNT, exact_cancellation, 0, COUNT_MAX)
    F(COUNT, exact_powers_of_two, 0, COUNT_MAX)
    F(COUNT, exact_largest, 0, COUNT_MAX)
    F(COUNT, nan_and_infinity, 0, COUNT_MAX)
    F(COUNT, nan_and_infinity_in_second, 0, COUNT_MAX)
    F(COUNT, nan_in_second, 0, COUNT_MAX)
    F(COUNT, constant, 0, COUNT_MAX)
    F(COUNT, zeros, 0, COUNT_MAX)
    F(COUNT, one_value, 0, COUNT_MAX)
    F(COUNT, retrieval, 0, COUNT_MAX)
    F(COUNT, score_ramp, 0, COUNT_MAX)
    F(COUNT, low_scores, 0, COUNT_MAX)
    F(COUNT, huge_masked_keys, 0, COUNT_MAX)
    F(COUNT, shifted_scores, 0, COUNT_MAX)
    F(COUNT, stretched_scores, 0, COUNT_MAX)
    F(COUNT, faint_keys, 0, COUNT_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_covered_shapes
BEGIN
    F(COUNT, small, 0, COUNT_MAX)
    F(COUNT, as_large, 0, COUNT_MAX)
    F(COUNT, giant, 0, COUNT_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_covered_layouts
BEGIN
    F(COUNT, dense, 0, COUNT_MAX)
    F(COUNT, padded_rows, 0, COUNT_MAX)
    F(COUNT, wide_rows, 0, COUNT_MAX)
    F(COUNT, odd_rows, 0, COUNT_MAX)
    F(COUNT, heads_side_by_side, 0, COUNT_MAX)
    F(COUNT, heads_apart, 0, COUNT_MAX)
    F(COUNT, far_rows, 0, COUNT_MAX)
    F(COUNT, unmapped_beside, 0, COUNT_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_covered_launches
BEGIN
    F(COUNT, of_checks, 0, COUNT_MAX)
    F(COUNT, in_a_row, 0, COUNT_MAX)
    F(COUNT, on_the_case, 0, COUNT_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_covered
BEGIN
    F(PART, values, document_covered_values)
    F(PART, shapes, document_covered_shapes)
    F(PART, layouts, document_covered_layouts)
    F(PART, launches, document_covered_launches)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_verify
BEGIN
    F(BOOL, ok)
    F(SIZE, seeds, REQUIRED)
    F(SHARE, rel_fro, REQUIRED | NULLABLE)
    /* of an op with several; NULL: it is not known of each */
    F(NAMED, outputs, 0, DOCUMENT_OUTPUTS_MAX, document_output)
    F(NUMBER, limit, REQUIRED | ABOVE, 0, INFINITY)
    F(SHARE, max_abs, REQUIRED | NULLABLE)
    F(NUMBER, allclose_1e2, REQUIRED, 0, 1) /* shares of elements, this and the next */
    F(NUMBER, allclose_1e3, REQUIRED, 0, 1)
    F(SIZE, nonfinite, REQUIRED)
    F(TEXT, message, REQUIRED, REASON_MAX)
    F(SIZE, checks, 0)
    F(SIZE, skipped, 0)
    F(COUNT, refused, 0, COUNT_MAX)
    F(COUNT, not_served, 0, COUNT_MAX)
    F(COUNT, not_guarded, 0, COUNT_MAX)
    F(COUNT, too_large, 0, COUNT_MAX)
    F(COUNT, values, 0, COUNT_MAX)
    F(COUNT, shapes, 0, COUNT_MAX)
    F(COUNT, layouts, 0, COUNT_MAX)
    F(COUNT, launches, 0, COUNT_MAX)
    F(COUNT, pairs, 0, COUNT_MAX)
    F(COUNT, pairs_of, 0, COUNT_MAX)
    F(MAYBE, covered, 0, document_covered)
    F(TEXT, why_not_guarded, 0, 200)
    F(TEXT, not_declared, 0, 200)
    F(YES_NO, own_shape_only)
    F(FORMED, vendor, 0, FORM_NAME, NAME_MAX_CHARACTERS)
    F(SHARE, vendor_ratio, 0)
    F(FORMED, verified_in, 0, FORM_UUID, TEXT_MAX) /* the run that did; NULL: this one */
END
#undef MEMBERS_OF

#define MEMBERS_OF document_sensor
BEGIN
    F(SHARE, before, REQUIRED | NULLABLE)
    F(SHARE, after, REQUIRED | NULLABLE)
END
#undef MEMBERS_OF

/* A kernel that the launch runs; figures as `gate diff` has them. */
#define MEMBERS_OF document_kernel
BEGIN
    F(TEXT, name, REQUIRED, KERNEL_NAME_MAX)
    F(FORMED, code_sha256, 0, FORM_SHA256, TEXT_MAX)
    F(TEXT, grid, REQUIRED, SIZES_MAX) /* "132 x 1 x 1" */
    F(TEXT, block, REQUIRED, SIZES_MAX)
    F(SIZE, launches, 0)
    F(SIZE, shared_bytes, REQUIRED)
    F(SIZE, registers, REQUIRED)
    F(SIZE, stack, 0)
    F(SIZE, local_stores, 0)
    F(SIZE, local_loads, 0)
    F(SIZE, barriers, 0)
    F(SIZE, code, 0)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_timing
BEGIN
    F(TIME, p50_ns, REQUIRED)
    F(TIME, p50_lo_ns, REQUIRED | NULLABLE)
    F(TIME, p50_hi_ns, REQUIRED | NULLABLE)
    F(TIME, p10_ns, 0)
    F(TIME, p90_ns, REQUIRED | NULLABLE)
    F(SIZE, processes, 0)
    F(SHARE, spread, 0)
    F(SIZE, samples, REQUIRED)
    F(SIZE, launches_per_sample, REQUIRED)
    F(SIZE, input_sets, REQUIRED)
    F(BOOL, cold)
    F(SHARE, tflops, REQUIRED)
    F(SHARE, gbps, REQUIRED)
    F(SHARE, ceiling, REQUIRED | NULLABLE)
    F(SHARE, measured_ceiling, 0)
    F(SHARE, sm_clock_mhz, REQUIRED)
    F(SIZE, registers, 0)
    F(SIZE, shared_bytes, 0)
    F(SIZE, spill_bytes, 0)
    F(FORMED, code_sha256, 0, FORM_SHA256, TEXT_MAX)
    F(YES_NO, same_code)
    F(SHARE, throttled_power_ns, 0)
    F(SHARE, throttled_thermal_ns, 0)
    F(MAYBE, power_w, NULLABLE, document_sensor)
    F(MAYBE, temperature_c, NULLABLE, document_sensor)
    F(TIME, single_p50_ns, REQUIRED | NULLABLE)
    F(TIME, single_p90_ns, REQUIRED | NULLABLE)
    F(SIZE, single_samples, REQUIRED)
    F(MAYBE, ratio_to_candidate, REQUIRED | NULLABLE, estimate) /* candidate over this arm */
    F(FACTOR, ratio_cycles, NULLABLE)
    F(FACTOR, ratio_p90, NULLABLE)
    F(TIME, call_ns, 0) /* of launch() on the host, as ratio_calls */
    F(FACTOR, ratio_calls, 0)
    F(FACTOR, ratio_fresh, 0)
    F(LIST, kernels, 0, 0, DOCUMENT_KERNELS_MAX, document_kernel)
    /* what a call of launch() runs (revision.h); NULL: not known */
    F(TEXT, launches, 0, LAUNCHES_TEXT_MAX)
    F(FORMED, samples_ns, 0, FORM_BASE64, 1000000) /* little-endian float32 */
    F(FORMED, measured_in, 0, FORM_UUID, TEXT_MAX) /* a provider's: the run that did; NULL: this */
END
#undef MEMBERS_OF

#define MEMBERS_OF document_arm
BEGIN
    F(FORMED, provider, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(WORD, role, REQUIRED, document_roles) /* enum document_role */
    F(FORMED, kernel, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(MAYBE, verify, REQUIRED | NULLABLE, document_verify)
    F(MAYBE, timing, REQUIRED | NULLABLE, document_timing)
END
#undef MEMBERS_OF

/* What a second comparison found, which decides nothing. */
#define MEMBERS_OF document_warning
BEGIN
    F(WORD, verdict, REQUIRED, verdict_names) /* enum verdict */
    F(TEXT, reason, REQUIRED, CASE_REASON_MAX)
    F(MAYBE, ratio, REQUIRED | NULLABLE, estimate)
    F(SHARE, mde, NULLABLE)
END
#undef MEMBERS_OF

/* A hardware counter of a kernel on both sides. */
#define MEMBERS_OF document_counter
BEGIN
    F(COUNT, kernel, REQUIRED, DOCUMENT_KERNELS_MAX - 1) /* place among the names */
    F(WORD, counter, REQUIRED, counter_names)            /* of counters.h */
    F(SHARE, candidate, REQUIRED)                        /* percent, bytes, a number or a ratio */
    F(SHARE, baseline, REQUIRED)
    F(SHARE, moved, REQUIRED) /* |ln of their ratio|, little values left out */
END
#undef MEMBERS_OF

/* For a regression: the counters of ncu, sorted by how much they moved; or why there are none. */
#define MEMBERS_OF document_counters
BEGIN
    F(WORDS, message, 0, 500)
    /* mangled names, of those that both sides launch */
    F(TEXTS, kernels, REQUIRED, DOCUMENT_KERNELS_MAX, KERNEL_NAME_MAX)
    F(LIST, moved, REQUIRED, 0, DOCUMENT_KERNELS_MAX * COUNTERS_N, document_counter)
END
#undef MEMBERS_OF

/* An instruction that occurs more or less often in a kernel than in the baseline's. */
#define MEMBERS_OF document_instruction
BEGIN
    F(COUNT, kernel, REQUIRED, DOCUMENT_KERNELS_MAX - 1) /* place among the names */
    F(COUNT, loop, REQUIRED, 1e6) /* in this one alone, by their order; 0: in the whole kernel */
    F(WORDS, opcode, REQUIRED, DOCUMENT_OPCODE_SIZE - 1)
    F(SIZE, candidate, REQUIRED)
    F(SIZE, baseline, REQUIRED)
    /* "gemm.cu:120" of the first one that is new or gone; NULL: not known */
    F(TEXT, source, 0, 200)
END
#undef MEMBERS_OF

/* For a regression: the kernels whose code changed, and their changed instructions; or why this is
 * not known. */
#define MEMBERS_OF document_instructions
BEGIN
    F(WORDS, message, 0, 500)
    /* the candidate's mangled names */
    F(TEXTS, kernels, REQUIRED, DOCUMENT_KERNELS_MAX, KERNEL_NAME_MAX)
    F(LIST, changed, REQUIRED, 0, 400, document_instruction) /* by kernel and loop, most first */
END
#undef MEMBERS_OF

/* A node of the candidate's launch, and its share of the slowdown. */
#define MEMBERS_OF document_node
BEGIN
    F(WORDS, name, REQUIRED, KERNEL_NAME_MAX)
    F(WORDS, message, 0, 500)       /* why that is not known */
    F(MAYBE, carries, 0, estimate)  /* a ratio: 1.05 for 5 % */
END
#undef MEMBERS_OF

/* For a regression: the node of the launch that causes it; or why this is not known. */
#define MEMBERS_OF document_blame
BEGIN
    F(WORDS, message, 0, 500)
    F(MAYBE, slowdown, 0, estimate) /* candidate over baseline, in the same process */
    F(LIST, nodes, REQUIRED, 0, DOCUMENT_NODES_MAX, document_node)
    /* the names of the baseline's nodes, where they do not correspond */
    F(TEXTS, baseline, 0, DOCUMENT_NODES_MAX, KERNEL_NAME_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_case
BEGIN
    F(FORMED, id, REQUIRED, FORM_ID, ID_MAX)
    F(FORMED, op, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(FORMED, dtype, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    /* of the definition of a user's op; NULL: it is built in */
    F(FORMED, op_sha256, 0, FORM_SHA256, TEXT_MAX)
    F(WORD, verdict, REQUIRED, verdict_names) /* enum verdict */
    F(TEXT, reason, REQUIRED, CASE_REASON_MAX)
    F(WORD, mode, 0, document_modes) /* enum document_mode */
    F(MAYBE, baseline, REQUIRED | NULLABLE, document_baseline)
    F(MAYBE, ratio, REQUIRED | NULLABLE, estimate)
    F(MAYBE, ratio_p90, NULLABLE, estimate)
    F(MAYBE, ratio_calls, 0, estimate)
    F(SHARE, mde, NULLABLE)
    F(YES_NO, same_library)
    F(YES_NO, same_code)
    F(SHARE, error_ratio, NULLABLE)
    F(MAYBE, warning, 0, document_warning)
    F(MAYBE, counters, 0, document_counters)
    F(MAYBE, instructions, 0, document_instructions)
    F(MAYBE, blame, 0, document_blame)
    F(NUMBER, threshold, ABOVE, 0, INFINITY) /* of its own */
    F(LIST, processes, 0, 0, DOCUMENT_PROCESSES_MAX, document_process)
    F(LIST, arms, REQUIRED, 0, 8, document_arm)
END
#undef MEMBERS_OF

/* The rates that the gate's own kernels reached on the device in this run, or why they are not
 * known. */
#define MEMBERS_OF document_ceilings
BEGIN
    F(WORDS, message, 0, TEXT_MAX)
    F(SHARE, read_gbps, 0)
    F(SHARE, copy_gbps, 0) /* bytes read and written */
    F(SHARE, fp16_tflops, 0)
    F(SHARE, bf16_tflops, 0)
    F(SHARE, tf32_tflops, 0)
    F(SHARE, fp32_tflops, 0)
    F(FORMED, measured_in, 0, FORM_UUID, TEXT_MAX) /* the run that did; NULL: this one */
END
#undef MEMBERS_OF

/* ---- calibration ---- */

#define MEMBERS_OF document_injected
BEGIN
    F(SHARE, share, REQUIRED)
    F(NUMBERS, log_ratio, REQUIRED, 200) /* of each process */
    F(SIZE, red, REQUIRED)
    F(SIZE, pass, REQUIRED)
    F(SIZE, no_verdict, REQUIRED)
    F(SIZE, decisions, REQUIRED)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_calibrated
BEGIN
    F(FORMED, id, REQUIRED, FORM_ID, ID_MAX)
    F(SHARE, mde, REQUIRED | NULLABLE)
    F(BOOL, resolved)
    F(LIST, injected, REQUIRED, 0, 16, document_injected)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_incomplete
BEGIN
    F(FORMED, id, REQUIRED, FORM_ID, ID_MAX)
    F(SIZE, processes, REQUIRED)
    F(SIZE, wanted, REQUIRED)
    F(WORD_FROM, verdict, REQUIRED, VERDICT_WRONG, verdict_names) /* enum verdict */
    F(TEXT, reason, REQUIRED, REASON_MAX)
END
#undef MEMBERS_OF

#define MEMBERS_OF document_calibration
BEGIN
    F(SIZE, processes, REQUIRED)
    F(LIST, cases, REQUIRED, 0, CASES_MAX, document_calibrated)
    F(LIST, incomplete, 0, 0, CASES_MAX, document_incomplete)
END
#undef MEMBERS_OF

/* ---- the whole ---- */

/* A case that does not count: the candidate has no kernel for it, and the suite comes with the
 * gate; or --filter leaves it out. */
#define MEMBERS_OF document_not_served
BEGIN
    F(FORMED, id, REQUIRED, FORM_ID, ID_MAX)
END
#undef MEMBERS_OF

/* A part of a suite that was measured apart from the others. */
#define MEMBERS_OF document_shard
BEGIN
    F(COUNT_FROM, index, REQUIRED, 1, 1000)
    F(COUNT_FROM, count, REQUIRED, 1, 1000)
    F(COUNT, cases, REQUIRED, CASES_MAX) /* of the whole suite */
    F(FORMED, suite_sha256, REQUIRED, FORM_SHA256, TEXT_MAX)
    F(NUMBERS, positions, REQUIRED, CASES_MAX) /* of its cases in the suite, from 0 */
END
#undef MEMBERS_OF

#define MEMBERS_OF document
BEGIN
    F(CHOICE, schema, REQUIRED, schemas)
    F(FORMED, uuid, REQUIRED, FORM_UUID, TEXT_MAX)
    F(SIZE, time_ms, REQUIRED)
    F(SIZE, duration_ms, REQUIRED)
    F(TEXT, gate_version, REQUIRED, TEXT_MAX)
    F(PART, git, document_git)
    F(TEXT, who, REQUIRED, TEXT_MAX)
    F(FORMED, suite, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(PART, device, document_device)
    F(YES_NO, users_checked)
    F(YES_NO, launch_order_checked)
    F(LIST, libraries, REQUIRED, 1, DOCUMENT_LIBRARIES_MAX, document_library)
    F(LIST, absent, 0, 0, 16, document_absent)
    F(FORMED, contract, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS)
    F(PART, policy, document_policy)
    F(MAYBE, shard, 0, document_shard)
    F(TEXT, epoch, 0, TEXT_MAX)
    F(SIZE, thinned_ms, 0) /* when a store dropped the samples */
    F(SHARE, control_drift, NULLABLE)
    F(SIZE, n_processes, 0)
    F(TEXT, not_stored, 0, 2000) /* why neither history nor baselines have it; NULL: they may */
    F(FORMED, seed, REQUIRED, FORM_SEED, TEXT_MAX)
    F(WORD, verdict, REQUIRED, verdict_names) /* enum verdict */
    F(COUNT, exit_code, REQUIRED, 4)
    F(MAYBE, ceilings, 0, document_ceilings)
    F(MAYBE, calibration, 0, document_calibration)
    F(LIST, cases, REQUIRED, 0, CASES_MAX, document_case)
    F(LIST, not_served, 0, 0, CASES_MAX, document_not_served)
    F(LIST, filtered, 0, 0, CASES_MAX, document_not_served)
    /* that the texts are part of; all zero: they are the maker's */
    ASIDE(struct fields_taken taken;)
END
#undef MEMBERS_OF

#undef F
#undef ASIDE
#undef BEGIN
#undef END
