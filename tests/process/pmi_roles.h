#pragma once
// What ranks that ptl_run starts do in its tests: a test program that is started with a role plays that role instead of
// running tests. The roles that speak PMI can also be played under another launcher.

#include <gtest/gtest.h>
#include <portals4.h>
#include <signal.h>
#include <unistd.h>
#include <utofu.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/process/child_process.h"

namespace portofu {

inline constexpr const char* kRoleVariable = "PTL_RUN_TEST_ROLE";

inline int environment_number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : -1;
}

/// The program's side of the dialogue.
class PmiClient {
 public:
  const int rank = environment_number("PMI_RANK");
  const int size = environment_number("PMI_SIZE");

  void say(const std::string& text) const {
    if (write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::_Exit(90);
  }

  /// Sends one request and waits for its answer. Ends the process if there is none.
  std::string ask(const std::string& request) const {
    say(request + '\n');
    std::string answer;
    for (char c = 0; c != '\n';) {
      if (read(fd_, &c, 1) != 1) std::_Exit(91);
      if (c != '\n') answer += c;
    }
    return answer;
  }

  /// @return the value of `key` in an answer, "" if it has none
  static std::string field(const std::string& answer, const std::string& key) {
    std::istringstream words(answer);
    for (std::string word; words >> word;) {
      if (word.starts_with(key + '=')) return word.substr(key.size() + 1);
    }
    return "";
  }

  /// Says `init` and learns the name of the space of pairs.
  void begin() {
    if (field(ask("cmd=init pmi_version=1 pmi_subversion=1"), "cmd") != "response_to_init") std::_Exit(92);
    name_ = field(ask("cmd=get_my_kvsname"), "kvsname");
  }
  std::string put(const std::string& key, const std::string& value) const {
    return ask("cmd=put kvsname=" + name_ + " key=" + key + " value=" + value);
  }
  std::string get(const std::string& key) const { return ask("cmd=get kvsname=" + name_ + " key=" + key); }
  std::string barrier() const { return ask("cmd=barrier_in"); }
  void end() const {
    if (field(ask("cmd=finalize"), "cmd") != "finalize_ack") std::_Exit(93);
  }
  const std::string& name() const { return name_; }

 private:
  int fd_ = environment_number("PMI_FD");
  std::string name_;
};

/// Everything that MPICH-style clients ask. @return 0, or the number of the line of the first wrong answer
inline int play_exchange() {
  PmiClient pmi;
  const auto is = [](const std::string& answer, const std::string& key, const std::string& value) {
    if (PmiClient::field(answer, key) == value) return true;
    std::fprintf(stderr, "expected %s=%s, got '%s'\n", key.c_str(), value.c_str(), answer.c_str());
    return false;
  };
#define CHECK_ANSWER(...) \
  if (!is(__VA_ARGS__)) return __LINE__ % 200
  const std::string init = pmi.ask("cmd=init pmi_version=1 pmi_subversion=1");
  CHECK_ANSWER(init, "cmd", "response_to_init");
  CHECK_ANSWER(init, "rc", "0");
  const std::string maxes = pmi.ask("cmd=get_maxes");
  CHECK_ANSWER(maxes, "cmd", "maxes");
  if (std::atoi(PmiClient::field(maxes, "vallen_max").c_str()) < 256) return 201;
  CHECK_ANSWER(pmi.ask("cmd=get_appnum"), "appnum", "0");
  CHECK_ANSWER(pmi.ask("cmd=get_universe_size"), "cmd", "universe_size");
  pmi.begin();
  if (pmi.name().empty()) return 202;
  CHECK_ANSWER(pmi.get("nobody-has-put-this"), "cmd", "get_result");
  for (int round = 0; round < 20; ++round) {
    const auto key = [&](int rank) { return "key-" + std::to_string(round) + "-" + std::to_string(rank); };
    const auto value = [&](int rank) { return std::string(static_cast<std::size_t>(1 + 40 * rank + round), 'v'); };
    CHECK_ANSWER(pmi.put(key(pmi.rank), value(pmi.rank)), "rc", "0");
    CHECK_ANSWER(pmi.barrier(), "cmd", "barrier_out");
    for (int rank = 0; rank < pmi.size; ++rank) CHECK_ANSWER(pmi.get(key(rank)), "value", value(rank));
    CHECK_ANSWER(pmi.barrier(), "cmd", "barrier_out");
  }
#undef CHECK_ANSWER
  pmi.end();
  return 0;
}

/// What only ptl_run promises.
inline int play_refusals() {
  PmiClient pmi;
  pmi.begin();
  const auto rc = [](const std::string& answer) { return PmiClient::field(answer, "rc"); };
  const std::string own = "key-" + std::to_string(pmi.rank);
  if (rc(pmi.put(own, "1")) != "0" || rc(pmi.put(own, "2")) != "-1") return 1;
  if (PmiClient::field(pmi.get(own), "value") != "1") return 2;
  if (rc(pmi.get("absent")) != "-1") return 3;
  if (rc(pmi.ask("cmd=get kvsname=another key=" + own)) != "-1") return 4;
  if (rc(pmi.put("", "empty")) != "-1" || rc(pmi.put(std::string(64, 'k'), "long")) != "-1") return 5;
  if (rc(pmi.put("long", std::string(1024, 'v'))) != "-1") return 6;
  if (rc(pmi.ask("cmd=publish_name service=a port=b")) != "-1") return 7;
  if (PmiClient::field(pmi.get("PMI_process_mapping"), "value") != "(vector,(0,1," + std::to_string(pmi.size) + "))")
    return 8;
  int pairs = 0;
  for (std::string index = "0"; !index.empty() && pairs < 1000; ++pairs) {
    const std::string answer = pmi.ask("cmd=getbyidx kvsname=" + pmi.name() + " idx=" + index);
    index = PmiClient::field(answer, "nextidx");
  }
  if (pairs < 3) return 9;
  pmi.barrier();
  pmi.end();
  return 0;
}

/// Finds the others by PMI and puts to the next one.
inline int play_portals() {
  PmiClient pmi;
  pmi.begin();
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_process_t self{};
  std::uint64_t received = 0;
  std::uint64_t sent = 1000u + static_cast<unsigned>(pmi.rank);
  if (PtlInit() != PTL_OK) return 1;
  if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) != PTL_OK)
    return 2;
  if (PtlGetPhysId(ni, &self) != PTL_OK || PtlCTAlloc(ni, &ct) != PTL_OK) return 3;
  if (PtlPTAlloc(ni, 0, PTL_EQ_NONE, 4, &pt) != PTL_OK) return 4;
  const ptl_le_t le{&received, sizeof received, ct, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  if (PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return 5;
  const ptl_md_t described{&sent, sizeof sent, 0, PTL_EQ_NONE, PTL_CT_NONE};
  if (PtlMDBind(ni, &described, &md) != PTL_OK) return 6;
  pmi.put("id-" + std::to_string(pmi.rank), std::to_string(self.phys.nid) + ':' + std::to_string(self.phys.pid));
  pmi.barrier();
  const std::string next = PmiClient::field(pmi.get("id-" + std::to_string((pmi.rank + 1) % pmi.size)), "value");
  ptl_process_t target{};
  if (std::sscanf(next.c_str(), "%u:%u", &target.phys.nid, &target.phys.pid) != 2) return 7;
  if (PtlPut(md, 0, sizeof sent, PTL_NO_ACK_REQ, target, pt, 0, 0, nullptr, 0) != PTL_OK) return 8;
  ptl_ct_event_t value{};
  if (PtlCTWait(ct, 1, &value) != PTL_OK || value.failure != 0) return 9;
  if (received != 1000u + static_cast<unsigned>((pmi.rank + pmi.size - 1) % pmi.size)) return 10;
  pmi.barrier();
  pmi.end();
  PtlFini();
  return 0;
}

/// The same with uTofu: a put whose notice arrives. Prints its coordinates.
inline int play_utofu() {
  PmiClient pmi;
  pmi.begin();
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t vcq_id = 0;
  utofu_stadd_t stadd = 0;
  alignas(256) std::uint64_t memory[32] = {};
  std::uint8_t at[6] = {};
  if (utofu_query_my_coords(at) != UTOFU_SUCCESS) return 1;
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS || utofu_query_vcq_id(vcq, &vcq_id) != UTOFU_SUCCESS) return 2;
  if (utofu_reg_mem(vcq, memory, sizeof memory, 0, &stadd) != UTOFU_SUCCESS) return 3;
  pmi.put("id-" + std::to_string(pmi.rank), std::to_string(vcq_id) + ':' + std::to_string(stadd));
  pmi.barrier();
  const std::string next = PmiClient::field(pmi.get("id-" + std::to_string((pmi.rank + 1) % pmi.size)), "value");
  unsigned long target = 0;
  unsigned long there = 0;
  if (std::sscanf(next.c_str(), "%lu:%lu", &target, &there) != 2) return 4;
  const auto word = static_cast<std::uint64_t>(1000 + pmi.rank);
  if (utofu_put_piggyback8(vcq, target, word, there, 8, 0, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr) !=
      UTOFU_SUCCESS) {
    return 5;
  }
  utofu_mrq_notice notice{};
  int rc = UTOFU_ERR_NOT_FOUND;
  if (!eventually([&] { return (rc = utofu_poll_mrq(vcq, 0, &notice)) != UTOFU_ERR_NOT_FOUND; })) return 6;
  if (rc != UTOFU_SUCCESS || memory[0] != static_cast<std::uint64_t>(1000 + (pmi.rank + pmi.size - 1) % pmi.size))
    return 7;
  std::printf("rank %d at %d,%d,%d,%d,%d,%d\n", pmi.rank, at[0], at[1], at[2], at[3], at[4], at[5]);
  std::fflush(stdout);
  pmi.barrier();
  pmi.end();
  return 0;
}

