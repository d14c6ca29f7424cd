#include "player.h"

#include <unistd.h>

#include <cstdio>

namespace compare {

void fail(const std::string& message) {
  std::fprintf(stderr, "compare_apis: %s\n", message.c_str());
  _exit(1);
}

void Player::meet() {
  const std::uint32_t meeting = stage_.meetings.load();
  if (stage_.arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(size_)) {
    stage_.arrived.store(0);
    stage_.meetings.store(meeting + 1);
    return;
  }
  await([&] { return stage_.meetings.load() != meeting; }, "the other processes");
}

}  // namespace compare
