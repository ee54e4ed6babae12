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

# cargo_for_bare_metal ARGUMENT...: cargo with what the chosen Rust needs.
cargo_for_bare_metal() {
    local arguments=("$@" --target "$rust_target")
    if [[ $CASSATA_CORE == build-std ]]; then
        # Building core is not stable yet; Debian's compiler is a stable one.
        RUSTC_BOOTSTRAP=1 RUSTC=$CASSATA_RUSTC "$CASSATA_CARGO" "${arguments[@]}" -Zbuild-std=core
    else
        RUSTC=$CASSATA_RUSTC "$CASSATA_CARGO" "${arguments[@]}"
    fi
}

# cargo_for_host ARGUMENT...
cargo_for_host() {
    RUSTC=$CASSATA_RUSTC "$CASSATA_CARGO" "$@"
}
