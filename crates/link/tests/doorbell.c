/* The doorbell of a UIO device where a file stands for that: what the tool of Linux calls in the place of the functions of
 * the C library. Behind the registers in the file is a word that the peer sets when it rings at a doorbell that is armed. */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/types.h>

#define RANG 3

ssize_t __wrap_write(int device, const void *bytes, size_t size);
ssize_t __wrap_read(int device, void *bytes, size_t size);
int __wrap_poll(struct pollfd *ring, nfds_t count, int limit_ms);

/* The interrupt is enabled always. */
ssize_t __wrap_write(int device, const void *bytes, size_t size)
{
    (void)device;
    (void)bytes;
    return (ssize_t)size;
}

ssize_t __wrap_read(int device, void *bytes, size_t size)
{
    (void)device;
    (void)bytes;
    return (ssize_t)size;
}

/* Waits without a limit: the test ends a tool that waits for ever. */
int __wrap_poll(struct pollfd *ring, nfds_t count, int limit_ms)
{
    static _Atomic uint32_t *registers;

    (void)count;
    (void)limit_ms;
    if (registers == NULL)
        registers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (registers == MAP_FAILED)
        return -1;
    while (atomic_exchange(&registers[RANG], 0) == 0)
        sched_yield();
    return 1;
}
