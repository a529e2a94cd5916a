#!/usr/bin/env bash
# symbols.sh [ROOT [BUILD]]: the rules that say "only": memory only in
# base/arena, files only in base/file, printing and exit only in cli, ... Reads
# the undefined symbols of the objects that BUILD made of ROOT/src and compares
# them with the allow-list symbols.txt; and what the objects give to others
# begins with pl_ and has one giver. Exit 0: the rules hold.
set -uo pipefail
export LC_ALL=C

root=${1:-.}
build=${2:-build/dev}
table=$(dirname "$0")/symbols.txt
nm=${NM:-nm}

# An object whose source is gone is a leftover of the build folder.
objects=()
while IFS= read -r object; do
    [ -e "$root/src/${object##*.dir/src/}" ] || continue
    objects+=("$object.o")
done < <(find "$build" -path '*.dir/src/*.c.o' | sed 's/\.o$//' | sort)
if [ "${#objects[@]}" -eq 0 ]; then
    echo "symbols: no objects of $root/src in $build"
    exit 1
fi

# pipefail: a failure of nm is a failure too.
"$nm" -g -P -A "${objects[@]}" | awk -v table="$table" '
function allowed(scope, symbol,    i) {
    if ((scope, symbol) in list)
        return 1
    for (i = 1; i <= wild[scope]; i++)
        if (index(symbol, stem[scope, i]) == 1)
            return 1
    return 0
}
function owners(symbol,    i, who) {
    for (i = 1; i <= scopes; i++)
        if (allowed(scope_name[i], symbol))
            who = who (who ? ", " : "") scope_name[i]
    return who ? "only " who " may" : "nobody may"
}
BEGIN {
    while ((getline line < table) > 0) {
        if (line ~ /^#/ || line ~ /^[ \t]*$/)
            continue
        n = split(line, word, " ")
        scope = word[1]
        if (!(scope in known)) {
            known[scope] = 1
            scope_name[++scopes] = scope
        }
        for (i = 2; i <= n; i++)
            if (sub(/\*$/, "", word[i]))
                stem[scope, ++wild[scope]] = word[i]
            else
                list[scope, word[i]] = 1
    }
    if (!scopes) {
        print "symbols: " table " is empty or missing"
        exit 1
    }
}
{ # "<object>: <symbol> <kind> [<value> <size>]"
    seen++
    file = $0
    sub(/\.c\.o: .*$/, "", file)
    sub(/^.*\.dir\/src\//, "", file)
    sub(/^.*\.c\.o: /, "")
    symbol = $1
    kind = $2
    sub(/@.*/, "", symbol)
    raw = symbol
    # The same functions under the names that compilers and libc give them.
    if (symbol ~ /^__.*_chk$/) { # memcpy as __memcpy_chk
        symbol = substr(symbol, 3)
        sub(/_chk$/, "", symbol)
    }
    if (symbol ~ /^__open(at)?(64)?_2$/) { # open as __open_2
        symbol = substr(symbol, 3)
        sub(/_2$/, "", symbol)
    }
    sub(/^__isoc(99|23)_/, "", symbol)
    if (kind ~ /^[BDGRST]$/ && symbol !~ /^__/) {
        if (symbol in giver) {
            printf "src/%s.c and src/%s.c both give %s\n", giver[symbol],
                   file, symbol
            bad = 1
        }
        giver[symbol] = file
    }
    if (symbol ~ /^pl_/ ||
        symbol ~ /^__(asan|ubsan|tsan|lsan|sanitizer|gcov|odr_asan)[_.]/ ||
        symbol ~ /^(_GLOBAL_OFFSET_TABLE_|__stack_chk_fail)$/ ||
        symbol ~ /^__(tls_get_addr|errno_location)$/ ||
        symbol ~ /^__(start|stop)_asan/)
        next
    if (kind !~ /[Uwv]/) {
        if (symbol == "main" && file ~ /^cli\//)
            next
        printf "src/%s.c gives %s to others: name it pl_..., or make it " \
               "static\n", file, symbol
        ours[symbol] = bad = 1
        next
    }
    folder = substr(file, 1, index(file, "/"))
    if (allowed("*", symbol) || allowed(folder, symbol) ||
        allowed(file, symbol) || (file, symbol) in told)
        next
    told[file, symbol] = 1
    refused[++refusals] = symbol
    text[refusals] = "src/" file ".c uses " raw ": " owners(symbol)
}
END {
    for (i = 1; i <= refusals; i++)
        if (!(refused[i] in ours)) {
            print text[i]
            bad = 1
        }
    if (!seen && scopes) {
        print "symbols: nm printed nothing"
        bad = 1
    }
    exit bad
}'
