#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# server-man.sh PROGRAM: prints the manual page of gate-server, which is what each of its commands
# says of itself with --help.
set -euo pipefail

# Text in which nothing is a request of roff.
roff() {
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
}

part() {
    printf '%s\n.nf\n' "$1"
    "$program" "${@:2}" --help | roff
    printf '.fi\n'
}

program=$1
printf '.TH GATE\\-SERVER 1 "" "%s" "Kernel Gate"\n' "$("$program" --version)"
printf '.SH NAME\ngate\\-server \\- tracking server of Kernel Gate, with its dashboard\n'
part '.SH DESCRIPTION'
printf '.SH COMMANDS\n'
for command in token check backup restore thin routes; do
    part ".SS gate\\-server $command" "$command"
done
printf '.SH SEE ALSO\n.BR gate (1)\n'
