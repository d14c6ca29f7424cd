#!/usr/bin/env python3
"""Plants one fault after the other in a copy of the engine and looks whether the model finds it.

A model test that passes says little unless it fails when the engine is wrong. Each fault below is a slip that could
happen, in another step of the data path. `./run soak` runs this; by hand:

    tests/simulation/planted_faults.py [--only REGEX] [--check]

Ends with status 0 if every fault was found. README.md in this directory has the result of a run; --check looks whether
it counts the faults that are here.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    file: str
    right: str  # must stand exactly once in the file
    wrong: str
    # What should find it: simulation_TEST_test, or TEST_test if TEST begins with another suite.
    test: str = "model"


QUEUE = "unit_event_event_queue"
WIRE = "unit_wire_reliable_reliable_wire"
TIMERS = "unit_wire_reliable_reliable_timers"
STORM = "conformance_libfabric_fi_storm"

FAULTS = [
    # target/match_header: which entry, and how much
    Fault("zero-byte message refused by NO_TRUNCATE", "engine/target/match_steps.h",
          "(entry.options & kEntryNoTruncate) == 0 || header.length == 0", "(entry.options & kEntryNoTruncate) == 0"),
    Fault("locally managed offset ignored", "engine/target/match_steps.h",
          "(entry.options & kEntryManageLocal) != 0 ? entry.local_offset : header.remote_offset",
          "header.remote_offset"),
    Fault("min_free reached one byte too early", "engine/target/match_steps.h",
          "(entry.local_offset + mlength) < entry.min_free", "(entry.local_offset + mlength) <= entry.min_free"),
    Fault("use-once entry stays linked", "engine/target/match_steps.h",
          "if ((entry.options & kEntryUseOnce) != 0) return true;", ""),
    Fault("overflow list searched although the priority list matched", "engine/target/match_header.cpp",
          "if (arrival.entry == nullptr) {\n    arrival.list = ListKind::kOverflow;",
          "if (arrival.entry == nullptr || header.length == 3) {\n    arrival.list = ListKind::kOverflow;"),
    Fault("header kept although UNEXPECTED_HDR_DISABLE", "engine/target/match_header.cpp",
          "list == ListKind::kOverflow && (entry.options & kEntryUnexpectedHdrDisable) == 0",
          "list == ListKind::kOverflow"),
    Fault("limit of unexpected headers off by one", "engine/target/match_header.cpp",
          "ni.unexpected_count >= ni.limits.max_unexpected_headers",
          "ni.unexpected_count > ni.limits.max_unexpected_headers"),
    Fault("atomic cut in the middle of an item", "engine/target/match_steps.h",
          "return length - length % item;", "return item != 0 ? length : 0;"),
    # match: order
    Fault("unexpected headers found from the second on", "engine/match/unexpected_list.cpp",
          "if (matches(criteria, position->key)) return position;\n",
          "if (matches(criteria, position->key) && (position != head_ || size_ == 1)) return position;\n"),
    # target/permission
    Fault("usage ID not looked at", "engine/target/permission.h",
          "if (entry.uid != kUidAny && entry.uid != header.uid) return Refusal::kPermission;", ""),
    Fault("swap allowed by OP_PUT alone", "engine/target/permission.h",
          "return kEntryOpPut | kEntryOpGet;", "return kEntryOpPut;"),
    # target/flow_control
    Fault("portal table entry stays enabled when resources are used up", "engine/target/flow_control.cpp",
          "portal.disable(entry == nullptr ? DisabledBy::kNoEntry : DisabledBy::kNoResources, core.now_ns());", ""),
    Fault("PT_DISABLED not told", "engine/target/flow_control.cpp",
          "queue->post_reserved_on_duty(event);", ""),
    Fault("no room kept for the failure of what succeeds in silence", "engine/target/match_steps.h",
          "succeeds = type == PacketType::kPut && header", "succeeds = type == PacketType::kPut || header"),
    Fault("PT_DISABLED pushes out an event while an earlier one waits", "engine/event/event_queue.cpp",
          "size_) < slots_ || grow(slots_ * 2);", "size_) < slots_;", QUEUE),
    Fault("unaligned atomic uses its entry up", "engine/target/match_header.cpp",
          "if (executes(arrival) && !holds_items(arrival)) return Refusal::kNotAligned;", ""),
    # target/complete: events and counts
    Fault("event of a message that has passed flow control pushes out another", "engine/target/complete.cpp",
          "queue->hold_on_duty(kMostEventsOfArrival) ? queue : nullptr", "nullptr"),
    Fault("AUTO_UNLINK before the last message is complete", "engine/target/complete.h",
          "entry.state == EntryState::kUnlinking && entry.pending == 0", "entry.state == EntryState::kUnlinking"),
    Fault("AUTO_FREE before the last header is used", "engine/target/complete.h",
          "fresh(entry.state) != EntryState::kUnlinked || entry.unexpected_count != 0",
          "entry.state != EntryState::kUnlinked"),
    Fault("bytes not counted", "engine/target/complete.h",
          "(options & kEntryEventCtBytes) != 0 ? mlength : 1",
          "(options & kEntryEventCtBytes) != 0 && mlength == 0 ? 0 : 1"),
    Fault("OVER_DISABLE ignored", "engine/target/complete.cpp",
          "(claim.options & kEntryEventOverDisable) != 0 ||", "false ||"),
    Fault("user pointer of the overflow entry in PUT_OVERFLOW", "engine/target/complete.cpp",
          "event.user_ptr = claim.user_ptr;", "event.user_ptr = header.entry->user_ptr;"),
    Fault("overflow event tells the priority list", "engine/target/complete.h",
          "event.ptl_list = ListKind::kOverflow;", "event.ptl_list = ListKind::kPriority;"),
    # target/list_entries: append, unlink, search
    Fault("persistent append takes one header only", "engine/target/list_entries.cpp",
          "if (entry.state != EntryState::kLinked) return false;",
          "if (entry.state != EntryState::kLinked) return false;\n    break;"),
    Fault("LOCAL_INC_UH_RLENGTH ignored", "engine/target/list_entries.cpp",
          "(options & (kEntryTakesData | kEntryLocalIncUhRlength)) != 0", "(options & kEntryTakesData) != 0"),
    Fault("claim of an incomplete header not counted as pending", "engine/target/list_entries.cpp",
          "++entry.pending;", "if (header.complete) ++entry.pending;"),
    Fault("limit of a list looks at both lists", "engine/target/list_entries.h",
          "portal.list(kind).size() >= ni.limits.max_list_size",
          "portal.priority.size() + portal.overflow.size() >= ni.limits.max_list_size"),
    Fault("append refused although headers use it up", "engine/target/list_entries.cpp",
          "!is_used_up_by(portal, found, entry)", "!is_used_up_by(portal, nullptr, entry)"),
    Fault("unlink of an entry in use succeeds", "engine/target/list_entries.cpp",
          "entry->state != EntryState::kLinked || entry->pending != 0 || entry->unexpected_count != 0",
          "entry->state != EntryState::kLinked || entry->pending != 0"),
    Fault("search ends without NO_MATCH", "engine/target/complete.cpp",
          "if ((search.options & kEntryEventCommDisable) == 0) {", "if (false) {"),
    Fault("failed search not counted", "engine/target/complete.cpp", "count_failure(core, ni, ct_handle);",
          "count_failure(core, ni, ct_handle & 0);"),
    Fault("persistent search ends before its last message is complete", "engine/target/list_entries.cpp",
          "const bool has_ended = unfinished == nullptr && !(use_once && found_any);",
          "const bool has_ended = !(use_once && found_any);"),
    Fault("persistent search ends with each message", "engine/target/complete.cpp",
          "claim.by == ClaimedBy::kPersistentSearch && header.leave_search()",
          "claim.by == ClaimedBy::kPersistentSearch && (header.leave_search(), true)", "unit_target_list_entries"),
    # event: counters and triggers
    Fault("failures fire triggers", "engine/event/counting_event.h",
          "failure_.store(failure() + count, std::memory_order_release);",
          "failure_.store(failure() + count, std::memory_order_release); success_.fetch_add(count);"),
    Fault("equal thresholds in reverse order", "engine/event/counting_event.cpp",
          "waiting_.insert(waiting_.end(), *operation);",
          "waiting_.insert_before(waiting_.lower_bound(*operation), *operation);"),
    Fault("a jump of the counter fires one trigger only", "engine/event/counting_event.cpp",
          "while (!waiting_.empty() && waiting_.begin()->threshold <= now) {",
          "if (!waiting_.empty() && waiting_.begin()->threshold <= now) {"),
    Fault("threshold must be passed, not reached", "engine/event/counting_event.cpp",
          "if (operation->threshold <= reached()) {", "if (operation->threshold < reached()) {"),
    # initiator/report
    Fault("ACK carries the length asked for", "engine/initiator/answer_in.cpp",
          "operation->mlength = header.length;", "operation->mlength = operation->length;"),
    Fault("refused operation counted as failure for PTL_OC_ACK_REQ", "engine/initiator/report.cpp",
          "answer.fail == NiFail::kUndeliverable || answer.fail == NiFail::kSegv", "answer.fail != NiFail::kOk"),
    Fault("counts that are set back are forgotten", "engine/event/counting_event.h",
          "return reached = true;", "return true;", "unit_event_counting_event"),
    Fault("time of a wait does not end while packets come", "engine/run/engine_wait.cpp",
          "if (now >= deadline_ns) return look_at_last", "if (work == 0 && now >= deadline_ns) return look_at_last",
          "unit_run_engine_wait"),
    Fault("disabled entry counted as success for PTL_OC_ACK_REQ", "engine/initiator/report.cpp",
          "|| answer.fail == NiFail::kPtDisabled;", ";"),
    Fault("REPLY not counted", "engine/initiator/report.cpp",
          "if ((md.options & kMdEventCtReply) != 0) count(core, ni, md, answer.fail, answer.mlength);", ""),
    Fault("SUCCESS_DISABLE hides failures", "engine/initiator/report.cpp",
          "answer.fail == NiFail::kOk && (md.options & kMdEventSuccessDisable) != 0",
          "(md.options & kMdEventSuccessDisable) != 0"),
    # uTofu: session mode, notices, errors
    Fault("uTofu: large SPS cut", "engine/target/tofu_request.cpp", "header.tofu_meta >> kTofuStepsShift;",
          "header.tofu_meta >> kTofuStepsShift & 7;", "tofu_session"),
    Fault("uTofu: steps counted when a put begins", "engine/target/tofu_request.cpp",
          "  take_first(core, peer, arrival, payload);",
          "  if (core.tofu->vcq_of_number(header.tofu_queue)->session)\n"
          "    core.tofu->vcq_of_number(header.tofu_queue)->steps.add_success_on_duty(\n"
          "        header.tofu_meta >> kTofuStepsShift, core.fired);\n"
          "  arrival.header.tofu_meta &= 0xfff;\n"
          "  take_first(core, peer, arrival, payload);", "tofu_session"),
    Fault("uTofu: failed put counts its steps", "engine/target/tofu_request.cpp",
          "  if (fail != NiFail::kOk) return refuse(core, peer, header, fail);",
          "  if (fail != NiFail::kOk && fail != NiFail::kUndeliverable)\n"
          "    target.vcq->steps.add_success_on_duty(header.tofu_meta >> kTofuStepsShift, core.fired);\n"
          "  if (fail != NiFail::kOk) return refuse(core, peer, header, fail);", "tofu_session"),
    Fault("uTofu: late descriptor does not start", "engine/event/counting_event.cpp",
          "operation->threshold <= reached()", "operation->threshold < reached()", "tofu_session"),
    Fault("uTofu: one descriptor too many starts", "engine/event/counting_event.cpp",
          "waiting_.begin()->threshold <= now", "waiting_.begin()->threshold <= now + 1", "tofu_session"),
    Fault("uTofu: notice overtakes a get", "engine/target/tofu_request.cpp",
          "if (peer.held_notices.empty() ||", "if (peer.held_notices.size() < kMostHeldNotices ||", "tofu_session"),
    Fault("uTofu: notice of a get lacks its end", "engine/target/tofu_request.cpp",
          "header.local_stadd + header.length", "header.local_stadd", "tofu_session"),
    Fault("uTofu: notice names the path of the descriptor", "engine/initiator/tofu_send.cpp",
          "with_own_path(d.tofu.remote_vcq_id)", "d.tofu.remote_vcq_id", "tofu_session"),
    Fault("uTofu: failure told only where a TCQ notice is wanted", "engine/event/notice_queue.h",
          "entry.notice || fail != NiFail::kOk", "entry.notice", "tofu_session"),
    Fault("uTofu: TCQ told in order of completion", "engine/event/notice_queue.h",
          "while (unread() != 0 && is_done(oldest()) && !oldest().notice) ++oldest_;",
          "while (unread() != 0 && !oldest().notice) ++oldest_;", "tofu_session"),
    Fault("uTofu: read-only region is written", "engine/memory/stadd_table.cpp",
          "request.read_only ? kEntryOpGet :", "false ? kEntryOpGet :", "tofu_session"),
    Fault("uTofu: range may leave its region by a byte", "engine/segment/region_table.h",
          "bytes <= region_bytes && offset <= region_bytes - bytes",
          "bytes <= region_bytes + 1 && offset <= region_bytes + 1 - bytes",
          "tofu_session"),
    Fault("uTofu: last bytes of a put missing", "engine/mailbox/inbox.cpp",
          "return memory.write(offset + body, payload.behind(body), bytes - body);", "return true;", "tofu_session"),
    Fault("uTofu: gets under way are not counted down", "engine/core/core.h",
          "--operation.peer->gets_under_way;", ";", "tofu_session"),
    # uTofu: barrier circuits
    Fault("uTofu: MAXLOC prefers the larger location", "engine/initiator/reduction.cpp",
          "other.items[i + 1] < into.items[i + 1]", "other.items[i + 1] > into.items[i + 1]", "tofu_circuit"),
    Fault("uTofu: other number of items not noticed", "engine/initiator/reduction.cpp",
          "into.operation != other.operation || into.item_count != other.item_count",
          "into.operation != other.operation", "tofu_circuit"),
    Fault("uTofu: mismatch not passed on", "engine/initiator/reduction.cpp", "into.mismatch |= other.mismatch;", "",
          "tofu_circuit"),
    Fault("uTofu: mismatch changes what was started", "engine/initiator/barrier.cpp",
          "if (other || value.mismatch != 0) {", "if (false) {", "tofu_circuit"),
    Fault("uTofu: relay gate not armed again", "engine/initiator/barrier.cpp",
          "      arm_gate(core, *gate);\n      return send_to_both", "      return send_to_both", "tofu_circuit"),
    Fault("uTofu: gate passes with its first input", "engine/initiator/gate_inputs.cpp",
          "arm_inputs(core, gate, rounds.awaited_inputs + gate.input_count())",
          "arm_inputs(core, gate, rounds.awaited_inputs + 1)", "tofu_circuit"),
    Fault("uTofu: packet of a later round taken", "engine/initiator/gate_inputs.cpp",
          "combine(value, rounds.packets.front());",
          "{\n      if (rounds.packets.size() > 1) rounds.packets.pop_front();\n"
          "      combine(value, rounds.packets.front());\n    }", "tofu_circuit"),
    Fault("uTofu: sum of negative zeros loses its sign", "engine/event/exact_sum.cpp",
          "specials_ |= other.specials_;", "specials_ |= other.specials_ & ~kSeenMinusZero | kSeenOther;",
          "tofu_circuit"),
    Fault("uTofu: carry lost between words of a sum", "engine/event/exact_sum.cpp",
          "    words_[i] = static_cast<std::uint64_t>(carry);\n    carry >>= 64;",
          "    words_[i] = static_cast<std::uint64_t>(carry);\n    carry = 0;", "tofu_circuit"),
    Fault("uTofu: no signal to a gate that takes a packet, too", "engine/initiator/circuit.cpp",
          "next->local_source == gate.id ?", "next->remote_source == BarrierGate::kNoGate ?", "tofu_circuit"),
    Fault("uTofu: end of a gate not told to its remote target", "engine/initiator/circuit.cpp",
          "tell_target(core, gate, rounds_word(0, left));", ";", "tofu_circuit"),
    Fault("uTofu: end of a gate not told to its local target", "engine/initiator/circuit.cpp",
          "if (next != nullptr) end_gate(", "if (false) end_gate(", "tofu_circuit"),
    Fault("uTofu: rounds that still come are told one too few", "engine/initiator/circuit.cpp",
          "gate.rounds.packets_in() + std::min<std::uint64_t>(left, kMostWaitingInputs)",
          "gate.rounds.packets_in() + left - 1",
          "unit_initiator_circuit"),
    Fault("uTofu: end of a former circuit taken for one of the next", "engine/initiator/circuit.cpp",
          "left == kNoEnd || !gate.source.is_of_this_circuit(source_setting)", "left == kNoEnd",
          "tofu_circuit_again"),
    Fault("uTofu: end of a source that has answered is only asked for", "engine/initiator/circuit.cpp",
          "!gate.source.is_of_this_circuit(source_setting)", "gate.source.asks", "unit_initiator_circuit_again"),
    Fault("uTofu: source of a circuit of survivors not asked", "engine/initiator/barrier.cpp",
          "if (core.tofu->has_doubts) [[unlikely]]\n      ask_sources(core, gate.id);", "", "tofu_circuit_again"),
    Fault("uTofu: value of an earlier circuit that waits is taken", "engine/initiator/circuit.cpp",
          "is_earlier(packets.front().setting, setting)", "false", "tofu_circuit_again"),
    Fault("uTofu: value of an earlier circuit that comes late is taken", "engine/initiator/barrier.cpp",
          "source.first_setting != 0 && is_earlier(value.setting, source.first_setting)", "false",
          "unit_initiator_circuit_again"),
    Fault("uTofu: value behind one that is lost is taken", "engine/initiator/barrier.cpp",
          "!source.is_next(value.setting, round)", "false", "unit_initiator_circuit_again"),
    Fault("uTofu: gate that asks takes the first value", "engine/initiator/gate_inputs.cpp",
          " && gate.source.is_trusted()) {", ") {", "tofu_circuit_again"),
    Fault("uTofu: nobody is told that a gate has left", "engine/initiator/circuit.cpp",
          "  let_target_ask(core, gate);\n  end_signals", "  end_signals", "tofu_circuit_again"),
    Fault("uTofu: source to whom a link was lost is not asked again", "engine/run/loop.cpp",
          "  ask_sources_again(core);\n", "", "tofu_circuit_again"),
    Fault("uTofu: gate that signals elsewhere lets another set wait", "engine/initiator/circuit.cpp",
          "  if (gate.local_target != ends.local_target) end_signals(core, gate);\n", "",
          "unit_initiator_circuit_again"),
    Fault("uTofu: nobody answers for a gate that has left", "engine/initiator/circuit.cpp",
          "  answer_for_nobody(core, asked, header.sender_id, rounds_word(setting, 0));", "(void)asked;",
          "tofu_circuit_again"),
    Fault("uTofu: end of a source that has not answered loses what it has sent", "engine/initiator/circuit.cpp",
          "  trust_source(core, gate, gate.source.heard_setting);", "", "unit_initiator_circuit_again"),
    Fault("uTofu: values of a killed source that may be of an earlier circuit are taken", "engine/initiator/circuit.cpp",
          "at->second == 0 || ", "", "unit_initiator_circuit_again"),
    Fault("uTofu: source not told that it is waited for", "engine/initiator/circuit.cpp",
          "!send_gate_notice(core, gate, gate.remote_source, kAllRounds)", "false", "tofu_circuit"),
    Fault("uTofu: one more barrier starts behind the end", "engine/initiator/barrier.cpp",
          "gate.rounds.started >= gate.rounds.whole", "gate.rounds.started > gate.rounds.whole", "tofu_circuit"),
    # facets of a wire: what the simulated wire has as the wire inside a node does
    Fault("facets: acknowledged without a packet though it was truncated", "engine/target/request.cpp",
          "if (mlength != header.length || offset != header.remote_offset) return false;",
          "if (mlength > header.length || offset != header.remote_offset) return false;"),
    Fault("facets: ACK without a packet has no length", "engine/initiator/answer_in.cpp",
          "operation->mlength = operation->length;", "operation->mlength = 0;"),
    Fault("facets: SEND, or GET, told while the payload is lent", "engine/mailbox/outbox.cpp",
          "const bool is_lent = fail == NiFail::kOk && message.lent_end != 0;", "const bool is_lent = false;"),
    Fault("facets: deferred read goes to the front of the entry", "engine/mailbox/inbox.cpp",
          "memory.run_at(arrival.offset, arrival.mlength)", "memory.run_at(0, arrival.mlength)"),
    Fault("facets: the front of the entry is offered", "engine/mailbox/inbox.cpp",
          "memory.run_at(arrival.offset, length - tail)", "memory.run_at(0, length - tail)"),
    Fault("facets: offer outlives its interface", "engine/target/close_interface.cpp",
          "    take_offers_back(peer);\n", "", "death"),
    Fault("facets: uTofu: STRONG_ORDER does not wait for what is under way", "engine/initiator/tofu_direct.cpp",
          "if ((d.tofu_meta & kTofuStrongOrder) != 0 && !has_settled(peer)) return false;", "", "tofu_session"),
    Fault("facets: uTofu: local notice of a direct use comes too early", "engine/initiator/tofu_direct.cpp",
          "return (d.tofu_meta & kTofuLocalNotice) == 0 || tells_target(d) || has_told(peer);", "return true;",
          "tofu_session"),
    Fault("facets: uTofu: local notice of a write by the kernel comes too early", "engine/initiator/tofu_direct.cpp",
          " || (tells_local && !has_told(peer)))", ")", "tofu_session"),
    Fault("facets: shuffle takes packets in while one is in hand below", "engine/wire/sim/shuffle_wire.cpp",
          "if (closing_ != nullptr || in_hand_) return false;", "if (closing_ != nullptr) return false;",
          "tofu_session"),
    Fault("uTofu: death told in the order in which it is found", "engine/initiator/tofu_report.cpp",
          "std::ranges::sort(lost, {}, &LostNotice::tcq_place);", "", "unit_initiator_tofu_owner"),
    Fault("uTofu: what is new for a lost peer ends before what waits", "engine/initiator/tofu_send.cpp",
          "reach == Reach::kNever && peer->requests.waiting.empty()", "reach == Reach::kNever", "unit_initiator_tofu_owner"),
    # names that move between nodes: questions, answers, news, hellos
    Fault("directory: answer that is older than a request", "engine/initiator/tofu_owner.cpp",
          "request.is_late = !is_first;", "request.is_late = false && is_first;", "names"),
    Fault("directory: late requests are never asked for", "engine/initiator/tofu_owner.cpp",
          "for (OwnerlessRequest& late : waiting) late.is_late = false;", "//", "names"),
    Fault("directory: who has heard believes the queue all the same", "engine/core/tofu.cpp",
          "if (owner == process) owner.names", "if (false && owner == process) owner.names", "names"),
    Fault("directory: answer under way survives the news", "engine/wire/ofi/directory_socket.cpp",
          "std::erase_if(questions_, [&news](const auto& entry) { return entry.first.first == news.nid; });", "",
          "names"),
    Fault("directory: hello is not noted", "engine/run/engine_node.cpp",
          "note_knower(segment_.file()->fd(), {nid, port});", "static_cast<void>(nid + port);", "names"),
    Fault("directory: who has heard of a queue does not hear of the end", "engine/segment/known_by.cpp",
          "(word & kKnowerMask) | kLinkOnly : 0;", "0 : 0;", "names"),
    Fault("directory: queue given up before all have heard", "engine/segment/segment_alias.cpp",
          "if (!all_know) return false;", "static_cast<void>(all_know);", "unit_segment_known_by"),
    Fault("directory: queue of a dead process taken before all have heard", "engine/segment/segment_file.cpp",
          "if (!all_know && is_alias_name", "if (!all_know && false && is_alias_name", "names"),
    Fault("directory: silent node is not asked", "engine/run/engine_node.cpp", "  const AskResult result = socket_.ask(",
          "  if (now < silent_until) return FindResult::kNobody;\n  const AskResult result = socket_.ask(", "names"),
    Fault("directory: link to a former owner of a PID is followed", "engine/mailbox/connect.cpp",
          "if (peer.wire->leads_to_name(*peer.link)) return;", "return;", "names"),
    Fault("directory: that nobody is there ends younger requests", "engine/mailbox/outbox.cpp",
          "peer.state == PeerState::kConnecting && peer.waiting;", "false;", "names"),
    Fault("directory: answer of a life that is over makes a link", "engine/wire/reliable/reliable_receive.cpp",
          " || std::ranges::count(link.ended_lives, frame.life) != 0", "", "names"),
    Fault("directory: next life is told of puts of the former one", "engine/core/tofu.h",
          "static_cast<std::uint32_t>(life * 0x9e3779b97f4a7c15u >> 32) % kHandleUses",
          "static_cast<std::uint32_t>(life * 0) % kHandleUses", "names"),
    Fault("directory: link to a life that is over is handed out", "engine/wire/reliable/reliable_wire.cpp",
          "if (!known.held) leads_to_name(known);", "", WIRE),
    Fault("directory: late word of a former life ends the next link", "engine/wire/reliable/reliable_receive.cpp",
          "if (is_over && other.state == ReceivingState::kOffered)", "if (false && is_over)", WIRE),
    Fault("directory: who asks later is refused for what was found before", "engine/wire/reliable/reliable_receive.cpp",
          "if (link.state != SendingState::kOpening) return;", "return;", "unit_wire_reliable_reliable_receive"),
    Fault("directory: who has the number of a dead gate hears of its circuit's end", "engine/initiator/circuit.cpp",
          " && !gate.target.is_dead)", ")", "unit_initiator_circuit"),
    Fault("directory: a gate's packets go to whoever has the number now", "engine/initiator/tofu_send.cpp",
          "return met == ProcessId{} ? nullptr : &met;", "return met == met ? nullptr : &met;",
          "unit_initiator_circuit"),
    Fault("directory: engine does not say that somebody begins to wait", "engine/mailbox/connect.cpp",
          "others->ask_anew(peer.id);", "static_cast<void>(others);", "unit_mailbox_connect"),
    # wire/reliable: what delays, wastes or breaks a contract of wire.h, its own test finds
    Fault("lossy: checksum not looked at", "engine/wire/reliable/frame.cpp",
          "if (copy.checksum != checksum_of(copy, rest)) return false;", "", "lossy_model"),
    Fault("lossy: what is lost is not sent again after a while", "engine/wire/reliable/send_window.cpp",
          "frame.due_ns = now_ns + round_trip.timeout_ns(frame.transmissions);", "frame.due_ns = UINT64_MAX;",
          "unit_wire_reliable_send_window"),
    Fault("lossy: packet given out before those in front of it", "engine/wire/reliable/receive_window.cpp",
          "if ((selected_ & 1) == 0) return 0;",
          "if ((selected_ & 1) == 0) {\n    if ((selected_ & 2) == 0) return 0;\n"
          "    ++const_cast<ReceiveWindow*>(this)->next_;\n    const_cast<ReceiveWindow*>(this)->selected_ >>= 1;\n  }",
          "lossy_model"),
    Fault("lossy: last word of what was taken not asked for", "engine/wire/reliable/reliable_timers.cpp",
          "!link.all_acknowledged() && data_due_ns == UINT64_MAX", "false", WIRE),
    Fault("lossy: lost link leaves the peer waiting for answers", "engine/wire/reliable/reliable_wire.cpp",
          "if (link.life != 0 && !link.replaced) refuse_source(link.peer);", "", WIRE),
    Fault("lossy: address that nobody has not believed", "engine/wire/reliable/liveness.h",
          "return now_ns - suspected_ns_ >= kConfirmNs;", "return false;", "lossy_group"),
    Fault("lossy: peers that await something are not asked", "engine/wire/reliable/reliable_wire.cpp",
          "for (const auto& [key, link] : outgoing_) link->watched_until_ns = now_ns_ + kWatchNs;", "", "lossy_group"),
    Fault("lossy: all frames go to a silent peer again and again", "engine/wire/reliable/reliable_timers.cpp",
          "const bool one_is_enough = is_silent(link);", "const bool one_is_enough = false;", TIMERS),
    Fault("lossy: new life not told from the former one", "engine/wire/reliable/reliable_receive.cpp",
          "if (!is_open || other.life == link.life) return;", "if (!is_open || link.life != 0) return;", WIRE),
    Fault("lossy: former life not drained before the new one", "engine/wire/reliable/reliable_wire.cpp",
          "return sources_.at(process_key(link.source)).front() != &link;",
          "return sources_.at(process_key(link.source)).empty();", WIRE),
    # lib/libfabric
    Fault("storm: buffer for many messages used to its last byte", "lib/libfabric/receive.cpp",
          "entry->min_free = std::max<std::size_t>(rx.min_multi_recv, 1);", "entry->min_free = 1;", STORM),
    Fault("storm: length of a message that was cut", "lib/libfabric/cq.cpp",
          "entry->len = fresh(event.mlength);", "entry->len = fresh(event.rlength);", STORM),
    Fault("storm: claimed message found once more", "lib/libfabric/receive.cpp",
          "if ((call.flags & (FI_CLAIM | FI_DISCARD)) != 0) hold_header",
          "if ((call.flags & FI_DISCARD) != 0) hold_header", STORM),
]

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "planted-faults"


def copy_sources():
    """Copies what git knows, only where it differs, so that a second run compiles little."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached",
    "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, WORK / "source" / name
        if not source.is_file():
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def miscounts(page):
    """@return where README.md is wrong about the number of faults: of those that `--only` names, and of those without a
    name"""
    said = re.findall(r"`planted_faults\.py(?: --only (\w+))?`\s+plants\s+(\d+)\s+faults", page)
    names = [name for name, _ in said if name]
    counts = {name: sum(name in fault.name for fault in FAULTS) for name in names}
    counts[""] = sum(not any(name in fault.name for name in names) for fault in FAULTS)
    wrong = [f"README.md counts {number} faults {name}, and there are {counts[name]}"
             for name, number in said if int(number) != counts[name]]
    return wrong if said else ["README.md counts no faults"]


