# Archives that the kernel unpacks into its root (initramfs).

# pack_archive DIRECTORY FILE: packs what is in DIRECTORY, the same bytes whenever and wherever that
# is done.
pack_archive() {
    find "$1" -exec touch --no-dereference --date=@0 {} +
    (cd "$1" && find . -print0 | sort -z |
        cpio --null --create --format=newc --reproducible --owner=+0:+0 --quiet |
        gzip -n -9) >"$2"
}
