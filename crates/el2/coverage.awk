# Adds up what `coverage` measured: reads sources, then an lcov file.

function indent(text) { match(text, /^ */); return RLENGTH }
function is_code(text) { return text !~ /^ *((\/\/|#).*|(pub[^ ]* )?(mod|use) .*;|[{}();, ]*)$/ }
function percent(part, all) { return all ? 100 * part / all : 0 }

FNR == 1 {
    file = FILENAME
    sub(/.*\//, "", file)
    is_source = file ~ /\.rs$/
    file = FILENAME
    inside = 0
    if (is_source) names[++files] = file
}

# What is compiled for tests only, by how rustfmt indents it; modules of it are whole files.
is_source {
    text[file, FNR] = $0
    length_of[file] = FNR
    if (!inside && $0 ~ /^ *#\[cfg\(test\)\]$/) {
        inside = 1
        depth = indent($0)
        is_test[file, FNR] = 1
        next
    }
    if (!inside) next
    is_test[file, FNR] = 1
    if (indent($0) != depth || $0 ~ /^ *[#\/]/ || $0 !~ /[;},]$/) next
    inside = 0
    if ($0 !~ /^ *(pub(\([a-z]*\))? )?mod [a-z_0-9]*;$/) next
    place = file
    if (place ~ /\/(lib|main|mod)\.rs$/) sub(/[^\/]*$/, "", place)
    else sub(/\.rs$/, "/", place)
    module = $0
    gsub(/.*mod |;/, "", module)
    tests[place module] = 1
    next
}

!is_source && /^SF:/ { at = substr($0, 4); compiled[at] = 1 }
!is_source && /^DA:/ { split(substr($0, 4), part, ","); runs[at, part[1]] += part[2]; has[at, part[1]] = 1 }

function is_for_tests(name,    place) {
    for (place in tests) {
        if (name == place ".rs" || index(name, place "/") == 1) return 1
    }
    return 0
}

END {
    list = results "/not-reached.txt"
    printf "" >list
    for (i = 1; i <= files; i++) {
        name = names[i]
        if (is_for_tests(name)) continue
        short = substr(name, length(root) + 1)
        split(short, part, "/")
        crate = part[2]
        if (!(crate in lines)) crates[++count] = crate
        lines[crate] += 0
        functions = 0
        for (n = 1; n <= length_of[name]; n++) functions += text[name, n] ~ /(^| )fn [a-z]|asm!/
        for (n = 1; n <= length_of[name]; n++) {
            if (is_test[name, n]) continue
            if (compiled[name] ? !has[name, n] : !functions || !is_code(text[name, n])) continue
            lines[crate]++
            if (!compiled[name]) foreign[crate]++
            if (runs[name, n]) reached[crate]++
            else print short ":" n ": " text[name, n] >list
        }
    }
    json = results "/coverage.json"
    printf "{\n  \"commit\": \"%s\",\n  \"histories\": %d,\n  \"goal_percent\": %d,\n", \
        commit, histories, goal >json
    printf "  \"crates\": {\n" >json
    print "| crate | lines of code | reached | not compiled on the host | share | share of the compiled |"
    print "| --- | ---: | ---: | ---: | ---: | ---: |"
    for (i = 1; i <= count; i++) {
        crate = crates[i]
        all += lines[crate]; all_reached += reached[crate]; all_foreign += foreign[crate]
        share = percent(reached[crate], lines[crate])
        row(crate, lines[crate], reached[crate], foreign[crate])
        printf "    \"%s\": { \"lines\": %d, \"reached\": %d, \"not_compiled\": %d, \"percent\": %.1f }%s\n", \
            crate, lines[crate], reached[crate], foreign[crate], share, i < count ? "," : "" >json
    }
    row("all", all, all_reached, all_foreign)
    printf "  },\n  \"all_percent\": %.1f\n}\n", percent(all_reached, all) >json
    share = percent(reached["el2"], lines["el2"])
    printf "\nNot reached: %s\n", list
    if (share < goal) {
        printf "%.1f %% of crates/el2 is reached, which is less than %d %%.\n", share, goal
        exit 1
    }
}

function row(name, all, part, foreign) {
    printf "| %s | %d | %d | %d | %.1f %% | %.1f %% |\n", name, all, part, foreign, \
        percent(part, all), percent(part, all - foreign)
}
