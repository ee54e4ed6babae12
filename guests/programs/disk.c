// disk: input and output as bonnie 1.4 does it, on a block device: disk DEVICE
//
// It writes by characters and by blocks, rewrites, reads by characters and by blocks, and seeks. Requests go past
// the page cache (O_DIRECT), so that each waits for the device; what is read is whatever the device has.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CHUNK = 16384,  // bonnie's
    CHUNKS = 8,     // in each phase
    SEEKS = 16,     // of which each tenth writes
    SEEK_BYTES = 4096,
};

static uint8_t chunk[CHUNK] __attribute__((aligned(4096)));
static int device;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void put(off_t at, size_t size)
{
    if (pwrite(device, chunk, size, at) != (ssize_t)size)
        fail("write");
}

static void get(off_t at, size_t size)
{
    if (pread(device, chunk, size, at) != (ssize_t)size)
        fail("read");
}

// Fills the chunk a character at a time.
static void put_characters(unsigned seed)
{
    for (volatile uint8_t *at = chunk; at < chunk + CHUNK; at++)
        *at = seed++ & 0x7f;
}

// Looks at each character of the chunk.
static unsigned get_characters(void)
{
    unsigned sum = 0;
    for (volatile uint8_t *at = chunk; at < chunk + CHUNK; at++)
        sum += *at;
    return sum;
}

int main(int argc, char *argv[])
{
    if (argc != 2) {
        fprintf(stderr, "usage: disk DEVICE\n");
        return 2;
    }
    device = open(argv[1], O_RDWR | O_DIRECT);
    if (device < 0)
        fail(argv[1]);
    for (int i = 0; i < CHUNKS; i++) {
        put_characters(i);
        put((off_t)i * CHUNK, CHUNK);
    }
    for (int i = 0; i < CHUNKS; i++)
        put((off_t)i * CHUNK, CHUNK);
    for (int i = 0; i < CHUNKS; i++) {
        get((off_t)i * CHUNK, CHUNK);
        chunk[0]++;
        put((off_t)i * CHUNK, CHUNK);
    }
    unsigned sum = 0;
    for (int i = 0; i < CHUNKS; i++) {
        get((off_t)i * CHUNK, CHUNK);
        sum += get_characters();
    }
    for (int i = 0; i < CHUNKS; i++)
        get((off_t)i * CHUNK, CHUNK);
    // A linear congruential generator: the same places in each run.
    uint32_t random = 1;
    for (int i = 0; i < SEEKS; i++) {
        random = random * 1664525 + 1013904223;
        off_t at = (off_t)(random >> 12) * SEEK_BYTES % (1 << 30);
        get(at, SEEK_BYTES);
        if (i % 10 == 0)
            put(at, SEEK_BYTES);
    }
    printf("%u\n", sum);
    return 0;
}
