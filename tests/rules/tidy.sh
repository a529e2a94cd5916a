#!/usr/bin/env bash
# tidy.sh [ROOT [BUILD]]: clang-tidy has nothing to say about ROOT/src, as
# BUILD/compile_commands.json compiles it; .clang-tidy has the checks. The
# analyzer looks at each function by itself ("shallow"), and gives up those
# that are very long, or all of src would take minutes; of kernels/plain only
# the set base is read. Exit 0: clean.
set -uo pipefail
export LC_ALL=C

root=$(cd "${1:-.}" && pwd) || exit 1
build=${2:-build/dev}
tidy=${CLANG_TIDY:-clang-tidy}
if ! command -v "$tidy" >/dev/null; then
    echo "tidy: there is no $tidy here: run script/setup --test"
    exit 1
fi
if [ ! -f "$build/compile_commands.json" ]; then
    echo "tidy: there is no $build/compile_commands.json: build dev first"
    exit 1
fi

# clang-tidy reads a file once for every command that compiles it.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
awk -v RS='}' '
/"file":/ && (!/-DPL_ISA=/ || /-DPL_ISA=base /) {
    sub(/^[^{]*/, "")
    printf "%s%s}", n++ ? ",\n" : "[\n", $0
}
END { print n ? "\n]" : "[]" }
' "$build/compile_commands.json" >"$dir/compile_commands.json"
mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' \
    "$dir/compile_commands.json" | grep -F "$root/src/" | sort -u)
if [ "${#files[@]}" -eq 0 ]; then
    echo "tidy: $build/compile_commands.json has no file of $root/src"
    exit 1
fi

shallow=()
for word in -analyzer-config mode=shallow -analyzer-config max-nodes=15000; do
    shallow+=(--extra-arg=-Xclang "--extra-arg=$word")
done
# The file is named: clang-tidy 19 takes the filter of headers only from one
# above the working folder. What it counts and suppresses goes to its standard
# error.
printf '%s\0' "${files[@]}" |
    xargs -0 -n 1 -P "$(nproc 2>/dev/null || echo 1)" \
        "$tidy" --quiet --config-file="$root/.clang-tidy" -p "$dir" \
        "${shallow[@]}" 2>"$dir/said" >"$dir/found"
status=$?
cat "$dir/found"
if [ "$status" -ne 0 ] && [ ! -s "$dir/found" ]; then
    cat "$dir/said"
fi
[ "$status" -eq 0 ]
