# Debian, as this host's own configuration describes it.
#
# Mirrors are never ours to choose: every address comes from the host's apt
# sources, so that a machine behind a mirror of its own stays behind it.

# The release's codename; fails on other systems.
debian_codename() {
    # shellcheck source=/dev/null
    (. /etc/os-release && [[ ${ID:-} == debian && -n ${VERSION_CODENAME:-} ]] &&
        echo "$VERSION_CODENAME")
}

# debian_sources CODENAME [backports]: a line `URI SUITE FILE` for each configured
# source of that release's main component, and behind these for each of its updates and security
# updates (or for each of its backports). FILE is where it is configured. Prints nothing without the
# release itself, of which its updates are only a part. Works before the first `apt-get update` as well.
debian_sources() {
    local release="($1|stable|oldstable)" found
    [[ ${2:-} != backports ]] || release+=-backports
    found=$(debian_suites "$release")
    [[ -n $found ]] || return 0
    echo "$found"
    [[ ${2:-} == backports ]] || debian_suites "$release[-/](updates|security)"
}

# debian_suites PATTERN: the same for suites of these names, whatever else there is.
debian_suites() {
    apt-get indextargets --no-release-info \
        --format '$(REPO_URI) $(RELEASE) $(SOURCESENTRY) $(COMPONENT)' 'Created-By: Packages' |
        sed -nE "s#^([^ ]+ $1 [^ ]+):[0-9]+ main\$#\\1#p" | sort -u
}

# Reads lines as debian_sources writes them; prints the keyring files that the
# sources' own entries name.
debian_keyrings() {
    cut -d ' ' -f 3- | sort -u |
        { xargs -r -d '\n' grep -hoiE '(^signed-by: *|signed-by=)/[^] ,]+' || true; } |
        sed 's/^[^/]*//' | sort -u
}

# debian_apt ROOT CODENAME ARCHITECTURES [backports|sources]: sets `apt`, arguments with which apt-get and
# apt-cache work for ARCHITECTURES, the first of which is the native one, on a root of their own
# in ROOT, and fetches the lists of packages. It needs no root and leaves the host's apt and dpkg
# as they are. The sources are the host's; signatures are verified with the keyrings that the
# host's own configuration names. Prints what is missing and fails if there are no sources.
debian_apt() {
    local root=$1 codename=$2 architectures=$3 sources more key architecture uri suite
    sources=$(debian_sources "$codename")
    [[ -n $sources ]] ||
        { echo "apt has no source for Debian $codename main; see sources.list(5)" >&2; return 1; }
    if [[ ${4:-} == backports ]]; then
        more=$(debian_sources "$codename" backports)
        [[ -n $more ]] ||
            { echo "apt has no source for Debian $codename-backports; see sources.list(5)" >&2; return 1; }
        sources+=$'\n'$more
    fi
    mkdir -p "$root"/{lists/partial,cache/archives/partial,keyrings}
    : >"$root/status"

    # Every key the host trusts for these sources, and no others: the common ones
    # and those that the sources' own files name.
    rm -f "$root"/keyrings/*
    for key in /etc/apt/trusted.gpg.d/* $(debian_keyrings <<<"$sources"); do
        [[ ! -f $key ]] || ln -sf "$key" "$root/keyrings/"
    done

    while read -r uri suite _; do
        echo "deb [arch=${architectures// /,}] $uri $suite main"
    done <<<"$sources" >"$root/sources.list"
    # The host may have no sources of source packages: they stand beside the packages.
    if [[ ${4:-} == sources ]]; then
        more=$(sed 's/^deb \[[^]]*\]/deb-src/' "$root/sources.list")
        echo "$more" >>"$root/sources.list"
    fi

    cat >"$root/apt.conf" <<END
APT::Architecture "${architectures%% *}";
#clear APT::Architectures;
$(for architecture in $architectures; do echo "APT::Architectures:: \"$architecture\";"; done)
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
// The download user may not be allowed into the project's directory.
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
Dir::State "$root";
Dir::State::lists "$root/lists";
Dir::State::status "$root/status";
Dir::Cache "$root/cache";
Dir::Etc::sourcelist "$root/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::trusted "-";
Dir::Etc::trustedparts "$root/keyrings";
END
    apt=(-c "$root/apt.conf" -q)
    apt-get "${apt[@]}" update
}

# debian_fetch_newest DIRECTORY PACKAGE KIND FETCH: has the function FETCH bring a version into the new DIRECTORY, the newest
# that can be had, and prints which. KIND is Packages or Sources. A mirror may have a new package before what belongs to
# it, or no more that of an older one.
debian_fetch_newest() {
    local versions version
    versions=$(apt-cache "${apt[@]}" madison "$2" | awk -v kind="$3" '$NF == kind { print $3 }' | sort -Vru)
    for version in $versions; do
        rm -rf "$1"
        mkdir "$1"
        (cd "$1" && "$4" "$version") >&2 || continue
        echo "$version"
        return
    done
    return 1
}

# debian_needed PACKAGE PATTERN [OPTION...]: the first package that it depends on and that matches,
# for the apt of `debian_apt`. Fails if there is none.
debian_needed() {
    local found
    found=$(apt-cache "${apt[@]}" "${@:3}" depends "$1" |
        sed -n "s/^ *Depends: *\($2\)\(:[a-z0-9]*\)\?\$/\1/p")
    [[ -n $found ]] || { echo "$1 needs no $2" >&2; return 1; }
    echo "${found%%$'\n'*}"
}
