/* The four C library functions that a freestanding program must bring. */
#include <string.h>

void *memset(void *to, int byte, size_t count)
{
    for (unsigned char *p = to; count > 0; count--)
        *p++ = (unsigned char)byte;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    const unsigned char *q = from;
    for (unsigned char *p = to; count > 0; count--)
        *p++ = *q++;
    return to;
}

int memcmp(const void *a, const void *b, size_t count)
{
    const unsigned char *p = a, *q = b;
    for (; count > 0; count--, p++, q++)
        if (*p != *q)
            return *p - *q;
    return 0;
}

size_t strlen(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}
