# The kernel's headers, which have the rules by which its modules are built.

# unpack_headers PACKAGES INTO: unpacks the packages in the directory PACKAGES, and sets `tree` to
# where a kernel's module is built from. One of the headers' makefiles names the place where they
# would be installed.
unpack_headers() {
    local deb
    mkdir -p "$2"
    for deb in "$1"/*.deb; do
        dpkg-deb -x "$deb" "$2"
    done
    tree=$(echo "$2"/usr/src/linux-headers-*-arm64)
    [[ -f $tree/Makefile ]] || { echo "none of the packages in $1 has the kernel's headers" >&2; return 1; }
    sed -i "s#/usr/src/#$2/usr/src/#" "$tree/Makefile"
}
