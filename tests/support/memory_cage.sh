#!/usr/bin/env bash
# memory_cage.sh BYTES COMMAND...: runs a command that may hold at most BYTES
# of memory (rounded up to whole pages), and ends with its exit code. Says on
# stderr what the cage is:
#
#   cgroup v1, cgroup v2   a cgroup of its own below the caller's, so that the
#                          limits that hold now hold too; no swap. Going over
#                          it means to be killed (code 137), which is said.
#   rlimit                 where no such cgroup can be made: the address space
#                          is limited to BYTES + CAGE_RESERVE_BYTES (default
#                          64 MiB: program, libraries, stacks). Going over it
#                          means that mmap and malloc fail.
#
# CAGE=v1, v2 or rlimit allows only that kind. `memory_cage.sh --kind` says
# which kind it would be.
set -uo pipefail
export LC_ALL=C

reserve=${CAGE_RESERVE_BYTES:-$((64 * 1024 * 1024))}
allowed=${CAGE:-v1 v2 rlimit}
prefix=plimsoll-cage

say() {
    echo "memory cage: $*" >&2
}

if [ "${1:-}" = --kind ]; then
    bytes=$((1 << 30))
    set -- "$bytes" true
    only_kind=1
else
    only_kind=0
    bytes=${1:-}
fi
if [ $# -lt 2 ] || ! [[ $bytes =~ ^[0-9]+$ ]]; then
    echo "usage: memory_cage.sh BYTES COMMAND..." >&2
    exit 2
fi
shift
page=$(getconf PAGESIZE) # the kernel would round down
bytes=$(((bytes + page - 1) / page * page))

# folder_of TYPE: the folder of the cgroup that this process is in, if the
# hierarchy is mounted as a whole: cgroup (v1, memory) or cgroup2
folder_of() {
    local mount own
    case $1 in
    cgroup) own=$(sed -n 's/^[0-9]*:\([^:]*,\)*memory\(,[^:]*\)*:\(.*\)$/\3/p' \
        /proc/self/cgroup) ;;
    cgroup2) own=$(sed -n 's/^0::\(.*\)$/\1/p' /proc/self/cgroup) ;;
    esac
    mount=$(awk -v type="$1" '{
        for (i = 6; i <= NF && $i != "-"; i++)
            continue
        if ($(i + 1) == type && $4 == "/" &&
            (type == "cgroup2" || ("," $(i + 3) ",") ~ /,memory,/)) {
            print $5
            exit
        }
    }' /proc/self/mountinfo)
    [ -n "$own" ] && [ -n "$mount" ] && echo "$mount${own%/}"
}

# Cages whose script was killed are empty and in nobody's use.
remove_leftovers() {
    local old
    for old in "$1/$prefix".*; do
        [ -d "$old" ] && ! [ -e "/proc/${old##*.}" ] && rmdir "$old"
    done 2>/dev/null
}

# put FILE VALUE: of the cage; quiet about what isn't permitted
put() {
    [ -e "$cage/$1" ] && { echo "$2" >"$cage/$1"; } 2>/dev/null
}

make_v1() {
    local above
    above=$(folder_of cgroup) && [ -w "$above" ] || return 1
    remove_leftovers "$above"
    cage=$above/$prefix.$$
    mkdir "$cage" 2>/dev/null || return 1
    put memory.limit_in_bytes "$bytes" || { rmdir "$cage"; return 1; }
    put memory.memsw.limit_in_bytes "$bytes" || put memory.swappiness 0
}

# A v2 cgroup with processes in it has none below it, except the root. So the
# cage stands beside it, where it sets no limit itself that would be evaded.
make_v2() {
    local above
    above=$(folder_of cgroup2) || return 1
    if ! grep -qw memory "$above/cgroup.subtree_control" 2>/dev/null; then
        [ "$(cat "$above/memory.max" 2>/dev/null)" = max ] || return 1
        above=${above%/*}
        grep -qw memory "$above/cgroup.subtree_control" 2>/dev/null || return 1
    fi
    [ -w "$above" ] || return 1
    remove_leftovers "$above"
    cage=$above/$prefix.$$
    mkdir "$cage" 2>/dev/null || return 1
    put memory.max "$bytes" || { rmdir "$cage"; return 1; }
    put memory.swap.max 0
    return 0
}

# A cage must let a process in.
lets_in() {
    (echo "$BASHPID" >"$cage/cgroup.procs") 2>/dev/null
}

# What the command left running in the cage ends with it.
remove_cage() {
    local i pid
    for i in 1 2 3 4 5 6 7 8 9 10; do
        while read -r pid; do
            kill -KILL "$pid"
        done <"$cage/cgroup.procs" 2>/dev/null
        put memory.force_empty 0
        rmdir "$cage" 2>/dev/null && return
        sleep 0.1
    done
    say "$cage cannot be removed"
}

cage=
kind=
for candidate in $allowed; do
    case $candidate in
    v1 | v2)
        make_"$candidate" || continue
        if ! lets_in; then
            remove_cage
            continue
        fi
        ;;
    rlimit) cage= ;;
    *)
        echo "memory_cage.sh: CAGE is v1, v2 or rlimit" >&2
        exit 2
        ;;
    esac
    kind=$candidate
    break
done
if [ -z "$kind" ]; then
    say "none can be made here ($allowed)"
    exit 2
fi
if [ "$only_kind" = 1 ]; then
    [ -z "$cage" ] || remove_cage
    echo "$kind"
    exit 0
fi

if [ "$kind" = rlimit ]; then
    kib=$(((bytes + reserve) / 1024))
    say "rlimit, address space of $bytes + $reserve bytes (no cgroup here)"
    ulimit -v "$kib" || exit 2
    exec "$@"
fi

trap remove_cage EXIT
say "cgroup $kind, $bytes bytes"
(
    echo "$BASHPID" >"$cage/cgroup.procs" || exit 2
    exec "$@"
) <&0 &
child=$!
# pass SIGNAL: to the command; it ends the wait below, not the command
pass() {
    interrupted=1
    kill -"$1" "$child" 2>/dev/null
}
trap 'pass TERM' TERM
trap 'pass INT' INT
trap 'pass HUP' HUP
interrupted=1
while [ "$interrupted" = 1 ]; do
    interrupted=0
    wait "$child" 2>/dev/null
    code=$?
done
killed=$(sed -n 's/^oom_kill \([0-9]*\)$/\1/p' \
    "$cage/memory.oom_control" "$cage/memory.events" 2>/dev/null | head -n 1)
[ "${killed:-0}" -eq 0 ] ||
    say "the kernel killed it: more than $bytes bytes were needed"
exit "$code"
