# Completion of moorage for bash: source <(moorage completion bash)

_moorage() {
    local text="${COMP_LINE:0:COMP_POINT}" current prefix line lines directive
    local -a words
    # Not COMP_WORDS, which has been split at "=" and ":", too.
    read -r -a words <<<"$text"
    if [[ $text == *[[:space:]] ]]; then
        words+=("")
    fi
    current="${words[${#words[@]} - 1]}"
    lines="$(moorage __complete "${words[@]:1}" 2>/dev/null)" || return
    directive="${lines##*:}"
    # bash replaces what is behind the last of its separators.
    prefix="${current%"${current##*["${COMP_WORDBREAKS//[^=:]/}"]}"}"
    COMPREPLY=()
    while IFS= read -r line; do
        line="${line%%$'\t'*}"
        if [[ -n $line && $line != ":$directive" ]]; then
            COMPREPLY+=("${line#"$prefix"}")
        fi
    done <<<"$lines"
    if [[ $directive == 4 ]]; then
        compopt +o default 2>/dev/null
    fi
}

complete -o default -F _moorage moorage
