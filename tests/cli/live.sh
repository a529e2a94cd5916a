#!/usr/bin/env bash
# `live` and `train --live`: a page about a run, which changes no bit of it.
set -euo pipefail
. "$(dirname "$0")/../support/cli.sh"
cd "$TMP_DIR"
cage=$(cd "$OLDPWD" && pwd)/tests/support/memory_cage.sh

if ! ldconfig -p 2>/dev/null | grep -q libmicrohttpd &&
    ! compgen -G '/usr/lib/*/libmicrohttpd.so.12' >/dev/null; then
    echo "not checked: libmicrohttpd is not installed"
    exit 0
fi

# ask PORT PATH [HEADER]: the answer, with its head
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\n%bConnection: close\r\n\r\n' \
        "$2" "${3:-}" >&3
    cat <&3
    exec 3>&-
}

# port_of LOG: waits for the address that is printed there
port_of() {
    local i port
    for ((i = 0; i < 200; i++)); do
        port=$(sed -n 's|^live: http://127\.0\.0\.1:\([0-9]*\)/.*|\1|p' "$1")
        if [ -n "$port" ]; then
            echo "$port"
            return
        fi
        sleep 0.05
    done
    fail "no address in $1: $(cat "$1")"
}

# ends PID: within some seconds
ends() {
    local i
    for ((i = 0; i < 100; i++)); do
        [ -e "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status" ||
            return 0
        sleep 0.05
    done
    return 1
}

# child_of PID: the page's process
child_of() {
    local child
    for child in /proc/[0-9]*; do
        [ "$(sed -n 's/^PPid:\t//p' "$child/status" 2>/dev/null)" = "$1" ] ||
            continue
        echo "${child#/proc/}"
        return
    done
}

make_text >in.txt
expect 0 "$PLIMSOLL" prepare --out=data/t in.txt
# long enough that it can be watched
run=("$PLIMSOLL" train --dataset=t "${tiny[@]}" --max_iters=150
    --eval_interval=50 --sample_interval=100 --max_new_tokens=20)

# ---- what it refuses ----

expect 1 "$PLIMSOLL" live nowhere
says 'nowhere: there is no such folder'
mkdir empty
expect 4 "$PLIMSOLL" live empty
says 'empty: no run is in there'
expect 2 "$PLIMSOLL" train --dataset=t --live=high
says 'a port is a number'
expect 2 "$PLIMSOLL" train --dataset=t --live=
expect 5 "$PLIMSOLL" train --dataset=t "${tiny[@]}" --out_dir=no --live=0 \
    --memory=20MB
says 'the live page takes 32.0 MB'

# ---- a run with and without it ----

expect 0 "${run[@]}" --out_dir=alone
grep -q '"phase": "done"' alone/progress.json ||
    fail "$(cat alone/progress.json)"
case $(basename "$(dirname "$PLIMSOLL")") in
asan | tsan) ;; # hold more than was planned, and warn of it
*) [ ! -e alone/warnings.jsonl ] || fail "$(cat alone/warnings.jsonl)" ;;
esac