def source_of(test):
    """@return the path of its file in tests/"""
    name = f"{test}_test" if test.startswith(("unit_", "conformance_")) else f"simulation_{test}_test"
    tests = ROOT / "tests"
    paths = (file.relative_to(tests) for file in tests.rglob("*_test.cpp"))
    return next(path for path in paths if "_".join(path.with_suffix("").parts) == name)


def target_of(test):
    """The tests of a directory are one program, but those of conformance."""
    if test.startswith("conformance_"):
        return f"{test}_test"
    return "_".join(source_of(test).parent.parts) + "_tests"


def filter_of(test):
    """@return GoogleTest's filter for the test suites of the file"""
    text = (ROOT / "tests" / source_of(test)).read_text()
    suites = re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+)", text, re.MULTILINE)
    return ":".join(f"{suite}.*:*/{suite}.*" for suite in sorted(set(suites)))


def build(test):
    """@return True if the test compiles"""
    run = subprocess.run(["cmake", "--build", WORK / "build", "--target", target_of(test)],
                         capture_output=True, text=True)
    (WORK / "build.log").write_text(run.stdout + run.stderr)
    return run.returncode == 0


def run_model(test):
    """@return (passed, seed of the sequence that failed or what else happened)"""
    program = WORK / "build" / "bin" / target_of(test)
    environment = dict(os.environ, GTEST_BREAK_ON_FAILURE="0")
    try:
        run = subprocess.run([program, "--gtest_fail_fast", f"--gtest_filter={filter_of(test)}"],
                             capture_output=True, text=True, timeout=600, env=environment)
    except subprocess.TimeoutExpired:
        return False, "does not end"
    if run.returncode == 0:
        return True, ""
    seed = re.search(r"(?:repeat with |^)PORTOFU_TEST_SEED=(\d+)", run.stdout, re.MULTILINE)
    return False, f"seed {seed.group(1)}" if seed else f"status {run.returncode}"


