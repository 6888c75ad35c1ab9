// Descriptors that hold locks, which a forked child closes.
//
// A child has copies of its parent's descriptors. A lock of an open file description lasts until its last copy is closed. A child that
// outlives its parent would therefore keep the parent's store locked. No Go code runs in a child, so pthread_atfork closes the descriptors
// of this table there. The mutex delays a fork between the open of a descriptor and its entry in the table.
#include "locked.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { most = 1024 };  // stores of one process, two descriptors each

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static int held[most];
static int count;
static int registered = -1;  // result of pthread_atfork

static void before_fork(void) { pthread_mutex_lock(&table); }

static void in_parent(void) { pthread_mutex_unlock(&table); }

static void in_child(void) {
  for (int i = 0; i < count; i++) close(held[i]);
  count = 0;
  pthread_mutex_unlock(&table);
}

int velocpy_open_locked(int dir, const char* name, int flags) {
  pthread_mutex_lock(&table);
  int fd = -1;
  if (registered != 0) registered = pthread_atfork(before_fork, in_parent, in_child);
  if (registered != 0) {
    errno = registered;
  } else if (count == most) {
    errno = ENOLCK;
  } else if ((fd = openat(dir, name, flags, 0600)) >= 0) {
    held[count++] = fd;
  }
  int error = errno;
  pthread_mutex_unlock(&table);
  errno = error;
  return fd;
}

int velocpy_close_locked(int fd) {
  pthread_mutex_lock(&table);
  for (int i = 0; i < count; i++) {
    if (held[i] == fd) held[i] = held[--count];
  }
  int failed = close(fd);
  int error = errno;
  pthread_mutex_unlock(&table);
  errno = error;
  return failed;
}
