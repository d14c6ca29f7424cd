// Reads machine files: every key is known, there, and within its bounds, and every number has a source.

#include "lib/sim/machine.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

namespace portofu::sim {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kFormat = 1;
constexpr std::uint64_t kMostCount = 1 << 20;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;
constexpr double kMostNs = 1e6;
constexpr double kLeastGbPerSecond = 1e-3;
constexpr double kMostGbPerSecond = 1e4;

/// Takes values out of a file by their keys. After the first problem it takes nothing more.
class MachineReader {
 public:
  MachineReader(const Json& root, std::string file) : root_(root), file_(std::move(file)) {}

  bool has_failed() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }

  std::string text(const std::string& key) {
    const Json* value = find(key, "a text");
    if (value == nullptr) return {};
    if (!value->is_string() || value->get<std::string>().empty()) refuse(key, *value, "a text");
    return has_failed() ? std::string() : value->get<std::string>();
  }

  void whole(const std::string& key, std::uint32_t* target, std::uint64_t least, std::uint64_t most) {
    count(numbered(key), target, least, most);
  }

  /// The same of something that needs no source.
  void count(const std::string& key, std::uint32_t* target, std::uint64_t least, std::uint64_t most) {
    *target = static_cast<std::uint32_t>(whole_of(key, find(key, bounds(least, most)), least, most));
  }

  /// A time in ns.
  void time(const std::string& key, std::uint64_t* target_ps) {
    *target_ps = static_cast<std::uint64_t>(std::llround(real(key, 0, kMostNs) * 1000));
  }

  void rate(const std::string& key, double* target) { *target = real(key, kLeastGbPerSecond, kMostGbPerSecond); }

  /// One of some words. @return its place among them; 0 on failure
  std::size_t word(const std::string& key, const std::vector<std::string>& words) {
    std::string allowed = "one of";
    for (const std::string& each : words) allowed += " " + each;
    const Json* value = find(key, allowed);
    if (value == nullptr) return 0;
    const auto found = std::find(words.begin(), words.end(), value->is_string() ? value->get<std::string>() : "");
    if (found == words.end()) refuse(key, *value, allowed);
    return has_failed() ? 0 : static_cast<std::size_t>(found - words.begin());
  }

  /// A list with a value for each dimension.
  template <typename Value>
  void dimensions(const std::string& key, std::array<Value, 6>* target) {
    const char* const allowed =
        std::is_same_v<Value, bool> ? "a list of 6 times true or false" : "a list of 6 whole numbers from 0 to 1024";
    const Json* value = find(numbered(key), allowed);
    if (value == nullptr) return;
    bool is_right = value->is_array() && value->size() == target->size();
    for (std::size_t i = 0; is_right && i < target->size(); ++i) {
      const Json& each = (*value)[i];
      is_right = std::is_same_v<Value, bool> ? each.is_boolean()
                                             : each.is_number_unsigned() && each.get<std::uint64_t>() <= 1024;
      if (is_right) (*target)[i] = each.get<Value>();
    }
    if (!is_right) refuse(key, *value, allowed);
  }

  /// Keys that nobody has asked for; numbers without a source, and the other way round.
  void check_rest(std::map<std::string, std::string>* sources) {
    known_.insert("sources");
    const Json* found = find("sources", "an object with a text for each number");
    if (found == nullptr) return;
    if (!found->is_object()) return refuse("sources", *found, "an object with a text for each number");
    check_keys(root_, "");
    for (const auto& [key, value] : found->items()) {
      if (has_failed()) return;
      if (!numbers_.contains(key)) return fail("sources." + key, "there is no number of this key");
      if (!value.is_string() || value.get<std::string>().empty()) return refuse("sources." + key, value, "a text");
      (*sources)[key] = value.get<std::string>();
    }
    for (const std::string& key : numbers_) {
      if (!has_failed() && !sources->contains(key)) fail("sources." + key, "missing; where does the number come from?");
    }
  }

