/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document.c: the members of a run document and their limits, as gate/formats/run.schema.json
 * publishes them; see document.h.
 */
#include "gate/document/document.h"

#include "gate/counters/counters.h"
#include "gate/document/fields_table.h"

#define COUNT_MAX 1e9 /* summed over the cases of a run */
#define CASE_REASON_MAX 1600
#define CASES_MAX 10000
#define KERNEL_NAME_MAX (DOCUMENT_KERNEL_NAME_SIZE - 1)
#define SIZES_MAX 48 /* three whole numbers */

static const char *const kinds[] = {"host", "cuda", NULL};
const char *const document_roles[] = {"candidate", "baseline", "provider", NULL};
const char *const document_modes[] = {"paired", "number", "none", NULL};
const char *const document_stages[] = {"first", "confirmation", NULL};
static const char *const schemas[] = {"gate-run/1", NULL};

#define OF document_commit
static const struct field commit_fields[] = {
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX),
    SIZE(time_ms, REQUIRED),
};
SHAPE(commit);
#undef OF

#define OF document_git
static const struct field git_fields[] = {
    FORMED(commit, REQUIRED, FORM_COMMIT, TEXT_MAX),
    TEXT(branch, REQUIRED, TEXT_MAX),
    FORMED(parent, REQUIRED, FORM_COMMIT, TEXT_MAX),
    TEXT(subject, REQUIRED, TEXT_MAX),
    FORMED(author, 0, FORM_PERSON, TEXT_MAX),
    BOOL(dirty),
    TEXT(base, 0, TEXT_MAX),
    TEXT(change, 0, TEXT_MAX),
    TEXT(job, 0, TEXT_MAX),
    FORMED(merge_base, 0, FORM_COMMIT, TEXT_MAX),
    LIST(first_parents, 0, 0, DOCUMENT_FIRST_PARENTS_MAX, commit),
};
SHAPE(git);
#undef OF

