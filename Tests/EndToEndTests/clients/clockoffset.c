// To be preloaded: the program's wall clock is off by CLOCK_OFFSET_SECONDS, or by what the file
// CLOCK_OFFSET_FILE says at the moment; all else is as it was.
// (Debian's libfaketime takes the arguments away from programs written in Swift.)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t offset(void) {
  const char *seconds = getenv("CLOCK_OFFSET_SECONDS");
  if (seconds) return atol(seconds);
  const char *path = getenv("CLOCK_OFFSET_FILE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return 0;
  char text[32] = "";
  ssize_t count = read(file, text, sizeof text - 1);
  close(file);
  return count > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *result) {
  long status = syscall(SYS_clock_gettime, clock, result);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    result->tv_sec += offset();
  return (int)status;
}

int gettimeofday(struct timeval *restrict result, void *restrict zone) {
  long status = syscall(SYS_gettimeofday, result, zone);
  if (status == 0) result->tv_sec += offset();
  return (int)status;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}

// Who waits until a moment of the wall clock has reckoned it from what is said above.
int pthread_cond_timedwait(
    pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!wait) wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec moment = *until;
  // Not one of the monotonic clock, which begins with the machine.
  if (moment.tv_sec > 1000000000) moment.tv_sec -= offset();
  return wait(condition, mutex, &moment);
}
