/* An example of a link: this VM controls a simulated motor, and another VM orders its speed and watches it.
 *
 * Orders are messages of text, each answered by one: `target 1500` (turns per minute), `kp 800`, `ki 4000` (in
 * thousandths), `ping ANYTHING`. After each period the state is the link's latest value, as text, too:
 *
 *     t_us=1234000 target=1500 speed=1498 duty=612 orders=3
 *
 * The control loop has its period whatever the other VM does: it writes and never waits. Orders are taken below it. */
#include "FreeRTOS.h"
#include "bootargs.h"
#include "cassata_link.h"
#include "console.h"
#include "cpu.h"
#include "gic.h"
#include "task.h"
#include "tasks.h"
#include "tick.h"

#define STACK_WORDS 1024
#define LONGEST_ORDER 64
/* Orders that are taken at once, and how often in a period: another VM can have this one busy for no longer. */
#define MOST_ORDERS 8
#define MOST_ARMED 8
/* The doorbell does not ring for so long before a period begins: longer than what a ring makes this VM do. */
#define GUARD_US 20

/* The motor without load at full duty, turns per minute, and how fast it comes there. */
#define FASTEST 3000
#define TIME_CONSTANT_MS 100
#define FULL_DUTY 1000
#define MOST_GAIN 1000000
/* Speeds and the integral in thousandths of a turn per minute. */
#define MILLI 1000

static struct cassata_link link;
static struct link_end end;
static TaskHandle_t orders;
static uint64_t period_ticks, period_us, taken;
static bool is_broken;
/* Set by the task that takes orders when it waits. */
static volatile bool waits;

/* Set by orders, read by the control loop; each is one word. */
static volatile int64_t target = 1000, kp = 500, ki = 2000;

/* Text into a buffer of which the writer knows that it is large enough. */
static char *say(char *to, const char *text)
{
    while (*text != '\0')
        *to++ = *text++;
    return to;
}

static char *say_number(char *to, int64_t number)
{
    char digits[20];
    int count = 0;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

    if (number < 0)
        *to++ = '-';
    do
        digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    while (count > 0)
        *to++ = digits[--count];
    return to;
}

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* The control loop: a first-order motor, and proportional and integral gain. */
static void motor_task(void *unused)
{
    TickType_t release = xTaskGetTickCount();
    int64_t speed = 0, integral = 0;
    uint64_t steps = 0;

    (void)unused;
    for (;;) {
        char text[CASSATA_LINK_VALUE_MAX], *to = text;

        xTaskDelayUntil(&release, period_ticks);
        const int64_t wanted = target, error = wanted * MILLI - speed;

        /* Not beyond what full duty could ask for: else it would overshoot by as much. */
        integral = between(-FASTEST * MILLI, integral + error * ki * (int64_t)period_us / 1000 / 1000000, FASTEST * MILLI);
        const int64_t duty = between(0, (error * kp / 1000 + integral) * FULL_DUTY / (FASTEST * MILLI), FULL_DUTY);

        speed += (FASTEST * MILLI * duty / FULL_DUTY - speed) * (int64_t)period_us / (TIME_CONSTANT_MS * 1000);
        steps++;
        to = say_number(say(to, "t_us="), (int64_t)(steps * period_us));
        to = say_number(say(to, " target="), wanted);
        to = say_number(say(to, " speed="), speed / MILLI);
        to = say_number(say(to, " duty="), duty);
        to = say_number(say(to, " orders="), (int64_t)taken);
        cassata_link_publish(&link, text, (size_t)(to - text));
        if (waits) {
            waits = false;
            xTaskNotifyGive(orders);
        }
    }
}

/* Reads a number up to the end; false if there is none, or one that is larger than `most`. */
static bool number_in(const char *text, int64_t most, volatile int64_t *number)
{
    int64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (*text - '0');
        if (value > most)
            return false;
    }
    *number = value;
    return true;
}

static const char *behind(const char *text, const char *word)
{
    const size_t length = strlen(word);

    return strlen(text) >= length && memcmp(text, word, length) == 0 ? text + length : NULL;
}

