#include "engine/run/unwinding.h"

#include <execinfo.h>
#include <unwind.h>

#include <cstdint>

#include "engine/core/direct_lane.h"
#include "engine/queue/fork_mutex.h"
#include "engine/queue/lost_thread.h"
#include "engine/run/duty.h"
#include "engine/segment/shared_heap.h"

namespace portofu {
namespace {

/// Reads the table of a frame that tells what is to be done where it unwinds (LSDA), as GCC writes it.
class UnwindTable {
 public:
  explicit UnwindTable(const void* table) : at_(static_cast<const std::uint8_t*>(table)) {}

  std::uint8_t byte() { return *at_++; }
  const std::uint8_t* at() const { return at_; }

  /// A number of DWARF that is as long as need be (DW_EH_PE_uleb128).
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) == 0) break;
    }
    return value;
  }

 private:
  const std::uint8_t* at_;
};

constexpr std::uint8_t kNoneGiven = 0xff;  ///< DW_EH_PE_omit.
constexpr std::uint8_t kNumbers = 0x01;    ///< DW_EH_PE_uleb128.

/// Whether the frame lets nothing out that unwinds, as one of a function that is noexcept: the personality routine
/// would call std::terminate(), which says nothing. Its table has no entry for the place where it stands. A compiler
/// that writes a handler there instead, as clang does, is not understood.
bool lets_nothing_out(_Unwind_Context* context) {
  const void* const start = _Unwind_GetLanguageSpecificData(context);
  if (start == nullptr) return false;
  int is_exact = 0;
  const std::uint64_t place = _Unwind_GetIPInfo(context, &is_exact) - (is_exact != 0 ? 0u : 1u);
  const std::uint64_t offset = place - _Unwind_GetRegionStart(context);
  UnwindTable table(start);
  if (table.byte() != kNoneGiven) return false;
  if (table.byte() != kNoneGiven) table.number();  // Where the types of its handlers are.
  if (table.byte() != kNumbers) return false;
  const std::uint64_t bytes = table.number();
  for (const std::uint8_t* const end = table.at() + bytes; table.at() < end;) {
    const std::uint64_t first = table.number();
    const std::uint64_t length = table.number();
    table.number();  // Where what is to be destroyed is.
    table.number();  // Which handlers there are.
    if (offset >= first && offset - first < length) return false;
  }
  return true;
}

}  // namespace

bool holds_what_others_need() {
  return DutyLock::has_this_thread_one() || ForkMutex::has_this_thread_one() ||
         own_seat->busy.load(std::memory_order_relaxed) || process_heap().has_this_thread_lock();
}

void prepare_unwinding() {
  void* caller = nullptr;
  backtrace(&caller, 1);
}

}  // namespace portofu

extern "C" {

/// The personality routine of C++. The linker gives its name to the one below.
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class, _Unwind_Exception* exception,
                                                _Unwind_Context* context);

_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class, _Unwind_Exception* exception,
                                                _Unwind_Context* context) {
  if ((actions & _UA_FORCE_UNWIND) != 0) {
    int is_interrupted = 0;  // At any instruction, by a signal: this frame has called nobody.
    _Unwind_GetIPInfo(context, &is_interrupted);
    // Of such a frame the tables seldom tell what it would have to destroy.
    const bool is_torn = is_interrupted != 0 && __real___gxx_personality_v0(version, _UA_SEARCH_PHASE, exception_class,
                                                                            exception, context) != _URC_CONTINUE_UNWIND;
    if (is_torn || portofu::lets_nothing_out(context) || portofu::holds_what_others_need())
      portofu::end_without(portofu::this_thread_id());
  }
  return __real___gxx_personality_v0(version, actions, exception_class, exception, context);
}

}  // extern "C"
