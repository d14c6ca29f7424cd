// The model: regions, events, counts, triggered operations, and who takes a packet.

#include "tests/simulation/model.h"

#include <algorithm>

namespace portofu::simulation {
namespace {

bool is_fetching(const Descriptor& descriptor) {
  return descriptor.type != PacketType::kPut && descriptor.type != PacketType::kAtomic;
}

/// What a packet would say that tells what an acknowledgement without one tells.
PacketHeader plain_answer(const ModelMessage& message) {
  PacketHeader header{};
  header.type = PacketType::kAnswer;
  header.operation_id = message.operation_id;
  header.length = message.descriptor.length;
  header.remote_offset = message.descriptor.remote_offset;
  return header;
}

}  // namespace

std::uint64_t ModelRegion::length() const {
  std::uint64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.bytes;
  return sum;
}

std::size_t ModelRegion::place(std::uint64_t offset) const {
  for (const Piece& piece : pieces) {
    if (offset < piece.bytes) return piece.at + offset;
    offset -= piece.bytes;
  }
  return pieces.empty() ? 0 : pieces.back().at + pieces.back().bytes;
}

std::uint64_t ModelQueue::used() const {
  std::uint64_t count = 0;
  for (std::size_t i = taken; i < events.size(); ++i) count += events[i].type != EventKind::kPtDisabled;
  return count;
}

void Model::complain(const std::string& text) {
  if (complaint_.empty()) complaint_ = text;
}

std::size_t Model::index_of(ProcessId id) const {
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (processes[i].id == id) return i;
  }
  return processes.size();
}

/// 3.13.5: events of a message that has passed flow control push out none.
void Model::post(ModelProcess& process, Handle eq, const Event& event, bool has_passed) {
  if (eq == 0) return;
  ModelQueue& queue = process.queues[eq];
  const bool may_be_full = queue.events.size() - queue.taken >= queue.capacity;
  if (!has_passed && may_be_full && queue.used() >= queue.capacity && event.type != EventKind::kPtDisabled) {
    queue.overflowed = true;
    ++queue.taken;  // The oldest is lost.
  }
  queue.events.push_back(event);
}

void Model::count(ModelProcess& process, Handle ct, bool good, std::uint64_t amount) {
  const auto found = process.counters.find(ct);
  if (found == process.counters.end()) return;  // None was named, or the application has freed it.
  ModelCounter& counter = found->second;
  if (good) {
    counter.success += amount;
    fire(process, counter);
  } else {
    ++counter.failure;
  }
}

/// 3.16: in the order of thresholds, equal ones in the order of the calls.
void Model::fire(ModelProcess& process, ModelCounter& counter) {
  for (;;) {
    auto next =
        std::min_element(counter.waiting.begin(), counter.waiting.end(),
                         [](const ModelTrigger& a, const ModelTrigger& b) { return a.threshold < b.threshold; });
    if (next == counter.waiting.end() || next->threshold > counter.success) return;
    process.fired.push_back(next->descriptor);
    counter.waiting.erase(next);
  }
}

void Model::change_counter(ModelProcess& process, const Descriptor& descriptor) {
  const auto found = process.counters.find(descriptor.count.ct_handle);
  if (found == process.counters.end()) return;
  ModelCounter& counter = found->second;
  if (descriptor.type == PacketType::kCountSet) counter.success = counter.failure = 0;
  counter.success += descriptor.count.success;
  counter.failure += descriptor.count.failure;
  fire(process, counter);
}

void Model::arm(std::size_t process, Handle ct, const ModelTrigger& trigger) {
  ModelProcess& own = processes[process];
  own.counters[ct].waiting.push_back(trigger);
  ++own.waiting_count;
  fire(own, own.counters[ct]);
}

void Model::cancel(std::size_t process, Handle ct) {
  ModelProcess& own = processes[process];
  own.waiting_count -= static_cast<std::uint32_t>(own.counters[ct].waiting.size());
  own.counters[ct].waiting.clear();
}

