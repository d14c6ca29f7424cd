#pragma once
// A job as ptl_run starts it: ranks learn of each other by PMI-1.

#include <cstdint>
#include <string>

namespace portofu::funi {

class Job {
 public:
  Job() = default;
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Begins the dialogue, if there is a launcher.
  /// @return false if the launcher does not speak PMI-1
  bool begin();
  bool has_launcher() const { return socket_ >= 0; }

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return size_; }

  bool put(const std::string& key, const std::string& value);
  /// @return "" if nobody has put it
  std::string get(const std::string& key);
  /// Waits for all ranks.
  bool barrier();
  void end();

 private:
  /// @return the answer, "" if there is none
  std::string ask(const std::string& request);

  int socket_ = -1;
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::string space_;
};

}  // namespace portofu::funi