#define OF document_device
static const struct field device_fields[] = {
    WORD(kind, REQUIRED, kinds),      FORMED(model, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    TEXT(name, REQUIRED, TEXT_MAX),   TEXT(uuid, REQUIRED, TEXT_MAX),
    SIZE(sm_count, REQUIRED),         SIZE(l2_bytes, REQUIRED),
    SIZE(memory_bytes, REQUIRED),     TEXT(capability, REQUIRED, TEXT_MAX),
    TEXT(driver, REQUIRED, TEXT_MAX), TEXT(runtime, REQUIRED, TEXT_MAX),
    SIZE(power_limit_mw, REQUIRED),   SIZE(sm_clock_max_mhz, REQUIRED),
};
const struct shape document_device_shape = SHAPE_OF(device);
#undef OF

#define OF document_library
static const struct field library_fields[] = {
    WORD(role, REQUIRED, document_roles),
    FORMED(provider, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    TEXT(version, REQUIRED, TEXT_MAX),
    TEXT(file, REQUIRED, TEXT_MAX),
    FORMED(sha256, REQUIRED, FORM_SHA256, TEXT_MAX),
    FORMED(code_sha256, 0, FORM_SHA256, TEXT_MAX),
};
const struct shape document_library_shape = SHAPE_OF(library);
#undef OF

#define OF document_absent
static const struct field absent_fields[] = {
    FORMED(provider, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    TEXT(reason, REQUIRED, TEXT_MAX),
};
const struct shape document_absent_shape = SHAPE_OF(absent);
#undef OF

#define OF document_policy
static const struct field policy_fields[] = {
    NUMBER(threshold, REQUIRED | ABOVE, 0, 10),
    NUMBER(host_threshold, ABOVE, 0, 10),
    TEXT(against, 0, TEXT_MAX),
    TEXT(base, 0, TEXT_MAX),
    TEXT(warn_against, 0, TEXT_MAX),
    TEXTS(changed, 0, 64, TEXT_MAX),
};
SHAPE(policy);
#undef OF

#define OF estimate
static const struct field ratio_fields[] = {
    FACTOR(value, REQUIRED),
    FACTOR(lo, REQUIRED),
    FACTOR(hi, REQUIRED),
};
SHAPE(ratio);
#undef OF

/* ---- cases ---- */

#define OF document_baseline
static const struct field baseline_fields[] = {
    TIME(p50_ns, REQUIRED),
    TEXT(commit, REQUIRED, TEXT_MAX),
    SIZE(time_ms, REQUIRED),
    FORMED(library_sha256, 0, FORM_SHA256, TEXT_MAX),
    CHOICE(made_by, 0, field_actions),
    TIME(again_ns, NULLABLE),
    YES_NO(off),
};
SHAPE(baseline);
#undef OF

#define OF document_process
static const struct field process_fields[] = {
    WORD(stage, REQUIRED, document_stages),
    BOOL(swapped),
    TIME(p50_ns, REQUIRED),
    SHARE(half_width, 0),
    TIME(baseline_p50_ns, REQUIRED | NULLABLE),
    ANY(log_ratio, REQUIRED | NULLABLE),
    ANY(log_ratio_cycles, REQUIRED | NULLABLE),
    ANY(log_ratio_p90, REQUIRED | NULLABLE),
    ANY(log_ratio_calls, 0),
    ANY(log_ratio_fresh, 0),
    SHARE(control_ns, REQUIRED),
};
const struct shape document_process_shape = SHAPE_OF(process);
#undef OF

#define OF document_output
static const struct field output_fields[] = {SHARE(rel_fro, NULLABLE)};
const struct shape document_output_shape = SHAPE_OF(output);
#undef OF

#define OF document_covered_values
static const struct field covered_values_fields[] = {
    COUNT(random_normal, 0, COUNT_MAX),
    COUNT(random_uniform, 0, COUNT_MAX),
    COUNT(exact_integers, 0, COUNT_MAX),
    COUNT(exact_cancellation, 0, COUNT_MAX),
    COUNT(exact_powers_of_two, 0, COUNT_MAX),
    COUNT(exact_largest, 0, COUNT_MAX),
    COUNT(nan_and_infinity, 0, COUNT_MAX),
    COUNT(nan_and_infinity_in_second, 0, COUNT_MAX),
    COUNT(nan_in_second, 0, COUNT_MAX),
    COUNT(constant, 0, COUNT_MAX),
    COUNT(zeros, 0, COUNT_MAX),
    COUNT(one_value, 0, COUNT_MAX),
    COUNT(retrieval, 0, COUNT_MAX),
    COUNT(score_ramp, 0, COUNT_MAX),
    COUNT(low_scores, 0, COUNT_MAX),
    COUNT(huge_masked_keys, 0, COUNT_MAX),
    COUNT(shifted_scores, 0, COUNT_MAX),
    COUNT(stretched_scores, 0, COUNT_MAX),
    COUNT(faint_keys, 0, COUNT_MAX),
};
SHAPE(covered_values);
#undef OF

#define OF document_covered_shapes
static const struct field covered_shapes_fields[] = {
    COUNT(small, 0, COUNT_MAX),
    COUNT(as_large, 0, COUNT_MAX),
    COUNT(giant, 0, COUNT_MAX),
};
SHAPE(covered_shapes);
#undef OF

#define OF document_covered_layouts
static const struct field covered_layouts_fields[] = {
    COUNT(dense, 0, COUNT_MAX),
    COUNT(padded_rows, 0, COUNT_MAX),
    COUNT(wide_rows, 0, COUNT_MAX),
    COUNT(odd_rows, 0, COUNT_MAX),
    COUNT(heads_side_by_side, 0, COUNT_MAX),
    COUNT(heads_apart, 0, COUNT_MAX),
    COUNT(far_rows, 0, COUNT_MAX),
    COUNT(unmapped_beside, 0, COUNT_MAX),
};
SHAPE(covered_layouts);
#undef OF

#define OF document_covered_launches
static const struct field covered_launches_fields[] = {
    COUNT(of_checks, 0, COUNT_MAX),
    COUNT(in_a_row, 0, COUNT_MAX),
    COUNT(on_the_case, 0, COUNT_MAX),
};
SHAPE(covered_launches);
#undef OF

#define OF document_covered
static const struct field covered_fields[] = {
    PART(values, covered_values),
    PART(shapes, covered_shapes),
    PART(layouts, covered_layouts),
    PART(launches, covered_launches),
};
const struct shape document_covered_shape = SHAPE_OF(covered);
#undef OF

#define OF document_verify
static const struct field verify_fields[] = {
    BOOL(ok),
    SIZE(seeds, REQUIRED),
    SHARE(rel_fro, REQUIRED | NULLABLE),
    NAMED(outputs, 0, DOCUMENT_OUTPUTS_MAX, document_output_shape),
    NUMBER(limit, REQUIRED | ABOVE, 0, INFINITY),
    SHARE(max_abs, REQUIRED | NULLABLE),
    NUMBER(allclose_1e2, REQUIRED, 0, 1),
    NUMBER(allclose_1e3, REQUIRED, 0, 1),
    SIZE(nonfinite, REQUIRED),
    TEXT(message, REQUIRED, REASON_MAX),
    SIZE(checks, 0),
    SIZE(skipped, 0),
    COUNT(refused, 0, COUNT_MAX),
    COUNT(not_served, 0, COUNT_MAX),
    COUNT(not_guarded, 0, COUNT_MAX),
    COUNT(too_large, 0, COUNT_MAX),
    COUNT(values, 0, COUNT_MAX),
    COUNT(shapes, 0, COUNT_MAX),
    COUNT(layouts, 0, COUNT_MAX),
    COUNT(launches, 0, COUNT_MAX),
    COUNT(pairs, 0, COUNT_MAX),
    COUNT(pairs_of, 0, COUNT_MAX),
    MAYBE(covered, 0, document_covered_shape),
    TEXT(why_not_guarded, 0, 200),
    TEXT(not_declared, 0, 200),
    YES_NO(own_shape_only),
    FORMED(vendor, 0, FORM_NAME, NAME_MAX_CHARACTERS),
    SHARE(vendor_ratio, 0),
    FORMED(verified_in, 0, FORM_UUID, TEXT_MAX),
};
SHAPE(verify);
#undef OF

#define OF document_sensor
static const struct field sensor_fields[] = {
    SHARE(before, REQUIRED | NULLABLE),
    SHARE(after, REQUIRED | NULLABLE),
};
SHAPE(sensor);
#undef OF

#define OF document_kernel
static const struct field kernel_fields[] = {
    TEXT(name, REQUIRED, KERNEL_NAME_MAX),
    FORMED(code_sha256, 0, FORM_SHA256, TEXT_MAX),
    TEXT(grid, REQUIRED, SIZES_MAX),
    TEXT(block, REQUIRED, SIZES_MAX),
    SIZE(launches, 0),
    SIZE(shared_bytes, REQUIRED),
    SIZE(registers, REQUIRED),
    SIZE(stack, 0),
    SIZE(local_stores, 0),
    SIZE(local_loads, 0),
    SIZE(barriers, 0),
    SIZE(code, 0),
};
SHAPE(kernel);
#undef OF

#define OF document_timing
static const struct field timing_fields[] = {
    TIME(p50_ns, REQUIRED),
    TIME(p50_lo_ns, REQUIRED | NULLABLE),
    TIME(p50_hi_ns, REQUIRED | NULLABLE),
    TIME(p10_ns, 0),
    TIME(p90_ns, REQUIRED | NULLABLE),
    SIZE(processes, 0),
    SHARE(spread, 0),
    SIZE(samples, REQUIRED),
    SIZE(launches_per_sample, REQUIRED),
    SIZE(input_sets, REQUIRED),
    BOOL(cold),
    SHARE(tflops, REQUIRED),
    SHARE(gbps, REQUIRED),
    SHARE(ceiling, REQUIRED | NULLABLE),
    SHARE(measured_ceiling, 0),
    SHARE(sm_clock_mhz, REQUIRED),
    SIZE(registers, 0),
    SIZE(shared_bytes, 0),
    SIZE(spill_bytes, 0),
    FORMED(code_sha256, 0, FORM_SHA256, TEXT_MAX),
    YES_NO(same_code),
    SHARE(throttled_power_ns, 0),
    SHARE(throttled_thermal_ns, 0),
    MAYBE(power_w, NULLABLE, sensor),
    MAYBE(temperature_c, NULLABLE, sensor),
    TIME(single_p50_ns, REQUIRED | NULLABLE),
    TIME(single_p90_ns, REQUIRED | NULLABLE),
    SIZE(single_samples, REQUIRED),
    MAYBE(ratio_to_candidate, REQUIRED | NULLABLE, ratio),
    FACTOR(ratio_cycles, NULLABLE),
    FACTOR(ratio_p90, NULLABLE),
    TIME(call_ns, 0),
    FACTOR(ratio_calls, 0),
    FACTOR(ratio_fresh, 0),
    LIST(kernels, 0, 0, DOCUMENT_KERNELS_MAX, kernel),
    TEXT(launches, 0, LAUNCHES_TEXT_MAX),
    FORMED(samples_ns, 0, FORM_BASE64, 1000000),
    FORMED(measured_in, 0, FORM_UUID, TEXT_MAX),
};
const struct shape document_timing_shape = SHAPE_OF(timing);
#undef OF

#define OF document_arm
static const struct field arm_fields[] = {
    FORMED(provider, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    WORD(role, REQUIRED, document_roles),
    FORMED(kernel, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    MAYBE(verify, REQUIRED | NULLABLE, verify),
    MAYBE(timing, REQUIRED | NULLABLE, document_timing_shape),
};
const struct shape document_arm_shape = SHAPE_OF(arm);
#undef OF

#define OF document_warning
static const struct field warning_fields[] = {
    WORD(verdict, REQUIRED, verdict_names),
    TEXT(reason, REQUIRED, CASE_REASON_MAX),
    MAYBE(ratio, REQUIRED | NULLABLE, ratio),
    SHARE(mde, NULLABLE),
};
SHAPE(warning);
#undef OF

#define OF document_counter
static const struct field counter_fields[] = {
    COUNT(kernel, REQUIRED, DOCUMENT_KERNELS_MAX - 1),
    WORD(counter, REQUIRED, counter_names),
    SHARE(candidate, REQUIRED),
    SHARE(baseline, REQUIRED),
    SHARE(moved, REQUIRED),
};
SHAPE(counter);
#undef OF

#define OF document_counters
static const struct field counters_fields[] = {
    WORDS(message, 0, 500),
    TEXTS(kernels, REQUIRED, DOCUMENT_KERNELS_MAX, KERNEL_NAME_MAX),
    LIST(moved, REQUIRED, 0, DOCUMENT_KERNELS_MAX *COUNTERS_N, counter),
};
static const struct shape counters_shape = SHAPE_OF(counters);
#undef OF

#define OF document_instruction
static const struct field instruction_fields[] = {
    COUNT(kernel, REQUIRED, DOCUMENT_KERNELS_MAX - 1),
    COUNT(loop, REQUIRED, 1e6),
    WORDS(opcode, REQUIRED, DOCUMENT_OPCODE_SIZE - 1),
    SIZE(candidate, REQUIRED),
    SIZE(baseline, REQUIRED),
    TEXT(source, 0, 200),
};
SHAPE(instruction);
#undef OF

#define OF document_instructions
static const struct field instructions_fields[] = {
    WORDS(message, 0, 500),
    TEXTS(kernels, REQUIRED, DOCUMENT_KERNELS_MAX, KERNEL_NAME_MAX),
    LIST(changed, REQUIRED, 0, 400, instruction),
};
static const struct shape instructions_shape = SHAPE_OF(instructions);
#undef OF

#define OF document_node
static const struct field node_fields[] = {
    WORDS(name, REQUIRED, KERNEL_NAME_MAX),
    WORDS(message, 0, 500),
    MAYBE(carries, 0, ratio),
};
SHAPE(node);
#undef OF

#define OF document_blame
static const struct field blame_fields[] = {
    WORDS(message, 0, 500),
    MAYBE(slowdown, 0, ratio),
    LIST(nodes, REQUIRED, 0, DOCUMENT_NODES_MAX, node),
    TEXTS(baseline, 0, DOCUMENT_NODES_MAX, KERNEL_NAME_MAX),
};
const struct shape document_blame_shape = SHAPE_OF(blame);
#undef OF

#define OF document_case
static const struct field one_case_fields[] = {
    FORMED(id, REQUIRED, FORM_ID, ID_MAX),
    FORMED(op, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    FORMED(dtype, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    FORMED(op_sha256, 0, FORM_SHA256, TEXT_MAX),
    WORD(verdict, REQUIRED, verdict_names),
    TEXT(reason, REQUIRED, CASE_REASON_MAX),
    WORD(mode, 0, document_modes),
    MAYBE(baseline, REQUIRED | NULLABLE, baseline),
    MAYBE(ratio, REQUIRED | NULLABLE, ratio),
    MAYBE(ratio_p90, NULLABLE, ratio),
    MAYBE(ratio_calls, 0, ratio),
    SHARE(mde, NULLABLE),
    YES_NO(same_library),
    YES_NO(same_code),
    SHARE(error_ratio, NULLABLE),
    MAYBE(warning, 0, warning),
    MAYBE(counters, 0, counters_shape),
    MAYBE(instructions, 0, instructions_shape),
    MAYBE(blame, 0, document_blame_shape),
    NUMBER(threshold, ABOVE, 0, INFINITY),
    LIST(processes, 0, 0, DOCUMENT_PROCESSES_MAX, document_process_shape),
    LIST(arms, REQUIRED, 0, 8, document_arm_shape),
};
const struct shape document_case_shape = SHAPE_OF(one_case);
#undef OF

#define OF document_ceilings
static const struct field ceilings_fields[] = {
    WORDS(message, 0, TEXT_MAX), SHARE(read_gbps, 0),
    SHARE(copy_gbps, 0),         SHARE(fp16_tflops, 0),
    SHARE(bf16_tflops, 0),       SHARE(tf32_tflops, 0),
    SHARE(fp32_tflops, 0),       FORMED(measured_in, 0, FORM_UUID, TEXT_MAX),
};
const struct shape document_ceilings_shape = SHAPE_OF(ceilings);
#undef OF

/* ---- calibration ---- */

#define OF document_injected
static const struct field injected_share_fields[] = {
    SHARE(share, REQUIRED), NUMBERS(log_ratio, REQUIRED, 200), SIZE(red, REQUIRED),
    SIZE(pass, REQUIRED),   SIZE(no_verdict, REQUIRED),        SIZE(decisions, REQUIRED),
};
SHAPE(injected_share);
#undef OF

#define OF document_calibrated
static const struct field calibrated_fields[] = {
    FORMED(id, REQUIRED, FORM_ID, ID_MAX),
    SHARE(mde, REQUIRED | NULLABLE),
    BOOL(resolved),
    LIST(injected, REQUIRED, 0, 16, injected_share),
};
const struct shape document_calibrated_shape = SHAPE_OF(calibrated);
#undef OF

#define OF document_incomplete
static const struct field incomplete_case_fields[] = {
    FORMED(id, REQUIRED, FORM_ID, ID_MAX),
    SIZE(processes, REQUIRED),
    SIZE(wanted, REQUIRED),
    {AT(verdict), .kind = FIELD_WORD, .flags = REQUIRED, .least = VERDICT_WRONG,
     .words = verdict_names},
    TEXT(reason, REQUIRED, REASON_MAX),
};
SHAPE(incomplete_case);
#undef OF

#define OF document_calibration
static const struct field calibration_fields[] = {
    SIZE(processes, REQUIRED),
    LIST(cases, REQUIRED, 0, CASES_MAX, document_calibrated_shape),
    LIST(incomplete, 0, 0, CASES_MAX, incomplete_case),
};
SHAPE(calibration);
#undef OF

#define OF document_not_served
static const struct field not_served_fields[] = {FORMED(id, REQUIRED, FORM_ID, ID_MAX)};
SHAPE(not_served);
#undef OF

#define OF document_shard
static const struct field shard_fields[] = {
    {AT(index), .kind = FIELD_COUNT, .flags = REQUIRED, .least = 1, .most = 1000},
    {AT(count), .kind = FIELD_COUNT, .flags = REQUIRED, .least = 1, .most = 1000},
    COUNT(cases, REQUIRED, CASES_MAX),
    FORMED(suite_sha256, REQUIRED, FORM_SHA256, TEXT_MAX),
    NUMBERS(positions, REQUIRED, CASES_MAX),
};
SHAPE(shard);
#undef OF

/* ---- the whole ---- */

#define OF document
static const struct field document_fields[] = {
    CHOICE(schema, REQUIRED, schemas),
    FORMED(uuid, REQUIRED, FORM_UUID, TEXT_MAX),
    SIZE(time_ms, REQUIRED),
    SIZE(duration_ms, REQUIRED),
    TEXT(gate_version, REQUIRED, TEXT_MAX),
    PART(git, git),
    TEXT(who, REQUIRED, TEXT_MAX),
    FORMED(suite, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    PART(device, document_device_shape),
    YES_NO(users_checked),
    YES_NO(launch_order_checked),
    LIST(libraries, REQUIRED, 1, DOCUMENT_LIBRARIES_MAX, document_library_shape),
    LIST(absent, 0, 0, 16, document_absent_shape),
    FORMED(contract, REQUIRED, FORM_NAME, NAME_MAX_CHARACTERS),
    PART(policy, policy),
    MAYBE(shard, 0, shard),
    TEXT(epoch, 0, TEXT_MAX),
    SIZE(thinned_ms, 0),
    SHARE(control_drift, NULLABLE),
    SIZE(n_processes, 0),
    TEXT(not_stored, 0, 2000),
    FORMED(seed, REQUIRED, FORM_SEED, TEXT_MAX),
    WORD(verdict, REQUIRED, verdict_names),
    COUNT(exit_code, REQUIRED, 4),
    MAYBE(ceilings, 0, document_ceilings_shape),
    MAYBE(calibration, 0, calibration),
    LIST(cases, REQUIRED, 0, CASES_MAX, document_case_shape),
    LIST(not_served, 0, 0, CASES_MAX, not_served),
    LIST(filtered, 0, 0, CASES_MAX, not_served),
};
const struct shape document_shape = SHAPE_OF(document);
#undef OF
