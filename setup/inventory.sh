# What the hypervisor is built from, for the bill of materials that `cassata build` writes:
# crates/system/src/sbom/inventory.rs reads it, and says what it looks like.

# inventory ARGUMENT...: prints it, with the arguments that choose packages and features of the
# build. Cargo turns on features for all packages of a build, so that these have to be the same.
inventory() {
    local version
    version=$("$CASSATA_RUSTC" --version) &&
        printf 'rustc\t%s\n' "${version#rustc }" &&
        version=$(aarch64-linux-gnu-ld --version) &&
        printf 'linker\t%s\n' "${version%%$'\n'*}" &&
        crate_tree linked normal,no-proc-macro "$@" &&
        crate_tree used normal,build "$@"
}

# crate_tree NAME EDGES ARGUMENT...: the hypervisor's tree of dependencies, behind NAME.
crate_tree() {
    local name=$1 edges=$2
    shift 2
    RUSTC=$CASSATA_RUSTC "$CASSATA_CARGO" tree --quiet --locked --target "$rust_target" \
        --edges "$edges" --prefix depth --no-dedupe \
        --format $'{p}\t{lib}\t{l}\t{f}' "$@" |
        # Trees of other packages begin at depth 0, too; our own crates have a path behind their
        # version, which is another one in each clone; `[build-dependencies]` is a heading.
        awk -v name="$name" '
            /^0/ { ours = /^0cassata-el2 / }
            ours && /^[0-9]/ { sub(/ \(\/[^\t]*\)/, ""); print name "\t" $0 }'
}
