/* Wake-up by a descriptor. uTofu has none to wait for, so a thread of the process looks into the queues of interfaces
 * that are armed, and signals. It handles nothing: what it finds is kept for the progress of the interface.
 *
 * An armed interface belongs to the thread, while it looks. Everybody else takes the interface back before touching
 * its VCQ (uct_utofu_own). Whoever posts something while it is armed signals, because nobody would look for its end. */
#include "iface.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The thread looks again after this part of the time that an interface has been armed, but within these bounds. */
enum { kShare = 16 };
static const double kLeastSeconds = 20e-6, kMostSeconds = 1e-3;
/* After so long it wakes who has sent messages that no operation has confirmed. */
static const double kConfirmSeconds = 0.1;

static struct {
  pthread_mutex_t lock; /* Holds all of this. */
  pthread_cond_t changed;
  int runs;               /* The thread, which stays: without armed interfaces it sleeps. */
  ucs_list_link_t ifaces; /* Those that have a descriptor. */
} watcher = {.lock = PTHREAD_MUTEX_INITIALIZER, .ifaces = {&watcher.ifaces, &watcher.ifaces}};

static void signal_user(const uct_utofu_iface_t* iface) {
  const uint64_t one = 1;
  while (write(iface->wakeup.fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

/* Whether there is something for the progress of an interface. */
static int has_something(uct_utofu_iface_t* iface) {
  return uct_utofu_keep_one(iface) || ((iface->tcq_open > 0 || iface->busy) && uct_utofu_keep_one_tcq(iface));
}

/* @return seconds after which it wants to be looked at again; 0: it is not armed any more */
static double look(uct_utofu_iface_t* iface, ucs_time_t now) {
  int expected = UCT_UTOFU_ARMED;
  if (!__atomic_compare_exchange_n(&iface->wakeup.state, &expected, UCT_UTOFU_LOOKED_AT, 0, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED)) {
    return 0;
  }
  const double armed_s = now > iface->wakeup.since ? ucs_time_to_sec(now - iface->wakeup.since) : 0;
  const int found = has_something(iface) || (iface->wakeup.wake_at != 0 && now >= iface->wakeup.wake_at);
  if (found) {
    signal_user(iface);
  }
  __atomic_store_n(&iface->wakeup.state, found ? UCT_UTOFU_AWAKE : UCT_UTOFU_ARMED, __ATOMIC_RELEASE);
  return found ? 0 : ucs_min(ucs_max(armed_s / kShare, kLeastSeconds), kMostSeconds);
}

static void nap(double seconds) {
  struct timespec until;
  if (seconds == 0) {
    pthread_cond_wait(&watcher.changed, &watcher.lock);
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += (long)(seconds * 1e9);
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&watcher.changed, &watcher.lock, &until);
}

static void* watch(void* arg) {
  uct_utofu_iface_t* iface;
  prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
  prctl(PR_SET_NAME, "utofu wake-up", 0, 0, 0);
  pthread_mutex_lock(&watcher.lock);
  for (;;) {
    const ucs_time_t now = ucs_get_time();
    double least = 0;
    ucs_list_for_each(iface, &watcher.ifaces, wakeup.watched) {
      const double wanted = look(iface, now);
      least = wanted != 0 && (least == 0 || wanted < least) ? wanted : least;
    }
    nap(least);
  }
  return NULL;
}

/* A child has no thread, which might have held the lock, and none of our interfaces. Its own ones get a thread anew. */
static void before_fork(void) { pthread_mutex_lock(&watcher.lock); }

static void after_fork(void) { pthread_mutex_unlock(&watcher.lock); }

static void after_fork_in_child(void) {
  uct_utofu_iface_t *iface, *next;
  ucs_list_for_each_safe(iface, next, &watcher.ifaces, wakeup.watched) {
    iface->wakeup.state = UCT_UTOFU_AWAKE;
    ucs_list_del(&iface->wakeup.watched);
    ucs_list_head_init(&iface->wakeup.watched); /* It may be taken off once more. */
  }
  watcher.runs = 0;
  pthread_mutex_unlock(&watcher.lock);
}

/* With the lock. The thread takes no signals of the program. */
static ucs_status_t start_thread(void) {
  static int minds_forks;
  pthread_condattr_t attr;
  pthread_t thread;
  sigset_t all, before;
  if (!minds_forks && pthread_atfork(before_fork, after_fork, after_fork_in_child) != 0) {
    return UCS_ERR_NO_MEMORY;
  }
  minds_forks = 1;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&watcher.changed, &attr);
  pthread_condattr_destroy(&attr);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher.runs = pthread_create(&thread, NULL, watch, NULL) == 0 && pthread_detach(thread) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return watcher.runs ? UCS_OK : UCS_ERR_NO_RESOURCE;
}

ucs_status_t uct_utofu_event_fd_get(uct_iface_h tl_iface, int* fd_p) {
  uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  ucs_status_t status = UCS_OK;
  if (!iface->md->wakeup) {
    return UCS_ERR_UNSUPPORTED;
  }
  pthread_mutex_lock(&watcher.lock);
  if (iface->wakeup.fd < 0) {
    iface->wakeup.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    status = iface->wakeup.fd < 0 ? UCS_ERR_IO_ERROR : watcher.runs ? UCS_OK : start_thread();
    if (status == UCS_OK) {
      ucs_list_add_tail(&watcher.ifaces, &iface->wakeup.watched);
    } else if (iface->wakeup.fd >= 0) {
      close(iface->wakeup.fd);
      iface->wakeup.fd = -1;
    }
  }
  pthread_mutex_unlock(&watcher.lock);
  *fd_p = iface->wakeup.fd;
  return status;
}

void uct_utofu_wakeup_cleanup(uct_utofu_iface_t* iface) {
  if (iface->wakeup.fd < 0) {
    return;
  }
  pthread_mutex_lock(&watcher.lock);
  ucs_list_del(&iface->wakeup.watched);
  pthread_mutex_unlock(&watcher.lock);
  close(iface->wakeup.fd);
  iface->wakeup.fd = -1;
  iface->wakeup.state = UCT_UTOFU_AWAKE;
}

/* A program that ends without closing what it has: nobody looks while libraries say goodbye. */
__attribute__((destructor)) static void look_no_more(void) {
  pthread_mutex_lock(&watcher.lock);
  ucs_list_head_init(&watcher.ifaces);
  pthread_mutex_unlock(&watcher.lock);
}

int uct_utofu_take_back(uct_utofu_iface_t* iface) {
  for (;;) {
    int expected = UCT_UTOFU_ARMED;
    if (__atomic_compare_exchange_n(&iface->wakeup.state, &expected, UCT_UTOFU_AWAKE, 0, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
      return 1;
    }
    if (expected == UCT_UTOFU_AWAKE) {
      return 0;
    }
    sched_yield(); /* The thread looks. */
  }
}

void uct_utofu_own_to_post(uct_utofu_iface_t* iface) {
  if (uct_utofu_take_back(iface)) {
    signal_user(iface);
  }
}

/* When it has to do something though nothing has come. A first message is fetched when it has not come for a while. */
static ucs_time_t next_time(const uct_utofu_iface_t* iface) {
  ucs_time_t least = 0;
  const uct_utofu_ep_t* ep;
  const uct_utofu_peer_t* peer;
  ucs_list_for_each(ep, &iface->eps, of_iface) {
    if (uct_utofu_ep_wonders(ep)) {
      least = iface->wakeup.since + ucs_time_from_sec(kConfirmSeconds);
      break;
    }
  }
  ucs_list_for_each(peer, &iface->owing, owing) {
    least = least == 0 || peer->fetch_at < least ? peer->fetch_at : least;
  }
  return least;
}

/* Whether it can do something now for which there was no room. */
static int owes_something(const uct_utofu_iface_t* iface) {
  const uct_utofu_peer_t* peer;
  ucs_list_for_each(peer, &iface->owing, owing) {
    if (!uct_utofu_is_fetched_later(peer)) {
      return 1;
    }
  }
  return 0;
}

/* Gives an interface to the thread, which sleeps if it has found none that is armed. */
static void give_to_thread(uct_utofu_iface_t* iface) {
  iface->wakeup.wake_at = next_time(iface);
  __atomic_store_n(&iface->wakeup.state, UCT_UTOFU_ARMED, __ATOMIC_RELEASE);
  pthread_mutex_lock(&watcher.lock);
  pthread_cond_signal(&watcher.changed);
  pthread_mutex_unlock(&watcher.lock);
}

void uct_utofu_after_progress(uct_utofu_iface_t* iface, unsigned count) {
  if (count > 0) {
    signal_user(iface);
  } else {
    give_to_thread(iface);
  }
}

ucs_status_t uct_utofu_event_arm(uct_iface_h tl_iface, unsigned events) {
  uct_utofu_iface_t* const iface = ucs_derived_of(tl_iface, uct_utofu_iface_t);
  uint64_t dropped;
  int fd;
  const ucs_status_t status = uct_utofu_event_fd_get(tl_iface, &fd);
  if (status != UCS_OK) {
    return status;
  }
  uct_utofu_take_back(iface);
  while (read(fd, &dropped, sizeof dropped) < 0 && errno == EINTR) {
  }
  if (iface->busy || iface->bell_count > 0 || owes_something(iface) || uct_utofu_ep_could_dispatch(iface) ||
      has_something(iface)) {
    if (iface->super.progress_flags != 0) {
      return UCS_ERR_BUSY;
    }
    signal_user(iface); /* Nobody calls its progress who is not woken for it: UCP has made it an idle one. */
    return UCS_OK;
  }
  iface->wakeup.since = ucs_get_time();
  give_to_thread(iface);
  return UCS_OK;
}
