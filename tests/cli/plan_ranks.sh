#!/usr/bin/env bash
# Plans of a run that several processes share, and what a network costs them.
set -eu
. tests/support/cli.sh
story=$PWD/config/train_fineweb.py
work_on_disk # the numbers are those without files in memory
export XDG_CACHE_HOME="$PWD/cache" # built-in rates

fixed=(--dtype=float32 --memory=64GB --threads=2 --device=cpu)
plan() { expect 0 "$PLIMSOLL" plan "$story" "${fixed[@]}" "$@"; }

# of NAME: the number of KEY within that object of the JSON in $out
of() {
    sed -n "/\"$1\": {/,/}/p" <<<"$out" |
        sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*\$/\1/p" | head -n 1
}
holds() { awk "BEGIN { exit !($1) }" || fail "$1 does not hold"$'\n'"$out"; }

# bytes: a rank has a quarter of the moments and one set of gradients
plan --gradient_groups=4 --json
total=$(number total_bytes)
moments=$(of train moments_bytes)
plan --gradient_groups=4 --ranks=4 --json
[ "$(of one_machine total_bytes)" = "$total" ] || fail "one machine: $out"
[ "$(of one_machine moments_bytes)" = "$moments" ] || fail "moments: $out"
[ "$(of all moments_bytes)" = "$moments" ] || fail "all moments: $out"
[ "$(of largest total_bytes)" = "$(number total_bytes)" ] ||
    fail "the plan is not the largest: $out"
holds "$(of smallest total_bytes) <= $(of largest total_bytes)"
holds "$(of largest gradients_bytes) == $(of largest weights_bytes)"
holds "$(of largest moments_bytes) < 1.01 * $moments / 4"
holds "$(of all total_bytes) <= 4 * $(of largest total_bytes)"
[ "$(number waiting_seconds)" = 0 ] || fail "waits without a network: $out"
says_not '"network"'

# each rank has its part of the sequences, also of an evaluation
holds "$(number micro_batch) * $(number accumulation) == 128"
plan --gradient_groups=4 --eval_interval=1 --json
run=$(number predicted_run_seconds)
plan --gradient_groups=4 --eval_interval=1 --ranks=4 --json
holds "$(number predicted_run_seconds) < 0.251 * $run"

# a budget is each rank's, and a plan that fits is one of a smaller machine
expect 5 "$PLIMSOLL" plan "$story" --memory=1.2GB --dtype=float32 \
    --gradient_groups=4
expect 0 "$PLIMSOLL" plan "$story" --memory=1.2GB --dtype=float32 \
    --gradient_groups=4 --ranks=4
says '^fits, '
expect 5 "$PLIMSOLL" plan "$story" --memory=500MB --dtype=float32 \
    --gradient_groups=8 --ranks=4
says '^does not fit'
says '^n_embd = [0-9]+ .*another model'
expect 5 "$PLIMSOLL" plan "$story" --memory=1GB --dtype=float32 \
    --gradient_groups=16 --ranks=4 --n_layer=6
says '^gradient_groups = [48] '

# what MPI takes is off the budget of each, not of one machine
expect 0 "$PLIMSOLL" plan "$story" --memory=1.2GB --dtype=float32 \
    --gradient_groups=4 --ranks=4 --json
holds "$(number engine_bytes) > 24e6 && $(number engine_bytes) < 32e6"
holds "$(number budget_bytes) + $(number engine_bytes) == 1.2e9"
says '"budget_from": ".*, less 27\.3 MB for MPI"'
plan --gradient_groups=4 --ranks=1 --json
holds "$(number budget_bytes) == 64e9"
says_not engine_bytes
expect 5 "$PLIMSOLL" plan "$story" --memory=25MB --gradient_groups=4 --ranks=4
says 'MPI takes 27\.3 MB, and the budget is 25\.0 MB in all'

# for people
plan --gradient_groups=4 --ranks=4
says '^update .* tokens on each of 4 ranks; this plan is the largest one'
says '^what a rank takes +weights +gradients +moments +the rest +total +of one$'
says '^largest, rank [0-3] .* 5[0-9]\.[0-9] %  [0-9,]+ bytes$'
says '^smallest, rank [0-3] .* bytes$'
says '^all 4 .* bytes$'
says '^and MPI, off the budget of each: 27\.3 MB, as Open MPI takes;'
says "^one machine .* 100\.0 %  $(grouped "$total") bytes$"
says '^network +none was stated'
says '^speed .* 4\.00 times as fast, an efficiency of 100\.0 %$'
says_not '^choice'

# time: 2 x 3/4 of 309,420,288 bytes, 8 latencies, and some sums
plan --gradient_groups=8 --ranks=4 --network=1Gbit --json
holds "$(number bytes_per_second) == 125e6"
holds "$(number gradients_seconds) - 1.856521728 - 1e-4 < 1e-2"
holds "$(number gradients_seconds) - 1.856521728 - 1e-4 > -1e-9"
holds "$(number weights_seconds) == $(number gradients_seconds)"
[ "$(number hidden_seconds)" = 0 ] || fail "two groups, and hidden: $out"
eight=$(number waiting_seconds)
holds "$(number update_seconds) > $(number compute_seconds) + 3.7"
holds "$(number predicted_step_ms) > 999.9 * $(number update_seconds)"
says '"worth_it": true'
plan --gradient_groups=4 --ranks=4 --network=1Gbit --json
holds "$(number hidden_seconds) > 0.5"
holds "$(number waiting_seconds) < $eight - 0.5"
holds "$(number efficiency) > 0.99 && $(number efficiency) < 1"
plan --gradient_groups=4 --ranks=4 --network=1Gbit,100ms --json
holds "$(number sums_seconds) > 0.4 && $(number sums_seconds) < 0.41"

