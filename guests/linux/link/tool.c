/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* cassata-link: uses a link to another VM from Linux, by UIO: the module cassata_link gives the pages and the doorbell, or
 * Linux's uio_pdrv_genirq where the kernel has it, loaded with `of_id=generic-uio`. See cassata_link.h. */
#include "cassata_link.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef UIO
#define UIO "/sys/class/uio"
#endif
#ifndef NODES
#define NODES "/dev"
#endif
#define LONGEST 4096
/* How often it looks whether the peer is there, if nothing comes. */
#define LOOK_MS 1000
/* How often `pour` and `drain` look before they sleep: for some 100 us. */
#define LOOKS 10000

static struct cassata_link link_;
static int device = -1;

static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("cassata-link: error: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Reads a short file of sysfs without its end of line; false if there is none. */
static bool read_line(char *line, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static bool read_line(char *line, size_t size, const char *format, ...)
{
    char path[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return false;
    const bool read = fgets(line, (int)size, file) != NULL;

    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read;
}

/* Calls `act` with the number and the name of each link; until it returns true. */
static bool each_link(bool (*act)(int number, const char *name, const void *wanted), const void *wanted)
{
    DIR *directory = opendir(UIO);
    bool found = false;
    struct dirent *entry;
    int number;
    char name[64];

    while (directory != NULL && !found && (entry = readdir(directory)) != NULL)
        if (sscanf(entry->d_name, "uio%d", &number) == 1 && read_line(name, sizeof name, UIO "/uio%d/name", number)
            && strncmp(name, "link-", 5) == 0)
            found = act(number, name + 5, wanted);
    if (directory != NULL)
        closedir(directory);
    return found;
}

static bool print_link(int number, const char *name, const void *unused)
{
    char size[32];

    (void)unused;
    if (read_line(size, sizeof size, UIO "/uio%d/maps/map1/size", number))
        printf("%s: " NODES "/uio%d, %" PRIu64 " bytes for each side\n", name, number, (uint64_t)strtoull(size, NULL, 0));
    return false;
}

static volatile void *map(int number, int which, int protection, size_t *size)
{
    char text[32];

    if (!read_line(text, sizeof text, UIO "/uio%d/maps/map%d/size", number, which))
        fail(NODES "/uio%d has no map %d", number, which);
    *size = strtoull(text, NULL, 0);
    void *memory = mmap(NULL, *size, protection, MAP_SHARED, device, which * getpagesize());

    if (memory == MAP_FAILED)
        fail(NODES "/uio%d: cannot map %d: %s", number, which, strerror(errno));
    return memory;
}

/* A program that uses a side has it alone: one that opened it again would take from it what it has not read, and its peer
 * would find what cannot be. The lock ends with the program, however that ends. */
static void lock(const char *name, const char *path)
{
    if (flock(device, LOCK_EX | LOCK_NB) == 0)
        return;
    if (errno != EWOULDBLOCK)
        fail("%s: cannot lock it: %s", path, strerror(errno));
    fail("%s: another program uses link %s: end that first, or wait until it has ended; only `latest`, `peer` and `list` "
         "work beside it", path, name);
}

/* What a command does with a link: it uses this VM's side, or only looks at the other one. */
struct wanted {
    const char *name;
    bool is_used;
};

static bool open_link(int number, const char *name, const void *what)
{
    const struct wanted *wanted = what;
    char path[sizeof NODES + 16];
    size_t registers, own, peer;

    if (strcmp(name, wanted->name) != 0)
        return false;
    snprintf(path, sizeof path, NODES "/uio%d", number);
    device = open(path, O_RDWR | O_CLOEXEC);
    if (device < 0)
        fail("%s: %s", path, strerror(errno));
    if (wanted->is_used)
        lock(name, path);
    volatile void *const places[] = {
        map(number, 0, PROT_READ | PROT_WRITE, &registers),
        map(number, 1, PROT_READ | PROT_WRITE, &own),
        map(number, 2, PROT_READ, &peer),
    };

    if (own != peer || cassata_link_ring_size(own) == 0)
        fail("the halves of link %s are too small", name);
    if (wanted->is_used)
        cassata_link_open(&link_, places[0], places[1], places[2], own);
    else
        cassata_link_watch(&link_, places[0], places[2]);
    return true;
}

static void must_open(const char *name, bool is_used)
{
    const struct wanted wanted = { .name = name, .is_used = is_used };

    if (!each_link(open_link, &wanted))
        fail("there is no link %s: `cassata-link list` shows those that there are; the module cassata_link has to be "
             "loaded", name);
}

/* Waits for the doorbell, which is armed; false if it has not rung for LOOK_MS. */
static bool wait_for_ring(void)
{
    const uint32_t enable = 1;
    uint32_t count;
    struct pollfd ring = { .fd = device, .events = POLLIN };

    if (write(device, &enable, sizeof enable) != sizeof enable)
        fail("cannot enable the doorbell: %s", strerror(errno));
    if (poll(&ring, 1, LOOK_MS) <= 0)
        return false;
    return read(device, &count, sizeof count) == sizeof count;
}

/* What one waits for: data of the peer, or room for one's own. */
struct wait {
    void (*arm)(const struct cassata_link *link);
    void (*disarm)(const struct cassata_link *link);
    bool is_armed; /* and it has not been waited for since */
    bool is_told;  /* the peer rings */
};

static struct wait for_data = { .arm = cassata_link_arm, .disarm = cassata_link_disarm };
static struct wait for_room = { .arm = cassata_link_arm_for_room, .disarm = cassata_link_disarm_for_room };

/* Where there is none: arms the doorbell, and the caller has to look again; where it is armed, waits. */
static void arm_or_wait(struct wait *wait)
{
    if (!wait->is_armed)
        wait->arm(&link_);
    else if (!wait_for_ring() && cassata_link_peer_life(&link_) == 0)
        fail("the other VM is off");
    wait->is_armed = !wait->is_armed;
    wait->is_told = true;
}

/* Where there is some. */
static void go_on(struct wait *wait)
{
    if (wait->is_told)
        wait->disarm(&link_);
    wait->is_armed = wait->is_told = false;
}

/* The next message, with a zero behind it: its length. Waits for it. */
static int receive(char *message, size_t room)
{
    for (;;) {
        const int length = cassata_link_receive(&link_, message, room - 1);

        switch (length) {
        case CASSATA_LINK_EMPTY:
        case CASSATA_LINK_ABSENT:
            arm_or_wait(&for_data);
            break;
        case CASSATA_LINK_RESTARTED:
            fprintf(stderr, "cassata-link: the peer was opened again\n");
            break;
        case CASSATA_LINK_TOO_LONG:
            fprintf(stderr, "cassata-link: a message was longer than %zu bytes\n", room - 1);
            break;
        case CASSATA_LINK_BROKEN:
            fail("the peer writes what cannot be");
        default:
            message[length] = '\0';
            go_on(&for_data);
            cassata_link_notify(&link_);
            return length;
        }
    }
}

/* Sends a message, and waits until there is room for it. It does not ring. */
static void send_message(const char *message, size_t length)
{
    for (;;) {
        const int answer = cassata_link_send(&link_, message, length);

        switch (answer) {
        case 0:
            go_on(&for_room);
            return;
        case CASSATA_LINK_RESTARTED:
            fprintf(stderr, "cassata-link: the peer was opened again\n");
            break;
        case CASSATA_LINK_FULL:
            cassata_link_notify(&link_);
            arm_or_wait(&for_room);
            break;
        case CASSATA_LINK_TOO_LONG:
            fail("a message has at most %" PRIu32 " bytes on this link", link_.size - 8);
        default:
            fail("the peer writes what cannot be");
        }
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned long number_in(const char *text)
{
    char *rest;

    errno = 0;
    const unsigned long number = strtoul(text, &rest, 10);

    if (strspn(text, "0123456789") == 0 || *rest != '\0' || errno != 0)
        fail("\"%s\" is no number, or is too large", text);
    return number;
}

static void send_all(char **messages)
{
    for (; *messages != NULL; messages++)
        send_message(*messages, strlen(*messages));
    cassata_link_notify(&link_);
}

/* Sends each message, and prints as many answers. */
static void ask(char **messages)
{
    char answer[LONGEST];

    /* Answers to a program that did not wait for them are not ours. */
    cassata_link_skip(&link_);
    send_all(messages);
    for (; *messages != NULL; messages++) {
        receive(answer, sizeof answer);
        puts(answer);
    }
}

static void print_messages(unsigned long count)
{
    char message[LONGEST];

    for (; count > 0; count--) {
        receive(message, sizeof message);
        puts(message);
        fflush(stdout);
    }
}

static void print_latest(unsigned long count, unsigned long every_ms)
{
    for (unsigned long i = 0; i < count; i++) {
        char value[CASSATA_LINK_VALUE_MAX + 1];
        const int length = cassata_link_latest(&link_, value, CASSATA_LINK_VALUE_MAX);

        if (i > 0)
            usleep((useconds_t)every_ms * 1000);
        if (length == CASSATA_LINK_BROKEN)
            fail("the peer writes what cannot be");
        if (length < 0) {
            puts("nothing yet");
            continue;
        }
        value[length] = '\0';
        puts(value);
        fflush(stdout);
    }
}

/* Lets a message go there and an answer come back, so many times; each waits for the one before. */
static void bench(unsigned long count)
{
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
    char message[64], answer[LONGEST];

    cassata_link_skip(&link_);
    for (unsigned long i = 0; i < count; i++) {
        const int length = snprintf(message, sizeof message, "ping %lu", i);
        const uint64_t begin = now_ns();

        send_message(message, (size_t)length);
        cassata_link_notify(&link_);
        receive(answer, sizeof answer);
        const uint64_t took = now_ns() - begin;

        if (strcmp(answer, message) != 0)
            fail("the answer to \"%s\" is \"%s\"", message, answer);
        sum += took;
        least = took < least ? took : least;
        most = took > most ? took : most;
    }
    if (count > 0)
        printf("round trips=%lu min_ns=%" PRIu64 " mean_ns=%" PRIu64 " max_ns=%" PRIu64 "\n", count, least, sum / count,
               most);
}

/* Rings, and sends what it is told, as fast as it can; what does not fit is not sent. */
static void flood(unsigned long milliseconds, const char *message)
{
    const uint64_t end = now_ns() + (uint64_t)milliseconds * 1000000;
    uint64_t rings = 0, sent = 0;

    while (now_ns() < end) {
        sent += cassata_link_send(&link_, message, strlen(message)) == 0;
        cassata_link_ring(&link_);
        rings++;
    }
    printf("flood rings=%" PRIu64 " sent=%" PRIu64 "\n", rings, sent);
}

static void write_stream(void)
{
    char bytes[LONGEST];
    size_t length;

    while ((length = fread(bytes, 1, sizeof bytes, stdin)) > 0) {
        for (size_t done = 0; done < length;) {
            const int wrote = cassata_link_write(&link_, bytes + done, length - done);

            if (wrote > 0) {
                done += (size_t)wrote;
                go_on(&for_room);
                cassata_link_notify(&link_);
            } else if (wrote == CASSATA_LINK_FULL) {
                arm_or_wait(&for_room);
            } else if (wrote != CASSATA_LINK_RESTARTED) {
                fail("the peer writes what cannot be");
            }
        }
    }
}

static void read_stream(unsigned long count)
{
    char bytes[LONGEST];

    while (count > 0) {
        const int length = cassata_link_read(&link_, bytes, count < sizeof bytes ? (count + 7) / 8 * 8 : sizeof bytes);

        if (length > 0) {
            const size_t wanted = (unsigned long)length < count ? (size_t)length : count;

            fwrite(bytes, 1, wanted, stdout);
            fflush(stdout);
            count -= wanted;
            go_on(&for_data);
            cassata_link_notify(&link_);
        } else if (length == CASSATA_LINK_EMPTY || length == CASSATA_LINK_ABSENT) {
            arm_or_wait(&for_data);
        } else if (length == CASSATA_LINK_BROKEN) {
            fail("the peer writes what cannot be");
        }
    }
}

/* What `pour` and `drain` do with a piece of the stream: how many bytes, or an error. */
typedef int (*piece)(uint64_t *words, uint64_t position, size_t room);

static int pour_piece(uint64_t *words, uint64_t position, size_t room)
{
    for (size_t i = 0; i < room / 8; i++)
        words[i] = position / 8 + i;
    return cassata_link_write(&link_, words, room);
}

static int drain_piece(uint64_t *words, uint64_t position, size_t room)
{
    const int length = cassata_link_read(&link_, words, room);
    uint64_t wrong = 0;

    for (int i = 0; i < length / 8; i++)
        wrong |= words[i] ^ (position / 8 + (uint64_t)i);
    if (wrong != 0)
        fail("the stream has a wrong word in the %d bytes behind byte %" PRIu64, length, position);
    return length;
}

/* Lets a stream of so many MiB pass, each word its number, as fast as both sides can, and tells how fast that was. A side that
 * has nothing to do looks LOOKS times before it sleeps: only then is there an exit. */
static void pass(const char *name, piece act, unsigned long mebibytes, struct wait *wait)
{
    static uint64_t words[LONGEST / 8];
    const uint64_t all = (uint64_t)mebibytes << 20;
    uint64_t done = 0, begin = 0, sleeps = 0;
    unsigned looks = 0;

    while (done < all) {
        const int length = act(words, done, sizeof words);

        if (length > 0) {
            /* What comes first may have waited for its peer. */
            begin = done == 0 ? now_ns() : begin;
            done += (uint64_t)length;
            looks = 0;
            go_on(wait);
            cassata_link_notify(&link_);
        } else if (length == CASSATA_LINK_BROKEN) {
            fail("the peer writes what cannot be");
        } else if (length != CASSATA_LINK_RESTARTED && ++looks > LOOKS) {
            sleeps += wait->is_armed;
            arm_or_wait(wait);
        }
    }
    const uint64_t took = now_ns() - begin;

    printf("%s bytes=%" PRIu64 " ns=%" PRIu64 " mb_per_s=%" PRIu64 " sleeps=%" PRIu64 "\n", name, done, took,
           took == 0 ? 0 : done * 1000 / took, sleeps);
}

static void usage(void) __attribute__((noreturn));

static void usage(void)
{
    fputs("usage: cassata-link list                       the links of this VM\n"
          "       cassata-link ask NAME MESSAGE...        sends messages, prints an answer to each\n"
          "       cassata-link send NAME MESSAGE...       sends messages\n"
          "       cassata-link receive NAME COUNT         prints so many messages\n"
          "       cassata-link latest NAME COUNT MS       prints the latest value so often, each MS milliseconds\n"
          "       cassata-link write NAME                 sends what it reads as a stream\n"
          "       cassata-link read NAME BYTES            prints so many bytes of the stream\n"
          "       cassata-link pour NAME MIB              sends so much as a stream, and tells how fast that was\n"
          "       cassata-link drain NAME MIB             takes what `pour` sends\n"
          "       cassata-link peer NAME                  the life of the other VM, 0 if it is off\n"
          "       cassata-link bench NAME COUNT           times `ping`s that the peer answers with the same\n"
          "       cassata-link flood NAME MS MESSAGE      rings and sends as fast as it can\n"
          "Each but `list`, `latest` and `peer` opens the link anew, and the peer is told so: one program uses it at a time.\n",
          stderr);
    exit(2);
}

/* Commands that name a link; what they are told behind it. */
#define MANY (-1)
enum command { ASK, SEND, RECEIVE, LATEST, WRITE, READ, POUR, DRAIN, PEER, BENCH, FLOOD, COMMANDS };

static const struct {
    const char *name;
    int numbers;  /* how many numbers */
    int texts;    /* how many texts then, or MANY: one at least */
    bool watches; /* it only looks at the peer, and another program may use the side meanwhile */
} commands[COMMANDS] = {
    [ASK] = { .name = "ask", .texts = MANY },
    [SEND] = { .name = "send", .texts = MANY },
    [RECEIVE] = { .name = "receive", .numbers = 1 },
    [LATEST] = { .name = "latest", .numbers = 2, .watches = true },
    [WRITE] = { .name = "write" },
    [READ] = { .name = "read", .numbers = 1 },
    [POUR] = { .name = "pour", .numbers = 1 },
    [DRAIN] = { .name = "drain", .numbers = 1 },
    [PEER] = { .name = "peer", .watches = true },
    [BENCH] = { .name = "bench", .numbers = 1 },
    [FLOOD] = { .name = "flood", .numbers = 1, .texts = 1 },
};

/* Which command it is. */
static enum command command_of(const char *word, int arguments)
{
    for (int which = 0; which < COMMANDS; which++) {
        const int texts = arguments - commands[which].numbers, wanted = commands[which].texts;

        if (strcmp(word, commands[which].name) == 0 && (wanted == MANY ? texts > 0 : texts == wanted))
            return (enum command)which;
    }
    usage();
}

static void carry_out(enum command which, const unsigned long *numbers, char **texts)
{
    switch (which) {
    case ASK:
        return ask(texts);
    case SEND:
        return send_all(texts);
    case RECEIVE:
        return print_messages(numbers[0]);
    case LATEST:
        return print_latest(numbers[0], numbers[1]);
    case WRITE:
        return write_stream();
    case READ:
        return read_stream(numbers[0]);
    case POUR:
        return pass("pour", pour_piece, numbers[0], &for_room);
    case DRAIN:
        return pass("drain", drain_piece, numbers[0], &for_data);
    case PEER:
        printf("%" PRIu32 "\n", cassata_link_peer_life(&link_));
        return;
    case BENCH:
        return bench(numbers[0]);
    case FLOOD:
        return flood(numbers[0], texts[0]);
    case COMMANDS:
        break;
    }
}

int main(int count, char **words)
{
    unsigned long numbers[2] = { 0 };

    if (count == 2 && strcmp(words[1], "list") == 0) {
        each_link(print_link, NULL);
        return 0;
    }
    if (count < 3)
        usage();
    /* All that is said has to make sense before a link is touched. */
    const enum command which = command_of(words[1], count - 3);

    for (int i = 0; i < commands[which].numbers; i++)
        numbers[i] = number_in(words[3 + i]);
    must_open(words[2], !commands[which].watches);
    carry_out(which, numbers, words + 3 + commands[which].numbers);
    return 0;
}
