#pragma once
// What the numbers in a record are called.

#include <string>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// "put", "answer": of a PacketType.
std::string packet_name(std::uint8_t kind);
/// "PtlPut", "utofu_get", "PtlTriggeredPut": of a kCall.
std::string call_name(const StepRecord& record);
/// In virtual time only, beside kWaitsByPolls: the program looks at its memory.
inline constexpr std::uint8_t kWaitsInMemory = 254;
/// What a call waits for: "event queue", "counter", "looks", "other", "memory".
const char* wait_cause(std::uint8_t kind);
inline constexpr const char* kWaitCauses[] = {"event queue", "counter", "looks", "other", "memory"};
/// One line for people, without the time: "match put of 8 bytes from 10.0.0.1:42, 3 entries passed over".
std::string step_text(const StepRecord& record);
/// "10.0.0.1:42"
std::string process_text(ProcessId id);

}  // namespace portofu::tools
