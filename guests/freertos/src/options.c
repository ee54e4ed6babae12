#include "options.h"

#include <stddef.h>
#include <string.h>

#include "console.h"

#define LEAST_TICK_US 10
/* With half of a tick, two ticks could come at once. */
#define MOST_JITTER 49
/* Of interrupts that come at random: a task that is woken sleeps again by then. */
#define LEAST_PACE_US 100

/* A number, or a text of NAME_SIZE bytes. */
struct known {
    const char *name;
    uint64_t *value;
    uint64_t most;
    char *text;
};

/* Reads a number up to the end of the word; false if there is none, or it is
 * larger than `most`. */
static bool read_number(const char **text, uint64_t most, uint64_t *number)
{
    const char *p = *text;

    for (*number = 0; *p >= '0' && *p <= '9'; p++) {
        *number = *number * 10 + (uint64_t)(*p - '0');
        if (*number > most)
            return false;
    }
    if (p == *text || (*p != ' ' && *p != '\0'))
        return false;
    *text = p;
    return true;
}

/* Reads up to the end of the word; false if there is nothing, or it is too long. */
static bool read_text(const char **text, char *value)
{
    size_t length = 0;

    for (; (*text)[length] != ' ' && (*text)[length] != '\0'; length++) {
        if (length == NAME_SIZE - 1)
            return false;
        value[length] = (*text)[length];
    }
    value[length] = '\0';
    *text += length;
    return length > 0;
}

/* Whether the name is there; `word` may end before it. */
static bool begins_with(const char *word, const char *name)
{
    for (; *name != '\0'; word++, name++)
        if (*word != *name)
            return false;
    return true;
}

static bool complain(const char *word, const char *mend)
{
    print("freertos: error: bootargs at \"%s\": %s\n", word, mend);
    return false;
}

static bool read_option(const char **text, const struct known *known)
{
    const char *word = *text;

    for (; known->name != NULL; known++) {
        if (!begins_with(word, known->name))
            continue;
        *text = word + strlen(known->name);
        if (known->text != NULL)
            return read_text(text, known->text) || complain(word, "a name of 1 to 31 bytes is needed");
        if (!read_number(text, known->most, known->value))
            return complain(word, "a whole number is needed; load at most 1000, tick_us 1000000, "
                                  "jitter 49, participant 3, trace 1");
        return true;
    }
    return complain(word, "known are load=, period_us=, tick_us=, jitter=, wake=, start_ms=, activations=, mutex=, task=, "
                          "memory=, participant=, hold_us=, die_at=, bench=, bench_stop=, resources=, trace=, boost=, link=");
}

/* What `wake=` may name, in the order of enum wake; and `boost=`, in that of enum boost. Each ends with NULL. */
static const char *const wakes[] = { "timer", "sgi", "rtc", "grant", NULL };
static const char *const boosts[] = { "none", "call", "line", NULL };

/* Returns the number of a name; -1 if it is none of them. "" is the first. */
static int number_of(const char *name, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (name[0] == '\0' || (strlen(name) == strlen(names[i]) && begins_with(name, names[i])))
            return i;
    return -1;
}

/* With a pacer there are no ticks. */
static bool check_wake(const struct options *options)
{
    if (options->load_permille != 0)
        return complain("wake=", "load=0 is needed besides");
    if (options->jitter_percent != 0 || options->task[0] != '\0' || options->bench != 0 || options->resources != 0
        || options->link[0] != '\0')
        return complain("wake=", "there are no jitter=, task=, bench=, resources= and link= with it");
    if (options->period_us < LEAST_PACE_US || options->period_us > 1000000)
        return complain("period_us=", "must be 100 to 1000000 with wake=");
    return true;
}

bool options_parse(const char *text, struct options *options)
{
    char wake[NAME_SIZE] = "", boost[NAME_SIZE] = "";
    int number;
    const struct known known[] = {
        { "load=", &options->load_permille, 1000, NULL },
        { "period_us=", &options->period_us, 1000000000, NULL },
        { "tick_us=", &options->tick_us, 1000000, NULL },
        { "jitter=", &options->jitter_percent, MOST_JITTER, NULL },
        { "wake=", NULL, 0, wake },
        { "start_ms=", &options->start_ms, 1000000, NULL },
        { "activations=", &options->activations, UINT32_MAX, NULL },
        { "mutex=", NULL, 0, options->mutex },
        { "task=", NULL, 0, options->task },
        { "memory=", NULL, 0, options->memory },
        { "participant=", &options->participant, 3, NULL },
        { "hold_us=", &options->hold_us, 1000000, NULL },
        { "die_at=", &options->die_at, UINT32_MAX, NULL },
        { "bench=", &options->bench, 1000000, NULL },
        { "bench_stop=", &options->bench_stop, 1000, NULL },
        { "resources=", &options->resources, 1000000, NULL },
        { "trace=", &options->trace, 1, NULL },
        { "boost=", NULL, 0, boost },
        { "link=", NULL, 0, options->link },
        { NULL, NULL, 0, NULL },
    };

    *options = (struct options){ .load_permille = 300, .period_us = 1000, .tick_us = 1000 };
    for (;;) {
        while (*text == ' ')
            text++;
        if (*text == '\0')
            break;
        if (!read_option(&text, known))
            return false;
    }
    number = number_of(boost, boosts);
    if (number < 0)
        return complain("boost=", "known are none, call, line");
    options->boost = (enum boost)number;
    number = number_of(wake, wakes);
    if (number < 0)
        return complain("wake=", "known are timer, sgi, rtc, grant");
    options->wake = (enum wake)number;
    if (options->wake != WAKE_TIMER)
        return check_wake(options);
    if (options->tick_us < LEAST_TICK_US)
        return complain("tick_us=", "must be at least 10");
    if (options->period_us == 0 || options->period_us % options->tick_us != 0)
        return complain("period_us=", "must be a multiple of tick_us, 1000 if that is not said");
    /* What is computed for a declared task holds for releases that are a period apart. */
    if (options->jitter_percent != 0 && options->task[0] != '\0')
        return complain("jitter=", "there is none with task=");
    if (options->mutex[0] != '\0' && options->task[0] == '\0')
        return complain("mutex=", "task= is needed besides");
    if (options->memory[0] == '\0')
        memcpy(options->memory, options->mutex, NAME_SIZE);
    return true;
}
