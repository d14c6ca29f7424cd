// A program that looks at clocks before its virtual time, in it, and after it, and sleeps. Alone, and in C. With an
// argument it only sleeps (wait), or looks for what nobody sends (look), without an end.

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <utofu.h>

#define COUNT 6
static const clockid_t kClocks[COUNT] = {CLOCK_MONOTONIC,        CLOCK_REALTIME,        CLOCK_MONOTONIC_RAW,
                                         CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME_COARSE, CLOCK_BOOTTIME};
static long long last_ns[COUNT];
static _Alignas(256) volatile unsigned long memory[64];
static utofu_vcq_hdl_t vcq;
static utofu_vcq_id_t self;
static utofu_stadd_t place;

static void check(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(9);
}

static long long read_ns(clockid_t clock) {
  struct timespec now;
  check(clock_gettime(clock, &now) == 0, "clock_gettime");
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static long long day_us(void) {
  struct timeval now;
  check(gettimeofday(&now, NULL) == 0, "gettimeofday");
  return now.tv_sec * 1000000ll + now.tv_usec;
}

static void look_at_all(void) {
  for (int i = 0; i < COUNT; ++i) {
    const long long now_ns = read_ns(kClocks[i]);
    check(now_ns >= last_ns[i], "a clock ran back");
    last_ns[i] = now_ns;
  }
  const long long us = day_us();
  const long long ns = read_ns(CLOCK_REALTIME);
  check(us <= ns / 1000 && us + 10000000 > ns / 1000, "gettimeofday and clock_gettime differ");
  const long long seconds = time(NULL);
  check(seconds >= us / 1000000 && seconds < us / 1000000 + 10, "time and gettimeofday differ");
  struct tms used;
  const long long ticks = times(&used);
  check(llabs(ticks / sysconf(_SC_CLK_TCK) - read_ns(CLOCK_MONOTONIC) / 1000000000) < 10, "times and clock_gettime");
}

#ifdef READS_COUNTER
/// Reads the processor's counter by each instruction for that.
static unsigned long read_counter(void) {
#ifdef __x86_64__
  unsigned cpu;
  return __builtin_ia32_rdtsc() + __builtin_ia32_rdtscp(&cpu);
#else
  unsigned long ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}
#endif

static void put_to_self(unsigned long word) {
  memory[32] = word;
  check(utofu_put(vcq, self, place + 256, place, 8, 0, 0, NULL) == UTOFU_SUCCESS, "utofu_put");
  while (memory[0] != word) {
  }
}

/// Waits for a put by sleeps of no length.
static void put_and_sleep(unsigned long word) {
  const struct timespec none = {0, 0};
  memory[32] = word;
  check(utofu_put(vcq, self, place + 256, place, 8, 0, 0, NULL) == UTOFU_SUCCESS, "utofu_put");
  while (memory[0] != word) check(usleep(0) == 0 && nanosleep(&none, NULL) == 0, "sleeping for no time");
}

static void sleep_in_each_way(void) {
  struct timespec length = {100, 1};
  struct timespec until;
  const struct timeval two_seconds = {0, 2000000};
  const long long began_ns = read_ns(CLOCK_MONOTONIC);
  const long long cpu_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);
  check(sleep(1000) == 0 && usleep(20) == 0 && nanosleep(&length, NULL) == 0, "sleeping");
  check(clock_nanosleep(CLOCK_REALTIME, 0, &length, NULL) == 0, "clock_nanosleep");
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 10;
  check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0, "clock_nanosleep until");
  check(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0, "clock_nanosleep until it is");
  struct timeval left = two_seconds;
  check(select(0, NULL, NULL, NULL, &left) == 0, "more than a second of microseconds");
  printf("slept %lld ns\n", read_ns(CLOCK_MONOTONIC) - began_ns);
  check(read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns < 60000000000, "CPU time is real");
}

enum { kMs = 1000000 };

static struct timespec moment_in_ms(clockid_t clock, long ms) {
  struct timespec moment;
  clock_gettime(clock, &moment);
  moment.tv_nsec += ms * kMs;
  moment.tv_sec += moment.tv_nsec / 1000000000;
  moment.tv_nsec %= 1000000000;
  return moment;
}

static void* wait_for_word(void* word) {
  check(sem_wait(word) == 0, "sem_wait");
  return NULL;
}

