// The commands of PMI-1. Spelling of requests and answers: that of MPICH's simple PMI client, which all others follow.

#include "lib/tools/ptl_run/pmi_server.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace portofu::tools {
namespace {

std::string field(const std::map<std::string, std::string, std::less<>>& fields, std::string_view key) {
  const auto found = fields.find(key);
  return found != fields.end() ? found->second : std::string();
}

/// @return `fallback` if the text is not a whole number
int number(const std::string& text, int fallback) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : fallback;
}

PmiOutcome answer(int rank, std::string line) { return {.answers = {{rank, std::move(line) + '\n'}}, .complaint = {}}; }

PmiOutcome end_job(int exit_status, std::string complaint) {
  return {.answers = {}, .ends_job = true, .exit_status = exit_status, .complaint = std::move(complaint)};
}

std::string who(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

const char* pmi_state_name(PmiState state) {
  switch (state) {
    case PmiState::kSilent: return "silent";
    case PmiState::kActive: return "active";
    case PmiState::kAtBarrier: return "at_barrier";
    case PmiState::kFinalized: return "finalized";
    case PmiState::kEnded: return "ended";
  }
  return "unknown";
}

const PmiServer::Command PmiServer::kCommands[] = {
    {"init", &PmiServer::init},
    {"get_maxes", &PmiServer::get_maxes},
    {"get_appnum", &PmiServer::get_appnum},
    {"get_universe_size", &PmiServer::get_universe_size},
    {"get_my_kvsname", &PmiServer::get_my_kvsname},
    {"put", &PmiServer::put},
    {"get", &PmiServer::get},
    {"getbyidx", &PmiServer::get_by_index},
    {"barrier_in", &PmiServer::barrier_in},
    {"finalize", &PmiServer::finalize},
    {"abort", &PmiServer::abort},
    {"publish_name", &PmiServer::publish_name},
    {"unpublish_name", &PmiServer::unpublish_name},
    {"lookup_name", &PmiServer::lookup_name},
};

PmiServer::PmiServer(int size, std::string name)
    : states_(static_cast<std::size_t>(size), PmiState::kSilent), name_(std::move(name)) {
  // MPICH asks which ranks share a node: all of them.
  pairs_["PMI_process_mapping"] = "(vector,(0,1," + std::to_string(size) + "))";
}

void PmiServer::place_ranks(const std::vector<int>& counts) {
  // Triples of MPICH: first node, number of nodes that follow each other, ranks of each.
  std::string mapping = "(vector";
  for (std::size_t node = 0; node < counts.size();) {
    std::size_t end = node;
    while (end < counts.size() && counts[end] == counts[node]) ++end;
    mapping +=
        ",(" + std::to_string(node) + ',' + std::to_string(end - node) + ',' + std::to_string(counts[node]) + ')';
    node = end;
  }
  pairs_["PMI_process_mapping"] = mapping + ')';
}

PmiOutcome PmiServer::take_line(int rank, std::string_view line) {
  Fields fields;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) fields.emplace(word.substr(0, equals), word.substr(equals + 1));
    at = end + 1;
  }
  const std::string command = field(fields, "cmd");
  for (const Command& known : kCommands) {
    if (command != known.name) continue;
    const PmiState now = state(rank);
    const bool may_begin = now == PmiState::kSilent || now == PmiState::kFinalized;
    const bool awaited = now == PmiState::kActive || (may_begin && command == "init");
    if (!awaited && command != "abort")
      return end_job(1, who(rank) + " says '" + command + "' while it is " + pmi_state_name(now));
    return (this->*known.method)(rank, fields);
  }
  return end_job(1, who(rank) + " says what PMI-1 does not know: '" + std::string(line.substr(0, 80)) + "'");
}

PmiOutcome PmiServer::rank_ended(int rank) {
  states_[static_cast<std::size_t>(rank)] = PmiState::kEnded;
  return check_barrier();
}

PmiOutcome PmiServer::init(int rank, const Fields& fields) {
  states_[static_cast<std::size_t>(rank)] = PmiState::kActive;
  // There is one version of this dialogue; who asks for PMI-2 is told so and decides.
  const bool known = field(fields, "pmi_version") == "1";
  return answer(rank, std::string("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=") + (known ? "0" : "-1"));
}

PmiOutcome PmiServer::get_maxes(int rank, const Fields&) {
  return answer(rank, "cmd=maxes rc=0 kvsname_max=" + std::to_string(kMaxPmiNameBytes) + " keylen_max=" +
                          std::to_string(kMaxPmiKeyBytes) + " vallen_max=" + std::to_string(kMaxPmiValueBytes));
}

