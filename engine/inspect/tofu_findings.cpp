// What uTofu waits for: sessions, gates, queues that are full, owners that nobody knows.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/inspect/job_view.h"
#include "engine/observe/hex_text.h"

namespace portofu {
namespace {

/// The process that has a VCQ. @return {0, 0} if none was seen
ProcessId owner_of_vcq(const JobView& job, std::uint64_t id) {
  for (const ProcessPicture& process : job.processes()) {
    const auto is_it = [id](const VcqPicture& vcq) { return with_own_path(vcq.id) == with_own_path(id); };
    if (std::ranges::any_of(process.core.vcqs, is_it)) return process.id();
  }
  return {};
}

const char* failure_text(const FailedCommunication& failed) {
  switch (failed.fail) {
    case NiFail::kBadStadd: return " lies in no registered memory";
    case NiFail::kBadLength: return " lies behind the end of its registered memory";
    case NiFail::kSegv: return " is in memory that cannot be used so; is it registered read-only?";
    default: return "";
  }
}

/// Only its initiator is told that a communication failed, and it may not have looked.
void judge_failure(const JobView& job, const ProcessPicture& process, const VcqPicture& vcq,
                   std::vector<Finding>* findings) {
  const FailedCommunication& failed = vcq.last_failed;
  if (failed.fail == NiFail::kOk || !job.anybody_waits()) return;
  Finding finding;
  finding.kind = FindingKind::kCommunicationFailed;
  finding.where = process.id();
  finding.object = vcq_name(vcq.id);
  finding.other = owner_of_vcq(job, failed.vcq_id);
  const bool is_known = finding.other != ProcessId{};
  finding.sentence = "a communication from " + finding.object + " of " + job.name(process.id()) + " to " +
                     vcq_name(failed.vcq_id) + (is_known ? " of " + job.name(finding.other) : "") + " failed " +
                     ago_text(failed.at_ns) + ": ";
  if (failed.fail == NiFail::kUndeliverable) {
    finding.sentence += is_known ? "it could not be reached" : "no process here has that VCQ";
  } else {
    finding.sentence += std::string("its ") + (failed.remote ? "remote" : "local") + " range, which ends at STADD " +
                        hex_text(failed.stadd) + "," + failure_text(failed);
  }
  findings->push_back(std::move(finding));
}

/// The program looks again and again, and not here.
void judge_unread(const JobView& job, const ProcessPicture& process, const VcqPicture& vcq,
                  std::vector<Finding>* findings) {
  if (vcq.mrq_unread == 0 || !process.polls) return;
  Finding finding;
  finding.kind = FindingKind::kNoticesUnread;
  finding.where = process.id();
  finding.object = vcq_name(vcq.id);
  finding.lacks = vcq.mrq_unread;
  finding.progress = vcq.mrq_progress;
  finding.sentence = job.name(process.id()) + " polls, and does not read the MRQ of " + finding.object +
                     ", where notices wait: " + std::to_string(vcq.mrq_unread);
  findings->push_back(std::move(finding));
}

/// Descriptors that nothing starts while somebody waits.
void judge_delayed(const JobView& job, const ProcessPicture& process, const VcqPicture& vcq,
                   std::vector<Finding>* findings) {
  if (vcq.delayed == 0 || !job.anybody_waits()) return;
  Finding finding;
  finding.kind = FindingKind::kStartDelayed;
  finding.where = process.id();
  finding.object = vcq_name(vcq.id);
  finding.lacks = vcq.delayed;
  finding.progress = vcq.tcq_progress;
  finding.sentence = "descriptors of " + finding.object + " of " + job.name(process.id()) +
                     " that UTOFU_ONESIDED_FLAG_DELAY_START holds back: " + std::to_string(vcq.delayed) +
                     "; one without the flag, or utofu_post_toq, starts them";
  findings->push_back(std::move(finding));
}

/// "; VCQ 0x2 of rank 1, which is not in session mode, has got steps: 1, the last of rank 0".
std::string astray_text(const JobView& job) {
  std::string text;
  for (const ProcessPicture& process : job.processes()) {
    for (const VcqPicture& vcq : process.core.vcqs) {
      if (vcq.astray_steps == 0) continue;
      text += "; " + vcq_name(vcq.id) + " of " + job.name(process.id()) +
              ", which is not in session mode, has got steps: " + std::to_string(vcq.astray_steps) + ", the last of " +
              job.name(vcq.astray_from);
    }
  }
  return text;
}

void judge_vcq(const JobView& job, const ProcessPicture& process, const VcqPicture& vcq,
               std::vector<Finding>* findings) {
  const std::string name = vcq_name(vcq.id) + " of " + job.name(process.id());
  if (!vcq.waiting.items.empty() && job.anybody_waits()) {
    const std::uint64_t threshold = vcq.waiting.items.front().threshold;
    const std::uint64_t lacks = threshold > vcq.steps ? threshold - vcq.steps : 0;
    findings->push_back({FindingKind::kSessionLacks,
                         process.id(),
                         vcq_name(vcq.id),
                         {},
                         0,
                         0,
                         0,
                         lacks,
                         "descriptors of " + name + " that wait in session mode: " + std::to_string(vcq.waiting.size) +
                             "; steps that the next lacks: " + std::to_string(lacks) +
                             ", which puts with session progress steps (SPS) bring" + astray_text(job),
                         vcq.steps});
  }
  const auto judge_queue = [&](const char* queue, std::uint64_t unread, std::uint64_t entries, std::uint64_t progress) {
    if (entries == 0 || unread < entries) return;
    findings->push_back({FindingKind::kQueueFull,
                         process.id(),
                         queue + (" of " + vcq_name(vcq.id)),
                         {},
                         0,
                         0,
                         0,
                         0,
                         std::string("the ") + queue + " of " + name + " is full: " + std::to_string(unread) +
                             " entries are not read; utofu_poll_" + (queue[0] == 'T' ? "tcq" : "mrq") + " makes room",
                         progress});
  };
  judge_queue("TCQ", vcq.tcq_unread, vcq.tcq_entries, vcq.tcq_progress);
  judge_queue("MRQ", vcq.mrq_unread, vcq.mrq_entries, vcq.mrq_progress);
}

/// A loop that looks at TCQs and MRQs, where nothing is. One that looks at several waits for any of them.
class QueueLoop {
 public:
  QueueLoop(const JobView& job, const ProcessPicture& process) : job_(job), process_(process) {
    for (const PollPicture& poll : process.core.polls) {
      const bool is_tcq = poll.seen.kind == WaitKind::kTcq;
      if (!poll.goes_on || (!is_tcq && poll.seen.kind != WaitKind::kMrq)) continue;
      if (is_tcq && is_held_back(poll.seen.object)) continue;  // That is told.
      std::vector<std::uint64_t>& vcqs = is_tcq ? tcqs_ : mrqs_;
      vcqs.push_back(poll.seen.object);
    }
    std::ranges::sort(tcqs_);
    std::ranges::sort(mrqs_);
    is_several_ = tcqs_.size() > 1 || mrqs_.size() > 1 || (!tcqs_.empty() && !mrqs_.empty() && tcqs_ != mrqs_);
    for (const VcqPicture& vcq : process.core.vcqs) {
      if (is_several_ || std::ranges::find(tcqs_, vcq.id) != tcqs_.end()) progress_ += vcq.tcq_progress;
      if (is_several_ || std::ranges::find(mrqs_, vcq.id) != mrqs_.end()) progress_ += vcq.mrq_progress;
    }
  }

