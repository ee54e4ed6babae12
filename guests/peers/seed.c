// seed: gives the kernel's random numbers a seed, the same each time. No hypervisor here hands one to
// each guest, and without one each system call of Debian's kernel takes a lock.
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int main(void)
{
    struct {
        struct rand_pool_info about;
        unsigned char bytes[64];
    } seed = { .about = { .entropy_count = 512, .buf_size = 64 } };
    memset(seed.bytes, 0x5a, sizeof seed.bytes);
    int fd = open("/dev/random", O_RDWR);
    if (fd >= 0 && ioctl(fd, RNDADDENTROPY, &seed) == 0)
        return 0;
    perror("seed");
    return 1;
}
