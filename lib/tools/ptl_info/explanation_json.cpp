#include "lib/tools/ptl_info/explanation_json.h"

#include <nlohmann/json.hpp>

#include "lib/tools/ptl_info/explanation_text.h"

namespace portofu::tools {
namespace {

using Json = nlohmann::ordered_json;

template <class Item, class Show>
Json list_of(const std::vector<Item>& items, Show show) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(show(item));
  return list;
}

Json id_of(ProcessId id) { return {{"nid", node_id_text(id.nid)}, {"pid", id.pid}}; }

/// The numbers of the bits that are set.
Json bits_of(std::uint64_t bits) {
  Json list = Json::array();
  for (int bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1) != 0) list.push_back(bit);
  }
  return list;
}

Json entry_of(const EntryPicture& entry) {
  const MatchCriteria& criteria = entry.criteria;
  Json json{{"handle", hex_text(entry.handle)},
            {"match_bits", hex_text(criteria.match_bits)},
            {"ignore_bits", hex_text(criteria.ignore_bits)}};
  if (!criteria.any_nid) json["source_nid_or_rank"] = criteria.match_id.nid;
  if (!criteria.any_pid) json["source_pid"] = criteria.match_id.pid;
  json["start"] = hex_text(entry.start);
  json["length"] = entry.length;
  json["options"] = entry.options;
  json["use_once"] = (entry.options & kEntryUseOnce) != 0;
  json["arriving"] = entry.pending;
  if (entry.ct_handle != 0) json["counter"] = hex_text(entry.ct_handle);
  return json;
}

Json header_of(const HeaderPicture& header) {
  return {{"match_bits", hex_text(header.key.match_bits)},
          {"source_nid_or_rank", header.key.source.nid},
          {"source_pid", header.key.source.pid},
          {"length", header.rlength},
          {"complete", header.complete}};
}

Json portal_of(const PortalPicture& portal) {
  return {{"pt_index", portal.pt_index},
          {"enabled", portal.enabled},
          {"flow_control", portal.flow_control},
          {"event_queue", hex_text(portal.eq_handle)},
          {"moving", portal.priority.moving || portal.overflow.moving || portal.unexpected.moving},
          {"posted", list_of(portal.priority.items, entry_of)},
          {"overflow", list_of(portal.overflow.items, entry_of)},
          {"unexpected", list_of(portal.unexpected.items, header_of)}};
}

Json trigger_of(const TriggerPicture& trigger) {
  Json json{{"threshold", trigger.threshold}};
  if (trigger.ct_handle != 0) {
    json["counter"] = hex_text(trigger.ct_handle);
  } else {
    json["operation"] = packet_type_name(trigger.type);
  }
  return json;
}

Json counter_of(const CounterPicture& counter) {
  return {{"handle", hex_text(counter.handle)},
          {"success", counter.success},
          {"failure", counter.failure},
          {"waiting", list_of(counter.waiting.items, trigger_of)}};
}

Json queue_of(const QueuePicture& queue) {
  return {{"handle", hex_text(queue.handle)},
          {"events", queue.size},
          {"capacity", queue.capacity},
          {"full", queue.full},
          {"lost", queue.lost}};
}

Json interface_json(const InterfacePicture& ni) {
  return {{"index", ni.index},
          {"matching", ni.is_matching()},
          {"logical", ni.is_logical()},
          {"dropped", ni.dropped},
          {"portals", list_of(ni.portals, portal_of)},
          {"counters", list_of(ni.counters, counter_of)},
          {"event_queues", list_of(ni.queues, queue_of)}};
}

Json operation_of(const OperationPicture& operation) {
  Json json{{"kind", packet_type_name(operation.kind)},
            {"target", id_of(operation.target)},
            {"length", operation.length},
            {"sent", operation.sent}};
  if (operation.peer_vcq != 0) json["vcq"] = hex_text(operation.peer_vcq);
  return json;
}

Json peer_of(const PeerPicture& peer) {
  return {{"id", id_of(peer.id)},
          {"connected", peer.state == PeerState::kConnected},
          {"not_answered", peer.outstanding},
          {"waiting_requests", peer.waiting_requests},
          {"waiting_answers", peer.waiting_answers}};
}

