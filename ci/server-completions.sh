#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# server-completions.sh PROGRAM bash|zsh|fish: prints what completes the commands of gate-server and
# their options, which is what each command names in --help.
# shellcheck disable=SC2016,SC2059
set -euo pipefail
program=$1 commands='token check backup restore thin routes'

# Those of the usage and of the list.
options() {
    { echo --help && "$program" "$@" --help | sed -nE '1,/^$/p; s/^  (--[a-z-]+).*/\1/p'; } |
        grep -oE -e '--[a-z][a-z-]*' | sort -u | paste -sd ' '
}

each() { # FORMAT of a command and its options
    for command in $commands; do
        printf "$1" "$command" "$(options "$command")"
    done
}

case $2 in
bash)
    printf '# bash completion for gate-server\n_gate_server() {\n    local words\n'
    printf '    case ${COMP_WORDS[1]} in\n'
    each "    %s) words='%s' ;;\n"
    printf "    *) words='%s %s' ;;\n    esac\n" "$commands" "$(options)"
    printf '%s\n' '    [[ $COMP_CWORD -eq 1 || ${COMP_WORDS[COMP_CWORD]} == -* ]] || words=' \
        '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")' \
        '}' 'complete -o default -F _gate_server gate-server'
    ;;
zsh)
    printf '#compdef gate-server\n_files\ncase $words[2] in\n'
    each '%s) compadd -- %s ;;\n'
    printf '*) compadd -- %s %s ;;\nesac\n' "$commands" "$(options)"
    ;;
fish)
    each "complete -c gate-server -n '__fish_seen_subcommand_from %s' -a '%s'\n"
    printf "complete -c gate-server -n 'not __fish_seen_subcommand_from %s' -a '%s %s'\n" \
        "$commands" "$commands" "$(options)"
    ;;
*)
    echo 'usage: server-completions.sh PROGRAM bash|zsh|fish' >&2
    exit 64
    ;;
esac
