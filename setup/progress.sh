# What the user sees while the launcher works. All on standard error: standard
# output belongs to the command line.

say() { printf 'cassata: %s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

# Ctrl-C: whatever a step makes of it, the exit code is that of all commands.
trap 'kill $(jobs -p) 2>/dev/null || true; [[ ! -t 2 ]] || echo >&2; say interrupted; exit 130' INT

# step TITLE LOG COMMAND...: runs a command with its output in build/log/LOG.txt;
# ends the program if it fails. A terminal sees the time pass and the last line
# of the output each second, a log a line now and then.
step() {
    local title=$1 log=$CASSATA_ROOT/build/log/$2.txt begin=$SECONDS ticker status=0
    shift 2
    mkdir -p "${log%/*}"
    if [[ -t 2 ]]; then
        printf 'cassata: %s ... ' "$title" >&2
        tick "$title" "$log" "$begin" &
    else
        say "$title"
        tell "$title" "$log" "$begin" &
    fi
    ticker=$!
    "$@" >"$log" 2>&1 </dev/null || status=$?
    kill "$ticker"
    wait "$ticker" 2>/dev/null || true
    if [[ -t 2 ]]; then
        printf '\r\033[K' >&2
    fi
    if ((status != 0)); then
        say "$title ... failed"
        tail -n 40 "$log" >&2
        fail "$title failed; the whole log is $log"
    fi
    say "$title ... $((SECONDS - begin)) s"
}

# How often a log gets a line, seconds.
readonly tell_every=${CASSATA_TELL_EVERY:-10}

# The lines of step in a log, as long as the launcher lives.
tell() {
    exec 9>&- # the lock is the launcher's alone
    local passed=0
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        passed=$((SECONDS - $3))
        ((passed % tell_every)) || say "$1 ... $passed s  $(last_line "$2")"
    done
}

# The last line of a log, as much of it as has room.
last_line() { tail -n 1 "$1" 2>/dev/null | tr -d '\r' | cut -c -50; }

# The terminal's line of step, each second, as long as the launcher lives.
tick() {
    exec 9>&- # the lock is the launcher's alone
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        printf '\r\033[Kcassata: %s ... %d s  %s' "$1" $((SECONDS - $3)) \
            "$(last_line "$2")" >&2
    done
}
