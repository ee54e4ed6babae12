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
# source of that release's main component, its updates and its security updates
# (or of its backports). FILE is where it is configured. Works before the first
# `apt-get update` as well.
debian_sources() {
    local suites="($1|stable|oldstable)([-/](updates|security))?"
    [[ ${2:-} != backports ]] || suites="($1|stable|oldstable)-backports"
    apt-get indextargets --no-release-info \
        --format '$(REPO_URI) $(RELEASE) $(SOURCESENTRY) $(COMPONENT)' 'Created-By: Packages' |
        sed -nE "s#^([^ ]+ $suites [^ ]+):[0-9]+ main\$#\\1#p" | sort -u
}

# Reads lines as debian_sources writes them; prints the keyring files that the
# sources' own entries name.
debian_keyrings() {
    cut -d ' ' -f 3- | sort -u |
        { xargs -r -d '\n' grep -hoiE '(^signed-by: *|signed-by=)/[^] ,]+' || true; } |
        sed 's/^[^/]*//' | sort -u
}
