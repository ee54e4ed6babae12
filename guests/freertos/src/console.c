#include "console.h"

#include <stdarg.h>
#include <stdint.h>

#include "cpu.h"
#include "platform.h"

/* PL011 Technical Reference Manual (DDI 0183), 3.2. */
#define UARTDR      (UART_BASE + 0x00)
#define UARTFR      (UART_BASE + 0x18)
#define UARTFR_TXFF (1u << 5)

static void put_byte(char byte)
{
    while (mmio_read32(UARTFR) & UARTFR_TXFF) {
    }
    mmio_write32(UARTDR, (unsigned char)byte);
}

static void put_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            put_byte('\r');
        put_byte(*text);
    }
}

static void put_number(uint64_t value, unsigned base)
{
    char digits[21];
    char *first = &digits[sizeof digits - 1];

    *first = '\0';
    do {
        *--first = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    put_text(first);
}

void print(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    for (const char *p = format; *p != '\0'; p++) {
        if (*p != '%') {
            put_text((const char[]){ *p, '\0' });
            continue;
        }
        switch (*++p) {
        case 's':
            put_text(va_arg(arguments, const char *));
            break;
        case 'c':
            put_byte((char)va_arg(arguments, int));
            break;
        case 'u':
            put_number(va_arg(arguments, unsigned), 10);
            break;
        case 'l':
            put_number(va_arg(arguments, unsigned long), *++p == 'x' ? 16 : 10);
            break;
        default:
            put_byte(*p);
            break;
        }
    }
    va_end(arguments);
}
