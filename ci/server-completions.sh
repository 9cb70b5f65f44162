#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# server-completions.sh PROGRAM: prints what completes the commands of gate-server and their options
# in bash, made of what each command names in --help.
# shellcheck disable=SC2016
set -euo pipefail
program=$1 commands='token check backup restore thin routes'

# Those of the usage and of the list.
options() {
    { echo --help && "$program" "$@" --help | sed -nE '1,/^$/p; s/^  (--[a-z-]+).*/\1/p'; } |
        grep -oE -e '--[a-z][a-z-]*' | sort -u | paste -sd ' '
}

printf '# bash completion for gate-server\n_gate_server() {\n    local words\n'
printf '    case ${COMP_WORDS[1]} in\n'
for command in $commands; do
    printf "    %s) words='%s' ;;\n" "$command" "$(options "$command")"
done
printf "    *) words='%s %s' ;;\n    esac\n" "$commands" "$(options)"
printf '%s\n' '    [[ $COMP_CWORD -eq 1 || ${COMP_WORDS[COMP_CWORD]} == -* ]] || words=' \
    '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")' \
    '}' 'complete -o default -F _gate_server gate-server'