 private:
  static std::string bounds(std::uint64_t least, std::uint64_t most) {
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  }

  static std::string number_text(double number) {
    std::ostringstream text;
    text << number;
    return text.str();
  }

  void fail(const std::string& key, const std::string& what) {
    if (!has_failed()) problem_ = file_ + ": " + key + ": " + what;
  }

  void refuse(const std::string& key, const Json& value, const std::string& allowed) {
    constexpr std::size_t kMostBytesTold = 60;
    std::string text = value.dump();
    if (text.size() > kMostBytesTold) text = "a value of " + std::to_string(text.size()) + " bytes";
    fail(key, text + " is not " + allowed);
  }

  const std::string& numbered(const std::string& key) {
    numbers_.insert(key);
    return key;
  }

  /// @return nullptr, and a problem, if it is not there
  const Json* find(const std::string& key, const std::string& allowed) {
    const std::size_t dot = key.find('.');
    const std::string section = key.substr(0, dot);
    known_.insert(section);
    known_.insert(key);
    if (has_failed()) return nullptr;
    const auto at = root_.find(section);
    if (at == root_.end() || dot == std::string::npos) {
      if (at == root_.end())
        fail(section, "missing; " + (dot == std::string::npos ? allowed : "an object with " + key));
      return has_failed() ? nullptr : &*at;
    }
    if (!at->is_object()) {
      refuse(section, *at, "an object");
      return nullptr;
    }
    const auto value = at->find(key.substr(dot + 1));
    if (value == at->end()) fail(key, "missing; " + allowed);
    return has_failed() ? nullptr : &*value;
  }

  std::uint64_t whole_of(const std::string& key, const Json* value, std::uint64_t least, std::uint64_t most) {
    if (value == nullptr) return 0;
    const bool is_right =
        value->is_number_unsigned() && value->get<std::uint64_t>() >= least && value->get<std::uint64_t>() <= most;
    if (!is_right) refuse(key, *value, bounds(least, most));
    return is_right ? value->get<std::uint64_t>() : 0;
  }

  double real(const std::string& key, double least, double most) {
    const std::string allowed = "a number from " + number_text(least) + " to " + number_text(most);
    const Json* value = find(numbered(key), allowed);
    if (value == nullptr) return least;
    const bool is_right = value->is_number() && value->get<double>() >= least && value->get<double>() <= most;
    if (!is_right) refuse(key, *value, allowed);
    return is_right ? value->get<double>() : least;
  }

  void check_keys(const Json& object, const std::string& section) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = section + name;
      if (has_failed()) return;
      if (!known_.contains(key)) return fail(key, "there is no such key; there are:" + names_in(section));
      if (value.is_object() && key != "sources") check_keys(value, key + ".");
    }
  }

  std::string names_in(const std::string& section) const {
    std::string names;
    for (const std::string& key : known_) {
      const bool is_inside = key.starts_with(section) && key.find('.', section.size()) == std::string::npos;
      if (is_inside) names.append(" ").append(key, section.size());
    }
    return names;
  }

  const Json& root_;
  const std::string file_;
  std::string problem_;
  std::set<std::string> known_;
  std::set<std::string> numbers_;  ///< That need a source.
};

void read_topology(MachineReader& reader, TopologyFigures* topology) {
  topology->kind = static_cast<TopologyKind>(
      reader.word("topology.kind", {"torus", "hypercube", "fat_tree", "dragonfly", "crossbar"}));
  if (topology->kind == TopologyKind::kTorus) {
    reader.dimensions("topology.lengths", &topology->lengths);
    reader.dimensions("topology.wraps", &topology->wraps);
  } else if (topology->kind == TopologyKind::kFatTree) {
    reader.whole("topology.switch_ports", &topology->switch_ports, 2, 1024);
  } else if (topology->kind == TopologyKind::kDragonfly) {
    reader.whole("topology.routers_per_group", &topology->routers_per_group, 1, 1024);
    reader.whole("topology.nodes_per_router", &topology->nodes_per_router, 1, 1024);
    reader.whole("topology.global_links_per_router", &topology->global_links_per_router, 1, 1024);
  }
}

