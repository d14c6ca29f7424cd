#include "engine/queue/line_aligned.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace portofu {
namespace {

struct alignas(64) Line : LineAligned {
  std::uint64_t number = 7;
  std::byte more[200] = {};
};

TEST(LineAligned, Objects__begin_with_a_line_and_do_not_overlap) {
  std::vector<std::unique_ptr<Line>> lines;
  for (std::uint64_t i = 0; i < 200; ++i) {
    lines.push_back(std::make_unique<Line>());
    lines.back()->number = i;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(lines.back().get()) % 64, 0u);
  }
  for (std::uint64_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]->number, i);
}

TEST(LineAligned, Nothing__can_be_deleted) {
  const Line* const nothing = nullptr;
  delete nothing;
}

TEST(LineAligned, Another_thread__may_delete) {
  Line* const line = new Line;
  std::thread([line] { delete line; }).join();
}

}  // namespace
}  // namespace portofu
