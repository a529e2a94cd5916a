#!/usr/bin/env bash
# What is installed: all of it is expected, works from where it lies, and goes
# away again; so does the Debian package, where there are Debian's tools.
set -eu
. tests/support/cli.sh
root=$PWD
build=$(dirname "$PLIMSOLL")
cd "$TMP_DIR"

commands=$("$PLIMSOLL" --help |
    sed -n '/^usage/,/^A config/s/^  \([a-z]*\) .*/\1/p')

# The files below PREFIX: those of everybody, then of `cmake --install` alone.
expected() {
    local name
    printf '%s\n' bin/plimsoll bin/plimsoll-vocab \
        share/bash-completion/completions/plimsoll \
        share/fish/vendor_completions.d/plimsoll.fish \
        share/man/man1/plimsoll.1.gz share/man/man1/plimsoll-vocab.1.gz \
        share/man/man5/plimsoll.5.gz share/doc/plimsoll/README.md \
        share/plimsoll/tools/nanogpt_to_folder.py
    for name in $commands; do
        echo "share/man/man1/plimsoll-$name.1.gz"
    done
    for name in "$root"/config/*.py; do
        echo "share/plimsoll/config/${name##*/}"
    done
    for name in "$root"/docs/*.md "$root"/docs/*.png; do
        echo "share/doc/plimsoll/docs/${name##*/}"
    done
}
{
    expected
    printf '%s\n' share/doc/plimsoll/CHANGELOG.md share/doc/plimsoll/LICENSE \
        share/zsh/site-functions/_plimsoll
    [ ! -f "$build/plimsoll-mpi.so" ] || echo lib/plimsoll/plimsoll-mpi.so
} | LC_ALL=C sort >local.txt
{
    expected
    printf '%s\n' share/doc/plimsoll/copyright \
        share/doc/plimsoll/changelog.gz share/doc/plimsoll/changelog.Debian.gz \
        share/zsh/vendor-completions/_plimsoll
} | LC_ALL=C sort >debian.txt

# files FOLDER: below it, as the lists have them
files() {
    (cd "$1" && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort)
}

# ---- cmake --install ----

expect 0 cmake --install "$build" --prefix "$TMP_DIR/plain"
files plain | diff local.txt - || fail "installed: other files than expected"
for name in plimsoll plimsoll-vocab; do
    [ -x "plain/bin/$name" ] || fail "bin/$name isn't executable"
done
[ -z "$(find plain ! -perm -444)" ] || fail "not for everybody to read"

# It works where it lies, with nothing of the sources around it.
mkdir empty
cd empty
expect 0 env -i PATH="$TMP_DIR/plain/bin:$PATH" plimsoll plan \
    ../plain/share/plimsoll/config/demo.py --dataset=none
