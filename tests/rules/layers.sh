#!/usr/bin/env bash
# layers.sh [SRC]: a file includes only from its own folder or from a lower
# level; folders of one level are strangers. Within a folder modules form no
# ring: a module is a header with the .c files and the private headers whose
# names begin with its name and "_" (parquet.h, parquet.c, parquet_page.c,
# parquet_parts.h), and no module needs one that needs it. Reads the #includes,
# so a comment can't excuse anything. Exit 0: the rule holds.
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
              "device=2 data=2 model=3 format=3 explain=3 " \
              "store=4 advise=4 train=5 web=6 cli=7",
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
' "${files[@]}" || exit 1

# The edges between modules as "module needed-module"; what tsort can't put in
# an order is a ring.
edges() {
    awk -v src="$src" '
    # The shortest name of a header in the folder that this one begins with.
    function module(path,    folder, name, n, part, i, so_far) {
        folder = path
        sub(/[^\/]*$/, "", folder)
        name = substr(path, length(folder) + 1)
        n = split(name, part, "_")
        so_far = ""
        for (i = 1; i < n; i++) {
            so_far = so_far (i > 1 ? "_" : "") part[i]
            if ((folder so_far) in header)
                return folder so_far
        }
        return path
    }
    function stem(path) {
        sub(/\.[a-z]*$/, "", path)
        return path
    }
    BEGIN {
        for (i = 1; i < ARGC; i++)
            if (ARGV[i] ~ /\.h$/)
                header[stem(substr(ARGV[i], length(src) + 2))] = 1
    }
    FNR == 1 { home = module(stem(substr(FILENAME, length(src) + 2))) }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, part, "\"")
        other = module(stem(part[2]))
        if (other != home)
            print home, other
    }' "${files[@]}" | sort -u
}

if ! order=$(edges | tsort 2>&1 >/dev/null) || [ -n "$order" ]; then
    echo "layers: modules that need each other, in a ring:"
    grep -v 'contains a loop' <<<"$order" | sed 's/^tsort: */  src\//'
    exit 1
fi
