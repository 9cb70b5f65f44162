#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# server-man.sh PROGRAM: prints the manual page of gate-server, made of what each of its commands
# says with --help.
set -euo pipefail

program=$1

# Text in which nothing is a request of roff, set as it is.
verbatim() {
    printf '.nf\n'
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
    printf '.fi\n'
}

help=$("$program" --help)
printf '.TH GATE\\-SERVER 1 "" "%s" "Kernel Gate"\n' "$("$program" --version)"
printf '.SH NAME\ngate\\-server \\- tracking server of Kernel Gate, with its dashboard\n'
printf '.SH SYNOPSIS\n'
sed -n '1,/^$/{/./s/^Usage: \|^       //p}' <<<"$help" | verbatim
printf '.SH DESCRIPTION\n'
sed -e '1,/^$/d' -e '/^Exit status:/d' <<<"$help" | verbatim
printf '.SH COMMANDS\n'
for command in token check backup restore thin routes; do
    printf '.SS gate\\-server %s\n' "$command"
    "$program" "$command" --help | verbatim
done
printf '.SH EXIT STATUS\n'
sed -n 's/^Exit status: //p' <<<"$help" | verbatim
printf '.SH FILES\n'
printf '.TP\n.I FILE\nthe database, with FILE\\-wal and FILE\\-shm while it is in use\n'
printf '.TP\n.I FILE\\-artifacts/\nthe libraries that runs sent\n'
printf '.SH SEE ALSO\n.BR gate (1)\n'
