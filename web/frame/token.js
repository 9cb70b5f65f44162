// SPDX-License-Identifier: Apache-2.0
// token.js: the reader's token, for servers that are private and for what only some may do.
//
// It stays in this tab until that is closed, and goes to this server alone: the page's policy
// allows no other. token_form.js takes it.

const KEY = "kernel-gate-token";

/** The token, or null. */
export function token() {
    return sessionStorage.getItem(KEY);
}

/** Keeps it, or forgets it: null. */
export function keepToken(value) {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
}
