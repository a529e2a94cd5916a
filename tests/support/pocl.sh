# pocl.sh: what the tests on PoCL share: a text of characters in data/chars, and
# $pocl, the name of the device. Sourced behind cli.sh.

work_on_disk
export XDG_CACHE_HOME="$TMP_DIR/cache"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
expect 0 "$PLIMSOLL" devices
pocl=$(sed -n 's/^\(opencl:[0-9]*\) .*/\1/p' <<<"$out" | head -n 1)
[ -n "$pocl" ] ||
    fail "no PoCL here (script/setup --test installs it)"$'\n'"$out"
