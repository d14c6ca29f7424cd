#include "lib/tools/ptl_trace/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/tools/ptl_trace/drawing.h"
#include "lib/tools/ptl_trace/step_names.h"

namespace portofu::tools {
namespace {

constexpr int kRowHeight = 28;
/// The timeline shows shares of so many stretches of time, fewer if it has many rows, and so many messages at most.
constexpr std::size_t kMostStretches = 300;
constexpr std::size_t kFewestStretches = 50;
constexpr std::size_t kRowsWithAll = 64;
constexpr std::size_t kMostArrows = 300;
constexpr std::size_t kMostLinks = 32;

constexpr const char* kCallColour = "#3b6fb6";
constexpr std::array<const char*, 5> kWaitColours{"#e08a2e", "#d2b52c", "#b5533c", "#8a6fb0", "#4f9d69"};
constexpr const char* kSleepColour = "#9aa3ad";

const char* wait_colour(const std::string& cause) {
  for (std::size_t i = 0; i < std::size(kWaitCauses); ++i) {
    if (cause == kWaitCauses[i]) return kWaitColours[i];
  }
  return kWaitColours.back();
}

std::string all_keys(const Timeline& timeline) {
  std::string keys = key(kCallColour, "in calls");
  const bool is_virtual = !timeline.links.empty();
  for (std::size_t i = 0; i < std::size(kWaitCauses) - (is_virtual ? 0 : 1); ++i)
    keys += key(kWaitColours[i], std::string("waiting: ") + kWaitCauses[i]);
  return keys + key(kSleepColour, "asleep");
}

/// What is drawn of a span: its row among colours of a stretch. Sleeps lie in waits, so they come last.
constexpr std::size_t kColours = 1 + kWaitColours.size() + 1;

std::size_t colour_index(const Timeline& timeline, const Span& span) {
  if (span.kind == Span::Kind::kCall) return 0;
  if (span.kind == Span::Kind::kSleep) return kColours - 1;
  const std::string cause = wait_cause(timeline.lanes[span.lane].steps[span.begin].kind);
  std::size_t index = 0;
  while (index + 1 < std::size(kWaitCauses) && cause != kWaitCauses[index]) ++index;
  return 1 + index;
}

const char* colour_of(std::size_t index) {
  if (index == 0) return kCallColour;
  return index == kColours - 1 ? kSleepColour : kWaitColours[index - 1];
}

double whole_ns(const Timeline& timeline) { return std::max<double>(static_cast<double>(timeline.end_ns), 1); }

/// Nanoseconds of each colour in each stretch, of one process.
using Shares = std::vector<std::array<double, kColours>>;

std::vector<Shares> shares_of(const Timeline& timeline, const Summary& summary, std::size_t stretches) {
  const double stretch_ns = whole_ns(timeline) / static_cast<double>(stretches);
  std::vector<Shares> shares(summary.processes.size(), Shares(stretches));
  for (const Span& span : timeline.spans) {
    const std::size_t index = colour_index(timeline, span);
    const auto begin = static_cast<double>(span.begin_ns);
    const auto end = static_cast<double>(span.end_ns);
    const auto first = static_cast<std::size_t>(begin / stretch_ns);
    const auto last = static_cast<std::size_t>(end / stretch_ns);
    for (std::size_t stretch = first; stretch <= last && stretch < stretches; ++stretch) {
      const double from = std::max(begin, static_cast<double>(stretch) * stretch_ns);
      const double until = std::min(end, static_cast<double>(stretch + 1) * stretch_ns);
      shares[summary.process_of[span.lane]][stretch][index] += std::max(0.0, until - from);
    }
  }
  return shares;
}

std::string arrows(const Timeline& timeline, const Summary& summary, double ns_a_pixel) {
  std::string lines;
  std::size_t drawn = 0;
  for (const Flow& flow : timeline.flows) {
    if (!is_request(timeline.step(flow.out))) continue;
    if (drawn++ == kMostArrows) break;
    const auto y = [&](std::uint32_t lane) {
      return (static_cast<double>(summary.process_of[lane]) + 0.5) * kRowHeight;
    };
    const auto x = [&](std::int64_t ns) { return kLabelWidth + static_cast<double>(ns) / ns_a_pixel; };
    lines += "<line x1=\"" + number(x(timeline.ns(flow.out))) + "\" y1=\"" + number(y(flow.out.lane)) + "\" x2=\"" +
             number(x(timeline.ns(flow.in))) + "\" y2=\"" + number(y(flow.in.lane)) + "\"><title>" +
             escaped(message_text(timeline, flow)) + "</title></line>\n";
  }
  return lines;
}

std::string timeline_plot(const Timeline& timeline, const Summary& summary) {
  const std::size_t rows = std::max<std::size_t>(summary.processes.size(), 1);
  const std::size_t stretches = std::clamp(kMostStretches * kRowsWithAll / rows, kFewestStretches, kMostStretches);
  const double stretch_ns = whole_ns(timeline) / static_cast<double>(stretches);
  const auto shares = shares_of(timeline, summary, stretches);
  const double width = static_cast<double>(kPlotWidth) / static_cast<double>(stretches);
  std::string content;
  for (std::size_t process = 0; process < shares.size(); ++process) {
    const double bottom = static_cast<double>(process + 1) * kRowHeight - 3;
    content += words(0, bottom - 7, summary.processes[process].label);
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
      double y = bottom;
      // A sleep is a part of a wait.
      std::array<double, kColours> part = shares[process][stretch];
      for (std::size_t i = 1; i + 1 < kColours && part.back() > 0; ++i) part[i] = std::max(0.0, part[i] - part.back());
      for (std::size_t i = 0; i < kColours; ++i) {
        const double height = std::min(1.0, part[i] / stretch_ns) * (kRowHeight - 4);
        if (height < 0.05) continue;
        y -= height;
        const double x = kLabelWidth + static_cast<double>(stretch) * width;
        content += rectangle({x, std::max(y, bottom - kRowHeight + 4), width, height}, colour_of(i), "");
      }
    }
  }
  content += arrows(timeline, summary, whole_ns(timeline) / kPlotWidth);
  const int height = static_cast<int>(shares.size() + 1) * kRowHeight;
  content += words(kLabelWidth, height - 8, "0") +
             words(kLabelWidth + kPlotWidth, height - 8, time_text(timeline.end_ns), "end");
  return plot("timeline", kLabelWidth + kPlotWidth, height, content);
}

std::string matrix_plot(const Summary& summary) {
  const std::size_t count = summary.processes.size();
  std::uint64_t most = 1;
  for (const auto& [pair, traffic] : summary.traffic) most = std::max(most, traffic.bytes + traffic.messages);
  const double cell = std::clamp(480.0 / static_cast<double>(std::max<std::size_t>(count, 1)), 4.0, 40.0);
  std::string content;
  for (const auto& [pair, traffic] : summary.traffic) {
    const auto& [from, to] = pair;
    const double share =
        std::log1p(static_cast<double>(traffic.bytes + traffic.messages)) / std::log1p(static_cast<double>(most));
    content +=
        rectangle({kLabelWidth + static_cast<double>(to) * cell, static_cast<double>(from) * cell, cell - 1, cell - 1},
                  shade(share),
                  summary.processes[from].label + " to " + summary.processes[to].label + ": " +
                      std::to_string(traffic.messages) + " messages, " + std::to_string(traffic.bytes) + " bytes");
  }
  for (std::size_t i = 0; i < count && cell >= 10; ++i)
    content += words(0, (static_cast<double>(i) + 0.7) * cell, summary.processes[i].label);
  const int side = static_cast<int>(static_cast<double>(count) * cell) + 4;
  return plot("matrix", kLabelWidth + std::max(side, 40), std::max(side, 20), content);
}

std::string bars(const char* id, const std::map<int, std::uint64_t>& classes) {
  std::uint64_t most = 1;
  for (const auto& [size, count] : classes) most = std::max(most, count);
  std::string content;
  double y = 0;
  for (const auto& [size, count] : classes) {
    const double width = static_cast<double>(count) / static_cast<double>(most) * (kPlotWidth - 120);
    content += words(kLabelWidth - 8, y + 15, class_text(size), "end");
    content += rectangle({kLabelWidth, y + 2, std::max(width, 1.0), 17}, kCallColour, "");
    content += words(kLabelWidth + width + 6, y + 15, std::to_string(count));
    y += 21;
  }
  return plot(id, kLabelWidth + kPlotWidth, std::max(static_cast<int>(y), 10), content);
}

std::string wait_plot(const Summary& summary) {
  std::int64_t most = 1;
  for (const ProcessSummary& process : summary.processes) {
    std::int64_t sum = process.in_calls_ns;
    for (const auto& [cause, ns] : process.waited) sum += ns;
    most = std::max({most, sum, process.lived_ns});
  }
  const auto width = [most](std::int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(most) * kPlotWidth;
  };
  std::string content;
  double y = 0;
  for (const ProcessSummary& process : summary.processes) {
    double x = kLabelWidth;
    content += words(0, y + 15, process.label);
    content += rectangle({x, y + 2, width(process.in_calls_ns), 17}, kCallColour,
                         "in calls " + time_text(process.in_calls_ns));
    x += width(process.in_calls_ns);
    for (const auto& [cause, ns] : process.waited) {
      content += rectangle({x, y + 2, width(ns), 17}, wait_colour(cause), "waiting for " + cause + " " + time_text(ns));
      x += width(ns);
    }
    content += rectangle({kLabelWidth, y + 19, width(process.asleep_ns), 3}, kSleepColour,
                         "asleep " + time_text(process.asleep_ns));
    y += 25;
  }
  return plot("waits", kLabelWidth + kPlotWidth, std::max(static_cast<int>(y), 10), content);
}

std::string slowest_table(const Timeline& timeline, const Summary& summary) {
  std::string rows = "<table><tr><th>took</th><th>message</th><th>out at</th></tr>\n";
  for (const SlowMessage& slow : summary.slowest) {
    const Flow& flow = timeline.flows[slow.flow];
    rows += "<tr><td>" + time_text(slow.took_ns) + "</td><td>" + escaped(message_text(timeline, flow)) + "</td><td>" +
            time_text(timeline.ns(flow.out)) + "</td></tr>\n";
  }
  return rows + "</table>\n";
}

/// A row for each link, and in it a cell for each stretch of time.
/// @param values  of a link
template <class Values>
std::string link_plot(const char* id, const Timeline& timeline, double most, const Values& values,
                      const std::string& unit) {
  constexpr double kLinkHeight = 16;
  const std::size_t rows = std::min(timeline.links.size(), kMostLinks);
  std::string content;
  for (std::size_t row = 0; row < rows; ++row) {
    const LinkUse& link = timeline.links[row];
    const double y = static_cast<double>(row) * kLinkHeight;
    content += words(0, y + 12, link.name);
    const auto& cells = values(link);
    const double width = static_cast<double>(link.stretch_ns) / whole_ns(timeline) * kPlotWidth;
    for (std::size_t i = 0; i < cells.size() && static_cast<double>(i) * width < kPlotWidth; ++i) {
      if (cells[i] <= 0) continue;
      const double x = static_cast<double>(i) * width;
      content += rectangle({kLabelWidth + x, y + 1, std::min(width, kPlotWidth - x), kLinkHeight - 2},
                           shade(std::min(1.0, cells[i] / most)),
                           time_text(static_cast<std::int64_t>(i) * link.stretch_ns) + ": " + number(cells[i]) + unit);
    }
  }
  const int height = static_cast<int>(static_cast<double>(rows) * kLinkHeight) + 20;
  content += words(kLabelWidth, height - 5, "0") +
             words(kLabelWidth + kPlotWidth, height - 5, time_text(timeline.end_ns), "end");
  return plot(id, kLabelWidth + kPlotWidth, height, content);
}

std::string link_sections(const Timeline& timeline) {
  double most_waiting = 0.01;
  for (const LinkUse& link : timeline.links) {
    for (const double waiting : link.waiting) most_waiting = std::max(most_waiting, waiting);
  }
  const std::string which = timeline.links.size() > kMostLinks ? " The busiest " + std::to_string(kMostLinks) + " of " +
                                                                     std::to_string(timeline.links.size()) + "."
                                                               : "";
  return heading("Links and interfaces in use", "Darker is more: percent of each stretch of time." + which) +
         link_plot(
             "links", timeline, 100, [](const LinkUse& link) -> auto& { return link.busy_percent; }, " %") +
         heading("Packets that wait for them",
                 "On the average of each stretch; the darkest is " + number(most_waiting) + "." + which) +
         link_plot(
             "queues", timeline, most_waiting, [](const LinkUse& link) -> auto& { return link.waiting; }, " packets");
}

constexpr const char* kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ptl_trace</title>\n<style>\n"
    "body{font:14px sans-serif;margin:24px;color:#222}svg{display:block}text{font:12px sans-serif;fill:#222}\n"
    "line{stroke:#333;stroke-width:.5;opacity:.6}.key{display:inline-block;width:12px;height:12px;margin-left:10px}\n"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:2px "
    "8px;text-align:left}\n</style></head><body>\n";
constexpr const char* kTail =
    "<script>\n"
    "const plots = [...document.querySelectorAll('svg')].filter(one => {\n"
    "  const box = one.getBBox();\n"
    "  return one.getBoundingClientRect().width > 0 && box.width > 0 && box.height > 0;\n"
    "});\n"
    "document.body.dataset.drawn = plots.map(one => one.id).join(' ');\n"
    "</script>\n</body></html>\n";

}  // namespace