  void judge(std::vector<Finding>* findings) const {
    if ((tcqs_.empty() && mrqs_.empty()) || is_told_otherwise(*findings)) return;
    const std::vector<std::uint64_t>& first = mrqs_.empty() ? tcqs_ : mrqs_;
    Finding finding;
    finding.kind = mrqs_.empty() ? FindingKind::kNoAnswerDue : FindingKind::kEventLacks;
    finding.where = process_.id();
    const std::string name = (mrqs_.empty() ? "TCQ of " : "MRQ of ") + vcq_name(first.front());
    finding.object = is_several_ ? "queues of its VCQs" : name;
    finding.progress = progress_;
    finding.sentence = job_.name(process_.id()) + " looks again and again at the " + name + others_text();
    const auto elsewhere = std::ranges::find_if(process_.core.vcqs, [this](const VcqPicture& vcq) {
      return vcq.tcq_unread != 0 && std::ranges::find(tcqs_, vcq.id) == tcqs_.end();
    });
    if (!tcqs_.empty() && elsewhere != process_.core.vcqs.end()) {
      finding.kind = FindingKind::kNoticesUnread;
      finding.progress += elsewhere->tcq_progress;
      finding.sentence += ", where nothing is to come, and not at the TCQ of " + vcq_name(elsewhere->id) +
                          ", where entries wait: " + std::to_string(elsewhere->tcq_unread);
    } else {
      finding.sentence += cause_text();
    }
    findings->push_back(std::move(finding));
  }