void Model::free_counter(std::size_t process, Handle ct) {
  cancel(process, ct);
  processes[process].counters.erase(ct);
}

void Model::start_next_fired(std::size_t process) {
  ModelProcess& own = processes[process];
  if (own.fired.empty()) return complain("an operation is started that is not due");
  const Descriptor descriptor = own.fired.front();
  own.fired.pop_front();
  ++own.started_count;
  --own.waiting_count;
  start(process, descriptor);
}

void Model::start_fired_until(std::size_t process, std::uint64_t started_count) {
  while (complaint_.empty() && processes[process].started_count < started_count) start_next_fired(process);
}

void Model::published(std::size_t process, ProcessId peer, const PacketHeader& header, std::uint64_t lent_end) {
  if (!complaint_.empty()) return;
  const std::size_t to = index_of(peer);
  if (to == processes.size()) return complain("a packet goes to nobody");
  if (header.type == PacketType::kAnswer) return publish_answer(process, to, header, lent_end);
  if (header.type != PacketType::kData) return publish_request(process, to, header, lent_end);
  if ((header.flags & kFlagAnswerStream) == 0) return publish_more(process, to, header, lent_end);
  ModelMessage* message = pair(to, process).answering;
  if (message == nullptr) return complain("data of an answer that nobody has begun");
  publish_answer_data(processes[process], *message, header, lent_end);
}

void Model::taken(std::size_t process, ProcessId peer, std::uint64_t lent_end) {
  if (!complaint_.empty()) return;
  const std::size_t to = index_of(peer);
  auto& requests = pair(process, to).lent;
  auto& answers = pair(to, process).lent_answers;
  if (!requests.empty() && requests.front()->lent_end == lent_end) {
    ModelMessage& message = *requests.front();
    requests.pop_front();
    if (message.received < message.lent_bytes) return complain("memory comes back before its data has arrived");
    return sent(message);
  }
  if (answers.empty() || answers.front()->answer_lent_end != lent_end)
    return complain("memory comes back that was not lent");
  ModelMessage& message = *answers.front();
  answers.pop_front();
  if (message.reply_taken < message.answer_lent_bytes) return complain("memory comes back before its reply is there");
  if (message.entry != nullptr) complete(processes[process], message);
}

void Model::acknowledged(std::size_t process, ProcessId peer, std::uint32_t operation_id) {
  if (!complaint_.empty()) return;
  const std::size_t to = index_of(peer);
  ModelMessage* message = find_operation(to, process, operation_id);
  if (message == nullptr) return complain("an acknowledgement of what nobody has asked");
  if (is_fetching(message->descriptor)) return complain("an acknowledgement of what asks for data");
  if (check_answer(process, to, plain_answer(*message)) != nullptr) message->answer_sent = true;
}

void Model::acknowledgement_taken(std::size_t process, ProcessId peer, std::uint32_t operation_id) {
  if (!complaint_.empty()) return;
  const std::size_t from = index_of(peer);
  ModelMessage* message = find_operation(process, from, operation_id);
  if (message == nullptr || !message->answer_sent || message->answer_taken)
    return complain("an acknowledgement that nobody has sent");
  message->answer_taken = true;
  if (message->sent) finish(*message);
}

void Model::peeked(std::size_t process, ProcessId source, const PacketHeader& header) {
  if (!complaint_.empty()) return;
  const std::size_t from = index_of(source);
  if (from == processes.size()) return complain("a packet comes from nobody");
  if (header.type == PacketType::kAnswer) return take_answer(process, from, header);
  if (header.type != PacketType::kData) return arrive(process, from, header);
  if ((header.flags & kFlagAnswerStream) == 0) return arrive_more(process, from, header);
  ModelMessage* message = pair(process, from).taking;
  if (message == nullptr) return complain("data of an answer arrives that has not begun");
  take_answer_data(*message, header);
}

}  // namespace portofu::simulation
