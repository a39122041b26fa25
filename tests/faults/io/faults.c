/*
 * Fails chosen calls on one file. The test loads it into the server with LD_PRELOAD, and shares a plan with it through a file.
 *
 * With `reverts`, a failing sync also undoes the writes since the last sync, as a kernel does that marks pages clean which it
 * could not write.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, SYNC = 4, RESIZE = 8 };

/* Its layout is that of `Plan` in mod.rs: eight numbers of 64 bits. */
struct plan {
    _Atomic uint64_t inode;
    _Atomic uint64_t kinds;   /* the calls that are counted */
    _Atomic uint64_t first;   /* the number of the first call that fails */
    _Atomic uint64_t count;   /* how many calls from the first on fail */
    _Atomic uint64_t error;   /* their errno */
    _Atomic uint64_t reverts;
    _Atomic uint64_t calls;   /* the calls so far */
    _Atomic uint64_t failed;  /* those that failed */
};

struct undo {
    struct undo *next;
    off_t offset;
    ssize_t length;
    char bytes[];
};

static struct plan *plan;
static struct undo *undos;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);

__attribute__((constructor)) static void begin(void) {
    real_pread = dlsym(RTLD_NEXT, "pread64");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    const char *path = getenv("FAULT_PLAN");
    int file = path ? open(path, O_RDWR) : -1;
    if (file < 0)
        return;
    void *shared = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED)
        plan = shared;
}

static int is_chosen(int file) {
    struct stat found;
    return plan && plan->inode && fstat(file, &found) == 0 && found.st_ino == plan->inode;
}

/* Whether this call fails. */
static int fails(int file, unsigned kind) {
    if (!is_chosen(file) || !(plan->kinds & kind))
        return 0;
    uint64_t number = atomic_fetch_add(&plan->calls, 1);
    if (number < plan->first || number - plan->first >= plan->count)
        return 0;
    atomic_fetch_add(&plan->failed, 1);
    errno = (int)plan->error;
    return 1;
}

/* Keeps what a write replaces. */
static void note(int file, size_t length, off_t offset) {
    if (!is_chosen(file) || !plan->reverts)
        return;
    struct undo *undo = malloc(sizeof *undo + length);
    if (!undo)
        abort();
    undo->offset = offset;
    undo->length = real_pread(file, undo->bytes, length, offset);
    pthread_mutex_lock(&lock);
    undo->next = undos;
    undos = undo;
    pthread_mutex_unlock(&lock);
}

/* Ends the list of what can be undone, and undoes it if the sync failed. */
static void settle(int file, int failed) {
    if (!is_chosen(file))
        return;
    int error = errno;
    pthread_mutex_lock(&lock);
    while (undos) {
        struct undo *undo = undos;
        undos = undo->next;
        if (failed && plan->reverts && undo->length > 0)
            real_pwrite(file, undo->bytes, (size_t)undo->length, undo->offset);
        free(undo);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
}

ssize_t pread64(int file, void *bytes, size_t length, off_t offset) {
    return fails(file, READ) ? -1 : real_pread(file, bytes, length, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off_t offset) {
    if (fails(file, WRITE))
        return -1;
    note(file, length, offset);
    return real_pwrite(file, bytes, length, offset);
}

int fsync(int file) {
    int outcome = fails(file, SYNC) ? -1 : real_fsync(file);
    settle(file, outcome);
    return outcome;
}

int fdatasync(int file) {
    int outcome = fails(file, SYNC) ? -1 : real_fdatasync(file);
    settle(file, outcome);
    return outcome;
}

int ftruncate64(int file, off_t length) {
    return fails(file, RESIZE) ? -1 : real_ftruncate(file, length);
}

ssize_t pread(int file, void *bytes, size_t length, off_t offset) { return pread64(file, bytes, length, offset); }
ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) { return pwrite64(file, bytes, length, offset); }
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }
