#compdef moorage
# Completion of moorage for zsh: source <(moorage completion zsh), or a file _moorage in a folder of $fpath

_moorage() {
    local -a lines candidates
    local line value directive
    lines=("${(@f)$(moorage __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    directive="${lines[-1]#:}"
    for line in "${(@)lines[1,-2]}"; do
        value="${line%%$'\t'*}"
        # What follows the first colon is the description.
        candidates+=("${value//:/\\:}${${line#"$value"}/#$'\t'/:}")
    done
    if (( ${#candidates} )); then
        _describe moorage candidates
    elif [[ "$directive" == 0 ]]; then
        compset -P '-*='
        _files
    fi
}

if [[ "${funcstack[1]}" == _moorage ]]; then
    _moorage
else
    compdef _moorage moorage
fi
