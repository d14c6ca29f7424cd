#pragma once
// How ranks of a job find each other: the client's side of PMI-1, as far as these programs need it.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace portofu::machines {

/// Ends the program if the launcher does not answer.
class Pmi {
 public:
  const std::uint32_t rank = number("PMI_RANK");
  const std::uint32_t size = number("PMI_SIZE");

  Pmi() {
    ask("cmd=init pmi_version=1 pmi_subversion=1");
    space_ = field(ask("cmd=get_my_kvsname"), "kvsname");
  }
  ~Pmi() { ask("cmd=finalize"); }
  Pmi(const Pmi&) = delete;
  Pmi& operator=(const Pmi&) = delete;

  /// Tells all others a word, and waits until everybody has told his.
  void tell(const std::string& word) {
    ask("cmd=put kvsname=" + space_ + " key=word-" + std::to_string(rank) + " value=" + word);
    barrier();
  }
  std::string word_of(std::uint32_t other) {
    return field(ask("cmd=get kvsname=" + space_ + " key=word-" + std::to_string(other)), "value");
  }
  void barrier() { ask("cmd=barrier_in"); }

 private:
  static std::uint32_t number(const char* name) {
    const char* text = std::getenv(name);
    if (text != nullptr) return static_cast<std::uint32_t>(std::atoi(text));
    std::fprintf(stderr, "start this program by ptl_sim or ptl_run\n");
    std::exit(2);
  }
  static std::string field(const std::string& answer, const std::string& key) {
    const std::size_t at = answer.find(key + '=');
    if (at == std::string::npos) return "";
    const std::size_t begin = at + key.size() + 1;
    return answer.substr(begin, answer.find_first_of(" \n", begin) - begin);
  }

  std::string ask(const std::string& request) {
    const std::string line = request + '\n';
    std::string answer;
    bool is_good = write(socket_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    for (char c = 0; is_good && c != '\n'; answer += c) is_good = read(socket_, &c, 1) == 1;
    if (!is_good) std::_Exit(3);
    return answer;
  }

  const int socket_ = static_cast<int>(number("PMI_FD"));
  std::string space_;
};

/// Ends the program if something is not as it has to be.
inline void require(bool is_good, const char* what) {
  if (is_good) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

}  // namespace portofu::machines