/// Waits in one of several ways until a moment, in vain.
static void wait_in_vain(int way, const struct timespec* moment) {
  static pthread_rwlock_t read_by_us = PTHREAD_RWLOCK_INITIALIZER;
  mtx_t mutex;
  mtx_t taken;
  cnd_t condition;
  sem_t word;
  pthread_t thread;
  check(mtx_init(&mutex, mtx_timed) == thrd_success && mtx_init(&taken, mtx_timed) == thrd_success, "mtx_init");
  check(cnd_init(&condition) == thrd_success && sem_init(&word, 0, 0) == 0, "cnd_init, sem_init");
  check(mtx_lock(&mutex) == thrd_success && mtx_lock(&taken) == thrd_success, "mtx_lock");
  check(pthread_rwlock_rdlock(&read_by_us) == 0, "pthread_rwlock_rdlock");
  check(pthread_create(&thread, NULL, wait_for_word, &word) == 0, "pthread_create");
  if (way == 0) check(cnd_timedwait(&condition, &mutex, moment) == thrd_timedout, "cnd_timedwait");
  if (way == 1) check(mtx_timedlock(&taken, moment) == thrd_timedout, "mtx_timedlock");
  if (way == 2) check(pthread_rwlock_timedwrlock(&read_by_us, moment) == ETIMEDOUT, "pthread_rwlock_timedwrlock");
  if (way == 3) {
    check(pthread_rwlock_clockwrlock(&read_by_us, CLOCK_REALTIME, moment) == ETIMEDOUT, "pthread_rwlock_clockwrlock");
  }
  if (way == 4) check(pthread_timedjoin_np(thread, NULL, moment) == ETIMEDOUT, "pthread_timedjoin_np");
  if (way == 5) {
    check(pthread_clockjoin_np(thread, NULL, CLOCK_REALTIME, moment) == ETIMEDOUT, "pthread_clockjoin_np");
  }
  check(sem_post(&word) == 0 && pthread_join(thread, NULL) == 0, "the thread that waits for a word");
  check(pthread_rwlock_unlock(&read_by_us) == 0, "pthread_rwlock_unlock");
}

/// Waits 20 ms of real time for what does not come, although its clock is long past that. Then its clock says so, too.
static void wait_until_moments(void) {
  enum { kOwnWaits = 4, kWaits = kOwnWaits + 6 };
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  static sem_t semaphore;
  struct timespec before;
  struct timespec after;
  sem_init(&semaphore, 0, 0);
  pthread_mutex_lock(&taken);
  for (int i = 0; i < kWaits; ++i) {
    const struct timespec moment = moment_in_ms(CLOCK_REALTIME, 20);
    const long long shown_ns = read_ns(CLOCK_MONOTONIC);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &before);
    pthread_mutex_lock(&mutex);
    if (i == 0) check(pthread_cond_timedwait(&condition, &mutex, &moment) == ETIMEDOUT, "pthread_cond_timedwait");
    if (i == 1) {
      check(pthread_cond_clockwait(&condition, &mutex, CLOCK_REALTIME, &moment) == ETIMEDOUT, "pthread_cond_clockwait");
    }
    if (i == 2) check(sem_timedwait(&semaphore, &moment) == -1 && errno == ETIMEDOUT, "sem_timedwait");
    if (i == 3) check(pthread_mutex_timedlock(&taken, &moment) == ETIMEDOUT, "pthread_mutex_timedlock");
    if (i >= kOwnWaits) wait_in_vain(i - kOwnWaits, &moment);
    pthread_mutex_unlock(&mutex);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &after);
    const long long took_ns = (after.tv_sec - before.tv_sec) * 1000000000ll + after.tv_nsec - before.tv_nsec;
    check(took_ns >= 20 * kMs, "it has waited");
    check(read_ns(CLOCK_MONOTONIC) >= shown_ns + 20 * kMs - 1, "its clock has gone on");
  }
  pthread_mutex_unlock(&taken);
}

/// What poll and ppoll are with _FORTIFY_SOURCE.
extern int __poll_chk(struct pollfd*, nfds_t, int, size_t);
extern int __ppoll_chk(struct pollfd*, nfds_t, const struct timespec*, const sigset_t*, size_t);

/// Timeouts at descriptors, with which some programs sleep.
static void wait_at_descriptors(void) {
  int ends[2];
  struct epoll_event event;
  struct timeval length = {0, 20000};
  const struct timespec same = {0, 20 * kMs};
  check(pipe(ends) == 0, "pipe");
  struct pollfd end = {ends[0], POLLIN, 0};
  const int epoll = epoll_create1(0);
  const long long began_ns = read_ns(CLOCK_MONOTONIC);
  check(poll(NULL, 0, 20) == 0 && poll(&end, 1, 20) == 0 && poll(&end, 1, 0) == 0, "poll");
  check(ppoll(NULL, 0, &same, NULL) == 0 && pselect(0, NULL, NULL, NULL, &same, NULL) == 0, "ppoll, pselect");
  check(select(0, NULL, NULL, NULL, &length) == 0 && length.tv_usec == 0, "select");
  check(epoll_wait(epoll, &event, 1, 20) == 0 && epoll_pwait(epoll, &event, 1, 20, NULL) == 0, "epoll_wait");
  check(epoll_pwait2(epoll, &event, 1, &same, NULL) == 0, "epoll_pwait2");
  check(__poll_chk(&end, 1, 20, sizeof end) == 0, "__poll_chk");
  check(__ppoll_chk(&end, 1, &same, NULL, sizeof end) == 0, "__ppoll_chk");
  printf("waited at_descriptors %lld ns\n", read_ns(CLOCK_MONOTONIC) - began_ns);
  close(epoll);
  close(ends[0]);
  close(ends[1]);
}

