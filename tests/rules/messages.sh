#!/usr/bin/env bash
# messages.sh [--list] [SRC]: the messages that people read, in one voice.
#
# Lists the text of every pl_fail, pl_fail_in and pl_log_say below SRC, one a
# line with its place ("src/base/file.c:209: text"), for whoever reads or
# translates them: --list prints it. Without it, each is judged:
#   - its text is a literal, so that it is in the list: at most a choice between
#     whole texts (a ? "..." : "..."), never a variable
#   - it ends without a period; sentences within it are separated by ". "
#   - it has no "%s%s": sentences are not glued from fragments
# Exit 0: the rules hold.
set -uo pipefail
export LC_ALL=C

list=0
if [ "${1:-}" = --list ]; then
    list=1
    shift
fi
src=${1:-src}
mapfile -t files < <(find "$src" -type f -name '*.c' | sort)
if [ "${#files[@]}" -eq 0 ]; then
    echo "messages: no sources in $src"
    exit 1
fi

awk -v list="$list" '
BEGIN {
    call["pl_fail"] = call["pl_fail_in"] = call["pl_log_say"] = 1
}
FNR == 1 { start(FILENAME) }
{ read_line($0 "\n") }
END {
    if (!list)
        printf "%d messages\n", count
    exit bad || count == 0
}

function start(path) {
    name = path
    comment = quoted = depth = 0
    word = ""
}

# What stands in parentheses behind a call is read up to its third argument.
function read_line(line,    i, c, two) {
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (comment) {
            if (two == "*/") {
                comment = 0
                i++
            }
        } else if (quoted) {
            if (c == "\\") {
                text = text two
                i++
            } else if (c == quoted) {
                quoted = 0
            } else {
                text = text c
            }
        } else if (two == "/*") {
            comment = 1
            i++
        } else if (c == "\"" || c == "\047") {
            if (depth && argument == 3 && c == "\"") {
                if (!literal || broken)
                    texts++
                literal = 1
                broken = 0
            } else {
                kept = text
            }
            quoted = c
            if (c == "\047" || !(depth && argument == 3))
                text = depth && argument == 3 ? text : ""
        } else {
            read_code(c)
        }
    }
}

function read_code(c) {
    if (depth) {
        if (c == "(" || c == "[" || c == "{")
            depth++
        else if (c == ")" || c == "]" || c == "}")
            depth--
        if (depth == 0 || (depth == 1 && c == ","))
            end_argument()
        else if (argument == 3 && c == "?")
            choices = 1
        else if (argument == 3 && c == ":")
            end_text()
        else if (argument == 3 && c !~ /[ \t\n]/ && literal)
            broken = 1
    } else if (c ~ /[A-Za-z0-9_]/) {
        word = word c
    } else {
        # how they are made is none of their uses
        if (c == "(" && word in call && name !~ /base\/(status|log)\.c$/) {
            depth = argument = 1
            begin_text()
            at = FNR
        }
        if (c !~ /[ \t\n]/ || word !~ /^$/)
            word = ""
    }
}

function begin_text() {
    text = ""
    literal = broken = choices = 0
}

function end_argument() {
    if (argument == 3)
        end_text()
    argument++
    begin_text()
}

function end_text() {
    if (!literal) {
        complain("its text is no literal")
    } else {
        count++
        if (list)
            printf "%s:%d: %s\n", name, at, text
        if (text ~ /\.$/)
            complain("it ends with a period: " text)
        if (text ~ /%s%s/)
            complain("it is glued from fragments: " text)
    }
    text = ""
    literal = broken = 0
}

function complain(what) {
    if (!list)
        printf "%s:%d: a message: %s\n", name, at, what
    bad = 1
}
' "${files[@]}"
status=$?
[ "$list" = 1 ] || exit "$status"
