# text.sh: English text for measurements, from two of Debian's packages that
# are unpacked, not installed. Sourced; $root is the tree, $home a folder for
# what is made.
#
#   fetch_text    makes $home/novels.txt (Jane Austen's) and
#                 $home/dictionary.txt; rdb_text has been built

# unpack PACKAGE: into $home/PACKAGE
unpack() {
    local dir=$home/$1
    [ -d "$dir" ] && return
    rm -rf "$dir.part"
    mkdir -p "$dir.part"
    (cd "$dir.part" && apt-get -qq download "$1" && dpkg-deb -x ./*.deb . &&
        rm -f ./*.deb)
    mv "$dir.part" "$dir"
}

fetch_text() {
    unpack r-cran-janeaustenr
    unpack dict-gcide
    local novels=$home/r-cran-janeaustenr/usr/lib/R/site-library
    "$root/build/release/rdb_text" "$novels/janeaustenr/data/Rdata.rdb" \
        >"$home/novels.txt"
    zcat "$home/dict-gcide/usr/share/dictd/gcide.dict.dz" \
        >"$home/dictionary.txt"
}
