/* The platform of a guest: crates/abi/src/platform.rs in C. */
#ifndef PLATFORM_H
#define PLATFORM_H

#ifdef XEN /* what a guest of Xen's finds: its xen/include/public/arch-arm.h */
#define GICD_BASE          0x03001000
#define GICR_BASE          0x03020000
#define UART_BASE          0x22000000
#else
#define GICD_BASE          0x08000000
#define GICR_BASE          0x080a0000
#define UART_BASE          0x09000000
#endif
#define GICC_BASE          0x08010000 /* on a board with a GICv2 */
#define RTC_BASE           0x09010000 /* if it is passed through; on the board too */
#define STOLEN_BASE        0x0b000000
#define LINES_BASE         0x0b100000 /* of preemption */
#define REPORT_BASE        0x0c000000
#define REPORT_MAX_SIZE    0x04000000
#define SHARED_BASE        0x10000000
#define SHARED_MAX_SIZE    0x08000000 /* all pieces of it */
#define LINK_MEMORY_BASE   0x18000000
#define LINK_MEMORY_SIZE   0x08000000 /* of all links */
#define RAM_BASE           0x40000000

/* INTID of the EL1 virtual timer's private interrupt. */
#define VIRTUAL_TIMER_INTID 27
/* And of the real-time clock's, which all cores share. */
#define RTC_INTID 34

#endif
