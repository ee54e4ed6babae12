// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* `packets COUNT`: waits so often, as a process of SCHED_FIFO, for a packet that does not come. Linux ends such a wait
 * at one of its ticks, in a softirq after the timer's interrupt, so a process that has the CPU at once is as far behind
 * a tick each time. Says by how much the waits differ in that, as init says how late other wake-ups were. */
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

/* CONFIG_HZ is 250. */
#define TICK_NS 4000000LL
/* Two ticks, and up to one more. */
#define WAIT_US 8000

static long long behind_tick(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * 1000000000LL + now.tv_nsec) % TICK_NS;
}

int main(int count, char **words)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sched_param urgent = { .sched_priority = 80 };
    struct timeval limit = { .tv_usec = WAIT_US };
    int waits = count == 2 ? atoi(words[1]) : 0;
    int packets = socket(AF_INET, SOCK_DGRAM, 0);
    long long first = 0, least = 0, most = 0, sum = 0;
    char byte;

    if (waits < 1 || packets < 0 || sched_setscheduler(0, SCHED_FIFO, &urgent) ||
        bind(packets, (struct sockaddr *)&any, sizeof any) ||
        setsockopt(packets, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit)) {
        fputs("packets: error: usage: packets COUNT, as root, where there are sockets\n", stderr);
        return 1;
    }
    /* The first one is only to begin with. */
    for (int wait = 0; wait <= waits; wait++) {
        if (recv(packets, &byte, 1, 0) >= 0)
            return 1;
        long long behind = behind_tick();

        if (wait == 0)
            first = behind;
        /* Half a tick before or behind the first one. */
        behind = (behind - first + TICK_NS + TICK_NS / 2) % TICK_NS - TICK_NS / 2;
        least = behind < least ? behind : least;
        most = behind > most ? behind : most;
        sum += behind;
    }
    printf("wakes=%d min_ns=0 mean_ns=%lld max_ns=%lld\n", waits, sum / (waits + 1) - least, most - least);
    return 0;
}
