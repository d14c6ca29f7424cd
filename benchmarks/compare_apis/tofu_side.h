// What the patterns of uTofu share: a VCQ that knows its peers, all memory of the process registered, waits that end,
// and names. What a pattern is about it calls itself.
#pragma once

#include <utofu.h>

#include <string>
#include <vector>

#include "player.h"

namespace compare {

inline constexpr unsigned long kTellTcq = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
inline constexpr unsigned long kTellLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
inline constexpr unsigned long kTellRemote = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;
inline constexpr unsigned long kTellAll = kTellTcq | kTellLocal | kTellRemote;
inline constexpr unsigned long kStrong = UTOFU_ONESIDED_FLAG_STRONG_ORDER;

std::string text_of_tofu(int rc);

/// What one utofu_poll_mrq gave.
struct Notice {
  int rc = UTOFU_ERR_NOT_FOUND;
  utofu_mrq_notice fields{};
};
std::string text(const Notice& notice);  ///< The type, or the error.

/// Ends the process unless a call that a pattern takes for granted has succeeded.
void must_tofu(int rc, const char* call);
#define MUST_TOFU(call) ::compare::must_tofu((call), #call)

class TofuSide {
 public:
  /// @param vcq_flags  UTOFU_VCQ_FLAG_*
  explicit TofuSide(Player& self, unsigned long vcq_flags = 0);
  ~TofuSide();
  TofuSide(const TofuSide&) = delete;
  TofuSide& operator=(const TofuSide&) = delete;

  utofu_vcq_id_t id(int rank) const { return places_[static_cast<std::size_t>(rank)].vcq_id; }

  /// The address of a byte in the memory of a process, as its VCQ knows it.
  utofu_stadd_t at(int rank, std::size_t offset) const {
    return places_[static_cast<std::size_t>(rank)].stadd + offset;
  }

  /// Wait for the next notice of the queue.
  int next_tcq() const;
  Notice next_mrq() const;
  /// Names of all notices that are in the MRQ now, or "nothing".
  std::string told() const;

  utofu_vcq_hdl_t vcq = 0;

 private:
  struct Place {
    utofu_vcq_id_t vcq_id;
    utofu_stadd_t stadd;
  };
  std::vector<Place> places_;  ///< By rank.
};

}  // namespace compare