void read_links(MachineReader& reader, LinkCosts* links) {
  reader.whole("links.lanes", &links->lanes, 1, 64);
  reader.rate("links.lane_gb_s", &links->lane_gb_s);
  reader.time("links.latency_ns", &links->latency_ps);
  reader.whole("links.mtu_bytes", &links->mtu_bytes, 16, 1 << 20);
  reader.whole("links.header_bytes", &links->header_bytes, 0, 4096);
  reader.whole("links.buffer_bytes", &links->buffer_bytes, 0, kMostBytes);
}

void read_interfaces(MachineReader& reader, InterfaceCosts* interfaces) {
  reader.whole("interfaces.count", &interfaces->count, 1, 256);
  reader.rate("interfaces.gb_s", &interfaces->gb_s);
  reader.time("interfaces.gap_ns", &interfaces->gap_ps);
  reader.time("interfaces.command_ns", &interfaces->command_ps);
  reader.time("interfaces.dma_read_ns", &interfaces->dma_read_ps);
  reader.time("interfaces.dma_write_ns", &interfaces->dma_write_ps);
  reader.time("interfaces.atomic_ns", &interfaces->atomic_ps);
  reader.time("interfaces.send_ns", &interfaces->send_ps);
  reader.time("interfaces.receive_ns", &interfaces->receive_ps);
  reader.time("interfaces.request_ns", &interfaces->request_ps);
  reader.time("interfaces.notice_ns", &interfaces->notice_ps);
  reader.time("interfaces.gate_ns", &interfaces->gate_ps);
}

void read_processor(MachineReader& reader, ProcessorCosts* processor) {
  reader.time("processor.put_ns", &processor->put_ps);
  reader.time("processor.get_ns", &processor->get_ps);
  reader.time("processor.atomic_ns", &processor->atomic_ps);
  reader.time("processor.barrier_ns", &processor->barrier_ps);
  reader.time("processor.poll_ns", &processor->poll_ps);
  reader.time("processor.empty_poll_ns", &processor->empty_poll_ps);
  reader.time("processor.look_ns", &processor->look_ps);
}

void read_limits(MachineReader& reader, MachineLimits* limits) {
  reader.whole("limits.queues_per_interface", &limits->queues_per_interface, 0, kMostCount);
  reader.whole("limits.virtual_queues_per_queue", &limits->virtual_queues_per_queue, 0, kMostCount);
  reader.whole("limits.gates_per_interface", &limits->gates_per_interface, 0, kMostCount);
  reader.whole("limits.inline_bytes", &limits->inline_bytes, 0, 4096);
  reader.whole("limits.most_transfer_bytes", &limits->most_transfer_bytes, 0, kMostBytes);
}

/// What single values cannot show. @return what is wrong; empty if nothing
std::string contradiction(const Machine& machine) {
  const LinkCosts& links = machine.links;
  if (links.buffer_bytes != 0 && links.buffer_bytes < links.mtu_bytes + links.header_bytes)
    return "links.buffer_bytes: " + std::to_string(links.buffer_bytes) +
           " holds no packet of mtu_bytes and header_bytes";
  if (machine.topology.switch_ports % 2 != 0)
    return "topology.switch_ports: an odd number has no half up and half down";
  return {};
}

}  // namespace

namespace {

/// Finds keys that stand twice in one object, of which the parser would keep the last, and what is nested so deeply
/// that no stack would hold who puts it into words.
class FormFinder {
 public:
  explicit FormFinder(const std::string& text) : text_(text), stream_(text) {}

