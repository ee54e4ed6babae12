# Which Rust builds Cassata.
#
# Any that is new enough and can build for bare metal: either it has the target
# (`rustup target add` did that), or it has the sources of `core`, as Debian's
# packages do, and builds that itself. The one in PATH comes first.

readonly rust_target=aarch64-unknown-none-softfloat

# toolchain_at RUSTC: if it serves, sets CASSATA_CARGO, _RUSTC, _CORE and
# toolchain_name.
toolchain_at() {
    local sysroot version wanted
    sysroot=$("$1" --print sysroot 2>/dev/null) || return 1
    # Past rustup's proxies: they would choose again, by directory.
    [[ -x $sysroot/bin/cargo && -x $sysroot/bin/rustc && -x $sysroot/bin/rustdoc ]] || return 1
    version=$("$sysroot/bin/rustc" --version | cut -d ' ' -f 2)
    wanted=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$CASSATA_ROOT/Cargo.toml")
    printf '%s\n' "$wanted" "$version" | sort --version-sort --check=quiet || return 1

    if [[ -d $sysroot/lib/rustlib/$rust_target ]]; then
        CASSATA_CORE=prebuilt
    elif [[ -f $sysroot/lib/rustlib/src/rust/library/core/Cargo.toml ]]; then
        CASSATA_CORE=build-std
    else
        return 1
    fi
    CASSATA_CARGO=$sysroot/bin/cargo
    CASSATA_RUSTC=$sysroot/bin/rustc
    toolchain_name="Rust $version in $sysroot, core: $CASSATA_CORE"
}

# Chooses; false when there is none.
find_toolchain() {
    toolchain_at rustc || toolchain_at /usr/bin/rustc
}

# Prints the options by which rustc writes paths into the image that are the same
# wherever the project, cargo's registry and the toolchain lie: panics and debug
# information name source files. The last option that fits decides.
remapped_paths() {
    local sources commit manifests directory
    sources=$("$CASSATA_RUSTC" --print sysroot)/lib/rustlib/src/rust
    commit=$("$CASSATA_RUSTC" -vV | sed -n 's/^commit-hash: //p')
    # It downloads crates that are not there yet, so that their directory is known.
    manifests=$(RUSTC=$CASSATA_RUSTC "$CASSATA_CARGO" metadata --quiet --locked --format-version 1 \
        --filter-platform "$rust_target" --manifest-path "$CASSATA_ROOT/Cargo.toml" |
        grep -o '"manifest_path":"[^"]*/Cargo.toml"' | cut -d '"' -f 4) || return 1
    # Below the name that a released core has; Debian's sources are behind a symbolic link.
    for directory in "$sources" "$(realpath -m "$sources")"; do
        echo "--remap-path-prefix=$directory=/rustc/$commit"
    done
    echo "--remap-path-prefix=$CASSATA_ROOT=."
    while read -r directory; do
        echo "--remap-path-prefix=$directory=registry"
    done < <(sed 's#/[^/]*/Cargo.toml$##' <<<"$manifests" | LC_ALL=C sort -u |
        { grep -vxF -e "$CASSATA_ROOT" -e "$CASSATA_ROOT/crates" -e "$CASSATA_ROOT/guests" ||
            true; })
}

# toml_array: prints its input's lines as an array of strings.
toml_array() {
    sed 's/[\\"]/\\&/g; s/.*/"&"/' | paste -sd , | sed 's/.*/[&]/'
}

# cargo_for_bare_metal ARGUMENT...: cargo with what the chosen Rust needs.
cargo_for_bare_metal() {
    local remapped flags arguments=("$@" --target "$rust_target")
    remapped=$(remapped_paths) || return 1
    flags=$(toml_array <<<"$remapped")
    # They join those in .cargo/config.toml.
    arguments+=(--config "target.$rust_target.rustflags=$flags")
    # In the environment, flags would replace those, and the image be another one.
    local environment=(env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS "RUSTC=$CASSATA_RUSTC")
    if [[ $CASSATA_CORE == build-std ]]; then
        # Building core is not stable yet; Debian's compiler is a stable one.
        environment+=(RUSTC_BOOTSTRAP=1)
        arguments+=(-Zbuild-std=core)
    fi
    "${environment[@]}" "$CASSATA_CARGO" "${arguments[@]}"
}

# cargo_for_host ARGUMENT...
cargo_for_host() {
    RUSTC=$CASSATA_RUSTC "$CASSATA_CARGO" "$@"
}
