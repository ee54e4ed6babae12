#include "switches.h"

#include "boosts.h"
#include "events.h"

bool switches_told;

bool switches_open(const struct options *options)
{
    if (options->trace != 0 && !events_open())
        return false;
    if (options->boost != BOOST_NONE && !boosts_open(options->boost))
        return false;
    switches_told = events_wanted || boosts_wanted;
    return true;
}

void switched_in(const void *task, const char *name, unsigned long priority)
{
    if (boosts_wanted)
        boosts_switched_in(priority);
    if (events_wanted)
        events_switched_in(task, name);
}
