#!/usr/bin/env bash
# `plimsoll devices --selftest` on PoCL: every kernel in every storage has the
# processor's bits.
set -eu
. tests/support/cli.sh
export XDG_CACHE_HOME="$TMP_DIR/cache"
expect 0 "$PLIMSOLL" devices --selftest
says 'a processor, used only where it is named'
says 'self-test: [0-9]+ cases, [0-9,]+ bytes: all are the processor'
says 'products [0-9.]+ GFLOP/s, attention [0-9.]+'
for dtype in float32 float16; do
    says "an update of a small model .128 tokens. in $dtype takes .*; predicted"
done
expect 0 "$PLIMSOLL" devices --json
says '"passed": true'
says '"float16_update_seconds": [0-9.e-]*[1-9]'
