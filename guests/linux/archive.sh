# Archives that the kernel unpacks into its root (initramfs).

# place_libraries PROGRAM PACKAGES ARCHIVE: copies the shared libraries that a program of ARCHIVE needs, and
# those that they need, from unpacked packages.
place_libraries() {
    local library found
    for library in $(aarch64-linux-gnu-readelf --dynamic "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
        # The linker is in every archive, or in the one before it.
        [[ ! -e $3/lib/$library && $library != ld-linux-aarch64.so.1 ]] || continue
        found=$(find "$2" -path "*lib/aarch64-linux-gnu/$library" ! -type d -print -quit)
        [[ -n $found ]] || fail "none of the packages has $library"
        install -D -m 755 "$found" "$3/lib/$library"
        place_libraries "$3/lib/$library" "$2" "$3"
    done
}

# pack_archive DIRECTORY FILE: packs what is in DIRECTORY, the same bytes whenever and wherever that
# is done.
pack_archive() {
    find "$1" -exec touch --no-dereference --date=@0 {} +
    (cd "$1" && find . -print0 | sort -z |
        cpio --null --create --format=newc --reproducible --owner=+0:+0 --quiet |
        gzip -n -9) >"$2"
}