# class by class what was planned was in memory, in every program that ran
planned() { # NAME: a list of plan.json
    tr -d '\n"' <alone/plan.json |
        sed -e 's/  *\([^ ]\)/ \1/g' -e "s/.* $1: \[ \([^]]*\)\].*/\1/" |
        tr -d ,
}
actual() { # PROGRAM CLASS
    sed -n "s/^ *\"$1\": {.*\"$2\": \([0-9]*\).*/\1/p" alone/progress.json
}
read -ra programs <<<"$(planned programs)"
[ ${#programs[@]} = 5 ] || fail "programs: ${programs[*]}"
for class in weights gradients moments 'saved activations' transient; do
    read -ra bytes <<<"$(planned "$class")"
    [ ${#bytes[@]} = 5 ] || fail "$class: ${bytes[*]}"
    for i in 0 1 2 3 4; do
        seen=$(actual "${programs[i]}" "$class")
        [ "${bytes[i]}" = "${seen:-0}" ] ||
            fail "$class, ${programs[i]}: ${bytes[i]} planned, $seen actual"
    done
done
[ "$(actual train reserve)" -gt 1000000 ] || fail "$(cat alone/progress.json)"

expect 2 "$PLIMSOLL" live alone --host=0.0.0.0
says 'a token is needed'
expect 2 "$PLIMSOLL" live alone --host=0.0.0.0 --token=short
says 'this is no token'
expect 2 "$PLIMSOLL" live alone --host=here.example

"${run[@]}" --out_dir=watched --live=0 >log.txt 2>&1 &
pid=$!
port=$(port_of log.txt)
watchers=()
for ((i = 0; i < 10; i++)); do
    (while ask "$port" /api/state && ask "$port" /api/metrics; do
        sleep 0.1
    done >/dev/null 2>&1) 2>/dev/null &
    watchers+=($!)
done
out=$(ask "$port" /)
says '^HTTP/1.1 200'
says "^Content-Security-Policy: default-src 'none'"
says '<script type="module" src="/live.js">'
for ((i = 0; i < 400; i++)); do
    out=$(ask "$port" /api/state)
    grep -q '"running": true' <<<"$out" && break
    sleep 0.02
done
says '"running": true'
says '"name": "watched"'
page=$(child_of "$pid")
wait "$pid" || fail "$(cat log.txt)"
ends "$page" || fail "the page is still there"
wait "${watchers[@]}" || true
grep -q 'to see it again: plimsoll live watched' log.txt ||
    fail "$(cat log.txt)"
for name in model.safetensors optimizer.safetensors; do
    cmp "alone/latest/$name" "watched/latest/$name"
done
timeless() {
    sed 's/, "step_ms": [^}]*//' "$1"
}
cmp <(timeless alone/metrics.jsonl) <(timeless watched/metrics.jsonl)
cmp alone/samples.jsonl watched/samples.jsonl

# ---- a token that a config file has stays there ----

echo "token = 'secret-token'" >token.py
expect 0 "$PLIMSOLL" train token.py --dataset=t "${tiny[@]}" --max_iters=2 \
    --out_dir=token
! grep -r secret token || fail "the token is in the run's folder"

# ---- whoever dies ----

slow=("${run[@]}" --max_iters=100000)
"${slow[@]}" --out_dir=killed --live=0 >log.txt 2>&1 &
pid=$!
port=$(port_of log.txt)
page=$(child_of "$pid")
[ -n "$page" ] || fail "no process beside $pid"
kill -KILL "$page"
for ((i = 0; i < 400; i++)); do
    [ -s killed/metrics.jsonl ] && break
    sleep 0.05
done
before=$(wc -c <killed/metrics.jsonl)
for ((i = 0; i < 200; i++)); do
    [ "$(wc -c <killed/metrics.jsonl)" -gt "$before" ] && break
    sleep 0.05
done
[ "$i" -lt 200 ] || fail "the run stopped with its page: $(cat log.txt)"
kill -INT "$pid"
wait "$pid" && fail "not stopped"

"${slow[@]}" --out_dir=killed2 --live=0 >log.txt 2>&1 &
pid=$!
port=$(port_of log.txt)
page=$(child_of "$pid")
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
ends "$page" || fail "the page outlived its run"

# a port that is taken is said, and the run goes on
"$PLIMSOLL" live alone --port=0 >other.txt 2>&1 &
other=$!
taken=$(port_of other.txt)
expect 0 "${run[@]}" --out_dir=taken "--live=$taken"
says "there is no live page: port $taken of 127.0.0.1 is in use"
cmp alone/latest/model.safetensors taken/latest/model.safetensors
expect 1 "$PLIMSOLL" live alone "--port=$taken"
says "port $taken of 127.0.0.1 is in use"

# so is a library that is missing: one that can't be read counts as such
mkdir fake
echo none >fake/libmicrohttpd.so.12
echo none >fake/libmicrohttpd.so
expect 6 env LD_LIBRARY_PATH="$PWD/fake" "$PLIMSOLL" live alone
says 'libmicrohttpd, which serves pages, is not installed'
says 'apt-get install libmicrohttpd12'
expect 0 env LD_LIBRARY_PATH="$PWD/fake" "${run[@]}" --out_dir=without --live
says 'there is no live page: the library libmicrohttpd'
cmp alone/latest/model.safetensors without/latest/model.safetensors

# ---- several runs, other names, a finished run ----

out=$(ask "$taken" /api/state)
says '"phase": "done"'
says '"running": false'
out=$(ask "$taken" '/api/samples?run=0')
says '"step": 100'
out=$(ask "$taken" '/api/saved?run=0')
says '"n_layer": 2'
out=$(ask "$taken" '/api/plan?run=0')
says '"arena_bytes": [0-9]+'
says '"from": "command line"'
out=$(ask "$taken" '/api/plan?run=1')
says '^HTTP/1.1 404'
out=$(ask "$taken" '/../alone/metrics.jsonl')
says '^HTTP/1.1 404'
out=$(ask "$taken" / 'Origin: http://evil.example\r\n')
says '^HTTP/1.1 403'
kill "$other"
wait "$other" 2>/dev/null || true

# ---- its memory, with a long run and many clients ----

mkdir long
awk 'BEGIN {
    for (i = 0; i < 200000; i++)
        printf "{\"step\": %d, \"loss\": 2.5, \"lr\": 0.001, \"grad_norm\": " \
            "0.5, \"loss_scale\": 1, \"skipped\": 0, \"arithmetic\": 4, " \
            "\"step_ms\": 1.25}\n", i
}' >long/metrics.jsonl
# A sanitizer's own memory isn't counted.
case $(basename "$(dirname "$PLIMSOLL")") in
asan | tsan) exit 0 ;;
esac
# A run and its page together keep the budget.
bash "$cage" 60000000 "${run[@]}" --out_dir=caged --memory=60MB --live=0 \
    >log.txt 2>&1 &
pid=$!
port=$(port_of log.txt)
while ask "$port" /api/state && ask "$port" /api/metrics; do
    sleep 0.1
done >/dev/null 2>&1
wait "$pid" || fail "$(cat log.txt)"
cmp alone/latest/model.safetensors caged/latest/model.safetensors

bash "$cage" 32000000 "$PLIMSOLL" live long alone --port=0 >cage.txt 2>&1 &
caged=$!
port=$(port_of cage.txt)
clients=()
for ((i = 0; i < 20; i++)); do
    (for ((at = 0; at < 5; at++)); do
        ask "$port" "/api/metrics?run=0&every=64&from=0"
        ask "$port" "/api/metrics?run=0&tail=150000"
    done | wc -c >"bytes.$i") &
    clients+=($!)
done
for ((i = 0; i < 20; i++)); do
    ask "$port" /api/state >/dev/null
done
wait "${clients[@]}" || true
[ "$(cat bytes.19)" -gt 1000000 ] || fail "only $(cat bytes.19) bytes came"
out=$(ask "$port" /api/state)
says '"name": "long"'
page=$(child_of "$caged")
sed -n 's/^VmHWM:[[:space:]]*/the page held /p' \
    "/proc/${page:-$caged}/status" || true
kill -TERM "$caged"
wait "$caged" 2>/dev/null || true
! grep -q 'the kernel killed it' cage.txt || fail "$(cat cage.txt)"
