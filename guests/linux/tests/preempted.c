/* A side that is preempted in a call, before any of its accesses to memory, while its peer is opened again: it is told so
 * once, and what comes before and behind that is whole, in order and of one epoch. The compiler calls a function before each
 * access, as for its detector of races, whose functions are those at the end. */
#include "cassata_link.h"
#include "expect.h"

#define HALF 1024
#define RING 512
/* Bytes of the latest value in either epoch. */
#define OLD_VALUE 200
#define NEW_VALUE 96
/* How many messages the peer has sent before it is opened again, and words of a message or of the stream each time. */
#define OLD 3
#define WORDS 12
/* How often a test looks for all that there is: more than there can be. */
#define CALLS 40
/* A function whose own accesses are not counted. */
#define UNCOUNTED __attribute__((no_sanitize("thread")))

/* Accesses until the side is preempted, counted down; 0: it is not. */
static unsigned left;
/* What the peer does when the side is preempted; how much it sends then. */
static void (*interruption)(void);
static int new_count;
static uint32_t registers[2][3];
static uint64_t halves[2][HALF / 8];
static struct cassata_link peer, side;

static void open_side(struct cassata_link *link, int number)
{
    EXPECT(cassata_link_open(link, registers[number], halves[number], halves[1 - number], HALF));
    EXPECT(link->size == RING);
}

/* Message or piece of the stream `number` of the old epoch, 0, or the new one: a number that all its words have. */
static uint64_t word_of(int epoch, int number)
{
    return (uint64_t)(epoch * 1000 + number + 1) * 0x1000100010001;
}

static void fill(uint64_t *words, int epoch, int number)
{
    for (int i = 0; i < WORDS; i++)
        words[i] = word_of(epoch, number);
}

static bool is(const uint64_t *words, int epoch, int number)
{
    for (int i = 0; i < WORDS; i++)
        if (words[i] != word_of(epoch, number))
            return false;
    return true;
}

typedef int (*sending)(struct cassata_link *link, const void *bytes, size_t length);
typedef int (*receiving)(struct cassata_link *link, void *bytes, size_t room);

static sending send_one;

static void send_all(int epoch, int count)
{
    uint64_t words[WORDS];

    for (int number = 0; number < count; number++) {
        fill(words, epoch, number);
        const int sent = send_one(&peer, words, sizeof words);

        EXPECT(sent == 0 || sent == sizeof words);
    }
}

/* The peer is opened again, and sends. */
static void reopen(void)
{
    open_side(&peer, 0);
    send_all(1, new_count);
}

/* Receives `taken` messages, and then with the peer opened again before access `at` of the next call: false if that call
 * has not so many. */
UNCOUNTED static bool preempt(receiving receive, int taken, unsigned at)
{
    uint64_t words[WORDS];
    int old = 0, new = 0, calls = 0;
    bool is_told = false;

    memset(halves, 0, sizeof halves);
    open_side(&peer, 0);
    open_side(&side, 1);
    EXPECT(receive(&side, words, sizeof words) == CASSATA_LINK_EMPTY);
    send_all(0, OLD);
    for (; old < taken; old++)
        EXPECT(receive(&side, words, sizeof words) == sizeof words && is(words, 0, old));
    for (left = at; calls < CALLS; calls++) {
        const int answer = receive(&side, words, sizeof words);

        if (left > 0)
            return false;
        if (answer == CASSATA_LINK_RESTARTED) {
            EXPECT(!is_told);
            is_told = true;
        } else if (answer == CASSATA_LINK_EMPTY) {
            if (calls > 0)
                break;
        } else {
            EXPECT(answer == sizeof words);
            EXPECT(is_told ? is(words, 1, new++) : calls == 0 && is(words, 0, old++));
        }
    }
    EXPECT(calls < CALLS && is_told && new == new_count);
    /* And it goes on. */
    EXPECT(send_one(&peer, words, sizeof words) >= 0 && receive(&side, words, sizeof words) == sizeof words);
    return true;
}

UNCOUNTED static int skip(struct cassata_link *link, void *bytes, size_t room)
{
    /* Only where it is preempted: what there is then is of the old epoch. */
    const int answer = left > 0 ? cassata_link_skip(link) : cassata_link_receive(link, bytes, room);

    return answer == 0 ? CASSATA_LINK_EMPTY : answer;
}

static void test_preempted(sending send, receiving receive, int words_taken)
{
    const int most = RING / 8 / words_taken;
    unsigned accesses = 0;

    send_one = send;
    interruption = reopen;
    for (new_count = 0; new_count <= most; new_count++)
        for (int taken = 0; taken <= OLD; taken++) {
            unsigned at = 1;

            while (preempt(receive, taken, at))
                at++;
            accesses += at - 1;
            left = 0;
        }
    /* A compiler that calls no function makes this no test. */
    EXPECT(accesses > 100);
}

static void publish(uint8_t byte, size_t length)
{
    uint8_t value[CASSATA_LINK_VALUE_MAX];

    memset(value, byte, length);
    EXPECT(cassata_link_publish(&peer, value, length) == 0);
}

/* The version is then what it was before. */
static void reopen_and_publish(void)
{
    open_side(&peer, 0);
    publish(2, NEW_VALUE);
}

/* What was seen is one value or the other, whole. */
static void expect_value(const uint8_t *value, int length)
{
    EXPECT(length == OLD_VALUE || length == NEW_VALUE);
    for (int i = 0; i < length; i++)
        EXPECT(value[i] == (length == OLD_VALUE ? 1 : 2));
}

UNCOUNTED static void test_latest(void)
{
    uint8_t value[CASSATA_LINK_VALUE_MAX];
    unsigned at = 0;

    interruption = reopen_and_publish;
    do {
        memset(halves, 0, sizeof halves);
        open_side(&peer, 0);
        open_side(&side, 1);
        publish(1, OLD_VALUE);
        left = ++at;
        expect_value(value, cassata_link_latest(&side, value, sizeof value));
        EXPECT(left > 0 || cassata_link_latest(&side, value, sizeof value) == NEW_VALUE);
    } while (left == 0);
    left = 0;
    EXPECT(at > OLD_VALUE / 8);
}

int main(void)
{
    test_preempted(cassata_link_send, cassata_link_receive, WORDS + 1);
    test_preempted(cassata_link_send, skip, WORDS + 1);
    test_preempted(cassata_link_write, cassata_link_read, WORDS);
    test_latest();
    puts("link preempted: ok");
    return 0;
}

/* Does what the peer does before the access that it is time for; what that accesses itself is not counted. */
UNCOUNTED static void step(void)
{
    if (left > 0 && --left == 0)
        interruption();
}

#define HOOK(name, act, ...) \
    void __tsan_##name(__VA_ARGS__); \
    UNCOUNTED void __tsan_##name(__VA_ARGS__) { act; }
#define ACCESS(name) HOOK(name, ((void)at, step()), void *at)

HOOK(init, (void)0, void)
HOOK(func_entry, (void)caller, void *caller)
HOOK(func_exit, (void)unused, void *unused)
HOOK(atomic_thread_fence, (void)order, int order)
/* Of memory that the peer does not see. */
HOOK(read_range, ((void)at, (void)size), void *at, long size)
HOOK(write_range, ((void)at, (void)size), void *at, long size)
ACCESS(read1)
ACCESS(read2)
ACCESS(read4)
ACCESS(read8)
ACCESS(read16)
ACCESS(write1)
ACCESS(write2)
ACCESS(write4)
ACCESS(write8)
ACCESS(write16)
