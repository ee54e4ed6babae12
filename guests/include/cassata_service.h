/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* For modules of Linux: whether the service is there (docs/src/design/calls.md). */
#ifndef CASSATA_SERVICE_H
#define CASSATA_SERVICE_H

#include <linux/arm-smccc.h>
#include <linux/of.h>

/* Returns true if the device tree has a node of a service that is compatible with this one. Asked first, so
 * that no HVC is executed where nothing would take it. */
static bool service_is_described(const char *compatible)
{
    struct device_node *node = of_find_compatible_node(NULL, NULL, compatible);

    of_node_put(node);
    return node && arm_smccc_1_1_get_conduit() == SMCCC_CONDUIT_HVC;
}

#endif
