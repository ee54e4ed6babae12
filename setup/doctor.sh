# What is missing on this machine, and how to get it. Nothing is installed, built or written.

readonly memory_wanted_gb=4 # the demo's machine has 1 GiB; two build steps side by side take the rest
readonly room_wanted_gb=10  # a build takes most of that
readonly processors_wanted=2 # benches run two machines side by side

# found STATE WHAT [MEND]: says one thing. STATE is `ok`, `missing`, without which nothing works, or
# `note`.
found() {
    local state=$1 what=$2 mend=${3:-}
    [[ $state != missing ]] || sound=false
    if [[ $format == json ]]; then
        findings+=("$(printf '{"state":"%s","what":"%s","mend":"%s"}' "$state" "$(escaped "$what")" \
            "$(escaped "$mend")")")
        return
    fi
    printf '  %-8s%s\n' "$state" "$what"
    [[ -z $mend ]] || printf '          -> %s\n' "$mend"
}

escaped() {
    local text=${1//\\/\\\\}
    printf '%s' "${text//\"/\\\"}"
}

# at_least STATE VALUE WANTED WHAT MEND
at_least() {
    if (($2 >= $3)); then found ok "$4"; else found "$1" "$4: $3 are better" "$5"; fi
}

examine_packages() {
    local codename package
    codename=$(debian_codename) || codename=
    if [[ -n $codename ]]; then
        found ok "Debian $codename"
        examine_sources "$codename"
    else
        found note "this is not Debian" "install the like of what is missing by hand"
    fi
    find_missing
    if ((${#missing[@]} == 0)); then
        found ok "$toolchain_name"
        found ok "$(qemu-system-aarch64 --version | head -n 1)"
        found ok "every package that Cassata needs"
    fi
    for package in "${missing[@]}"; do
        found missing "${package%%$'\t'*}, which ${package#*$'\t'}"
    done
    if ((${#missing[@]} > 0)) && [[ -n $codename ]]; then
        if ((EUID == 0)) || sudo -n true 2>/dev/null; then
            found note "any other command installs them first" "./cassata demo"
        else
            found note "only root can install them" "./cassata demo says with which command"
        fi
    fi
    for package in "${wanted[@]}"; do
        found note "${package%%$'\t'*} is not there, which ${package#*$'\t'}: such tests are skipped"
    done
}

# examine_sources CODENAME: where guests come from, which are Debian's packages.
examine_sources() {
    local suffix found_sources without=missing
    [[ ! -e $CASSATA_ROOT/build/guests/linux/Image ]] || without=note
    command -v apt-get >/dev/null || return 0
    for suffix in '' -backports; do
        found_sources=$(debian_sources "$1" ${suffix:+backports}) || found_sources=
        if [[ -n $found_sources ]]; then
            found ok "apt has Debian $1$suffix, from ${found_sources%% *}"
        elif [[ -z $suffix ]]; then
            found "$without" "apt has no source for Debian $1 main, from which Linux is fetched" "see sources.list(5)"
        else
            found note "apt has no source for Debian $1$suffix" \
                "systems/backports.toml needs one, and QEMU where it is older than $qemu_wanted"
        fi
    done
}

# What a few commands need, each of which installs it when it is first given.
examine_later() {
    local program package command
    while read -r program package command; do
        command -v "$program" >/dev/null ||
            found note "$package is not there, which only $command needs" "it is installed then"
    done <<'END'
mke2fs e2fsprogs ./cassata run systems/debian.toml
flex flex ./cassata test own-kernel
bison bison ./cassata test own-kernel
bc bc ./cassata test own-kernel
patch patch ./cassata test own-kernel
xz xz-utils ./cassata test own-kernel
slurmctld slurmctld ./cassata test campaign-slurm
c++ g++ fuzz/run
qemu-aarch64 qemu-user crates/el2/threads
valgrind valgrind crates/el2/sanitised
END
    python3 -c 'import ensurepip, venv' 2>/dev/null ||
        found note "python3-venv is not there, which only ./cassata campaign needs" "it is installed then"
}

examine_machine() {
    local memory room owner
    at_least note "$(nproc)" "$processors_wanted" "$(nproc) processors" "benches take longer"
    memory=$(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1000000))
    at_least note "$memory" "$memory_wanted_gb" "$memory GB of memory" "builds and large systems may run out of it"
    room=$(($(df --output=avail -k "$CASSATA_ROOT" | tail -n 1) / 1000000))
    if [[ -x $binary ]]; then
        found ok "$room GB of room, and Cassata is built"
    else
        at_least missing "$room" "$room_wanted_gb" "$room GB of room in $CASSATA_ROOT" "make room there"
    fi
    owner=$(stat -c %U "$CASSATA_ROOT")
    if [[ -w $CASSATA_ROOT && (! -e $CASSATA_ROOT/build || -w $CASSATA_ROOT/build) ]]; then
        found ok "$CASSATA_ROOT can be written to"
    else
        found missing "$CASSATA_ROOT belongs to $owner, and you are $(id -un)" "run cassata as that user"
    fi
}

# examine [--json]: exits with 1 if anything is missing.
examine() {
    local format=people sound=true findings=() missing wanted
    case "$*" in
    '') ;;
    --json) format=json ;;
    *) say "error: doctor knows only --json, and not: $*" && exit 2 ;;
    esac
    examine_packages
    examine_later
    examine_machine
    if [[ $format == json ]]; then
        local IFS=,
        printf '{"sound":%s,"findings":[%s]}\n' "$sound" "${findings[*]}"
    elif $sound; then
        echo "Nothing is missing: ./cassata demo"
    fi
    $sound
}
