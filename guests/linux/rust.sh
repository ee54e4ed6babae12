# Programs in Rust for a Linux guest, which stand alone. The standard library is compiled for them, as Debian's Rust
# has the source only: that takes minutes, once.

readonly rust_linux=aarch64-unknown-linux-gnu

# build_rust APT WORK FILE ARGUMENT...: has cargo build with these arguments, and copies FILE, as it is called below the
# directory of the target's products, to WORK.
build_rust() {
    local apt=$1 work=$2 file=$3
    local arguments=("${@:4}" --locked --release --target "$rust_linux")
    local environment=(env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS
        "CARGO_TARGET_DIR=$CASSATA_ROOT/target/virtio"
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc")
    find_toolchain || fail "no Rust serves"
    unpack_headers "$apt/headers" "$work/headers"
    # Of a fixed path, so that what was compiled can be used again.
    rm -rf "$apt/sysroot"
    mv "$work/headers" "$apt/sysroot"
    if [[ ! -d $("$CASSATA_RUSTC" --print sysroot)/lib/rustlib/$rust_linux ]]; then
        # Building it is not stable yet; Debian's compiler is a stable one.
        environment+=(RUSTC_BOOTSTRAP=1)
        arguments+=(-Zbuild-std=std,panic_abort)
    fi
    local flags="-C target-feature=+crt-static -C relocation-model=static -C strip=symbols"
    flags+=" -C link-arg=--sysroot=$apt/sysroot -C link-arg=-Wl,--build-id=none"
    flags+=" --remap-path-prefix=$CASSATA_ROOT=."
    environment+=("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=$flags" "RUSTC=$CASSATA_RUSTC")
    "${environment[@]}" "$CASSATA_CARGO" build "${arguments[@]}"
    cp "$CASSATA_ROOT/target/virtio/$rust_linux/release/$file" "$work/"
}
