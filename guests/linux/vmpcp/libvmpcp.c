// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "vmpcp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static int request(int device, unsigned long code, const void *argument)
{
    return ioctl(device, code, argument) < 0 ? -errno : 0;
}

/* Requests whose argument is a number. */
static int request_of(int device, unsigned long code, unsigned number)
{
    return ioctl(device, code, (unsigned long)number) < 0 ? -errno : 0;
}

static int set_name(char *to, const char *name)
{
    if (strlen(name) >= VMPCP_NAME_BYTES)
        return -ENAMETOOLONG;
    strcpy(to, name);
    return 0;
}

int vmpcp_open(void)
{
    int device = open("/dev/vmpcp", O_RDWR | O_CLOEXEC);

    return device < 0 ? -errno : device;
}

int vmpcp_inter_mutex(int device, const char *mutex, const char *task)
{
    struct vmpcp_inter open = {};
    int error = set_name(open.mutex, mutex);

    if (!error)
        error = set_name(open.task, task);
    if (!error)
        error = request(device, VMPCP_OPEN_INTER, &open);
    return error ? error : (int)open.id;
}

int vmpcp_intra_mutex(int device, const char *name, enum vmpcp_order order)
{
    struct vmpcp_intra open = { .order = order };
    int error = set_name(open.name, name);

    if (!error)
        error = request(device, VMPCP_OPEN_INTRA, &open);
    return error ? error : (int)open.id;
}

int vmpcp_close(int device, int id)
{
    return request_of(device, VMPCP_CLOSE, id);
}

int vmpcp_lock(int device, int id)
{
    return request_of(device, VMPCP_LOCK, id);
}

int vmpcp_trylock(int device, int id)
{
    return request_of(device, VMPCP_TRYLOCK, id);
}

int vmpcp_unlock(int device, int id)
{
    return request_of(device, VMPCP_UNLOCK, id);
}

int vmpcp_queued(int device, int id, uint64_t *since)
{
    struct vmpcp_queued queued = { .id = id };
    int answer = request(device, VMPCP_QUEUED, &queued);

    if (!answer)
        *since = queued.since;
    return answer;
}

int vmpcp_start_gcs(int device, unsigned vcpu)
{
    return request_of(device, VMPCP_START_GCS, vcpu);
}

int vmpcp_finish_gcs(int device, unsigned vcpu)
{
    return request_of(device, VMPCP_FINISH_GCS, vcpu);
}

void *vmpcp_map(int device, const char *name, size_t *bytes, bool *read_only)
{
    struct vmpcp_memory memory = {};
    int error = set_name(memory.label, name);
    void *at;

    if (!error)
        error = request(device, VMPCP_MEMORY, &memory);
    if (error) {
        errno = -error;
        return NULL;
    }
    *bytes = memory.size;
    *read_only = memory.read_only;
    at = mmap(NULL, memory.size, memory.read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED,
              device, (off_t)memory.offset);
    return at == MAP_FAILED ? NULL : at;
}

void *vmpcp_report(int device, size_t *bytes)
{
    struct vmpcp_report report = {};
    int error = request(device, VMPCP_REPORT, &report);
    void *at;

    if (error) {
        errno = -error;
        return NULL;
    }
    *bytes = report.size;
    at = mmap(NULL, report.size, PROT_READ | PROT_WRITE, MAP_SHARED, device, (off_t)report.offset);
    return at == MAP_FAILED ? NULL : at;
}

int vmpcp_info(int device, struct vmpcp_info *info)
{
    return request(device, VMPCP_INFO, info);
}

int vmpcp_counter(int device, unsigned vcpu, unsigned word, uint64_t *value)
{
    struct vmpcp_counter counter = { .vcpu = vcpu, .word = word };
    int error = request(device, VMPCP_COUNTER, &counter);

    *value = counter.value;
    return error;
}
