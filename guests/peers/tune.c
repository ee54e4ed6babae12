// tune SCHEDULER VALUE...: pins the real-time domain, the only one that Xen has started besides the
// first, to the first core, and sets what Xen's documentation has for it, through Xen's own library:
//
//   tune credit2 WEIGHT          the most that credit2 takes is 65535
//   tune credit WEIGHT
//   tune rtds PERIOD_US BUDGET_US
//
// A WEIGHT of 0 leaves the scheduler's parameters as they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xenctrl.h>

#define DOMAIN 1

static int pin(xc_interface *xen)
{
    xc_cpumap_t hard = xc_cpumap_alloc(xen), soft = xc_cpumap_alloc(xen);
    if (!hard || !soft)
        return -1;
    hard[0] = 1;
    soft[0] = 1;
    return xc_vcpu_setaffinity(xen, DOMAIN, 0, hard, soft, XEN_VCPUAFFINITY_HARD | XEN_VCPUAFFINITY_SOFT);
}

static int set_credit2(xc_interface *xen, unsigned weight)
{
    struct xen_domctl_sched_credit2 set;
    if (weight == 0)
        return 0;
    if (xc_sched_credit2_domain_get(xen, DOMAIN, &set) != 0)
        return -1;
    set.weight = (uint16_t)weight;
    return xc_sched_credit2_domain_set(xen, DOMAIN, &set);
}

static int set_credit(xc_interface *xen, unsigned weight)
{
    struct xen_domctl_sched_credit set;
    if (weight == 0)
        return 0;
    if (xc_sched_credit_domain_get(xen, DOMAIN, &set) != 0)
        return -1;
    set.weight = (uint16_t)weight;
    return xc_sched_credit_domain_set(xen, DOMAIN, &set);
}

static int set_rtds(xc_interface *xen, unsigned period_us, unsigned budget_us)
{
    struct xen_domctl_schedparam_vcpu set = { .vcpuid = 0 };
    set.u.rtds.period = period_us;
    set.u.rtds.budget = budget_us;
    return xc_sched_rtds_vcpu_set(xen, DOMAIN, &set, 1);
}

static int set(xc_interface *xen, int count, char **words)
{
    unsigned first = count > 2 ? (unsigned)atoi(words[2]) : 0;
    unsigned second = count > 3 ? (unsigned)atoi(words[3]) : 0;
    if (count == 3 && strcmp(words[1], "credit2") == 0)
        return set_credit2(xen, first);
    if (count == 3 && strcmp(words[1], "credit") == 0)
        return set_credit(xen, first);
    if (count == 4 && strcmp(words[1], "rtds") == 0)
        return set_rtds(xen, first, second);
    fprintf(stderr, "usage: tune credit2|credit WEIGHT, or tune rtds PERIOD_US BUDGET_US\n");
    exit(2);
}

int main(int count, char **words)
{
    xc_interface *xen = xc_interface_open(NULL, NULL, 0);
    if (!xen || pin(xen) != 0 || set(xen, count, words) != 0) {
        perror("tune");
        return 1;
    }
    return 0;
}