std::string report_html(const Timeline& timeline, const Summary& summary, const std::string& more) {
  std::string page = kHead;
  page += "<h1>What the program did</h1>\n<p>" + std::to_string(summary.processes.size()) + " processes, " +
          std::to_string(summary.messages) + " messages, " + std::to_string(summary.bytes) + " bytes, " +
          std::to_string(summary.steps) + " steps in " + time_text(timeline.end_ns) + "</p>\n";
  for (const std::string& gap : gaps_text(summary)) page += "<p><b>" + escaped(gap) + "</b></p>\n";
  page += heading("Timeline", all_keys(timeline) + "; lines: the first messages") + timeline_plot(timeline, summary);
  page += heading("Who sent to whom", "Rows send, columns receive; darker is more. Point at a cell for its numbers.") +
          matrix_plot(summary);
  page += heading("Messages by bytes") + bars("sizes", summary.sizes);
  if (timeline.links.empty()) {
    page += heading("Matches by entries passed over",
                    "Unexpected: " + std::to_string(summary.unexpected) + " of " + std::to_string(summary.matches)) +
            bars("depths", summary.depths);
  } else {
    page += link_sections(timeline);
  }
  page += heading("Time in the library", all_keys(timeline)) + wait_plot(summary);
  page += heading("The slowest messages", "From the first packet out until the data was in place.") +
          slowest_table(timeline, summary);
  return page + more + kTail;
}

}  // namespace portofu::tools
