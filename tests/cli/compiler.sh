#!/usr/bin/env bash
# CC chooses the compiler, also where a build folder has another already.
set -eu
. tests/support/cli.sh

mkdir "$TMP_DIR/tree"
cp -R CMakeLists.txt CMakePresets.json cmake config docs packaging script src \
    tests tools bench CHANGELOG.md LICENSE README.md "$TMP_DIR/tree"
cd "$TMP_DIR/tree"
cc=$(command -v cc || command -v gcc || command -v clang)
for name in one two; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$cc" >"$TMP_DIR/$name"
    chmod +x "$TMP_DIR/$name"
done

# has COMPILER: build/release was configured with it
has() {
    grep -q "^CMAKE_C_COMPILER:.*=$1\$" build/release/CMakeCache.txt ||
        fail "not $1: $(grep CMAKE_C_COMPILER: build/release/CMakeCache.txt)"
}

expect 0 env CC="$TMP_DIR/one" script/configure release -DPL_TESTS=OFF
has "$TMP_DIR/one"
touch build/release/CMakeFiles/object
expect 0 env -u CC script/configure release # as it is
has "$TMP_DIR/one"
expect 0 env CC="$TMP_DIR/one" script/configure release
says_not 'begun anew'
[ -e build/release/CMakeFiles/object ] || fail "begun anew without need"
expect 0 env CC="$TMP_DIR/two" script/configure release -DPL_TESTS=OFF
says "build/release has $TMP_DIR/one, CC is $TMP_DIR/two: begun anew"
has "$TMP_DIR/two"
[ ! -e build/release/CMakeFiles/object ] || fail "the other's objects stay"
grep -q '^CMAKE_BUILD_TYPE:STRING=Release$' build/release/CMakeCache.txt ||
    fail "the preset was forgotten"
expect 1 env CC="$TMP_DIR/three" script/configure release
says "there is no $TMP_DIR/three"
expect 2 script/configure
cd "$OLDPWD"
grep -q 'script/configure "\$preset"' script/test ||
    fail "script/test doesn't use it"
