# The source of the Linux guest's kernel: Debian's package of the same version.

# unpack_source ROOT INTO PACKAGES [ARGUMENT...]: downloads the package, for the kernel in ROOT/debs and by
# the apt of `debian_apt`, unpacks it into the directory INTO, and adds what it is to the file PACKAGES.
# ARGUMENTs are tar's and choose what is unpacked. The package does not stay.
unpack_source() {
    local package version fetched
    package=$(source_package "$1") || return
    version=$(dpkg-deb --field "$1"/debs/linux-image-*.deb Version)
    fetched=$2.fetched
    mkdir -p "$fetched"
    (cd "$fetched" && apt-get "${apt[@]}" download "$package=$version")
    dpkg-deb --show --showformat='${Package} ${Version}\n' "$fetched"/*.deb >>"$3"
    unpack_source_package "$fetched"/*.deb "$2" "${@:4}"
    rm -r "$fetched"
}

# source_package ROOT: the name of the package with the source of the kernel in ROOT/debs.
source_package() {
    local image
    image=$(echo "$1"/debs/linux-image-*.deb)
    [[ -f $image ]] || { echo "there is no kernel in $1/debs: run guests/linux/fetch" >&2; return 1; }
    dpkg-deb --field "$image" Package | sed -E 's/linux-image-([0-9]+\.[0-9]+).*/linux-source-\1/'
}

# unpack_source_package FILE INTO [ARGUMENT...]: unpacks such a package into the directory INTO.
unpack_source_package() {
    mkdir -p "$2"
    dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
        tar -xJ -C "$2" --strip-components=1 "${@:3}"
}

# configure_kernel SOURCE OPTIONS: has the kernel in SOURCE configured with the options in the file OPTIONS on top
# of the smallest kernel that there is, and sets `kernel`, arguments with which make builds it. An option that depends
# on one that is off would be dropped silently: then it fails, and says which.
configure_kernel() {
    # Nothing of when and where it was built is in the Image.
    kernel=(make -C "$1" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- LOCALVERSION=-cassata
        KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970' KBUILD_BUILD_USER=cassata
        KBUILD_BUILD_HOST=cassata KBUILD_BUILD_VERSION=1)
    "${kernel[@]}" --silent tinyconfig
    (cd "$1" && ARCH=arm64 scripts/kconfig/merge_config.sh -m .config "$2") >/dev/null
    "${kernel[@]}" --silent olddefconfig
    options_taken "$1/.config" "$2"
}

# options_taken CONFIG OPTIONS: fails if a configuration has not all options that are set in the file OPTIONS, and says
# which.
options_taken() {
    local option
    while read -r option; do
        grep -qx "$option" "$1" ||
            { echo "$2: $option was not taken: what it depends on is missing" >&2; return 1; }
    done < <(grep '^CONFIG_' "$2")
}

# apply_patches SOURCE PATCHES [PATTERN]: applies the patches that are listed in PATCHES/series, or those with a line
# that matches, to the directory SOURCE. Says which does not fit, and fails.
apply_patches() {
    local series name patch
    series=$(sed 's/#.*//' "$2/series") || return
    while read -r name _; do
        [[ -n $name ]] || continue
        patch=$2/$name
        [[ -f $patch ]] || { echo "there is no patch $name" >&2; return 1; }
        grep -qE "${3:-}" "$patch" || continue
        patch --directory="$1" --strip=1 --fuzz=0 --forward --silent <"$patch" ||
            { echo "$name does not fit" >&2; return 1; }
    done <<<"$series"
}
