# Completion of moorage for fish: moorage completion fish | source

function __moorage_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines (moorage __complete $words[2..] "$current" 2>/dev/null)
    set -l directive $lines[-1]
    if test (count $lines) -gt 1
        printf '%s\n' $lines[1..-2]
    else if test "$directive" = ":0"
        # What is completed is the whole word: --option=FILE.
        set -l option (string match -r '^-.*=' -- "$current")
        string replace -r -- '^' "$option" (__fish_complete_path (string replace -r '^-.*=' '' -- "$current"))
    end
end

complete --command moorage --no-files --arguments '(__moorage_candidates)'
