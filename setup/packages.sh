# What must be installed, why, and how to get it.
#
# The result of a check is kept in build/setup; it holds until packages or Rust
# toolchains change, so that a command that finds nothing missing loses no time.

readonly qemu_wanted=10.0 # the first with the plugin API that virtual time needs
readonly setup_directory=$CASSATA_ROOT/build/setup

# Sets `missing` to lines `package<TAB>why`, and chooses the Rust toolchain. Sets
# `wanted` likewise to packages without which some tests are skipped.
find_missing() {
    missing=() wanted=()
    have() { command -v "$1" >/dev/null; }
    need() { missing+=("$1"$'\t'"$2"); }
    want() { wanted+=("$1"$'\t'"$2"); }

    have cc || need gcc "links host programs"
    compgen -G '/usr/lib/*/crt1.o' >/dev/null || need libc6-dev "links host programs"
    have aarch64-linux-gnu-gcc || need gcc-aarch64-linux-gnu "compiles guests"
    have aarch64-linux-gnu-ld || need binutils-aarch64-linux-gnu "links for bare metal"
    have dtc || need device-tree-compiler "compiles device trees, for peers and in tests"
    have make || need make "compiles Linux's module"
    have cpio || need cpio "packs Linux's initramfs"
    [[ -e /etc/ssl/certs/ca-certificates.crt || -n ${SSL_CERT_FILE:-}${CARGO_HTTP_CAINFO:-} ]] ||
        need ca-certificates "lets cargo verify what it downloads"
    qemu_is_recent || need qemu-system-arm "is the board, version $qemu_wanted or newer"
    if ! find_toolchain; then
        need rustc-web "compiles Cassata"
        need cargo-web "builds Cassata"
        need rust-web-src "is core, for bare metal"
    fi
    # Only the toolchain's own can read what it compiles. Another toolchain than
    # Debian's brings them itself, or has a way of its own to get them.
    if [[ ${CASSATA_RUSTC:-/usr/bin/rustc} == /usr/bin/rustc ]]; then
        [[ -x /usr/bin/cargo-fmt ]] || want rustfmt-web "checks the source's format, in a test"
        [[ -x /usr/bin/cargo-clippy ]] || want rust-web-clippy "is clippy, for a test"
    fi
}

