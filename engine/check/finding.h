#pragma once
// What the checker tells of a program: what it says, and where it says it. One log an engine; used on duty.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace portofu {

/// Something in a program that works here by luck, and need not work on a machine.
struct CheckFinding {
  const char* kind;        ///< For programs: a word that stays what it is.
  const char* call;        ///< The call of the application that it is about.
  std::string object;      ///< The object that it is about; with `kind` it tells findings apart.
  const char* section;     ///< The spec, and the section that gives no guarantee.
  std::string sentence;    ///< For people: what has happened.
  const char* advice;      ///< For people: what to do.
  std::int64_t byte = -1;  ///< Offset of the byte that it is about; -1: none.
  int bit = -1;            ///< A bit of that byte, from 0; -1: none.
};

/// PORTOFU_CHECK, read.
bool is_check_wanted(const std::string& setting);

/// One line on standard error for each finding, and one of JSON in a file: at once, by one write each, so that lines of
/// several processes do not mix. The same finding at the same object is counted, and told once more at the end.
class FindingLog {
 public:
  /// @param setting  PORTOFU_CHECK: "1" is standard error alone, anything else the file, too, which is appended to
  /// @param rank     of the launcher; -1: it has told none
  FindingLog(const std::string& setting, std::int64_t rank);
  ~FindingLog();
  FindingLog(const FindingLog&) = delete;
  FindingLog& operator=(const FindingLog&) = delete;

  void tell(const CheckFinding& finding);

  /// Different findings so far.
  std::size_t count() const { return told_.size(); }

 private:
  struct Told {
    const char* call;
    std::uint64_t times;
  };
  void write_json(const std::string& line) const;

  std::int64_t rank_;
  int fd_ = -1;                                               ///< -1: no file.
  std::map<std::pair<std::string, std::string>, Told> told_;  ///< By kind and object.
};

/// More findings than this are not told one by one: each would be one more line of thousands.
inline constexpr std::size_t kMostFindings = 1000;

}  // namespace portofu