/// A thread that does not call: virtual time stands still meanwhile, but its clock goes on as it sleeps and waits.
static void* wait_beside(void* unused) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct timespec nap = {0, kMs};
  const long long began_ns = read_ns(CLOCK_MONOTONIC);
  while (read_ns(CLOCK_MONOTONIC) < began_ns + 3 * kMs) check(nanosleep(&nap, NULL) == 0, "nanosleep");
  while (read_ns(CLOCK_MONOTONIC) < began_ns + 6 * kMs) check(poll(NULL, 0, 1) == 0, "poll");
  const struct timespec moment = moment_in_ms(CLOCK_MONOTONIC, 5);
  pthread_mutex_lock(&mutex);
  while (read_ns(CLOCK_MONOTONIC) < moment.tv_sec * 1000000000ll + moment.tv_nsec)
    pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &moment);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void wait_for_thread(void) {
  pthread_t thread;
  check(pthread_create(&thread, NULL, wait_beside, NULL) == 0 && pthread_join(thread, NULL) == 0, "a thread");
}

int main(int argc, char** argv) {
#ifdef READS_COUNTER
  check(read_counter() != 0, "the counter");
#endif
  look_at_all();
  check(utofu_create_vcq(0, 0, &vcq) == UTOFU_SUCCESS, "utofu_create_vcq");
  check(utofu_query_vcq_id(vcq, &self) == UTOFU_SUCCESS, "utofu_query_vcq_id");
  check(utofu_reg_mem(vcq, (void*)memory, sizeof memory, 0, &place) == UTOFU_SUCCESS, "utofu_reg_mem");
  look_at_all();
  if (argc > 2) check(fclose(fopen(argv[2], "w")) == 0, "a file that says that this rank is there");
  struct utofu_mrq_notice notice;
  while (argc > 1 && strcmp(argv[1], "look") == 0) utofu_poll_mrq(vcq, 0, &notice);
  while (argc > 1) sleep(1);
  // Before its first turn a program that has put something, and waits for it by its clock, sees virtual time, too. The
  // first reads are real ones, and this thread may stand between them for as long as a busy machine wants.
  memory[32] = 9;
  const long long early_ns = read_ns(CLOCK_MONOTONIC);
  check(utofu_put(vcq, self, place + 256, place, 8, 0, 0, NULL) == UTOFU_SUCCESS, "utofu_put");
  while (memory[0] != 9 && read_ns(CLOCK_MONOTONIC) < early_ns + 10000ll * kMs) {
  }
  check(memory[0] == 9 && read_ns(CLOCK_MONOTONIC) < early_ns + 1000ll * kMs, "a put before the first turn");
  for (unsigned long i = 1; i <= 3; ++i) {
    const long long began_ns = read_ns(CLOCK_MONOTONIC);
    put_to_self(i);
    printf("put %lld ns\n", read_ns(CLOCK_MONOTONIC) - began_ns);
    look_at_all();
  }
  const long long put_ns = read_ns(CLOCK_MONOTONIC);
  put_and_sleep(4);
  printf("slept_for_it %lld ns\n", read_ns(CLOCK_MONOTONIC) - put_ns);
  sleep_in_each_way();
  wait_until_moments();
  wait_at_descriptors();
  wait_for_thread();
  look_at_all();
  const long long began_ns = read_ns(CLOCK_MONOTONIC);
  while (read_ns(CLOCK_MONOTONIC) < began_ns + 1000000) {
  }
  printf("waited by the clock %lld ns\n", read_ns(CLOCK_MONOTONIC) - began_ns);
  const long long again_ns = read_ns(CLOCK_MONOTONIC);
  const long long began_us = day_us();
  while (day_us() < began_us + 100) {
  }
  printf("waited by microseconds %lld ns\n", read_ns(CLOCK_MONOTONIC) - again_ns);
  const long long long_ago_ns = read_ns(CLOCK_MONOTONIC);
  long reads = 0;
  while (read_ns(CLOCK_MONOTONIC) < long_ago_ns + 2000000000) ++reads;
  printf("waited for_seconds %lld ns, reads %ld\n", read_ns(CLOCK_MONOTONIC) - long_ago_ns, reads);
  check(utofu_free_vcq(vcq) == UTOFU_SUCCESS, "utofu_free_vcq");
  look_at_all();
  usleep(1000);
  look_at_all();
  return 0;
}