def has_place(root, fault):
    """@return True if there is exactly one place for the fault"""
    path = root / fault.file
    return path.is_file() and path.read_text().count(fault.right) == 1


def try_fault(fault):
    """@return (found, remark)"""
    if not has_place(WORK / "source", fault):
        return False, "the place is gone: say where it is now"
    path = WORK / "source" / fault.file
    text = path.read_text()
    path.write_text(text.replace(fault.right, fault.wrong))
    try:
        if not build(fault.test):
            return False, f"does not compile; see {WORK / 'build.log'}"
        passed, remark = run_model(fault.test)
        return not passed, remark or "NOT FOUND"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=".", help="faults whose names match this regular expression")
    parser.add_argument("--check", action="store_true", help="only look whether the place of each fault is there")
    options = parser.parse_args()
    only = re.compile(options.only)
    if options.check:
        gone = [fault for fault in FAULTS if only.search(fault.name) and not has_place(ROOT, fault)]
        problems = [f"not once in {fault.file}: the place of '{fault.name}'" for fault in gone]
        problems += miscounts((ROOT / "tests/simulation/README.md").read_text())
        sys.exit("\n".join(problems) or 0)
    copy_sources()
    chosen = [fault for fault in FAULTS if only.search(fault.name)]
    suites = sorted({source_of(fault.test).parts[0] for fault in chosen})
    subprocess.run(["cmake", "-S", WORK / "source", "-B", WORK / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                    f"-DPORTOFU_TEST_SUITES={';'.join(suites)}"], check=True, stdout=subprocess.DEVNULL)
    for test in sorted({fault.test for fault in chosen}):
        if not build(test):
            sys.exit(f"the engine does not compile without a fault; see {WORK / 'build.log'}")
        passed, remark = run_model(test)
        if not passed:
            sys.exit(f"the {test} test fails without a fault: {remark}")
    missed = 0
    for fault in chosen:
        found, remark = try_fault(fault)
        missed += not found
        print(f"{'found' if found else 'MISSED'}: {fault.name} ({fault.file}): {remark}", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
