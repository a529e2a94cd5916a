#!/usr/bin/env bash
# with_tmp_dir.sh TEST: runs a shell test with a fresh folder in $TMP_DIR and
# removes the folder afterwards. With KEEP_TMP=1 it stays, and its name is said.
set -uo pipefail

TMP_DIR=$(mktemp -d "${TMPDIR:-/tmp}/plimsoll.XXXXXX") || exit 1
export TMP_DIR
export XDG_CACHE_HOME=$TMP_DIR/cache # nothing of the user's is touched
# Up to two seconds before the first training of each test; those about rates or
# about all that a process takes do without this.
export PLIMSOLL_CALIBRATE=0
bash "$@"
result=$?
if [ "${KEEP_TMP:-0}" = 1 ]; then
    echo "kept: $TMP_DIR"
else
    rm -rf "$TMP_DIR"
fi
exit "$result"
