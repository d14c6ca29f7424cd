// Sweeps of ptl_sim: what is a list of sizes, and how their times are told and drawn.

#include "lib/tools/ptl_sim/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace portofu::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sweep sweep_of(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& times_us) {
  Sweep sweep{.machine = "tofud", .program = "a<b", .per_node = 2, .status = 0, .points = {}};
  for (const auto& [nodes, time_us] : times_us) {
    SweepPoint point;
    point.shape = std::to_string(nodes);
    point.nodes = nodes;
    point.ranks = 2 * nodes;
    point.time_ps = time_us * 1'000'000;
    point.messages = 7;
    point.path_ps[static_cast<std::size_t>(PathKind::kWire)] = point.time_ps / 4;
    point.path_ps[static_cast<std::size_t>(PathKind::kCall)] = point.time_ps - point.time_ps / 4;
    sweep.points.push_back(point);
  }
  return sweep;
}

std::vector<std::pair<double, double>> curve_of(const std::string& svg) {
  const std::string before = "points=\"";
  const std::size_t at = svg.find(before);
  std::vector<std::pair<double, double>> points;
  if (at == std::string::npos) return points;
  double x = 0;
  double y = 0;
  int bytes = 0;
  for (const char* next = svg.c_str() + at + before.size(); std::sscanf(next, "%lf,%lf %n", &x, &y, &bytes) == 2;
       next += bytes)
    points.emplace_back(x, y);
  return points;
}

TEST(Sweep, Shapes__stand_behind_nodes) {
  EXPECT_THAT(parse_sweep("nodes=12"), ElementsAre("12"));
  EXPECT_THAT(parse_sweep("nodes=12,2x3x4,2x3x2x2x3x2"), ElementsAre("12", "2x3x4", "2x3x2x2x3x2"));
  for (const char* text : {"", "nodes", "nodes=", "nodes=,", "nodes=1,", "nodes=,1", "nodes=1,,2", "ranks=2", "12"})
    EXPECT_TRUE(parse_sweep(text).empty()) << text;
  std::string many = "nodes=1";
  for (std::size_t i = 1; i < kMostSweepPoints; ++i) many += ",1";
  EXPECT_EQ(parse_sweep(many).size(), kMostSweepPoints);
  EXPECT_TRUE(parse_sweep(many + ",1").empty());
}

TEST(Sweep, Table__has_a_row_for_each_size) {
  const std::string text = sweep_text(sweep_of({{12, 100}, {24, 150}}));
  EXPECT_THAT(text, HasSubstr("tofud, a<b, 2 ranks a node"));
  EXPECT_THAT(text, HasSubstr("24     48      150.000          7"));
  EXPECT_THAT(text, HasSubstr("75.0"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("late")));
  Sweep late = sweep_of({{12, 100}});
  late.points[0].late_calls = 3;
  EXPECT_THAT(sweep_text(late), HasSubstr("late calls: 3"));
}

TEST(Sweep, Json__has_all_of_it) {
  const auto json = nlohmann::json::parse(sweep_json(sweep_of({{12, 100}})));
  EXPECT_EQ(json["program"], "a<b");
  const auto& point = json["sweep"][0];
  EXPECT_EQ(point["shape"], "12");
  EXPECT_EQ(point["ranks"], 24);
  EXPECT_EQ(point["time_ps"], 100'000'000);
  EXPECT_EQ(point["wire_ps"], 25'000'000);
}

TEST(Sweep, Plot__is_logarithmic_and_by_number_of_nodes) {
  const std::string svg = sweep_svg(sweep_of({{48, 400}, {12, 100}, {24, 200}}));
  EXPECT_THAT(svg, HasSubstr("a&lt;b on tofud"));
  const auto curve = curve_of(svg);
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_NEAR(curve[2].first - curve[1].first, curve[1].first - curve[0].first, 0.02) << "sorted, and twice as many";
  EXPECT_NEAR(curve[2].second - curve[1].second, curve[1].second - curve[0].second, 0.02) << "twice as long";
  EXPECT_LT(curve[2].second, curve[0].second) << "what is longer is higher";
  EXPECT_THAT(svg, HasSubstr(">48</text>"));
  EXPECT_THAT(svg, HasSubstr(">400.000 us</text>"));
  EXPECT_THAT(svg, HasSubstr(">100.000 us</text>"));
  for (const char* mark : {">200.000 us</text>", ">500.000 us</text>"}) EXPECT_THAT(svg, HasSubstr(mark));
}

TEST(Sweep, Plot__of_one_point_or_none_is_a_plot) {
  const auto curve = curve_of(sweep_svg(sweep_of({{12, 100}})));
  ASSERT_EQ(curve.size(), 1u);
  EXPECT_GT(curve[0].first, 0);
  EXPECT_LT(curve[0].first, 760);
  EXPECT_GT(curve[0].second, 0);
  EXPECT_LT(curve[0].second, 460);
  EXPECT_TRUE(curve_of(sweep_svg(sweep_of({}))).empty());
  EXPECT_TRUE(curve_of(sweep_svg(sweep_of({{12, 0}}))).empty()) << "no time has no logarithm";
}

}  // namespace
}  // namespace portofu::tools
