#!/usr/bin/env bash
# ranks.sh: what an update takes on two and four hosts whose network is limited
# by a token bucket, beside one process and beside a perfect network. Called by
# `script/hosts --bench`, as root. Prints a table in Markdown.
#
# The hosts share this machine's processors, and each rank has one thread: two
# hosts need two processors, four need four. Where there are fewer, the perfect
# time is that of the processors there are, and the table says so.
# There are as many groups as hosts, so that sums are sent while the last
# micro-batch's backward pass goes on. Other work on this machine spoils the
# times, not the bytes: the load is said.
# What `plan --ranks --network` expects beside that: the time without a limit,
# and the waiting of its model at 94 % of the rate, which is what TCP carries.
# PL_UPDATES: how many of them, of which the fastest is compared. PL_HOSTS: 2 4.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh
. tests/support/hosts.sh

updates=${PL_UPDATES:-6}
cd "$TMP_DIR"
hosts_open
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
for i in 0 1 2 3; do
    tar -c data | enter h$i tar -x
done
model=(--dataset=cats --n_layer=6 --n_head=6 --n_embd=192 --block_size=128
    --batch_size=4 --gradient_accumulation_steps=4 --dropout=0.0 --device=cpu
    --threads=1)
run=("$PLIMSOLL" train "${model[@]}" --eval_iters=1 --eval_interval=1000000
    --max_iters=$((updates + 1)) --warmup_iters=2 --comm_timeout=600)
processors=$(nproc)

# times: the median and the fastest update of $out, in ms, without the first
times() {
    sed -n 's/^iter [1-9][0-9]*: .* time \([0-9.]*\)ms.*/\1/p' <<<"$out" |
        sort -n | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)], t[1] }'
}

load=$(cut -d ' ' -f 1 /proc/loadavg)
expect 0 on 1 "${run[@]}" --out_dir=one
read -r one one_fastest <<<"$(times)"
parameters=$(sed -n 's/^number of parameters: //p' <<<"$out")

# waiting HOSTS BITS_PER_SECOND: in ms, by the model
waiting() {
    expect 0 "$PLIMSOLL" plan "${model[@]}" --gradient_groups="$1" \
        --ranks="$1" --network="$(awk "BEGIN { print $2 * 0.94 / 1e6 }")Mbit" \
        --json
    sed -n 's/.*"waiting_seconds": \([0-9.e-]*\).*/\1/p' <<<"$out" |
        awk 'NR == 1 { print 1000 * $1 }'
}

# row HOSTS RATE BITS_PER_SECOND
row() {
    local median fastest sent over waited waits=0
    expect 0 on_hosts "${run[@]}" --gradient_groups="$1" --out_dir="$1-$2"
    read -r median fastest <<<"$(times)"
    # "each rank sent N bytes per update, N % more than the least possible,
    # and waited N % of the time"
    read -r sent over waited <<<"$(grep '^each rank sent' <<<"$out" |
        awk '{ print $4, $8, $(NF - 4) }')"
    [ -n "$waited" ] || fail "no word of what was sent: $out"
    if [ "$3" = 0 ]; then
        unlimited=$fastest
    else
        waits=$(waiting "$1" "$3")
    fi
    awk -v hosts="$1" -v rate="$2" -v bits="$3" -v median="$median" \
        -v expected="$(awk "BEGIN { print $unlimited + $waits }")" \
        -v fastest="$fastest" -v sent="$sent" -v over="$over" \
        -v waited="$waited" -v one="$one_fastest" -v n="$processors" 'BEGIN {
        perfect = one / (hosts < n ? hosts : n)
        model = bits ? sprintf("%.0f ms, %.2f", expected,
            fastest / expected) : "-"
        printf "| %d | %s | %.0f ms (%.0f) | %.0f ms, %.2f | %s | %.2f MB, " \
            "+%s %% | %s %% |\n", hosts, rate, median, fastest, perfect,
            fastest / perfect, model, sent / 1e6, over, waited
    }'
}

echo "$parameters parameters, 16 sequences of 128 tokens per update, float32," \
    "one thread per rank, $processors processors, $(date -u +%Y-%m-%d)," \
    "load average before it $load"
[ "$processors" -ge 4 ] || echo "(four hosts share $processors processors:" \
    "their perfect time is that of $processors)"
echo
echo "| hosts | network | update, median (fastest) | perfect, fastest /" \
    "perfect | model, fastest / model | sent by each | waited |"
echo "|---|---|---|---|---|---|---|"
printf '| 1 | - | %.0f ms (%.0f) | %.0f ms, 1.00 | - | - | - |\n' "$one" \
    "$one_fastest" "$one_fastest"
for hosts in ${PL_HOSTS:-2 4}; do
    limit none
    row "$hosts" 'no limit' 0
    limit 10gbit 1mb
    row "$hosts" '10 Gbit/s' 1e10
    limit 1gbit 256kb
    row "$hosts" '1 Gbit/s' 1e9
    limit 100mbit 128kb
    row "$hosts" '100 Mbit/s' 1e8
done
