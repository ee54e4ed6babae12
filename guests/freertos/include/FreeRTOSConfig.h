/* How the kernel is configured. Whatever is not here has the kernel's default. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include <stdint.h>

/* Scheduling: preemptive, fixed priorities, no time slicing among equals
 * because no two tasks are equal. */
#define configUSE_PREEMPTION            1
#define configUSE_TIME_SLICING          0
#define configMAX_PRIORITIES            32 /* the upper half for guests/vmpcp */
#define configTICK_RATE_HZ              1000 /* nominal: see tick.c */
#define configTICK_TYPE_WIDTH_IN_BITS   TICK_TYPE_WIDTH_64_BITS
#define configIDLE_SHOULD_YIELD         0
#define configUSE_IDLE_HOOK             1
#define configUSE_TICK_HOOK             0
#define INCLUDE_xTaskDelayUntil         1
#define INCLUDE_vTaskPrioritySet        1

/* Memory: everything is static, nothing can run out. */
#define configSUPPORT_STATIC_ALLOCATION         1
#define configSUPPORT_DYNAMIC_ALLOCATION        0
#define configKERNEL_PROVIDED_STATIC_MEMORY     1
#define configMINIMAL_STACK_SIZE                ((uint64_t)512)
#define configCHECK_FOR_STACK_OVERFLOW          2

/* The port. No task uses floating point (-mgeneral-regs-only).
 * 16 priorities: the number every GIC has, physical or virtual; the port
 * compares the priority mask with what it wrote and a mask that the implementation
 * shortens would break it. API calls are allowed from priority 12 downwards. */
#define configUSE_TASK_FPU_SUPPORT              1
#define configUNIQUE_INTERRUPT_PRIORITIES       16
#define configMAX_API_CALL_INTERRUPT_PRIORITY   12
#ifdef GICV2
#define configINTERRUPT_CONTROLLER_BASE_ADDRESS         0x08000000
#define configINTERRUPT_CONTROLLER_CPU_INTERFACE_OFFSET 0x10000
#endif

/* The tick comes from the virtual timer, see tick.c. */
void tick_start(void);
void tick_next(void);
#define configSETUP_TICK_INTERRUPT()    tick_start()
#define configCLEAR_TICK_INTERRUPT()    tick_next()

/* Task switches, see switches.h: a load and a branch where nothing asks for them. */
extern _Bool switches_told;
void switched_in(const void *task, const char *name, unsigned long priority);
#define traceTASK_SWITCHED_IN() \
    do { if (__builtin_expect(switches_told, 0)) \
        switched_in(pxCurrentTCB, pxCurrentTCB->pcTaskName, pxCurrentTCB->uxPriority); } while (0)

void assertion_failed(const char *file, uint32_t line) __attribute__((noreturn));
#define configASSERT(condition) \
    do { if (!(condition)) assertion_failed(__FILE__, __LINE__); } while (0)

#endif
