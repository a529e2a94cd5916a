#!/usr/bin/env bash
# messages.sh [--list] [SRC]: the messages that people read, in one voice.
#
# Lists the text of every pl_fail, pl_fail_in and pl_log_say below SRC, and of
# the functions that put a place before such a text, one a line with its place
# ("src/base/file.c:209: text"), for whoever reads or translates them: --list
# prints it. Without it, each is judged:
#   - its text is a literal, so that it is in the list: at most a choice between
#     whole texts (a ? "..." : "..."), never a variable
#   - it ends without a period; sentences within it are separated by ". "
#   - it has no "%s%s": sentences are not glued from fragments
#   - amounts of bytes are written by base/units: no "%zu bytes" or "%.1f GB",
#     and no argument that is named "..._bytes" without pl_units_ around it
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
    # which argument is the text
    call["pl_fail"] = call["pl_fail_in"] = call["pl_log_say"] = 3
    call["pl_lexer_fail"] = 4
    call["pl_thrift_fail"] = call["wrong"] = 2
    call["pl_task_wrong"] = 4
    raw_amount = "%[-+ #0-9.*]*(hh?|ll?|z|j|PRI)?[diufeg](64|32)? ?" \
                 "([kMGTPE]?i?B|([a-z]*[ -])?[a-z]*bytes?)([^A-Za-z]|$)"
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

# One argument of a call is its text, those behind it are code.
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
            if (depth && argument == text_at && c == "\"") {
                if (!literal || broken)
                    texts++
                literal = 1
                broken = 0
            } else {
                kept = text
            }
            quoted = c
            if (c == "\047" || !(depth && argument == text_at))
                text = depth && argument == text_at ? text : ""
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
        else if (argument == text_at && c == "?")
            choices = 1
        else if (argument == text_at && c == ":")
            end_text()
        else if (argument == text_at && c !~ /[ \t\n]/ && literal)
            break_text(c)
        else if (argument >= text_at)
            code = code c
    } else if (c ~ /[A-Za-z0-9_]/) {
        word = word c
    } else {
        # how they are made is none of their uses
        if (c == "(" && word in call && name !~ /base\/(status|log)\.c$/) {
            depth = argument = 1
            text_at = call[word]
            begin_text()
            at = FNR
        }
        if (c !~ /[ \t\n]/ || word !~ /^$/)
            word = ""
    }
}

# Of what stands between two literals only the PRIu64 of a number belongs there.
function break_text(c) {
    broken = 1
    if (c ~ /[A-Za-z0-9_]/)
        text = text c
}

function begin_text() {
    text = code = ""
    literal = broken = choices = 0
}

function end_argument() {
    if (argument == text_at)
        end_text()
    sub(/^[ \t\n]*/, "", code)
    if (argument > text_at && is_amount(code))
        complain("it has a raw amount: " code)
    argument++
    begin_text()
}

# A value whose name says that it is bytes. What is cast to an int is the
# precision of a "%.*s".
function is_amount(value) {
    gsub(/\((unsigned )?(long )*(long|double)\)/, "", value)
    gsub(/[ \t\n]/, "", value)
    return value ~ /^[a-z0-9_.>&*[\]-]*bytes$/
}

function end_text() {
    if (code ~ /const char \*fmt$/) {
        depth = 0 # it is declared here, not called
    } else if (!literal) {
        complain("its text is no literal")
    } else {
        count++
        if (list)
            printf "%s:%d: %s\n", name, at, text
        if (text ~ /\.$/)
            complain("it ends with a period: " text)
        if (text ~ /%s%s/)
            complain("it is glued from fragments: " text)
        if (text ~ raw_amount)
            complain("it has a raw amount: " text)
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