qemu_is_recent() {
    local version
    version=$(qemu-system-aarch64 --version 2>/dev/null | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
    [[ -n $version ]] && printf '%s\n' "$qemu_wanted" "$version" | sort --version-sort --check=quiet
}

# Prints the shell command that installs what is missing on release CODENAME.
install_command() {
    local package plain=() newer=() commands=() joined
    local install="DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-remove --no-install-recommends"
    for package in "${missing[@]%%$'\t'*}"; do
        # Debian 12 has QEMU 7.2; its backports have what we need.
        case $1/$package in
        bookworm/qemu-system-arm) newer+=("$package") ;;
        *) plain+=("$package") ;;
        esac
    done
    ((${#plain[@]} == 0)) || commands+=("$install ${plain[*]}")
    ((${#newer[@]} == 0)) || commands+=("$install --target-release bookworm-backports ${newer[*]}")
    printf -v joined '%s && ' "${commands[@]}"
    echo "${joined% && }"
}

# Prints the command that adds backports, from the mirror that the host uses
# already; nothing if apt knows them.
backports_command() {
    local sources uri keyrings
    [[ -z $(debian_sources bookworm backports) ]] || return 0
    sources=$(debian_sources bookworm)
    uri=${sources%% *}
    [[ -n $uri ]] || fail "apt has no source for Debian bookworm main; see sources.list(5)"
    keyrings=$(debian_keyrings <<<"${sources%%$'\n'*}")
    say "QEMU $qemu_wanted is in bookworm-backports, which apt does not know yet:" \
        "/etc/apt/sources.list.d/bookworm-backports.list adds them from $uri"
    echo "echo 'deb ${keyrings:+[signed-by=${keyrings%%$'\n'*}] }$uri bookworm-backports main'" \
        ">/etc/apt/sources.list.d/bookworm-backports.list"
}

# Installs what is missing, or ends the program. The package lists are fetched
# anew with `refresh`, or when apt cannot do without.
install_missing() {
    local codename install backports='' everything as_root=(sh -c)
    say "missing:"
    printf '    %s\n' "${missing[@]/$'\t'/ }" >&2
    codename=$(debian_codename) ||
        fail "this is not Debian: install the like of these by hand, then try again"

    install=$(install_command "$codename")
    [[ $install != *bookworm-backports* ]] || backports=$(backports_command)
    everything="${backports:+$backports && }apt-get update && $install"

    if ((EUID != 0)); then
        sudo -n true 2>/dev/null || ask_for_root "$everything"
        as_root=(sudo -n sh -c)
    fi
    if [[ -z $backports && -z ${1:-} ]]; then
        everything="{ $install; } || { apt-get update && $install; }"
    fi
    step "installing packages" packages "${as_root[@]}" "$everything"
}

# Tells what to run, and ends the program.
ask_for_root() {
    say "you are not root; run this, then try again:"
    printf '\n    sudo sh -c "%s"\n\n' "$1" >&2
    if [[ $1 == *rustc-web* ]] && command -v rustup >/dev/null; then
        say "instead of the Rust packages this does as well: rustup target add $rust_target"
    fi
    exit 1
}

# The check that is kept still holds: nothing that could change it is newer.
setup_is_current() {
    local change
    [[ -f $setup_directory/checked && -f $setup_directory/toolchain ]] || return 1
    for change in /var/lib/dpkg/status "$CASSATA_ROOT"/{setup,Cargo.toml} \
        "$CASSATA_ROOT"/setup/*.sh "${RUSTUP_HOME:-${HOME:-}/.rustup}"/{settings.toml,toolchains}; do
        [[ ! $change -nt $setup_directory/checked ]] || return 1
    done
    # shellcheck source=/dev/null
    . "$setup_directory/toolchain"
    [[ -x $CASSATA_CARGO && -x $CASSATA_RUSTC ]]
}

remember_setup() {
    local chosen
    mkdir -p "$setup_directory"
    chosen=$(printf '%s=%q\n' CASSATA_CARGO "$CASSATA_CARGO" CASSATA_RUSTC "$CASSATA_RUSTC" \
        CASSATA_CORE "$CASSATA_CORE")
    # Products are rebuilt when this file is newer: it changes with the choice only.
    if [[ $chosen != "$(cat "$setup_directory/toolchain" 2>/dev/null)" ]]; then
        printf '%s\n' "$chosen" >"$setup_directory/toolchain"
        say "using $toolchain_name"
    fi
    touch "$setup_directory/checked"
}

# All that is needed is there when this returns.
ensure_packages() {
    export CASSATA_CARGO CASSATA_RUSTC CASSATA_CORE
    ! setup_is_current || return 0
    find_missing
    if ((${#missing[@]} > 0)); then
        install_missing
        find_missing
    fi
    if ((${#missing[@]} > 0)); then
        # What apt knew was too old.
        install_missing refresh
        find_missing
    fi
    ((${#missing[@]} == 0)) ||
        fail "still missing after the installation: ${missing[*]%%$'\t'*}"
    if ((${#wanted[@]} > 0)); then
        (missing=("${wanted[@]}") && install_missing) ||
            say "going on without: the tests that need these will be skipped"
    fi
    remember_setup
}

# Sets `llvm` to the directory of the tools that read what the chosen compiler's programs
# count, and installs them if need be. Only crates/el2/coverage asks for them.
ensure_llvm() {
    local sysroot version
    sysroot=$("$CASSATA_RUSTC" --print sysroot)
    version=$("$CASSATA_RUSTC" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
    find_llvm() {
        # rustup's component llvm-tools, then Debian's package.
        for llvm in "$sysroot"/lib/rustlib/*/bin "/usr/lib/llvm-$version/bin"; do
            [[ ! -x $llvm/llvm-cov || ! -x $llvm/llvm-profdata ]] || return 0
        done
        return 1
    }
    ! find_llvm || return 0
    missing=("llvm-$version"$'\t'"reads which code the tests have reached")
    install_missing
    find_llvm || fail "llvm-$version has neither llvm-cov nor llvm-profdata"
}

# A C++ compiler, which only fuzz/run asks for.
ensure_cxx() {
    ! command -v c++ >/dev/null || return 0
    missing=("g++"$'\t'"compiles libFuzzer")
    install_missing
}

# What compiles and runs programs for AArch64's Linux, which only crates/el2/threads asks for.
ensure_user_mode() {
    missing=()
    command -v qemu-aarch64 >/dev/null ||
        missing+=("qemu-user"$'\t'"runs AArch64 programs")
    [[ -e /usr/aarch64-linux-gnu/lib/crt1.o ]] ||
        missing+=("libc6-dev-arm64-cross"$'\t'"links AArch64 programs")
    ((${#missing[@]} == 0)) || install_missing
}

# What watches each access to memory, which only crates/el2/sanitised asks for.
ensure_valgrind() {
    ! command -v valgrind >/dev/null || return 0
    missing=("valgrind"$'\t'"finds wrong accesses to memory")
    install_missing
}

# What compiles a whole Linux kernel, which only the one with the port to Cassata asks for.
ensure_kernel_tools() {
    local tool
    missing=()
    for tool in flex bison bc patch xz; do
        command -v "$tool" >/dev/null ||
            missing+=("${tool/#xz/xz-utils}"$'\t'"builds a kernel from its source")
    done
    ((${#missing[@]} == 0)) || install_missing
}

# What makes a file system in a file, which only Debian on a disk asks for.
ensure_disk_tools() {
    ! command -v mke2fs >/dev/null || return 0
    missing=("e2fsprogs"$'\t'"makes Debian's root file system")
    install_missing
}

# What makes a virtual environment of Python's, which only a campaign asks for.
ensure_venv() {
    ! python3 -c 'import ensurepip, venv' 2>/dev/null || return 0
    missing=("python3-venv"$'\t'"makes room for Snakemake")
    install_missing
}

# A whole Slurm cluster of one node, which only its test asks for. It runs them itself: services of
# the system are neither configured nor needed.
ensure_slurm() {
    local package
    missing=()
    for package in munge slurmctld slurmd slurm-client; do
        dpkg-query --show --showformat '${Status}' "$package" 2>/dev/null |
            grep -q '^install ok installed$' ||
            missing+=("$package"$'\t'"is part of Slurm, for a test")
    done
    ((${#missing[@]} == 0)) || install_missing
}