Json sleep_of(const SleepPicture& sleep) {
  Json json{{"thread", sleep.thread}};
  const bool counts = sleep.subject.kind == WaitKind::kCounters;
  Json objects = Json::array();
  for (const auto& [handle, test] : sleep.subject.objects()) {
    Json object{{counts ? "counter" : "event_queue", hex_text(handle)}};
    if (counts) object["test"] = test;
    objects.push_back(std::move(object));
  }
  json["for"] = std::move(objects);
  return json;
}

Json vcq_of(const VcqPicture& vcq) {
  return {{"id", hex_text(vcq.id)},
          {"session", vcq.session},
          {"tcq_unread", vcq.tcq_unread},
          {"tcq_entries", vcq.tcq_entries},
          {"mrq_unread", vcq.mrq_unread},
          {"mrq_entries", vcq.mrq_entries},
          {"delayed", vcq.delayed},
          {"steps", vcq.steps},
          {"waiting", list_of(vcq.waiting.items, trigger_of)}};
}

Json gate_of(const GatePicture& gate) {
  return {{"id", hex_text(gate.id)},
          {"started", gate.started},
          {"has_signal", gate.has_signal},
          {"has_packet", gate.has_packet},
          {"rounds_passed", gate.rounds_passed}};
}

Json channel_of(const ChannelView& channel) {
  return {{"from_pid", SlotWord::unpack(channel.slot_word).claimer.pid}, {"packets", channel.waiting_packets}};
}

Json process_of(const ProcessPicture& process) {
  const SegmentDescriptorShared& owner = process.descriptor;
  Json json{
      {"nid", node_id_text(owner.nid)}, {"pid", owner.pid}, {"os_pid", owner.os_pid}, {"program", process.program}};
  if (process.rank >= 0) json["rank"] = process.rank;
  json["state"] = process.sight == Sight::kDead             ? "dead"
                  : process.run_state == RunState::kStopped ? "stopped"
                                                            : "running";
  json["first_thread"] = process.run_state == RunState::kRuns ? "runs" : "sleeps";
  json["seen"] = process.sight == Sight::kWhole;
  if (process.sight != Sight::kWhole) json["why_not_seen"] = sight_text(process.sight) + 2;  // Without ", ".
  json["waiting"] = process.is_waiting();
  json["packets_not_taken"] = list_of(process.waiting, channel_of);
  json["sleeps"] = list_of(process.core.sleeps, sleep_of);
  json["operations"] = list_of(process.core.operations, operation_of);
  json["peers"] = list_of(process.core.peers, peer_of);
  json["interfaces"] = list_of(process.core.interfaces, interface_json);
  json["vcqs"] = list_of(process.core.vcqs, vcq_of);
  json["gates"] = list_of(process.core.gates, gate_of);
  return json;
}

Json finding_of(const std::vector<ProcessPicture>& processes, const Finding& finding) {
  Json json{{"kind", finding_name(finding.kind)}, {"process", id_of(finding.where)}};
  for (const ProcessPicture& process : processes) {
    if (process.id() == finding.where && process.rank >= 0) json["rank"] = process.rank;
    if (process.id() == finding.other && process.rank >= 0) json["other_rank"] = process.rank;
  }
  if (!finding.object.empty()) json["object"] = finding.object;
  if (finding.other != ProcessId{}) json["other"] = id_of(finding.other);
  if (finding.kind == FindingKind::kHeaderWaits || finding.kind == FindingKind::kMessageRefused) {
    json["got"] = hex_text(finding.got);
    json["wanted"] = hex_text(finding.wanted);
    json["differing_bits"] = bits_of(finding.differing);
  }
  if (finding.lacks != 0) json["count"] = finding.lacks;
  json["sentence"] = finding.sentence;
  return json;
}

}  // namespace

std::string json_text(const std::vector<Explanation>& jobs, const std::vector<std::string>& foreign) {
  const Json all{{"jobs", list_of(jobs,
                                  [](const Explanation& job) {
                                    const auto found = [&job](const Finding& finding) {
                                      return finding_of(job.processes, finding);
                                    };
                                    return Json{{"job_key", job.job_key},
                                                {"processes", list_of(job.processes, process_of)},
                                                {"findings", list_of(job.findings, found)}};
                                  })},
                 {"foreign_segments", foreign}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace portofu::tools
