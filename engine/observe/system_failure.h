#pragma once
// What people read when the system lacks or refuses something: which call, what was wanted, the reason in words, and
// what to change. One form for all, so that such lines look alike wherever they come from.

#include <sys/types.h>

#include <atomic>
#include <new>
#include <string>

namespace portofu {

/// @param call    the call that failed, as people look it up: open, fallocate
/// @param wanted  what it was to have: bytes, path, whose
/// @param error   errno; 0: the system has given no reason
/// @param advice  what to change; empty: what advice_for says
/// @return "CALL of WANTED: REASON; ADVICE"
std::string system_failure(const std::string& call, const std::string& wanted, int error,
                           const std::string& advice = {});

/// @return what people can change so that a call no longer fails like this; empty if nothing is known
std::string advice_for(int error);

/// Whether a call failed because this process or its node lacks descriptors or memory, which says nothing about peers.
bool is_shortage(int error);

/// One kind of failure, of which a process tells once: what is short stays short, and whoever waits for it tries again
/// and again. Any thread. A forked child tells once more.
class ToldOnce {
 public:
  constexpr ToldOnce() = default;

  /// @return true for the first caller in this process, who writes the line
  bool is_first();

 private:
  std::atomic<pid_t> told_by_{0};  ///< Relaxed: it guards no data.
};

/// Says once that what goes to a process or node has to wait, because a call failed for something that is lacking here.
/// The parameters are those of system_failure.
void tell_of_wait(ToldOnce& told, const std::string& call, const std::string& wanted, int error);

/// Says once in this process that the system lets nothing go to a node: a route is missing, or a filter of packets is
/// in the way. That the other side refuses (ECONNREFUSED) is no such failure, and is not told. The parameters are those
/// of system_failure.
void tell_of_closed_way(const std::string& call, const std::string& wanted, int error);

/// Says once in this process that memory is short, for a call that fails because of it.
/// @param what  what it was to hold
[[gnu::cold, gnu::noinline]] void tell_of_memory(const char* what) noexcept;

/// Does steps that no caller is to hear of. Where memory runs out in them, that is told, and those behind are left.
/// @return whether all were done
template <class Steps>
bool endure(Steps&& steps) {
  try {
    steps();
    return true;
  } catch (const std::bad_alloc&) {
    tell_of_memory("what messages need");
    return false;
  }
}

}  // namespace portofu
