/* vMPCP for FreeRTOS on one vCPU. */
#ifndef VMPCP_FREERTOS_H
#define VMPCP_FREERTOS_H

#include "vmpcp.h"

extern const struct vmpcp_port vmpcp_freertos;

/* The handler of interrupt VMPCP_GRANT_INTID. */
void vmpcp_freertos_interrupt(void);

#endif