# the slower the network, the longer they wait; then DiLoCo is the other choice
plan --gradient_groups=64 --ranks=64 --network=100Mbit
says '^network +12\.5 MB/s each way for every rank, latency 50 us$'
says '^on its way +gradients 2[45] s \(.* during the backward pass\), weights '
says '^update .* on each rank: .* computing, .* s waiting \([5-9][0-9]\.. %\)$'
says '^choice .* is waiting\. sync_interval = 30 \(DiLoCo\) would save '
says 'a different algorithm with its own numbers$'
plan --gradient_groups=64 --ranks=64 --network=100Gbit
says '^choice +data parallel: .* less than 20 %, and the bits are those of one'

# workers (sync_interval): each makes its own updates, meets the others once in
# 30, and one machine is what makes the whole update without them
workers() {
    plan --gradient_groups=4 --ranks=4 --network="$1" --sync_interval=30 \
        --max_iters=3000 "${@:2}"
}
plan --gradient_groups=4 --ranks=4 --network=100Mbit --json
shared=$(number waiting_seconds)
hidden=$(number hidden_seconds)
compute=$(number compute_seconds)
one=$(number one_machine_tokens_per_second)
total=$(of one_machine total_bytes)
workers 100Mbit --json
[ "$(number sync_interval)" = 30 ] || fail "another interval: $out"
[ "$(of one_machine total_bytes)" = "$total" ] || fail "one machine: $out"
[ "$(number one_machine_tokens_per_second)" = "$one" ] || fail "speed: $out"
[ "$(number hidden_seconds)" = 0 ] || fail "workers hide nothing: $out"
holds "30 * $(number waiting_seconds) < 1.0001 * ($shared + $hidden)"
holds "30 * $(number waiting_seconds) > 0.9999 * ($shared + $hidden)"
holds "$(number compute_seconds) > $compute"
holds "$(number compute_seconds) < 1.01 * $compute"
holds "$(number efficiency) > 0.97 && $(number efficiency) < 1"
holds "$(of data_parallel waiting_seconds) == $shared"
holds "$(of data_parallel largest_total_bytes) < $(of largest total_bytes)"
holds "$(of largest total_bytes) < 0.9 * $total"
holds "$(number predicted_step_ms) < 1001 * $(number update_seconds)"
says '"worth_it": true'
says_not '"diloco"'

# for people: where sharing would do, it is said
workers 100Mbit
says '^all 4 .* 3[0-9]{2}\.[0-9] %  [0-9,]+ bytes$'
says '^on its way +once in 30 updates, when workers meet: outer gradients 19 s'
says '^update .* computing, 1\.2 s waiting \(0\.[0-9] %\), on average$'
says '^speed .* 3\.9[0-9] times as fast, an efficiency of 9[0-9]\.[0-9] %$'
says '^choice +DiLoCo \(sync_interval = 30\): 0\.. % is waiting\. Data parallel'
says 'would wait 7\.. %, less than 20 %, .* take sync_interval off$'
says_not 'during the backward pass'
workers 10Mbit
says '^choice +DiLoCo .* would wait [2-9].\.. %, so that an update takes '
says ' \([0-9.]+ %\) longer; its largest rank takes 1\.[0-9]+ GB$'
says_not 'sync_interval off'

# a matrix of Muon's has one owner, and a rank may own none
plan --gradient_groups=8 --ranks=8 --network=1Gbit --optimizer=muon --n_layer=2
says '^all 8 '

# what can't be
bad() { expect "$1" "$PLIMSOLL" plan "$story" "${@:2}"; }
bad 3 --ranks=3
says "3 processes can't share an update: a power of two of them can"
bad 3 --ranks=4
says 'gradient_groups = 1: .* With --gradient_groups=4 the run has the same'
bad 3 --ranks=2 --gradient_groups=4 --sync_interval=30 --max_iters=3000
says '2 processes were started, sync_interval = 30 and gradient_groups = 4'
says 'Start as many as there are groups \(mpirun -n 4\)'
bad 2 --ranks=some
says '^plimsoll: error: --ranks=some: a number of processes is expected'
for count in 0 -4 4x 2048 99999999999999999999; do
    bad 2 "--ranks=$count"
    says 'a power of two up to 1024 such as --ranks=4'
done
bad 2 --ranks
says 'such as --ranks=4'
bad 2 --network=1Gbit
says '^plimsoll: error: --network is between several machines: .* --ranks=4'
bad 2 --ranks=4 --gradient_groups=4 --network=fast
says "'fast' is no rate\. Write one such as 100Mbit, 1Gbit, .*12\.5GB/s"
bad 2 --ranks=4 --gradient_groups=4 --network
says 'is no rate'
bad 2 --ranks=4 --gradient_groups=4 --network=1Gbit,soon
says "'soon' is no latency\. Write one such as 5us"
bad 2 --rank=4
says "did you mean '--ranks'"
expect 0 "$PLIMSOLL" plan --help
says '^  --ranks +the run as N processes share it'