PmiOutcome PmiServer::get_appnum(int rank, const Fields&) { return answer(rank, "cmd=appnum rc=0 appnum=0"); }

PmiOutcome PmiServer::get_universe_size(int rank, const Fields&) {
  return answer(rank, "cmd=universe_size rc=0 size=" + std::to_string(states_.size()));
}

PmiOutcome PmiServer::get_my_kvsname(int rank, const Fields&) {
  return answer(rank, "cmd=my_kvsname rc=0 kvsname=" + name_);
}

PmiOutcome PmiServer::put(int rank, const Fields& fields) {
  const std::string key = field(fields, "key");
  const std::string value = field(fields, "value");
  const char* refusal = nullptr;
  if (field(fields, "kvsname") != name_) refusal = "unknown_kvsname";
  if (key.empty() || key.size() >= kMaxPmiKeyBytes) refusal = "bad_key";
  if (value.size() >= kMaxPmiValueBytes) refusal = "bad_value";
  if (refusal == nullptr && pairs_.size() >= kMaxPmiPairCount) refusal = "no_space";
  if (refusal == nullptr && !pairs_.emplace(key, value).second) refusal = "duplicate_key";
  if (refusal != nullptr) return answer(rank, std::string("cmd=put_result rc=-1 msg=") + refusal);
  return answer(rank, "cmd=put_result rc=0 msg=success");
}

PmiOutcome PmiServer::get(int rank, const Fields& fields) {
  const auto found = pairs_.find(field(fields, "key"));
  if (field(fields, "kvsname") != name_ || found == pairs_.end())
    return answer(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown");
  return answer(rank, "cmd=get_result rc=0 msg=success value=" + found->second);
}

PmiOutcome PmiServer::get_by_index(int rank, const Fields& fields) {
  const int index = number(field(fields, "idx"), -1);
  if (field(fields, "kvsname") != name_ || index < 0 || static_cast<std::size_t>(index) >= pairs_.size())
    return answer(rank, "cmd=getbyidx_results rc=-1 reason=no_more_keyvals");
  const auto& [key, value] = *std::next(pairs_.begin(), index);
  return answer(rank,
                "cmd=getbyidx_results rc=0 nextidx=" + std::to_string(index + 1) + " key=" + key + " val=" + value);
}

PmiOutcome PmiServer::barrier_in(int rank, const Fields&) {
  states_[static_cast<std::size_t>(rank)] = PmiState::kAtBarrier;
  return check_barrier();
}

PmiOutcome PmiServer::finalize(int rank, const Fields&) {
  states_[static_cast<std::size_t>(rank)] = PmiState::kFinalized;
  PmiOutcome outcome = check_barrier();
  outcome.answers.push_back({rank, "cmd=finalize_ack rc=0\n"});
  return outcome;
}

PmiOutcome PmiServer::abort(int rank, const Fields& fields) {
  const int status = number(field(fields, "exitcode"), 1) & 0xff;
  return end_job(status != 0 ? status : 1, who(rank) + " has aborted the job");
}

PmiOutcome PmiServer::publish_name(int rank, const Fields&) {
  return answer(rank, "cmd=publish_result rc=-1 info=failed msg=not_supported");
}

PmiOutcome PmiServer::unpublish_name(int rank, const Fields&) {
  return answer(rank, "cmd=unpublish_result rc=-1 info=failed msg=not_supported");
}

PmiOutcome PmiServer::lookup_name(int rank, const Fields&) {
  return answer(rank, "cmd=lookup_result rc=-1 info=failed msg=not_supported");
}

PmiOutcome PmiServer::check_barrier() {
  const auto in_state = [this](PmiState wanted) { return std::find(states_.begin(), states_.end(), wanted); };
  const auto rank_of = [this](auto at) { return static_cast<int>(at - states_.begin()); };
  const auto waiting = in_state(PmiState::kAtBarrier);
  if (waiting == states_.end()) return {};
  for (const PmiState gone : {PmiState::kEnded, PmiState::kFinalized}) {
    const auto missing = in_state(gone);
    if (missing == states_.end()) continue;
    return end_job(1, who(rank_of(waiting)) + " waits at a barrier that " + who(rank_of(missing)) +
                          " can no longer reach, which is " + pmi_state_name(gone));
  }
  const auto is_waiting = [](PmiState state) { return state == PmiState::kAtBarrier; };
  if (!std::all_of(states_.begin(), states_.end(), is_waiting)) return {};
  PmiOutcome outcome;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    states_[rank] = PmiState::kActive;
    outcome.answers.push_back({static_cast<int>(rank), "cmd=barrier_out rc=0\n"});
  }
  return outcome;
}

}  // namespace portofu::tools