  /// @param what  the first such key with its line; empty: there is none
  Json parse(std::string* what) {
    return Json::parse(stream_, [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth > kMostDepth) {
        if (what->empty()) *what = path() + ": too many objects and lists in each other, in line " + line();
        return false;
      }
      if (event == Json::parse_event_t::object_start) objects_.emplace_back();
      if (event == Json::parse_event_t::object_end) objects_.pop_back();
      if (event == Json::parse_event_t::key && !note(parsed.get<std::string>()) && what->empty())
        *what = path() + ": it stands there twice, again in line " + line();
      return true;
    });
  }

 private:
  static constexpr int kMostDepth = 8;

  struct Object {
    std::set<std::string> keys;
    std::string last;
  };

  /// @return whether it is new
  bool note(const std::string& key) {
    objects_.back().last = key;
    return objects_.back().keys.insert(key).second;
  }

  /// Of the key that has been read last.
  std::string path() const {
    std::string path;
    for (const Object& object : objects_) path += (path.empty() ? "" : ".") + object.last;
    return path;
  }

  std::string line() {
    const auto at = stream_.tellg();
    const auto read = at < 0 ? static_cast<std::ptrdiff_t>(text_.size()) : static_cast<std::ptrdiff_t>(at);
    return std::to_string(1 + std::count(text_.begin(), text_.begin() + read, '\n'));
  }

  const std::string& text_;
  std::istringstream stream_;
  std::vector<Object> objects_;
};

}  // namespace

std::optional<Machine> parse_machine(const std::string& text, const std::string& file, std::string* why) {
  Json root;
  std::string form;
  try {
    root = FormFinder(text).parse(&form);
  } catch (const Json::exception& error) {
    *why = file + ": " + error.what();
    return std::nullopt;
  }
  if (!form.empty()) {
    *why = file + ": " + form;
    return std::nullopt;
  }
  if (!root.is_object()) {
    *why = file + ": it is not an object";
    return std::nullopt;
  }
  MachineReader reader(root, file);
  Machine machine;
  std::uint32_t format = 0;
  reader.count("format", &format, kFormat, kFormat);
  machine.name = reader.text("name");
  machine.about = reader.text("about");
  read_topology(reader, &machine.topology);
  read_links(reader, &machine.links);
  reader.rate("node.injection_gb_s", &machine.node.injection_gb_s);
  read_interfaces(reader, &machine.interfaces);
  read_processor(reader, &machine.processor);
  read_limits(reader, &machine.limits);
  reader.check_rest(&machine.sources);
  *why = reader.problem();
  if (why->empty()) {
    const std::string wrong = contradiction(machine);
    if (!wrong.empty()) *why = file + ": " + wrong;
  }
  if (!why->empty()) return std::nullopt;
  return machine;
}

std::filesystem::path machine_directory() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "share" / "portofu" / "machines";
}

namespace {

/// What comes with Portofu, for whoever has asked for something else.
std::string machines_text() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(machine_directory(), error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "; there are " : ", ") + name;
  return text;
}

}  // namespace

std::optional<Machine> load_machine(const std::string& name, std::string* why) {
  const bool is_path = name.ends_with(".json");
  const std::string path = is_path ? name : (machine_directory() / (name + ".json")).string();
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::fifo || kind == std::filesystem::file_type::character) {
    *why = path + ": it is no file, but a pipe or a device, of which nobody knows whether it ends";
    return std::nullopt;
  }
  std::ifstream file(path);
  if (!file || (!is_path && name.find('/') != std::string::npos)) {
    *why = "there is no machine " + name + ": no file " + path + machines_text();
    return std::nullopt;
  }
  std::ostringstream text;
  if (!(text << file.rdbuf())) {  // A directory, too, is opened.
    *why = path + ": it cannot be read, or is empty";
    return std::nullopt;
  }
  return parse_machine(text.str(), path, why);
}

}  // namespace portofu::sim
