#!/usr/bin/env bash
# words.sh [ROOT]: what is committed speaks of the project alone. No absolute
# paths of somebody's machine, no package hosts, no notes to oneself.
# Exit 0: clean.
set -uo pipefail

root=${1:-.}
cd "$root" || exit 1

# What git has or would add; without git, everything but builds and data.
list() {
    if git rev-parse --show-toplevel >/dev/null 2>&1 &&
        [ "$(git rev-parse --show-toplevel)" = "$(pwd -P)" ]; then
        git ls-files -co --exclude-standard
    else
        find . -type f -not -path './.git/*' -not -path './build/*' \
            -not -path './data/*' | sed 's|^\./||'
    fi
}
mapfile -t files < <(list | sort | while IFS= read -r file; do
    [ -f "$file" ] && printf '%s\n' "$file"
done | grep -v -e '^tests/fuzz/corpus/')
if [ "${#files[@]}" -eq 0 ]; then
    echo "words: no files in $root"
    exit 1
fi

bad=0
# refuse WHY PATTERN FILE...: the pattern in none of the text files.
refuse() {
    local why=$1 pattern=$2
    shift 2
    [ $# -gt 0 ] || return 0
    if grep -HnIE -e "$pattern" -- "$@"; then
        echo "words: the lines above have $why"
        bad=1
    fi
}

# The patterns are written so that they do not match themselves.
mapfile -t not_tests < <(printf '%s\n' "${files[@]}" | grep -v '^tests/')
refuse 'a path of one machine' \
    '(^|[^A-Za-z0-9_.*}])/(work|home|root)/[A-Za-z0-9_.]' "${files[@]}"
refuse 'a path in /tm[p]' '(^|[^A-Za-z0-9_.:-])/tm[p](/|$)' \
    "${not_tests[@]}"
refuse 'a package host' \
    '(registr[y]|artifactor[y]|nexu[s]|mirro[r]s?)\.[a-z0-9-]+\.[a-z]' \
    "${files[@]}"
refuse 'a package host' \
    '(deb\.debian|archive\.ubuntu|npmj[s]|pyp[i]|pythonhoste[d])\.(org|com)' \
    "${files[@]}"
refuse 'a note to oneself' \
    '(^|[^A-Za-z0-9_])(TOD[O]|FIXM[E]|XX[X])($|[^A-Za-z0-9_])' "${files[@]}"
exit "$bad"
