#include "lib/tools/ptl_run/host_list.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <sstream>

#include "lib/tools/ptl_run/job.h"

namespace portofu::tools {
namespace {

/// Names go into a command line, and must not be taken for options of the agent.
bool is_host_name(const std::string& name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' || c == '@';
  };
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, allowed);
}

/// Reads "NAME[:COUNT]". @return false if it is something else
bool parse_host(const std::string& text, JobHost* host) {
  const std::size_t colon = text.find(':');
  host->name = text.substr(0, colon);
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, host->count);
    if (error != std::errc() || stop != end || host->count < 1 || host->count > kMaxRankCount) return false;
  }
  return is_host_name(host->name);
}

bool is_known(const std::vector<JobHost>& hosts, const std::string& name) {
  return std::ranges::count(hosts, name, &JobHost::name) != 0;
}

constexpr const char* kForm = " is not a host, or HOST:COUNT with a count of 1 to ";

}  // namespace

std::optional<std::vector<JobHost>> parse_host_list(const std::string& text, std::string* why) {
  std::vector<JobHost> hosts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    JobHost host;
    if (!parse_host(part, &host)) {
      *why = "'" + part + "'" + kForm + std::to_string(kMaxRankCount);
      return std::nullopt;
    }
    if (is_known(hosts, host.name)) {
      *why = "the host " + host.name + " is named for the second time";
      return std::nullopt;
    }
    hosts.push_back(host);
    at = end + 1;
  }
  return hosts;
}

std::optional<std::vector<JobHost>> parse_host_lines(const std::string& text, std::string* why) {
  std::vector<JobHost> hosts;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    std::string coordinates;
    std::string more;
    if (!(words >> name)) continue;
    words >> coordinates >> more;
    const std::string where = "line " + std::to_string(number) + ": ";
    JobHost host;
    if (!parse_host(name, &host)) {
      *why = where + "'" + name + "'" + kForm + std::to_string(kMaxRankCount);
    } else if (!coordinates.empty() && !(host.at = parse_coordinates(coordinates))) {
      *why = where + "'" + coordinates + "' are not coordinates X,Y,Z,A,B,C";
    } else if (!more.empty()) {
      *why = where + "'" + more + "' is more than a host and its coordinates";
    } else if (is_known(hosts, host.name)) {
      *why = where + "the host " + host.name + " is named for the second time";
    } else {
      hosts.push_back(host);
      continue;
    }
    return std::nullopt;
  }
  if (!hosts.empty()) return hosts;
  *why = "it names no host";
  return std::nullopt;
}

std::optional<std::vector<JobHost>> read_hosts(const std::string& given, std::string* why) {
  if (given.find('/') == std::string::npos) return parse_host_list(given, why);
  std::ifstream file(given);
  std::stringstream text;
  std::optional<std::vector<JobHost>> hosts;
  if (!file || !(text << file.rdbuf())) {
    *why = "it cannot be read, or is empty";
  } else {
    hosts = parse_host_lines(text.str(), why);
  }
  if (!hosts) *why = given + ": " + *why;
  return hosts;
}

bool place_ranks(std::vector<JobHost>* hosts, int wanted, std::string* why) {
  const bool counted = std::ranges::any_of(*hosts, [](const JobHost& host) { return host.count != 0; });
  const int host_count = static_cast<int>(hosts->size());
  for (int i = 0; i < host_count; ++i) {
    int& count = (*hosts)[static_cast<std::size_t>(i)].count;
    if (!counted && wanted > host_count) count = wanted / host_count + (i < wanted % host_count ? 1 : 0);
    count = std::max(count, 1);
  }
  const int places =
      std::accumulate(hosts->begin(), hosts->end(), 0, [](int sum, const JobHost& host) { return sum + host.count; });
  if (wanted > places || places > kMaxRankCount) {
    *why = "the hosts have places for " + std::to_string(places) + " ranks; wanted are " + std::to_string(wanted) +
           ", and " + std::to_string(kMaxRankCount) + " are possible";
    return wanted != 0 && wanted <= kMaxRankCount && wanted <= places;
  }
  int left = wanted != 0 ? wanted : places;
  for (JobHost& host : *hosts) {
    host.count = std::min(host.count, left);
    left -= host.count;
  }
  std::erase_if(*hosts, [](const JobHost& host) { return host.count == 0; });
  return true;
}

}  // namespace portofu::tools
