/* A side in C, for tests of the one in Rust: it does what it is told on its standard input, a line each, and answers with a
 * line: what the function returned, and in hexadecimal what it has copied.
 *
 *     side FILE HALF NUMBER
 *
 * FILE has a page of registers for both sides, 16 bytes each, and then the half of side 0 and that of side 1. */
#include "cassata_link.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGISTERS 4096
#define LONGEST 8192

static struct cassata_link side;
static uint8_t bytes[LONGEST], text[2 * LONGEST + 64];

/* What both sides of a test send without a pause: message `number` is so long, and has these bytes. */
static size_t length_of(uint32_t number)
{
    return number * 2654435761u >> 24;
}

static uint8_t byte_of(uint32_t number, size_t at)
{
    return (uint8_t)(number * 31 + at * 7);
}

static size_t bytes_of(const char *digits)
{
    size_t length = 0;
    unsigned byte;

    for (; length < LONGEST && sscanf(digits, "%2x", &byte) == 1; digits += 2)
        bytes[length++] = (uint8_t)byte;
    return length;
}

static void answer(int64_t result, bool copies)
{
    printf("%lld ", (long long)result);
    for (int64_t i = 0; copies && i < result; i++)
        printf("%02x", bytes[i]);
    putchar('\n');
    fflush(stdout);
}

/* Sends so many messages, and then takes as many: 0, or the error by which it ended. */
static int pour(uint32_t count)
{
    for (uint32_t number = 0; number < count;) {
        const size_t length = length_of(number);

        for (size_t i = 0; i < length; i++)
            bytes[i] = byte_of(number, i);
        const int result = cassata_link_send(&side, bytes, length);

        if (result == 0)
            number++;
        else if (result != CASSATA_LINK_FULL)
            return result;
        else
            sched_yield();
    }
    return 0;
}

static int drain(uint32_t count)
{
    for (uint32_t number = 0; number < count;) {
        const int length = cassata_link_receive(&side, bytes, sizeof bytes);

        if (length == CASSATA_LINK_EMPTY) {
            sched_yield();
            continue;
        }
        if (length < 0)
            return length;
        if ((size_t)length != length_of(number))
            return -100;
        for (int i = 0; i < length; i++)
            if (bytes[i] != byte_of(number, (size_t)i))
                return -101;
        number++;
    }
    return 0;
}

/* Publishes values whose bytes are all the same, and looks at the peer's, which has to be so, too. */
static int watch(uint32_t count)
{
    for (uint32_t number = 0; number < count; number++) {
        uint8_t value[CASSATA_LINK_VALUE_MAX];
        const size_t length = number % sizeof value + 1;

        memset(value, (int)(uint8_t)number, length);
        if (cassata_link_publish(&side, value, length) != 0)
            return -100;
        const int seen = cassata_link_latest(&side, value, sizeof value);

        if (seen < 0 && seen != CASSATA_LINK_EMPTY)
            return seen;
        for (int i = 1; i < seen; i++)
            if (value[i] != value[0])
                return -101;
    }
    return 0;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    const size_t half = strtoull(arguments[2], NULL, 10);
    const int number = atoi(arguments[3]), file = open(arguments[1], O_RDWR);
    uint8_t *memory = mmap(NULL, REGISTERS + 2 * half, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char word[16], argument[2 * LONGEST + 1];

    if (file < 0 || memory == MAP_FAILED)
        return 1;
    while (fgets((char *)text, sizeof text, stdin) != NULL) {
        argument[0] = '\0';
        if (sscanf((char *)text, "%15s %16384s", word, argument) < 1)
            return 2;
        const uint32_t value = (uint32_t)strtoul(argument, NULL, 10);

        if (strcmp(word, "open") == 0)
            answer(cassata_link_open(&side, memory + 16 * number, memory + REGISTERS + (size_t)number * half,
                                     memory + REGISTERS + (size_t)(1 - number) * half, half), false);
        else if (strcmp(word, "send") == 0)
            answer(cassata_link_send(&side, bytes, bytes_of(argument)), false);
        else if (strcmp(word, "write") == 0)
            answer(cassata_link_write(&side, bytes, bytes_of(argument)), false);
        else if (strcmp(word, "publish") == 0)
            answer(cassata_link_publish(&side, bytes, bytes_of(argument)), false);
        else if (strcmp(word, "receive") == 0)
            answer(cassata_link_receive(&side, bytes, value), true);
        else if (strcmp(word, "read") == 0)
            answer(cassata_link_read(&side, bytes, value), true);
        else if (strcmp(word, "latest") == 0)
            answer(cassata_link_latest(&side, bytes, value), true);
        else if (strcmp(word, "skip") == 0)
            answer(cassata_link_skip(&side), false);
        else if (strcmp(word, "arm") == 0)
            answer((cassata_link_arm(&side), 0), false);
        else if (strcmp(word, "arm-within") == 0)
            answer((cassata_link_arm_within(&side, value), 0), false);
        else if (strcmp(word, "disarm") == 0)
            answer((cassata_link_disarm(&side), 0), false);
        else if (strcmp(word, "arm-room") == 0)
            answer((cassata_link_arm_for_room(&side), 0), false);
        else if (strcmp(word, "disarm-room") == 0)
            answer((cassata_link_disarm_for_room(&side), 0), false);
        else if (strcmp(word, "notify") == 0)
            answer((cassata_link_notify(&side), 0), false);
        else if (strcmp(word, "ring") == 0)
            answer((cassata_link_ring(&side), 0), false);
        else if (strcmp(word, "life") == 0)
            answer(cassata_link_peer_life(&side), false);
        else if (strcmp(word, "pour") == 0)
            answer(pour(value), false);
        else if (strcmp(word, "drain") == 0)
            answer(drain(value), false);
        else if (strcmp(word, "watch") == 0)
            answer(watch(value), false);
        else
            return 2;
    }
    return 0;
}
