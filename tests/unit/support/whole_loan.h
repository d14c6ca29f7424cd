#pragma once
// A payload to lend that is its whole message.

#include "engine/wire/loans.h"

namespace portofu {

inline Loan whole_loan(const std::byte* payload, std::uint32_t bytes) {
  return {.payload = payload, .bytes = bytes, .last = true};
}

}  // namespace portofu