 private:
  bool is_held_back(std::uint64_t id) const {
    return std::ranges::any_of(process_.core.vcqs, [id](const VcqPicture& vcq) {
      return vcq.id == id && (vcq.delayed != 0 || vcq.waiting.size != 0);
    });
  }

  bool is_told_otherwise(const std::vector<Finding>& findings) const {
    const auto is_due = [](const OperationPicture& operation) { return operation.interface_index == kTofuInterface; };
    if (std::ranges::any_of(process_.core.operations, is_due)) return true;  // Whoever owes the answer is told.
    return std::ranges::any_of(findings, [this](const Finding& finding) {
      const bool failed = finding.kind == FindingKind::kCommunicationFailed && finding.other == process_.id();
      const bool unread = finding.kind == FindingKind::kNoticesUnread && finding.where == process_.id();
      return failed || unread;
    });
  }

  /// ", and at 11 queues more of its VCQs"
  std::string others_text() const {
    const std::size_t others = tcqs_.size() + mrqs_.size() - 1;
    if (others == 0) return "";
    if (mrqs_.size() == 1 && tcqs_ == mrqs_) return ", and at its TCQ";
    return ", and at " + std::to_string(others) + (others == 1 ? " queue" : " queues") + " more of its VCQs";
  }

  std::string cause_text() const {
    if (mrqs_.empty())
      return ", where nothing is to come: no communication of it is under way; did it ask for "
             "UTOFU_ONESIDED_FLAG_TCQ_NOTICE?";
    return std::string(", where no notice is: ") + (tcqs_.empty() ? "" : "no communication of it is under way, and ") +
           "only puts with UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, and its own communications with "
           "UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, bring one";
  }

  const JobView& job_;
  const ProcessPicture& process_;
  std::vector<std::uint64_t> tcqs_;  ///< VCQs.
  std::vector<std::uint64_t> mrqs_;
  /// Onlookers see some of them only, and not the same ones at each look (PolledObjects), so all of the process count.
  bool is_several_ = false;
  std::uint64_t progress_ = 0;
};

/// What a gate waits for.
class GateInputs {
 public:
  explicit GateInputs(const GatePicture& gate)
      : lacks_signal(gate.local_source != BarrierGate::kNoGate && !gate.has_signal),
        lacks_packet(gate.remote_source != BarrierGate::kNoGate && !gate.has_packet),
        // Its own start/end gate was started, or one of its inputs has come.
        is_told((gate.started || gate.has_signal || gate.has_packet) && (lacks_signal || lacks_packet)) {}