/* Carries an order out; returns the answer's beginning. */
static const char *obey(const char *order)
{
    const char *rest;
    bool good;

    if (behind(order, "ping") != NULL)
        return "";
    if ((rest = behind(order, "target ")) != NULL)
        good = number_in(rest, FASTEST, &target);
    else if ((rest = behind(order, "kp ")) != NULL)
        good = number_in(rest, MOST_GAIN, &kp);
    else if ((rest = behind(order, "ki ")) != NULL)
        good = number_in(rest, MOST_GAIN, &ki);
    else
        return "unknown: ";
    return good ? "done: " : "not possible: ";
}

/* Answers one order. An answer for which there is no room is lost: a peer that does not read gets none. */
static void answer(const char *order)
{
    char text[LONGEST_ORDER + 16], *to;

    taken++;
    to = say(say(text, obey(order)), order);
    if (cassata_link_send(&link, text, (size_t)(to - text)) == CASSATA_LINK_RESTARTED)
        cassata_link_send(&link, text, (size_t)(to - text));
}

/* Takes the orders that there are, MOST_ORDERS at most: how many. */
static int take_orders(void)
{
    char order[LONGEST_ORDER + 1];
    int count, length;

    for (count = 0; count < MOST_ORDERS; count++) {
        length = cassata_link_receive(&link, order, LONGEST_ORDER);
        if (length == CASSATA_LINK_EMPTY || length == CASSATA_LINK_ABSENT)
            return count;
        if (length == CASSATA_LINK_BROKEN) {
            if (!is_broken)
                print("freertos: the link's peer writes what cannot be; it has to be opened again\n");
            is_broken = true;
            return count;
        }
        is_broken = false;
        /* One that was opened again, and one that is too long. */
        if (length < 0)
            continue;
        order[length] = '\0';
        answer(order);
    }
    return count;
}

/* Waits for the doorbell, or until the control loop has run in the next period and wakes this task. If the tick did, the
 * control loop would begin later by what it takes to wake two tasks. */
static void wait_within(TickType_t period)
{
    waits = true;
    if (xTaskGetTickCount() / period_ticks == period)
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
}

/* Arms the doorbell MOST_ARMED times in a period, and so that it does not ring when the next one is about to begin: another VM
 * that rings all the time interrupts this one no more often, and never the control loop's beginning. */
static void orders_task(void *unused)
{
    const uint64_t guard = GUARD_US * counter_hz() / 1000000;
    TickType_t period = 0;
    int armed = 0;

    (void)unused;
    for (;;) {
        const TickType_t now = xTaskGetTickCount() / period_ticks;

        if (now != period) {
            period = now;
            armed = 0;
        }
        const uint64_t end = tick_due((period + 1) * period_ticks), begin = counter_now() + guard;

        if (armed == MOST_ARMED || begin + 1 >= end) {
            wait_within(period);
            continue;
        }
        /* First armed, then looked: see cassata_link.h. */
        cassata_link_arm_within(&link, end - begin < UINT32_MAX ? (uint32_t)(end - begin) : UINT32_MAX);
        armed++;
        const int count = take_orders();

        if (count > 0)
            cassata_link_notify(&link);
        if (count < MOST_ORDERS)
            wait_within(period);
    }
}

void motor_interrupt(uint32_t intid)
{
    BaseType_t woken = pdFALSE;

    if (orders == NULL || intid != end.intid)
        return;
    vTaskNotifyGiveFromISR(orders, &woken);
    portYIELD_FROM_ISR(woken);
}

bool motor_create(const struct options *options, const void *device_tree)
{
    static StackType_t stacks[2][STACK_WORDS];
    static StaticTask_t tasks[2];

    end = link_end_find(device_tree, options->link);
    if (end.registers == 0
        || !cassata_link_open(&link, (volatile void *)end.registers, (volatile void *)end.own,
                              (const volatile void *)end.peer, end.half_size)) {
        print("freertos: error: there is no link \"%s\"\n", options->link);
        return false;
    }
    period_us = options->period_us;
    period_ticks = options->period_us / options->tick_us;
    xTaskCreateStatic(motor_task, "motor", STACK_WORDS, NULL, MOTOR_PRIORITY, stacks[0], &tasks[0]);
    orders = xTaskCreateStatic(orders_task, "orders", STACK_WORDS, NULL, ORDERS_PRIORITY, stacks[1], &tasks[1]);
    gic_set_edge(end.intid);
    gic_enable_shared(end.intid, portLOWEST_USABLE_INTERRUPT_PRIORITY);
    cassata_link_ring(&link);
    print("freertos: controls a motor, and takes orders by link \"%s\"\n", options->link);
    return true;
}
