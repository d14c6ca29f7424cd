#include "lib/tools/ptl_trace/step_names.h"

#include <array>

namespace portofu::tools {
namespace {

constexpr std::array<const char*, 17> kEvents{
    "GET",          "GET_OVERFLOW",          "PUT",       "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW",
    "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW", "REPLY",     "SEND",         "ACK",    "PT_DISABLED",
    "LINK",         "AUTO_UNLINK",           "AUTO_FREE", "SEARCH",       "ERROR"};
/// By what is above ApiCall::kFabric. Calls of a kind have one name, as fi_sendmsg and fi_inject.
constexpr std::array<const char*, 9> kFabricCalls{"fi",        "fi_send",         "fi_tsend", "fi_write", "fi_read",
                                                  "fi_atomic", "fi_fetch_atomic", "fi_recv",  "fi_trecv"};
constexpr std::array<const char*, 6> kNotices{"LCL_PUT", "RMT_PUT", "LCL_GET", "RMT_GET", "LCL_ARMW", "RMT_ARMW"};

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

std::string peer_text(const StepRecord& record) { return process_text({record.nid, record.pid}); }

std::string operation_text(const StepRecord& record) {
  return record.id != 0 ? ", operation " + std::to_string(record.id) : "";
}

template <std::size_t kSize>
std::string name_in(const std::array<const char*, kSize>& names, std::uint8_t kind) {
  return kind < kSize ? names[kind] : "unknown";
}

}  // namespace

std::string process_text(ProcessId id) { return node_id_text(id.nid) + ":" + std::to_string(id.pid); }

std::string packet_name(std::uint8_t kind) {
  switch (static_cast<PacketType>(kind)) {
    case PacketType::kCountIncrement: return "count_increment";
    case PacketType::kCountSet: return "count_set";
    case PacketType::kLocalCall: return "local";
    case PacketType::kTofuNop: return "tofu_nop";
    case PacketType::kTofuPiggyback: return "tofu_put_piggyback";
    default: return packet_type_name(static_cast<PacketType>(kind));
  }
}

std::string call_name(const StepRecord& record) {
  if (record.kind == static_cast<std::uint8_t>(ApiCall::kAppend)) return "PtlAppend";
  if (record.kind == static_cast<std::uint8_t>(ApiCall::kPostToq)) return "utofu_post_toq";
  constexpr auto kFirstOfFabric = static_cast<std::uint8_t>(ApiCall::kFabric);
  if (record.kind >= kFirstOfFabric)
    return name_in(kFabricCalls, static_cast<std::uint8_t>(record.kind - kFirstOfFabric));
  const std::string start = (record.more & kCallArms) != 0 ? "PtlTriggered" : "Ptl";
  switch (static_cast<PacketType>(record.kind)) {
    case PacketType::kPut: return start + "Put";
    case PacketType::kGet: return start + "Get";
    case PacketType::kAtomic: return start + "Atomic";
    case PacketType::kFetchAtomic: return start + "FetchAtomic";
    case PacketType::kSwap: return start + "Swap";
    case PacketType::kCountIncrement: return start + "CTInc";
    case PacketType::kCountSet: return start + "CTSet";
    case PacketType::kTofuPut: return "utofu_put";
    case PacketType::kTofuPiggyback: return "utofu_put_piggyback";
    case PacketType::kTofuGet: return "utofu_get";
    case PacketType::kTofuArmw: return "utofu_armw";
    case PacketType::kTofuNop: return "utofu_nop";
    case PacketType::kTofuGate: return record.amount == 0 ? "utofu_barrier" : "utofu_reduce";
    default: return "call";
  }
}

const char* wait_cause(std::uint8_t kind) {
  if (kind == kWaitsByPolls) return kWaitCauses[2];
  if (kind == kWaitsInMemory) return kWaitCauses[4];
  switch (static_cast<WaitKind>(kind)) {
    case WaitKind::kEventQueue: return kWaitCauses[0];
    case WaitKind::kCounters: return kWaitCauses[1];
    default: return kWaitCauses[3];
  }
}

std::string step_text(const StepRecord& r) {
  std::string name = step_name(r.step);
  switch (r.step) {
    case Step::kCall: return "call " + call_name(r) + ", " + bytes_text(r.amount) + ", thread " + std::to_string(r.nid);
    case Step::kReturn: return "return, thread " + std::to_string(r.nid);
    case Step::kWait: return std::string("wait: ") + wait_cause(r.kind) + ", thread " + std::to_string(r.nid);
    case Step::kWaitEnd: {
      const std::string looks = r.kind == kWaitsByPolls ? ", " + std::to_string(r.amount) + " found nothing" : "";
      return std::string("wait ends: ") + wait_cause(r.kind) + looks + ", thread " + std::to_string(r.nid);
    }
    case Step::kSleep:
    case Step::kWake: return name + ", thread " + std::to_string(r.nid);
    case Step::kPacketOut:
      return "packet out: " + packet_name(r.kind) + " of " + bytes_text(r.amount) + " to " + peer_text(r) +
             operation_text(r);
    case Step::kPacketIn:
      return "packet in: " + packet_name(r.kind) + " of " + bytes_text(r.amount) + " from " + peer_text(r) +
             operation_text(r);
    case Step::kMatch:
      return "match " + packet_name(r.kind) + " of " + bytes_text(r.amount) + " from " + peer_text(r) + ", " +
             std::to_string(r.more & ~kUnexpected) + " entries passed over" +
             ((r.more & kUnexpected) != 0 ? ", unexpected" : "");
    case Step::kDeliver:
      return "deliver " + packet_name(r.kind) + ", " + bytes_text(r.amount) + " from " + peer_text(r);
    case Step::kDirect: return "direct " + packet_name(r.kind) + ", " + bytes_text(r.amount) + " at " + peer_text(r);
    case Step::kEvent:
      return "event " + name_in(kEvents, r.kind) + ", " + bytes_text(r.amount) + ", queue " + hex_text(r.id) +
             (r.more != 0 ? ", failed: " + std::to_string(r.more) : "");
    case Step::kNotice: return "notice " + name_in(kNotices, r.kind) + ", edata " + std::to_string(r.more);
    case Step::kCount: return "count " + std::to_string(r.amount) + ", counter " + hex_text(r.id);
    case Step::kTrigger:
      return "trigger " + packet_name(r.kind) + ", threshold " + std::to_string(r.amount) +
             (r.id != 0 ? ", counter " + hex_text(r.id) : ", inputs of a barrier gate");
    case Step::kNone:
    case Step::kCountOfSteps: break;
  }
  return name;
}

}  // namespace portofu::tools
