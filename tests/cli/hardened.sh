#!/usr/bin/env bash
# What the build adds against mistakes with memory, read off the program: a
# position of its own in each run, tables that are read-only before main, guards
# on the stack, checked copies, and landing pads for indirect calls.
set -eu
. tests/support/cli.sh

# reads PATTERN COMMAND...: a line of what the tool says matches
reads() {
    local pattern=$1
    shift
    expect 0 "$@"
    grep -Eq -- "$pattern" <<<"$out" ||
        fail "$* $PLIMSOLL: no line matches: $pattern"
}

reads '^ *Type: +DYN ' readelf -hW "$PLIMSOLL"
reads 'FLAGS_1.* PIE' readelf -dW "$PLIMSOLL"
reads '^ *GNU_RELRO ' readelf -lW "$PLIMSOLL"
reads '\(FLAGS_1\).* NOW( |$)' readelf -dW "$PLIMSOLL"
expect 0 readelf -lW "$PLIMSOLL"
says '^ *GNU_STACK .* RW +0x'
reads ' U __stack_chk_fail(@|$)' nm -D "$PLIMSOLL"
reads ' U __v?snprintf_chk(@|$)' nm -D "$PLIMSOLL"

case $(uname -m) in
x86_64)
    # Large frames touch each page on their way down: gcc by or, clang by mov.
    expect 0 objdump -d --no-show-raw-insn "$PLIMSOLL"
    grep -A 1 -E '\ssub +\$0x1000,%rsp' <<<"$out" |
        grep -Eq '\s(or|mov)q +\$0x0,(0x[0-9a-f]+)?\(%rsp' ||
        fail "no frame touches its pages"
    reads 'x86 feature: .*SHSTK' readelf -nW "$PLIMSOLL"
    # The linker's note on landing pads would need a libc that has them too.
    reads '<main>:' objdump -d --no-show-raw-insn --disassemble=main "$PLIMSOLL"
    grep -A 1 '<main>:' <<<"$out" | grep -q endbr64 ||
        fail "main begins without endbr64"
    ;;
esac