says '^peak '
for name in ../plain/share/plimsoll/config/*.py; do
    expect 0 ../plain/bin/plimsoll config "$name"
done

# The examples' config/... is found by what is said.
expect 1 ../plain/bin/plimsoll plan config/demo.py
share=$TMP_DIR/plain/share/plimsoll
says "no config/demo.py in this folder.* is $share/config/demo.py: "
expect 1 ../plain/bin/plimsoll plan config/nothing.py
says 'cannot read config/nothing.py: '

# Where the vocabulary is missing, the program names what fetches it: installed
# beside it, or in the sources.
echo 'a text' >text.txt
expect 1 ../plain/bin/plimsoll prepare --tokenizer=gpt2 --out=data/x text.txt
says "^  $TMP_DIR/plain/bin/plimsoll-vocab data/gpt2.tiktoken\$"
says_not 'script/vocab'
expect 2 ../plain/bin/plimsoll-vocab
says '^usage: .*plain/bin/plimsoll-vocab FILE$'
expect 1 "$PLIMSOLL" prepare --tokenizer=gpt2 --out=data/x text.txt
says '^  script/vocab data/gpt2.tiktoken$'
cd ..

# ---- script/install ----

install=$root/script/install
mkdir -p "in it/bin" # a folder that was there stays
touch "in it/bin/other"
expect 0 "$install" --build "$build" "in it"
says "^install: plimsoll is in $TMP_DIR/in it/bin\$"
says "isn't on PATH"
says "export PATH=\"$TMP_DIR/in it/bin:"
{
    cat local.txt
    printf '%s\n' bin/other share/plimsoll/installed.txt
} | LC_ALL=C sort >with_other.txt
files "in it" | diff with_other.txt - || fail "script/install: other files"
expect 0 "in it/bin/plimsoll" --version

# Once more, over what an older version left: that goes.
echo old >"in it/share/plimsoll/old.txt"
mkdir "in it/share/plimsoll/older"
touch "in it/share/plimsoll/older/old.txt"
printf '%s\n' share/plimsoll/old.txt share/plimsoll/older/ \
    share/plimsoll/older/old.txt >>"in it/share/plimsoll/installed.txt"
LC_ALL=C sort -o "in it/share/plimsoll/installed.txt" \
    "in it/share/plimsoll/installed.txt"
expect 0 env PATH="$TMP_DIR/in it/bin:$PATH" "$install" --build "$build" "in it"
says_not 'PATH'
files "in it" | diff with_other.txt - || fail "an older version's files stay"
[ ! -d "in it/share/plimsoll/older" ] || fail "an older version's folder stays"

# A list that names others' files removes nothing.
cp "in it/share/plimsoll/installed.txt" kept.txt
echo ../precious >>"in it/share/plimsoll/installed.txt"
touch precious
expect 1 "$install" --uninstall "in it"
says "can't be ours"
if [ ! -e precious ] || [ ! -e "in it/bin/plimsoll" ]; then
    fail "it removed something"
fi
cp kept.txt "in it/share/plimsoll/installed.txt"

expect 0 "$install" --uninstall "in it"
[ "$(cd "in it" && find . | sort | tr '\n' ' ')" = ". ./bin ./bin/other " ] ||
    fail "left: $(find "in it")"
expect 1 "$install" --uninstall "in it"
says 'nothing was installed there'
expect 1 "$install" --build "$TMP_DIR/empty" "in it"
says 'is no build folder'
expect 2 "$install" --nonsense
expect 2 "$install" ''
expect 2 "$install" a b
touch file
expect 1 "$install" --build "$build" file
says "can't be written"

# ---- the Debian package ----

if ! command -v dpkg-shlibdeps >/dev/null || ! command -v file >/dev/null; then
    echo "no dpkg-shlibdeps or file here: the Debian package was not made"
    exit 0
fi
expect 0 env DEBFULLNAME="A Packager" DEBEMAIL=packager@debian.org \
    cpack -G DEB --config "$build/CPackConfig.cmake" -B "$TMP_DIR/package"
deb=$(echo package/plimsoll_*.deb)
[ -f "$deb" ] || fail "no package: $out"
dpkg-deb -x "$deb" unpacked
files unpacked/usr | diff debian.txt - || fail "the package: other files"
[ "$(cd unpacked && echo *)" = usr ] || fail "outside of usr: $(ls unpacked)"
out=$(dpkg-deb -f "$deb")
for library in libc6 libjansson4 zlib1g libzstd1 libsnappy1v5 libxxhash0; do
    says "^Depends:.* $library\\b"
done
says '^Package: plimsoll$'
says '^Version: [0-9.]+-1$'
says '^Maintainer: A Packager <packager@debian\.org>$'
out=$(zcat unpacked/usr/share/doc/plimsoll/changelog.Debian.gz)
says '^ -- A Packager <packager@debian\.org>  '
for name in unpacked/usr/share/man/man?/*; do
    out=$(file "$name")
    says 'gzip compressed data, max compression, from Unix'
done
expect 0 unpacked/usr/bin/plimsoll plan \
    unpacked/usr/share/plimsoll/config/demo.py
says '^peak '
if command -v lintian >/dev/null; then
    out=$(lintian --tag-display-limit 0 --allow-root "$deb" 2>&1) || true
    says_not '^E:'
    echo "lintian: $(grep -c . <<<"$out") lines, none an error"
fi