/// Reads standard input to its end. @return number of bytes
inline std::size_t input_bytes() {
  std::size_t bytes = 0;
  char buffer[4096];
  for (ssize_t got; (got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0;) bytes += static_cast<std::size_t>(got);
  return bytes;
}

[[noreturn]] inline void sleep_for_ever() {
  for (;;) pause();
}

inline void print_ready() {
  const std::string line = "ready " + std::to_string(getpid()) + '\n';
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(94);
}

inline void exit_well(int) { std::_Exit(0); }

inline int play(const std::string& role) {
  const int rank = environment_number("PMI_RANK");
  if (role == "exchange") return play_exchange();
  if (role == "refusals") return play_refusals();
  if (role == "portals") return play_portals();
  if (role == "utofu") return play_utofu();
  if (role == "input") {
    std::printf("rank %d read %zu\n", rank, input_bytes());
    std::fflush(stdout);
    return 0;
  }
  if (role == "sleep" || role == "sleep_but_0_exits_3") {
    print_ready();
    if (rank == 0 && role != "sleep") return 3;
    sleep_for_ever();
  }
  if (role == "exit_at_usr1" || role == "exit_at_term") {
    signal(role == "exit_at_term" ? SIGTERM : SIGUSR1, exit_well);
    print_ready();
    sleep_for_ever();
  }
  if (role == "deaf") {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    print_ready();
    sleep_for_ever();
  }
  if (role == "crash") {
    if (rank == 2) std::abort();
    sleep_for_ever();
  }
  PmiClient pmi;
  pmi.begin();
  if (role == "leave_before_barrier" && rank == 1) return 0;
  if (role == "finalize_before_barrier" && rank == 1) {
    pmi.end();
    sleep_for_ever();
  }
  if (role == "abort" && rank == 2) {
    pmi.say("cmd=abort exitcode=7\n");
    sleep_for_ever();
  }
  if (role == "stubborn") {
    signal(SIGTERM, SIG_IGN);
    print_ready();
    pmi.barrier();
    if (rank == 1) return 5;
    sleep_for_ever();
  }
  if (role == "unknown" && rank == 1) pmi.say("cmd=make_coffee\n");
  if (role == "endless" && rank == 1) pmi.say(std::string(100'000, 'x'));
  pmi.barrier();
  return 0;
}

/// If a launcher has started this program as a rank of a job, it plays the role that is asked for, and ends.
template <class Play>
void play_if_asked(Play play_role) {
  const char* role = std::getenv(kRoleVariable);
  if (role != nullptr && *role != '\0' && std::getenv("PMI_RANK") != nullptr) std::_Exit(play_role(role));
}

/// main of such a program.
template <class Play>
int play_or_test(int argc, char** argv, Play play_role) {
  play_if_asked(play_role);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace portofu
