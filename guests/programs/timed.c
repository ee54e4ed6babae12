// timed: runs a program again and again, on every CPU at once, and says how long the slowest took.
//
//     timed BEGIN          BEGIN: the uptime in seconds when the first run begins
//     timed --wait BEGIN   waits until then, and runs nothing
//
// What it runs and on what it works stands in files of /programs:
//
//     command     its name and arguments, one a line
//     input       what it reads as standard input; without it, nothing
//     files       what it finds in the directory where it is started, one a line; without it, nothing
//
// Each copy has a directory of its own in memory, in which nothing else is when a run begins. The lines that
// begin with `cassata: ` are for programs to read. Time is CLOCK_MONOTONIC, from before the program is started
// until after it has ended, as seen on its own CPU: a CPU that has to wait delays only itself.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CPUS = 8, MAX_WORDS = 16, PATH_BYTES = 128 };

static char *command[MAX_WORDS + 1];
static char *files[MAX_WORDS + 1];
static char *input[MAX_WORDS + 1];

static void fail(const char *what)
{
    printf("cassata: linux failed: timed: %s: %s\n", what, strerror(errno));
    exit(1);
}

// The lines of a file, or none if it does not exist.
static void read_lines(const char *path, char *lines[])
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    for (int i = 0; i < MAX_WORDS; i++) {
        size_t size = 0;
        ssize_t length = getline(&lines[i], &size, file);
        if (length <= 0) {
            lines[i] = NULL;
            break;
        }
        if (lines[i][length - 1] == '\n')
            lines[i][length - 1] = '\0';
    }
    fclose(file);
}

static long long now_ns(clockid_t clock)
{
    struct timespec at;
    if (clock_gettime(clock, &at) != 0)
        fail("clock_gettime");
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void wait_until(double uptime_s)
{
    long long begin = uptime_s * 1e9, now = now_ns(CLOCK_BOOTTIME);
    if (begin == 0)
        return;
    if (now > begin) {
        printf("cassata: linux failed: ready at %.2f, later than programs.begin=%.2f\n", now / 1e9, uptime_s);
        exit(1);
    }
    struct timespec at = { begin / 1000000000, begin % 1000000000 };
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

// What an earlier run has left could spare a program its work.
static void clear_here(void)
{
    DIR *directory = opendir(".");
    if (directory == NULL)
        fail("opendir");
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_type == DT_REG && unlink(entry->d_name) != 0)
            fail(entry->d_name);
    closedir(directory);
}

static void copy_here(const char *path)
{
    const char *name = strrchr(path, '/');
    int from = open(path, O_RDONLY), to = open(name + 1, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (from < 0 || to < 0)
        fail(path);
    char buffer[4096];
    ssize_t length;
    while ((length = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, length) != length)
            fail(path);
    close(from);
    close(to);
}

// The process that the program becomes.
static void become_program(void)
{
    int from = open(input[0] != NULL ? input[0] : "/dev/null", O_RDONLY), to = open("/dev/null", O_WRONLY);
    if (from < 0 || to < 0 || dup2(from, 0) < 0 || dup2(to, 1) < 0 || dup2(to, 2) < 0)
        _exit(126);
    execv(command[0], command);
    _exit(127);
}

// Runs the program on `cpu`, and writes how long it took into `result`.
static void run_on(int cpu, int result)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0)
        fail("sched_setaffinity");
    char directory[PATH_BYTES];
    snprintf(directory, sizeof directory, "/tmp/%d", cpu);
    if ((mkdir(directory, 0755) != 0 && errno != EEXIST) || chdir(directory) != 0)
        fail(directory);
    clear_here();
    for (int i = 0; files[i] != NULL; i++)
        copy_here(files[i]);
    long long begin = now_ns(CLOCK_MONOTONIC);
    pid_t child = fork();
    if (child == 0)
        become_program();
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("waitpid");
    long long took = now_ns(CLOCK_MONOTONIC) - begin;
    if (status != 0)
        took = -status;
    if (write(result, &took, sizeof took) != sizeof took)
        fail("write");
    exit(0);
}

// Runs it on all CPUs; returns the longest time, nanoseconds.
static long long run_everywhere(int cpus)
{
    int pipes[2];
    if (pipe(pipes) != 0)
        fail("pipe");
    fflush(stdout);
    for (int cpu = 0; cpu < cpus; cpu++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0)
            run_on(cpu, pipes[1]);
    }
    close(pipes[1]);
    long long slowest = 0, took;
    int seen = 0;
    while (read(pipes[0], &took, sizeof took) == sizeof took) {
        if (took < 0) {
            printf("cassata: linux failed: %s ended with status %lld\n", command[0], -took);
            exit(1);
        }
        slowest = took > slowest ? took : slowest;
        seen++;
    }
    close(pipes[0]);
    while (wait(NULL) > 0)
        ;
    if (seen != cpus) {
        printf("cassata: linux failed: %d of %d copies have said how long they took\n", seen, cpus);
        exit(1);
    }
    return slowest;
}

int main(int argc, char *argv[])
{
    bool only_waits = argc == 3 && strcmp(argv[1], "--wait") == 0;
    if (argc != 2 && !only_waits) {
        fprintf(stderr, "usage: timed [--wait] BEGIN\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (only_waits) {
        wait_until(strtod(argv[2], NULL));
        return 0;
    }
    read_lines("/programs/command", command);
    read_lines("/programs/input", input);
    read_lines("/programs/files", files);
    if (command[0] == NULL)
        fail("/programs/command");
    int cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (cpus < 1 || cpus > MAX_CPUS)
        fail("CPUs");
    wait_until(strtod(argv[1], NULL));
    for (int run = 1;; run++)
        printf("cassata: work run=%d ns=%lld\n", run, run_everywhere(cpus));
}
