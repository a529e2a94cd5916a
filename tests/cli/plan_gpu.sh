#!/usr/bin/env bash
# Plans for cards that aren't here: memory and time from their data sheets,
# marked as an estimate; and what `devices` says where there is no card.
set -eu
. tests/support/cli.sh
story=$PWD/config/train_fineweb.py
cd "$TMP_DIR"
export XDG_CACHE_HOME="$TMP_DIR/cache"

expect 0 "$PLIMSOLL" plan "$story" --gpu='RTX 4070'
says '^arena .* in the device.s memory$'
says '^total .* on the device; on the host '
says '^budget +11\.3 GB +RTX 4070: 90 % of its 12\.6 GB'
says 'per update, predicted from the card.s data sheet: an estimate$'
says '^rates +from the card.s data sheet and a model of the kernels, which no'

# more flops take less time, and less memory is a smaller budget
seconds() {
    expect 0 "$PLIMSOLL" plan "$story" --gpu="$1" --json
    number predicted_step_ms
}
mid=$(seconds 'rtx 4070')
expect 0 "$PLIMSOLL" plan "$story" --gpu=4070 --json
says '"rates": "stated"'
fast=$(seconds 'RTX 4090')
slow=$(seconds 'RTX 3060')
awk "BEGIN { exit !($fast < $mid && $mid < $slow) }" ||
    fail "$fast, $mid and $slow ms"
expect 0 "$PLIMSOLL" plan "$story" --gpu='GTX 1650' --json
little=$(number arena_bytes)
[ "$little" -le "$(number budget_bytes)" ] || fail "$out"
expect 5 "$PLIMSOLL" plan "$story" --gpu='GTX 1650' --fit=exact
says 'tensor .* has .* bytes, and this device gives at most .* at once'

# a stated budget is believed; a card's name must be known
expect 0 "$PLIMSOLL" plan "$story" --gpu='RTX 4070' --memory=2GB
says "^budget +2\.00 GB +memory = '2GB'"
expect 5 "$PLIMSOLL" plan "$story" --gpu='RTX 4070' --host_memory=1MB
says "of the host's, where it may have 1.00 MB"
expect 3 "$PLIMSOLL" plan "$story" --gpu='RTX 4075'
says "is not in the table of cards.*RTX 4070"

# a card isn't done with a step when it is told of: nothing travels beside it
network=(--dtype=float32 --gradient_groups=4 --ranks=4 --network=1Gbit --json)
expect 0 "$PLIMSOLL" plan "$story" "${network[@]}" --device=cpu
[ "$(number hidden_seconds)" != 0 ] || fail "a processor hides nothing: $out"
expect 0 "$PLIMSOLL" plan "$story" "${network[@]}" --gpu='RTX 4090'
[ "$(number hidden_seconds)" = 0 ] || fail "a card hides gradients: $out"

# no card here
expect 0 "$PLIMSOLL" devices
says '^cpu +[0-9]+ threads?, .* kernels$'
says '^no card: neither CUDA nor OpenCL lists one'
expect 2 "$PLIMSOLL" devices opencl:0
says "there is no device 'opencl:0' here; .plimsoll devices. lists"
expect 3 "$PLIMSOLL" train "$story" --device=opencl
says 'OpenCL|libOpenCL'
