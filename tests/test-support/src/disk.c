/*
 * A library for LD_PRELOAD that simulates a failing disk under the database files of a process.
 *
 * While the file DISK_FOLDER/fault exists, its content says what fails:
 *   fsync       fsync of every database file fails with EIO
 *   checkpoint  fsync of the main file fails with EIO
 *   full        a write to a database file writes half of its bytes, and the next one fails with ENOSPC
 *
 * DISK_FOLDER/durable holds each database file as a power cut would leave it: what successful fsyncs have written.
 * As on Linux, pages that a failed fsync did not write count as clean afterwards: they stay readable, and a later
 * fsync does not write them unless they are modified again. The set of dirty pages outlives the process, as the page
 * cache does. No fsync reaches the real disk; the folder DISK_FOLDER/durable replaces it. As on Linux, each open file
 * reports a failure once, whichever of them met it, so a thread learns that its pages were lost to the fsync of another.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define FILES 8
#define DESCRIPTORS 1024
#define PAGES (1 << 20) /* 4 GiB */

struct file {
    dev_t device;
    ino_t inode;
    int durable; /* 0: this entry is free */
    int is_main;
    unsigned char *dirty; /* one byte for each page */
    unsigned failures; /* of fsync */
};

static struct file files[FILES];
/* For each descriptor: one more than the failures of its file that it has reported, or 0 before its first use. */
static unsigned reported[DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int halves;

static int fails(const char *what) {
    const char *folder = getenv("DISK_FOLDER");
    char path[PATH_MAX], text[16] = "";
    snprintf(path, sizeof path, "%s/fault", folder ? folder : "");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    return length > 0 && strcmp(text, what) == 0;
}

/* Copies a page. The last page of a file may be short. */
static void copy_page(int from, int to, off_t at) {
    char page[PAGE];
    ssize_t length = pread(from, page, PAGE, at);
    if (length > 0 && syscall(SYS_pwrite64, to, page, length, at) != length) abort();
}

/* Maps the dirty flags, one byte for each page, in a file that outlives the process. */
static unsigned char *map(const char *durable) {
    char name[PATH_MAX * 2 + 8];
    snprintf(name, sizeof name, "%s.dirty", durable);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, PAGES) != 0) abort();
    void *dirty = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (dirty == MAP_FAILED) abort();
    syscall(SYS_close, fd);
    return dirty;
}

/* Returns the entry of a database file, or NULL for any other file. The first content of a file counts as durable. */
static struct file *find(int fd) {
    struct stat stat;
    char link[64], path[PATH_MAX], name[PATH_MAX * 2];
    const char *folder = getenv("DISK_FOLDER");
    if (!folder || fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) return NULL;
    struct file *entry = NULL;
    for (struct file *file = files; file < files + FILES; file++) {
        if (file->durable && file->device == stat.st_dev && file->inode == stat.st_ino) return file;
        if (!file->durable && !entry) entry = file;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || !entry) return NULL;
    path[length] = 0;
    const char *base = strrchr(path, '/');
    const char *ending = strstr(path, ".db");
    if (!base || !ending || (strcmp(ending, ".db") != 0 && strcmp(ending, ".db-wal") != 0)) return NULL;
    snprintf(name, sizeof name, "%s/durable%s", folder, base);
    int is_new = access(name, F_OK) != 0;
    int durable = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (durable < 0) abort();
    *entry = (struct file){stat.st_dev, stat.st_ino, durable, strcmp(ending, ".db") == 0, map(name), 0};
    for (off_t at = 0; is_new && at < stat.st_size; at += PAGE) copy_page(fd, durable, at);
    return entry;
}

/* The same, before a descriptor is used. At its first use it has reported all failures so far. */
static struct file *entry_of(int fd) {
    struct file *file = find(fd);
    if (file && fd >= DESCRIPTORS) abort();
    if (file && !reported[fd]) reported[fd] = file->failures + 1;
    return file;
}

static void mark_dirty(struct file *file, off_t at, size_t count) {
    size_t end = (at + count + PAGE - 1) / PAGE;
    if (end > PAGES) abort();
    memset(file->dirty + at / PAGE, 1, end - at / PAGE);
}

static ssize_t do_write(int fd, const void *bytes, size_t count, off_t at, int moves) {
    pthread_mutex_lock(&lock);
    struct file *file = count ? entry_of(fd) : NULL;
    ssize_t done = -1;
    if (file && fails("full")) {
        halves = !halves;
        count = halves ? count / 2 : 0;
    }
    if (file && count == 0) {
        errno = ENOSPC;
    } else {
        if (file && moves) at = lseek(fd, 0, SEEK_CUR);
        done = moves ? syscall(SYS_write, fd, bytes, count) : syscall(SYS_pwrite64, fd, bytes, count, at);
        if (file && done > 0) mark_dirty(file, at, done);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count) { return do_write(fd, bytes, count, 0, 1); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return do_write(fd, bytes, count, at, 0); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return do_write(fd, bytes, count, at, 0); }

int fsync(int fd) {
    struct stat stat;
    pthread_mutex_lock(&lock);
    struct file *file = entry_of(fd);
    int done = 0;
    if (!file) {
        done = syscall(SYS_fsync, fd);
    } else if (fails("fsync") || (file->is_main && fails("checkpoint"))) {
        file->failures++;
    } else {
        if (fstat(fd, &stat) != 0 || ftruncate(file->durable, stat.st_size) != 0) abort();
        for (off_t at = 0; at < stat.st_size; at += PAGE)
            if (file->dirty[at / PAGE]) copy_page(fd, file->durable, at);
    }
    if (file) memset(file->dirty, 0, PAGES);
    if (file && reported[fd] <= file->failures) {
        reported[fd] = file->failures + 1;
        errno = EIO;
        done = -1;
    }
    pthread_mutex_unlock(&lock);
    return done;
}

int fdatasync(int fd) { return fsync(fd); }

int close(int fd) {
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < DESCRIPTORS) reported[fd] = 0;
    pthread_mutex_unlock(&lock);
    return syscall(SYS_close, fd);
}
