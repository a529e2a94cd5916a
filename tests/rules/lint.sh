#!/usr/bin/env bash
# lint.sh [ROOT]: the shape of the code. Functions of at most 70 lines, files
# of at most 600, 80 columns, no tabs, no trailing blanks, no disabled code, no
# banned calls, no setting compared with a word outside src/config; every header
# compiles alone; clang-format has nothing to say (where clang-format 14 is
# installed: other versions format differently).
# Exit 0: clean.
set -uo pipefail

root=${1:-.}
cd "$root" || exit 1
export LC_ALL=C

# find on the folders that are there
under() {
    local dirs=() dir
    for dir in src include tests bench tools; do
        [ -d "$dir" ] && dirs+=("$dir")
    done
    [ "${#dirs[@]}" -gt 0 ] && find "${dirs[@]}" -type f "$@" | sort
}
mapfile -t sources < <(under -name '*.[ch]')
mapfile -t scripts < <({
    under \( -name '*.sh' -o -name 'CMakeLists.txt' \)
    find script .ci CMakeLists.txt -type f 2>/dev/null
} | sort)
if [ "${#sources[@]}" -eq 0 ]; then
    echo "lint: no sources in $root"
    exit 1
fi
bad=0

# ---- layout of every line; sizes of functions and files ----

awk '
function complain(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    bad = 1
}
function columns(line) {
    gsub(/[\200-\277]/, "", line) # UTF-8: only first bytes take a column
    return length(line)
}
FNR == 1 {
    is_c = FILENAME ~ /\.[ch]$/
    in_function = in_table = generated = 0
}
FNR <= 5 && /[Gg]enerated (by|from|with)/ { generated = 1 }
/\t/          { complain("tab") }
/[ \r]$/      { complain("blank at the end of the line") }
columns($0) > 80 && !/https?:\/\// {
    complain("line of " columns($0) " columns; 80 are allowed")
}
!is_c { next }
/^[ ]*#[ ]*if[ ]+0/ { complain("disabled code") }
FNR == 601 && !generated { complain("file of more than 600 lines") }
# A function begins and ends in the first column; a table inside is free.
/^\{/ { in_function = 1; in_table = lines = 0; next }
/^\}/ {
    if (in_function && lines > 70)
        complain("a function of " lines " lines ends; 70 are allowed")
    in_function = 0
    next
}
in_function && /= \{$/ { in_table = 1; match($0, /[^ ]/); indent = RSTART }
in_function && !in_table { lines++ }
in_function && in_table && /^ *\};/ {
    match($0, /[^ ]/)
    if (RSTART == indent)
        in_table = 0
}
END { exit bad }
' "${sources[@]}" ${scripts[@]+"${scripts[@]}"} || bad=1

# ---- calls nobody makes ----
# The compiler may turn them into others, so the objects do not show them all.

mapfile -t product < <(printf '%s\n' "${sources[@]}" | grep '^src/')
banned='qsort|strtok|gets|v?sprintf|strcpy|strcat|strncpy|alloca'
banned+='|__builtin_alloca|s?rand|random|system|popen|setjmp|longjmp'
if [ "${#product[@]}" -gt 0 ]; then
    awk -v banned="[^A-Za-z0-9_]($banned) *[(]" '
    FNR == 1 { in_comment = 0 }
    {
        line = $0
        if (in_comment) {
            if (!(i = index(line, "*/")))
                next
            line = substr(line, i + 2)
            in_comment = 0
        }
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        while (i = index(line, "/*")) {
            rest = substr(line, i + 2)
            if (!(j = index(rest, "*/"))) {
                in_comment = 1
                line = substr(line, 1, i - 1)
            } else {
                line = substr(line, 1, i - 1) " " substr(rest, j + 2)
            }
        }
        sub(/\/\/.*/, "", line)
        if (match(" " line, banned)) {
            call = substr(" " line, RSTART + 1, RLENGTH - 2)
            printf "%s:%d: nobody calls %s\n", FILENAME, FNR, call
            bad = 1
        }
    }
    END { exit bad }
    ' "${product[@]}" || bad=1
fi

# ---- settings are compared with words in src/config only ----
# Elsewhere they are enums, or config/special.h says what they mean.

keys=$(cat src/config/*.h 2>/dev/null |
    sed -nE 's/^.*X\((TEXT|CHOICE|DEVICE), *([a-z0-9_]+),.*/\2/p' |
    sort -u | paste -sd '|' -)
mapfile -t readers < <(printf '%s\n' "${product[@]}" | grep -v '^src/config/')
if [ -d src/config ] && [ -z "$keys" ]; then
    echo "lint: no table of keys in src/config/*.h"
    bad=1
elif [ -n "$keys" ] && [ -n "${readers[0]}" ]; then
    awk -v keys="(->|[.])($keys)([^A-Za-z0-9_]|\$)" '
    # The arguments of the call whose parenthesis is the first character.
    function arguments(rest,    i, depth) {
        for (i = 1; i <= length(rest); i++) {
            depth += substr(rest, i, 1) == "("
            depth -= substr(rest, i, 1) == ")"
            if (depth == 0)
                break
        }
        return substr(rest, 1, i)
    }
    function judge(file,    line, at, said, before) {
        line = 1
        while (match(text, /(strn?(case)?cmp|memcmp|strstr) *[(]/)) {
            at = RSTART + RLENGTH - 1
            before = substr(text, 1, at)
            line += gsub(/\n/, "", before)
            said = arguments(substr(text, at))
            if (said ~ keys) {
                printf "%s:%d: a setting is compared with a word: %s\n", \
                    file, line, "src/config says what it means"
                bad = 1
            }
            text = substr(text, at)
        }
        text = ""
    }
    FNR == 1 { if (NR > 1) judge(file); file = FILENAME }
    { text = text $0 "\n" }
    END { judge(file); exit bad }
    ' "${readers[@]}" || bad=1
fi

# ---- the purpose of a run is decided by the command ----

if grep -nE '(->|[.])eval_only([^A-Za-z0-9_]|$)' \
    $(printf '%s\n' "${readers[@]}" | grep -v '^src/cli/') /dev/null; then
    echo "lint: eval_only is read by the command; below, pl_run has a purpose"
    bad=1
fi

# ---- headers compile alone ----

cc=${CC:-cc}
x86=0 arm64=0
[ "$(uname -m)" = x86_64 ] && x86=1
[ "$(uname -m)" = aarch64 ] && arm64=1
for header in "${sources[@]}"; do
    case $header in
    src/*.h | include/*.h) ;;
    *) continue ;;
    esac
    if ! said=$(printf '#include "%s"\n' "${header#*/}" |
        "$cc" -std=c11 -D_GNU_SOURCE -DPL_HAVE_X86=$x86 \
            -DPL_HAVE_ARM64=$arm64 -DPL_ISA=base \
            '-DPL_VERSION="0"' -Isrc -Iinclude -Wall -Wextra \
            -Wno-unused-function -Werror -fsyntax-only -x c - 2>&1); then
        echo "$header: does not compile alone"
        printf '%s\n' "$said"
        bad=1
    fi
done

# ---- clang-format ----

formatter=
for candidate in clang-format-14 clang-format; do
    if command -v "$candidate" >/dev/null &&
        "$candidate" --version | grep -q 'version 14\.'; then
        formatter=$candidate
        break
    fi
done
if [ -z "$formatter" ]; then
    echo "lint: no clang-format 14 here, formatting was not checked"
elif [ -f .clang-format ]; then
    if ! said=$("$formatter" --dry-run -Werror "${sources[@]}" 2>&1); then
        # One line for each file, at its first difference.
        awk -F: '/error: code should be/ && !told[$1]++ {
            print $1 ":" $2 ": not formatted: clang-format -i " $1
            told_one = 1
        }
        { all = all $0 "\n" }
        END { if (!told_one) printf "%s", all }' <<<"$said"
        bad=1
    fi
fi
exit "$bad"
