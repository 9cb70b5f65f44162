// SPDX-License-Identifier: Apache-2.0
// csv.js: a table as CSV, as the server writes it (RFC 4180).

const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/; // what a spreadsheet would run

function field(value) {
    const text = value === null ? "" : typeof value !== "string" ? String(value)
        : value.split(";").map((part) => (FORMULA.test(part) ? `'${part}` : part)).join(";");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvText = (rows) =>
    rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
