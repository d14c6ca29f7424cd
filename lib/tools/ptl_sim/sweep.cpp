#include "lib/tools/ptl_sim/sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/tools/ptl_trace/drawing.h"
#include "lib/tools/ptl_trace/summary.h"

namespace portofu::tools {
namespace {

constexpr int kWidth = 760;
constexpr int kHeight = 460;
constexpr int kLeft = 90;
constexpr int kRight = 30;
constexpr int kTop = 50;
constexpr int kBottom = 60;
constexpr const char* kLineColour = "#3b6fb6";

std::string ranks_a_node(const Sweep& sweep) {
  return std::to_string(sweep.per_node) + (sweep.per_node == 1 ? " rank a node" : " ranks a node");
}

std::string time_of(double ps) { return time_text(std::llround(ps / 1000)); }

/// A logarithmic axis.
class Axis {
 public:
  Axis(double least, double most, double begin, double end)
      : from_(std::log2(least)), to_(std::log2(most)), begin_(begin), end_(end) {
    if (to_ - from_ > 0.01) return;
    from_ -= 0.5;  // One value is in the middle.
    to_ += 0.5;
  }
  double at(double value) const { return begin_ + (std::log2(value) - from_) / (to_ - from_) * (end_ - begin_); }

 private:
  double from_;
  double to_;
  double begin_;
  double end_;
};

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
         "\" stroke=\"" + colour + "\"/>\n";
}

/// Times that a curve is read by: 1, 2 and 5 times powers of ten. The first is not more than the least, the last not
/// less than the most.
std::vector<double> time_marks(double least_ps, double most_ps) {
  std::vector<double> found;
  for (double decade = std::pow(10, std::floor(std::log10(least_ps))); found.empty() || found.back() < most_ps;
       decade *= 10) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit * decade <= least_ps) found.clear();
      if (found.empty() || found.back() < most_ps) found.push_back(digit * decade);
    }
  }
  return found;
}

std::string curve(const std::vector<SweepPoint>& points, const Axis& x, const Axis& y) {
  std::string places;
  std::string dots;
  for (const SweepPoint& point : points) {
    const double at_x = x.at(point.nodes);
    const double at_y = y.at(static_cast<double>(point.time_ps));
    places += number(at_x) + ',' + number(at_y) + ' ';
    dots += "<circle cx=\"" + number(at_x) + "\" cy=\"" + number(at_y) + "\" r=\"4\" fill=\"" + kLineColour +
            "\"><title>" + escaped(point.shape) + ": " + time_of(static_cast<double>(point.time_ps)) +
            "</title></circle>\n" + words(at_x, at_y - 10, time_of(static_cast<double>(point.time_ps)), "middle");
  }
  return std::string("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"") + kLineColour + "\" points=\"" + places +
         "\"/>\n" + dots;
}

}  // namespace

std::vector<std::string> parse_sweep(const std::string& text) {
  const std::string start = "nodes=";
  if (!text.starts_with(start)) return {};
  std::vector<std::string> shapes;
  std::size_t at = start.size();
  for (std::size_t comma = at; comma != std::string::npos; at = comma + 1) {
    comma = text.find(',', at);
    shapes.push_back(text.substr(at, comma == std::string::npos ? comma : comma - at));
    if (shapes.back().empty() || shapes.size() > kMostSweepPoints) return {};
  }
  return shapes;
}

std::string sweep_text(const Sweep& sweep) {
  std::string text = sweep.machine + ", " + sweep.program + ", " + ranks_a_node(sweep) +
                     "; the critical path in percent\n             nodes  ranks      time us   messages";
  char cell[64];
  for (const char* const name : kPathKindNames) {
    std::snprintf(cell, sizeof cell, "%10s", name);
    text += cell;
  }
  text += '\n';
  for (const SweepPoint& point : sweep.points) {
    std::snprintf(cell, sizeof cell, "%18s %6u %12.3f %10llu", point.shape.c_str(), point.ranks,
                  static_cast<double>(point.time_ps) / 1e6, static_cast<unsigned long long>(point.messages));
    text += cell;
    std::uint64_t path_ps = 0;
    for (const std::uint64_t part_ps : point.path_ps) path_ps += part_ps;
    for (const std::uint64_t part_ps : point.path_ps) {
      const double share = path_ps == 0 ? 0 : static_cast<double>(part_ps) / static_cast<double>(path_ps);
      std::snprintf(cell, sizeof cell, "%10.1f", 100 * share);
      text += cell;
    }
    text += point.late_calls == 0 ? "\n" : "  late calls: " + std::to_string(point.late_calls) + '\n';
  }
  return text;
}

std::string sweep_json(const Sweep& sweep) {
  nlohmann::ordered_json all;
  all["machine"] = sweep.machine;
  all["program"] = sweep.program;
  all["per_node"] = sweep.per_node;
  all["status"] = sweep.status;
  all["sweep"] = nlohmann::ordered_json::array();
  for (const SweepPoint& point : sweep.points) {
    nlohmann::ordered_json row{{"shape", point.shape},       {"nodes", point.nodes},
                               {"ranks", point.ranks},       {"time_ps", point.time_ps},
                               {"messages", point.messages}, {"late_calls", point.late_calls}};
    for (std::size_t kind = 0; kind < kPathKindCount; ++kind)
      row[std::string(kPathKindNames[kind]) + "_ps"] = point.path_ps[kind];
    all["sweep"].push_back(std::move(row));
  }
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

std::string sweep_svg(const Sweep& sweep) {
  std::vector<SweepPoint> points;
  for (const SweepPoint& point : sweep.points) {
    if (point.time_ps > 0 && point.nodes > 0) points.push_back(point);
  }
  std::ranges::stable_sort(points, {}, &SweepPoint::nodes);
  std::string content = words(
      kLeft, 24, sweep.program + " on " + sweep.machine + ", " + ranks_a_node(sweep) + ": time by number of nodes");
  if (!points.empty()) {
    const auto [least, most] = std::ranges::minmax(points, {}, &SweepPoint::time_ps);
    // Room for a label above the highest point.
    const auto marks = time_marks(static_cast<double>(least.time_ps), static_cast<double>(most.time_ps) * 1.1);
    const Axis x(points.front().nodes, points.back().nodes, kLeft + 30, kWidth - kRight - 30);
    const Axis y(marks.front(), marks.back(), kHeight - kBottom, kTop);
    for (const double mark : marks) {
      content += line(kLeft, y.at(mark), kWidth - kRight, y.at(mark), "#ddd") +
                 words(kLeft - 8, y.at(mark) + 4, time_of(mark), "end");
    }
    std::uint32_t before = 0;
    for (const SweepPoint& point : points) {
      if (point.nodes == before) continue;
      before = point.nodes;
      content += line(x.at(point.nodes), kHeight - kBottom, x.at(point.nodes), kHeight - kBottom + 5, "#888") +
                 words(x.at(point.nodes), kHeight - kBottom + 20, std::to_string(point.nodes), "middle");
    }
    content += curve(points, x, y);
  }
  content += line(kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom, "#888") +
             line(kLeft, kTop, kLeft, kHeight - kBottom, "#888") +
             words((kLeft + kWidth - kRight) / 2.0, kHeight - 14, "nodes", "middle");
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + std::to_string(kWidth) + " " +
         std::to_string(kHeight) + "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n" +
         rectangle({0, 0, kWidth, kHeight}, "#fff", "") + content + "</svg>\n";
}

}  // namespace portofu::tools
