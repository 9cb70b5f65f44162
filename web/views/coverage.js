// SPDX-License-Identifier: Apache-2.0
// coverage.js: what verification looked at, by op.

import { h } from "../frame/dom.js";
import { count } from "../frame/format.js";
import { tableOf } from "../frame/parts.js";

const COLUMNS = [
    ["runs", "Runs"], ["cases", "Cases"], ["shapes", "Other shapes"], ["layouts", "Layouts"],
    ["launches", "Launches"], ["skipped", "Not possible"], ["values", "Kinds of inputs"]];

/** A row an op. Columns that no row has, as the runs of a single one, are left out. */
export function coverageTable(rows) {
    return tableOf("Coverage", [
        ["op", "Op", (row) => row.op, "row"],
        ...COLUMNS.filter(([key]) => rows.some((row) => row[key] !== undefined)).map(
            ([key, name]) => [`covered_${key}`, name, (row) => count(row[key]), "number"]),
        ["covered_pairs", "Pairs of classes", (row) =>
            `${count(row.pairs)} of ${count(row.pairs_of)}`, "number"],
    ], rows);
}

/** How often each class of values, shapes, layouts and launches was looked at, op by op. */
export function classesTable({ ops, rows }) {
    return rows.length > 0 && h("details", { class: "data" }, h("summary", {}, "Class by class"),
        tableOf("Covered classes", [
            ["covered_of", "Of", (row) => row.of],
            ["covered_class", "Class", (row) => row.name, "row"],
            ...ops.map((op, i) => ["op", op, (row) => count(row.counts[i]), "number"]),
        ], rows));
}

/** The rows of a run: sums over its cases, and of the last three the most that one case had. */
export function coverageOf(cases) {
    const rows = {};
    for (const { id, covered } of cases.filter((item) => item.covered)) {
        const [op] = id.split("/");
        const [shapes, layouts, launches, skipped, ...most] = covered;
        const row = rows[op] ??= { op, cases: 0, shapes: 0, layouts: 0, launches: 0, skipped: 0,
            values: 0, pairs: 0, pairs_of: 0 };
        row.cases++;
        row.shapes += shapes;
        row.layouts += layouts;
        row.launches += launches;
        row.skipped += skipped;
        ["values", "pairs", "pairs_of"].forEach((key, i) => {
            row[key] = Math.max(row[key], most[i]);
        });
    }
    return Object.values(rows).sort((a, b) => (a.op < b.op ? -1 : 1));
}
