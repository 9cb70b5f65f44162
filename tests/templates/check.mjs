// SPDX-License-Identifier: Apache-2.0
/**
 * node check.mjs workflow|action|gitlab FILE: ends with 1 and the faults when the file is not of
 * the published schema. Of a file of several documents the last one is the pipeline.
 * node check.mjs json FILE: prints that one as JSON.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { validateAction, validateWorkflow } from "@action-validator/core";
import Ajv from "ajv";
import formats from "ajv-formats";
import { loadAll } from "js-yaml";

const [kind, file] = process.argv.slice(2);
const text = readFileSync(file, "utf8");

function gitlab() {
    const schema = createRequire(import.meta.url)("gitlab-ci-local/src/schema/schema.json");
    // GitLab reads it since 16.3; its schema of then had forgotten it (gitlab-org/gitlab 465876).
    schema.definitions.artifacts.properties.reports.properties.annotations = { type: "string" };
    const ajv = formats(new Ajv({ strict: false, verbose: false, allowUnionTypes: true }));
    ajv.validate(schema, loadAll(text).at(-1));
    return ajv.errors ?? [];
}

const checks = {
    workflow: () => validateWorkflow(text).errors,
    action: () => validateAction(text).errors,
    gitlab,
};
if (kind === "json") {
    console.log(JSON.stringify(loadAll(text).at(-1)));
    process.exit();
}
const faults = checks[kind]();
if (faults.length) {
    console.error(JSON.stringify(faults, null, 1));
    process.exitCode = 1;
}
