# The source of the Linux guest's kernel: Debian's package of the same version.

# unpack_source ROOT INTO PACKAGES [ARGUMENT...]: downloads the package, for the kernel in ROOT/debs and by
# the apt of `debian_apt`, unpacks it into the directory INTO, and adds what it is to the file PACKAGES.
# ARGUMENTs are tar's and choose what is unpacked. The package does not stay.
unpack_source() {
    local image kernel version package fetched
    image=$(echo "$1"/debs/linux-image-*.deb)
    [[ -f $image ]] || { echo "there is no kernel in $1/debs: run guests/linux/fetch" >&2; return 1; }
    kernel=$(dpkg-deb --field "$image" Package)
    version=$(dpkg-deb --field "$image" Version)
    package=linux-source-$(sed -E 's/linux-image-([0-9]+\.[0-9]+).*/\1/' <<<"$kernel")
    fetched=$2.fetched
    mkdir -p "$2" "$fetched"
    (cd "$fetched" && apt-get "${apt[@]}" download "$package=$version")
    dpkg-deb --show --showformat='${Package} ${Version}\n' "$fetched"/*.deb >>"$3"
    dpkg-deb --fsys-tarfile "$fetched"/*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
        tar -xJ -C "$2" --strip-components=1 "${@:4}"
    rm -r "$fetched"
}
