#!/usr/bin/env bash
# The pictures of the docs are those that the program draws: a change of either
# needs script/pictures.
set -eu
. tests/support/cli.sh

script/pictures "$PLIMSOLL" "$TMP_DIR" >/dev/null
for picture in plan explain; do
    cmp "docs/$picture.svg" "$TMP_DIR/$picture.svg" ||
        fail "docs/$picture.svg is stale: run script/pictures"
    grep -q "($picture.svg)\|docs/$picture.svg" README.md docs/*.md ||
        fail "no page shows docs/$picture.svg"
done
