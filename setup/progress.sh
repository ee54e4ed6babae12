# What the user sees while the launcher works. All on standard error: standard
# output belongs to the command line.

say() { printf 'cassata: %s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

# step TITLE LOG COMMAND...: runs a command with its output in build/log/LOG.txt;
# ends the program if it fails. A terminal sees the time pass and the last line
# of the output.
step() {
    local title=$1 log=$CASSATA_ROOT/build/log/$2.txt begin=$SECONDS ticker='' status=0
    shift 2
    mkdir -p "${log%/*}"
    printf 'cassata: %s ... ' "$title" >&2
    if [[ -t 2 ]]; then
        tick "$title" "$log" "$begin" &
        ticker=$!
    fi
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [[ -n $ticker ]]; then
        kill "$ticker"
        wait "$ticker" 2>/dev/null || true
        printf '\r\033[Kcassata: %s ... ' "$title" >&2
    fi
    if ((status != 0)); then
        printf 'failed\n' >&2
        tail -n 40 "$log" >&2
        fail "$title failed; the whole log is $log"
    fi
    printf '%d s\n' $((SECONDS - begin)) >&2
}

# The terminal's line of step, each second, as long as the launcher lives.
tick() {
    exec 9>&- # the lock is the launcher's alone
    while sleep 1 && kill -0 $$ 2>/dev/null; do
        printf '\r\033[Kcassata: %s ... %d s  %s' "$1" $((SECONDS - $3)) \
            "$(tail -n 1 "$2" | tr -d '\r' | cut -c -50)" >&2
    done
}
