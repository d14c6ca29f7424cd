/* Notices of the MRQ: taken from it, or kept by somebody who had to look before they may be handled. */
#include "iface.h"

#include <sched.h>

/* Notices that one look at the MRQ takes at most. */
enum { kMrqBatch = 32 };
/* How long a short get waits, and after how many looks it looks at the clock and lets others run. */
static const double kAwaitSeconds = 10.0;
enum { kLooksPerTime = 256 };

/* Of a message, or of something for control memory. Where that is not registered any more, the interface is closed. */
static void notice_failed(uct_utofu_iface_t* iface, const struct utofu_mrq_notice* notice, int rc) {
  const khiter_t known = kh_get(uct_utofu_peers, &iface->peers, notice->vcq_id);
  const ucs_status_t status = uct_utofu_status(rc);
  if (known != kh_end(&iface->peers) && kh_val(&iface->peers, known)->epoch == notice->edata) {
    uct_utofu_peer_failed(iface, kh_val(&iface->peers, known),
                          status == UCS_ERR_REJECTED ? UCS_ERR_ENDPOINT_TIMEOUT : status);
  } else {
    ucs_debug("a put to VCQ 0x%lx failed: uTofu says %d", (unsigned long)notice->vcq_id, rc);
  }
}

static void take_notice(uct_utofu_iface_t* iface, const struct utofu_mrq_notice* notice, int rc) {
  if (uct_utofu_is_of_peer(notice, rc)) {
    uct_utofu_put_arrived(iface, notice);
    return;
  }
  uct_utofu_op_t* const op = iface->tagged[notice->edata % UCT_UTOFU_TAGS];
  if (op != NULL) {
    uct_utofu_op_notice(iface, op, uct_utofu_status(rc), notice->rmt_value);
  } else if (rc != UTOFU_SUCCESS) {
    notice_failed(iface, notice, rc);
  }
}

/* The next notice of the MRQ of any rail. Only stripes have notices elsewhere than on the first. */
static int poll_rails(uct_utofu_iface_t* iface, struct utofu_mrq_notice* notice) {
  int rc = utofu_poll_mrq(iface->vcq, 0, notice);
  for (unsigned rail = 1; rc == UTOFU_ERR_NOT_FOUND && iface->striped > 0 && rail < iface->md->rails; rail++) {
    rc = utofu_poll_mrq(iface->rails[rail], 0, notice);
  }
  return rc;
}

/* The oldest notice that is kept, or the next one of the MRQ. @return of utofu_poll_mrq */
static int next_notice(uct_utofu_iface_t* iface, struct utofu_mrq_notice* notice) {
  if (ucs_likely(iface->kept_count == 0)) {
    return poll_rails(iface, notice);
  }
  const uct_utofu_kept_t kept = iface->kept[iface->kept_first++];
  if (--iface->kept_count == 0) {
    iface->kept_first = 0;
  }
  *notice = kept.notice;
  return kept.rc;
}

unsigned uct_utofu_poll_mrq(uct_utofu_iface_t* iface) {
  struct utofu_mrq_notice notice;
  unsigned count = 0;
  while (count < kMrqBatch) {
    const int rc = next_notice(iface, &notice);
    if (rc == UTOFU_ERR_NOT_FOUND) {
      break;
    }
    take_notice(iface, &notice, rc);
    count++;
  }
  return count;
}

/* @return 0: there is no memory to keep one more notice */
static int can_keep(uct_utofu_iface_t* iface) {
  const unsigned end = iface->kept_first + iface->kept_count;
  if (end < iface->kept_room) {
    return 1;
  }
  const unsigned room = ucs_max(2 * iface->kept_room, 64u);
  uct_utofu_kept_t* const kept = ucs_realloc(iface->kept, room * sizeof *kept, "utofu kept notices");
  if (kept == NULL) {
    return 0;
  }
  iface->kept = kept;
  iface->kept_room = room;
  return 1;
}

static void keep(uct_utofu_iface_t* iface, const struct utofu_mrq_notice* notice, int rc) {
  iface->kept[iface->kept_first + iface->kept_count++] = (uct_utofu_kept_t){.notice = *notice, .rc = rc};
}

int uct_utofu_keep_one(uct_utofu_iface_t* iface) {
  struct utofu_mrq_notice notice;
  if (iface->kept_count > 0) {
    return 1;
  }
  if (!can_keep(iface)) {
    return 1; /* Whoever asked goes on, and takes it. */
  }
  const int rc = poll_rails(iface, &notice);
  if (rc == UTOFU_ERR_NOT_FOUND) {
    return 0;
  }
  keep(iface, &notice, rc);
  return 1;
}

ucs_status_t uct_utofu_op_await(uct_utofu_iface_t* iface, uct_utofu_op_t* op, int* came_p) {
  const ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(kAwaitSeconds);
  struct utofu_mrq_notice notice;
  *came_p = 0;
  for (unsigned looks = 1;; looks++) {
    if (!can_keep(iface)) {
      return UCS_ERR_NO_MEMORY;
    }
    const int rc = poll_rails(iface, &notice);
    if (rc == UTOFU_ERR_NOT_FOUND) {
      if (looks % kLooksPerTime == 0) {
        if (ucs_get_time() > deadline) {
          return UCS_ERR_TIMED_OUT;
        }
        sched_yield();
      }
    } else if (!uct_utofu_is_of_peer(&notice, rc) && notice.edata == op->tag) {
      *came_p = 1;
      return uct_utofu_status(rc);
    } else {
      keep(iface, &notice, rc);
    }
  }
}
