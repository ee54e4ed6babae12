/* Text to the console, a PL011 that firmware or hypervisor has set up. */
#ifndef CONSOLE_H
#define CONSOLE_H

/* Writes text; a newline is sent as CR LF. Knows %s, %c, %u (unsigned), %lu and
 * %lx (64 bits), %%. Not for use while measuring: it waits for the device. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
