// Reads a block device twenty times, one request after the other, and writes to the console how many
// nanoseconds of the counter each took, in hexadecimal. How it waits is said at 0x48000000.

.equ SPINS, 0 // it looks whether the request is done
.equ SLEEPS, 1 // it sleeps until the device's interrupt is pending
.equ ARMS, 2 // it looks, and writes a timer each few microseconds: QEMU's main loop is told

.equ REQUESTS, 20
.equ LOOKS, 1000 // between two writes of the timer

// QEMU's virt board, with a GICv2.
.equ HOW, 0x48000000
.equ DISTRIBUTOR, 0x08000000
.equ CPU_INTERFACE, 0x08010000
.equ CONSOLE, 0x09000000
.equ DISK, 0x0a003e00 // the last slot: INTID 79

.macro set register, value
    movz    \register, #(\value & 0xffff)
    movk    \register, #(\value >> 16), lsl #16
.endm

// One of the disk's registers.
.macro disk offset, value
    mov     w0, #\value
    str     w0, [x20, #\offset]
.endm

.macro disk_address offset, symbol
    adr     x0, \symbol
    str     w0, [x20, #\offset]
    str     wzr, [x20, #\offset + 4]
.endm

.global _start
_start:
    set     x0, HOW
    ldr     w28, [x0]

    // The disk's interrupt is enabled, and stays masked by PSTATE.
    set     x0, DISTRIBUTOR
    mov     w1, #1
    str     w1, [x0]
    mov     w2, #(1 << 15)
    str     w2, [x0, #0x108]
    set     x0, CPU_INTERFACE
    mov     w2, #0xff
    str     w2, [x0, #4]
    str     w1, [x0]

    // VIRTIO 1.2, 3.1.1: only VIRTIO_F_VERSION_1 is accepted.
    set     x20, DISK
    disk    0x70, 0
    disk    0x70, 1
    disk    0x70, 3
    disk    0x24, 1
    disk    0x20, 1
    disk    0x70, 11
    disk    0x30, 0
    disk    0x38, 4
    disk_address 0x80, descriptors
    disk_address 0x90, available
    disk_address 0xa0, used
    disk    0x44, 1
    disk    0x70, 15

    adr     x21, available
    adr     x22, used
    mov     w23, #0 // requests so far

next_request:
    add     w23, w23, #1
    strh    w23, [x21, #2]
    dsb     sy
    isb
    mrs     x24, cntvct_el0
    str     wzr, [x20, #0x50]
    mov     w3, #LOOKS
look:
    ldrh    w2, [x22, #2]
    cmp     w2, w23
    b.eq    done
    cmp     w28, #SLEEPS
    b.eq    sleep
    subs    w3, w3, #1
    b.ne    look
    cmp     w28, #ARMS
    b.ne    look
    mov     w3, #LOOKS
    // A second away, and masked: it only tells the main loop of a deadline.
    set     x0, 1000000000
    msr     cntv_tval_el0, x0
    mov     x0, #3
    msr     cntv_ctl_el0, x0
    b       look
sleep:
    wfi
    b       look
done:
    mrs     x25, cntvct_el0
    ldr     w0, [x20, #0x60]
    str     w0, [x20, #0x64]

    sub     x0, x25, x24
    set     x4, CONSOLE
    mov     w5, #60
digit:
    lsr     x1, x0, x5
    and     w1, w1, #15
    add     w2, w1, #'0'
    cmp     w1, #10
    add     w1, w1, #('a' - 10)
    csel    w1, w2, w1, lo
    str     w1, [x4]
    subs    w5, w5, #4
    b.pl    digit
    mov     w1, #'\n'
    str     w1, [x4]

    cmp     w23, #REQUESTS
    b.ne    next_request
    // PSCI SYSTEM_OFF
    set     x0, 0x84000008
    hvc     #0
1:  b       1b

// One request in three pieces: what is read, where to, how it went. It is available again and again.
.balign 16
descriptors:
    .quad   header
    .word   16
    .hword  1, 1
    .quad   buffer
    .word   512
    .hword  3, 2
    .quad   status
    .word   1
    .hword  2, 0
    .skip   16
available:
    .skip   2 + 2 + 4 * 2
.balign 4
used:
    .skip   2 + 2 + 4 * 8
.balign 16
header: // a read, of the first sector
    .skip   16
buffer:
    .skip   512
status:
    .skip   1
