#!/usr/bin/env bash
# layers.sh [SRC]: a file includes only from its own folder or from a lower
# level; folders of one level are strangers. Reads the #includes, so a comment
# can't excuse anything. Exit 0: the rule holds.
set -uo pipefail
export LC_ALL=C

src=${1:-src}
mapfile -t files < <(find "$src" -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.inc' \) | sort)
if [ "${#files[@]}" -eq 0 ]; then
    echo "layers: no sources in $src"
    exit 1
fi

awk -v src="$src" '
BEGIN {
    n = split("base=0 config=1 plan=1 kernels=1 text=1 comm=1 " \
              "device=2 data=2 model=3 format=3 explain=3 train=4 cli=5",
              row, " ")
    for (i = 1; i <= n; i++) {
        split(row[i], pair, "=")
        level[pair[1]] = pair[2]
    }
}
function complain(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    bad = 1
}
function folder(path) {
    return index(path, "/") ? substr(path, 1, index(path, "/") - 1) : ""
}
FNR == 1 {
    home = folder(substr(FILENAME, length(src) + 2))
    if (!(home in level))
        complain("src/" home " is no folder of the house")
}
/^[ \t]*#[ \t]*include/ {
    line = $0
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", line)
    first = substr(line, 1, 1)
    if (first != "\"" && first != "<") {
        complain("a computed include can not be checked")
        next
    }
    line = substr(line, 2)
    sub(/[">].*/, "", line)
    other = folder(line)
    if (first == "<" && !(other in level))
        next
    if (line ~ /\.\./ || other == "")
        complain("write \"folder/" line "\", relative to src")
    else if (!(other in level))
        complain("src/" other " is no folder of the house")
    else if (home in level && other != home && level[other] >= level[home])
        complain(home " (level " level[home] ") must not include " line \
                 " (level " level[other] ")")
}
END { exit bad }
' "${files[@]}"
