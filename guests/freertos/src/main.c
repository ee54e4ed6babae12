#include "FreeRTOS.h"
#include "bootargs.h"
#include "console.h"
#include "cpu.h"
#include "firmware.h"
#include "gic.h"
#include "options.h"
#include "platform.h"
#include "switches.h"
#include "task.h"
#include "tasks.h"
#include "tick.h"

void main(const void *device_tree) __attribute__((noreturn));

/* The core belongs to others while there is nothing to do. */
void vApplicationIdleHook(void)
{
    __asm__ volatile("wfi");
}

void main(const void *device_tree)
{
    struct options options;

    /* QEMU starts an ELF file without X0 and puts the tree at the beginning of
     * RAM. */
    if (device_tree == NULL)
        device_tree = (const void *)RAM_BASE;

    print("freertos: FreeRTOS %s, counter %lu Hz\n", tskKERNEL_VERSION_NUMBER, counter_hz());
    if (!options_parse(bootargs_find(device_tree), &options))
        system_off();
    print("freertos: period %lu us, load %lu per mille, activations %lu\n",
          options.period_us, options.load_permille, options.activations);

    if (!switches_open(&options))
        system_off();
    gic_init();
    tick_create(&options);
    if (options.resources != 0)
        resources_create(&options);
    else if (options.bench != 0)
        bench_create(&options);
    else if (options.mutex[0] == '\0')
        measure_create(&options);
    else if (!sharing_create(&options, device_tree))
        system_off();
    if (options.link[0] != '\0' && !motor_create(&options, device_tree))
        system_off();
    load_create(&options);
    vTaskStartScheduler();
    assertion_failed(__FILE__, __LINE__);
}
