#include "engine/check/finding.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/cancellation.h"

namespace portofu {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return result + '"';
}

/// A line that cannot be written is lost: the program goes on.
void write_line(int fd, const std::string& line) {
  const NoCancellation whole;
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

}  // namespace

bool is_check_wanted(const std::string& setting) { return !setting.empty() && setting != "0"; }

FindingLog::FindingLog(const std::string& setting, std::int64_t rank) : rank_(rank) {
  if (!is_check_wanted(setting) || setting == "1") return;
  fd_ = open(setting.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int error = errno;
  static constinit ToldOnce told;
  if (fd_ < 0 && told.is_first())
    log_error("PORTOFU_CHECK=%s: open of it failed: %s; findings go to standard error only", setting.c_str(),
              std::strerror(error));
}

FindingLog::~FindingLog() {
  for (const auto& [key, told] : told_) {
    if (told.times < 2) continue;
    write_json("{\"kind\":" + quoted(key.first) + ",\"call\":" + quoted(told.call) +
               ",\"object\":" + quoted(key.second) + ",\"times\":" + std::to_string(told.times));
  }
  const NoCancellation whole;
  if (fd_ >= 0) close(fd_);
}

/// Completes the object with what all lines have.
void FindingLog::write_json(const std::string& line) const {
  if (fd_ < 0) return;
  write_line(fd_, line + (rank_ >= 0 ? ",\"rank\":" + std::to_string(rank_) : "") +
                      ",\"os_pid\":" + std::to_string(getpid()) + "}\n");
}

void FindingLog::tell(const CheckFinding& finding) {
  const auto [place, is_new] = told_.try_emplace({finding.kind, finding.object}, Told{finding.call, 0});
  ++place->second.times;
  if (!is_new) return;
  if (told_.size() > kMostFindings) {
    told_.erase(place);
    return;
  }
  const std::string who = rank_ >= 0 ? "rank " + std::to_string(rank_) + ": " : "";
  write_line(STDERR_FILENO, "portofu[" + std::to_string(getpid()) + "]: check: " + who + finding.call + ": " +
                                finding.object + ": " + finding.sentence + "; " + finding.advice + " (" +
                                finding.section + ")\n");
  std::string line = "{\"kind\":" + quoted(finding.kind) + ",\"call\":" + quoted(finding.call) +
                     ",\"object\":" + quoted(finding.object) + ",\"section\":" + quoted(finding.section) +
                     ",\"sentence\":" + quoted(finding.sentence) + ",\"advice\":" + quoted(finding.advice);
  if (finding.byte >= 0) line += ",\"byte\":" + std::to_string(finding.byte);
  if (finding.bit >= 0) line += ",\"bit\":" + std::to_string(finding.bit);
  write_json(line);
}

}  // namespace portofu