  const bool lacks_signal;
  const bool lacks_packet;
  const bool is_told;
};

/// ": rank 2 has not begun the barrier", if that is why a start/end gate gives nothing.
std::string not_begun_text(const JobView& job, ProcessId owner, const GatePicture* gate) {
  if (gate == nullptr || !gate->is_start || gate->started) return "";
  return ": " + job.name(owner) + " has not begun the barrier or reduction";
}

/// Why no packet comes of a gate of another process.
/// @param source  nullptr: it is not known
std::string no_packet_text(const JobView& job, ProcessId owner, const GatePicture* source, const GatePicture& gate) {
  if (source != nullptr && source->remote_target == BarrierGate::kNoGate) return ", which sends no packets";
  if (source == nullptr || with_own_path(source->remote_target) == with_own_path(gate.id))
    return not_begun_text(job, owner, source);
  return ", which sends its packets to " + gate_name(source->remote_target);
}

void judge_gate(const JobView& job, const ProcessPicture& process, const GatePicture& gate,
                std::vector<Finding>* findings) {
  const GateInputs inputs(gate);
  if (!inputs.is_told) return;
  const GatePicture* const local = process.find_gate(gate.local_source);
  // A gate of this process that lacks its packet is told itself.
  if (!inputs.lacks_packet && local != nullptr && local != &gate && GateInputs(*local).is_told) return;
  Finding finding;
  finding.kind = FindingKind::kGateLacks;
  finding.where = process.id();
  finding.object = gate_name(gate.id);
  finding.lacks = static_cast<std::uint64_t>(inputs.lacks_signal) + static_cast<std::uint64_t>(inputs.lacks_packet);
  finding.progress = gate.rounds_passed;
  finding.sentence = finding.object + " of " + job.name(process.id()) + " lacks ";
  if (inputs.lacks_packet) {
    finding.other = job.owner_of_gate(gate.remote_source);
    const bool is_known = finding.other != ProcessId{};
    finding.sentence += "the packet of " + gate_name(gate.remote_source) +
                        (is_known ? " of " + job.name(finding.other) : ", which no process here has");
    const ProcessPicture* const other = job.find(finding.other);
    const GatePicture* const source = other != nullptr ? other->find_gate(gate.remote_source) : nullptr;
    finding.sentence += gate.holds_packets ? ", which has to answer whether those that came are of this circuit"
                                           : no_packet_text(job, finding.other, source, gate);
  }
  if (inputs.lacks_signal) {
    finding.sentence += (inputs.lacks_packet ? " and the signal of " : "the signal of ") + gate_name(gate.local_source);
    finding.sentence += not_begun_text(job, process.id(), local);
  }
  finding.sentence += "; " + std::to_string(gate.rounds_passed) + " rounds have passed";
  findings->push_back(std::move(finding));
}

}  // namespace

void find_tofu(const JobView& job, std::vector<Finding>* findings) {
  for (const ProcessPicture& process : job.processes()) {
    for (const VcqPicture& vcq : process.core.vcqs) {
      judge_vcq(job, process, vcq, findings);
      judge_failure(job, process, vcq, findings);
      judge_unread(job, process, vcq, findings);
      judge_delayed(job, process, vcq, findings);
    }
    for (const GatePicture& gate : process.core.gates) judge_gate(job, process, gate, findings);
    for (const OwnerlessPicture& ownerless : process.core.ownerless) {
      const bool is_gate = is_kind(ownerless.key, TofuIdKind::kVbg);
      const std::string name = is_gate ? gate_name(ownerless.key) : "control queue " + hex_text(ownerless.key);
      findings->push_back({FindingKind::kOwnerUnknown,
                           process.id(),
                           name,
                           {},
                           0,
                           0,
                           0,
                           ownerless.requests,
                           "requests of " + job.name(process.id()) + " that wait for " + name +
                               ", which no process is known to have, or whose former owner owes answers: " +
                               std::to_string(ownerless.requests)});
    }
  }
  for (const ProcessPicture& process : job.processes()) QueueLoop(job, process).judge(findings);
}

}  // namespace portofu
