// Writes the captures that the dissector for Wireshark is tried with: everything is encoded by the engine.
//
// usage: write_captures DIRECTORY

#include <cstring>
#include <exception>
#include <stdexcept>

#include "engine/segment/known_by.h"
#include "engine/wire/capture/capture_file.h"
#include "engine/wire/ofi/directory_message.h"
#include "engine/wire/ofi/doorplate.h"
#include "engine/wire/ofi/fabric_datagrams.h"
#include "engine/wire/ofi/ofi_message.h"
#include "engine/wire/reliable/frame.h"
#include "tests/wireshark/example_packets.h"

namespace portofu::wireshark {
namespace {

/// A link in each direction, opened by the asker or by the other.
constexpr std::uint64_t kLinks[] = {0xaaaa000000000001, 0xbbbb000000000002};
constexpr std::uint64_t kAcceptances[] = {0xcccc000000000003, 0xdddd000000000004};
constexpr std::uint64_t kLives[] = {0x1111000000000005, 0x2222000000000006};

Bytes datagram_of(ProcessId from, const Bytes& frame) {
  DatagramEnvelope envelope{0, kDatagramMagic, kJobKey, kUid, from.nid, from.pid};
  seal_envelope(envelope);
  return joined(bytes_of(envelope), frame);
}

/// Frames between the two, in envelopes and datagrams.
class FrameCapture {
 public:
  explicit FrameCapture(const std::string& path) : capture_(path) {}

  /// @param of_sender  whether the sender of the link sends it, and not its receiver
  FrameHeader header(FrameKind kind, bool link_of_asker) {
    FrameHeader made{};
    made.kind = kind;
    made.link = kLinks[link_of_asker ? 0 : 1];
    made.acceptance = kind == FrameKind::kOpen ? 0 : kAcceptances[link_of_asker ? 0 : 1];
    made.sent_ns = now_ns_ += 1000;
    return made;
  }

  void send(bool from_asker, FrameHeader frame, std::span<const std::byte> body, bool damaged = false) {
    seal_frame(frame, body);
    Bytes bytes = joined(bytes_of(frame), body);
    if (damaged) bytes.back() ^= std::byte{1};
    send_bytes(from_asker, bytes);
  }

  void send_bytes(bool from_asker, const Bytes& frame) {
    const ProcessId from = from_asker ? kAsks : kAnswers;
    send_datagram(from_asker, datagram_of(from, frame));
  }

  void send_datagram(bool from_asker, std::span<const std::byte> datagram) {
    capture_.datagram(from_asker ? kAsks : kAnswers, from_asker ? kAnswers : kAsks, datagram);
  }

  /// A packet in one frame.
  void send_packet(const ExamplePacket& packet) {
    FrameHeader frame = header(FrameKind::kData, packet.of_asker);
    frame.traffic = traffic_class_of(packet.header);
    frame.sequence = next_[packet.of_asker ? 0 : 1][static_cast<std::size_t>(frame.traffic)]++;
    const Bytes bytes = whole(packet);
    frame.packet_bytes = static_cast<std::uint32_t>(bytes.size());
    frame.fragment_count = 1;
    send(packet.of_asker, frame, bytes);
  }

  /// One piece of a packet.
  void send_piece(const Bytes& packet, std::uint16_t index, std::uint16_t count, std::uint64_t sent_ns = 0) {
    const auto piece_bytes = static_cast<std::uint32_t>(packet.size() / count);
    FrameHeader frame = header(FrameKind::kData, true);
    if (sent_ns != 0) frame.sent_ns = sent_ns;
    frame.sequence = index;
    frame.packet_bytes = static_cast<std::uint32_t>(packet.size());
    frame.packet_offset = index * piece_bytes;
    frame.fragment_index = index;
    frame.fragment_count = count;
    const bool is_last = index + 1 == count;
    send(true, frame,
         std::span(packet).subspan(frame.packet_offset, is_last ? packet.size() - frame.packet_offset : piece_bytes));
  }

 private:
  IpCapture capture_;
  std::uint64_t now_ns_ = 5'000'000;
  std::uint32_t next_[2][kTrafficClassCount] = {};
};

void write_packets(const std::string& path) {
  FrameCapture capture(path);
  for (const ExamplePacket& packet : example_packets()) capture.send_packet(packet);
}

void write_frames(const std::string& path) {
  FrameCapture capture(path);
  const Knock knock{4'000'000};
  capture.send_datagram(true, bytes_of(knock));
  FrameHeader open = capture.header(FrameKind::kOpen, true);
  open.life = kLives[0];
  open.ear = 30001;
  capture.send(true, open, {});
  FrameHeader accept = capture.header(FrameKind::kAccept, true);
  accept.life = kLives[1];
  capture.send(false, accept, {});
  capture.send(true, capture.header(FrameKind::kProbe, true), {});
  const AckBody nothing{{0, 0}, {0, 0}, 5'003'000, 700};
  capture.send(false, capture.header(FrameKind::kAck, true), bytes_of(nothing));

  // A packet in three frames: the second is sent again, the third comes before it and twice.
  const Bytes packet = whole(example_put(200));
  capture.send_piece(packet, 0, 3);
  capture.send_piece(packet, 2, 3, 6'000'000);
  capture.send_piece(packet, 2, 3, 6'000'000);
  const AckBody two{{1, 0}, {2, 0}, 6'000'000, 900};
  capture.send(false, capture.header(FrameKind::kAck, true), bytes_of(two));
  capture.send_piece(packet, 1, 3);
  capture.send_piece(packet, 1, 3);

  FrameHeader gap = capture.header(FrameKind::kData, true);
  gap.sequence = 3;
  gap.flags = kFrameGap;
  gap.packet_bytes = 64;
  gap.fragment_count = 1;
  capture.send(true, gap, {});
  FrameHeader damaged = capture.header(FrameKind::kData, true);
  damaged.sequence = 4;
  damaged.packet_bytes = 64;
  damaged.fragment_count = 1;
  capture.send(true, damaged, whole(example_put(0)), true);
  capture.send(false, capture.header(FrameKind::kCheck, true), {});
  capture.send(true, capture.header(FrameKind::kClose, true), {});
  capture.send(false, capture.header(FrameKind::kNoReceiver, true), {});
  capture.send(true, capture.header(FrameKind::kNoSender, false), {});

  // What this dissector does not know, or nobody sends.
  DatagramEnvelope other{0, kDatagramMagic + (1u << 24), kJobKey, kUid, kAsks.nid, kAsks.pid};
  seal_envelope(other);
  capture.send_datagram(true, joined(bytes_of(other), Bytes(80)));
  capture.send(true, capture.header(FrameKind::kInvalid, true), {});
  capture.send_bytes(true, Bytes(20));
}

/// The asker asks twice and is told once; that the other accepts no connection; and that it has moved.
void write_directory(const std::string& path) {
  IpCapture capture(path);
  DirectoryMessage message{kDirectoryMagic,    kJobKey, kUid, DirectoryKind::kAsk, 0x5020000000000700,
                           0x7777000000000001, 0,       30001};
  for (const DirectoryKind outcome : {DirectoryKind::kFound, DirectoryKind::kNobody}) {
    message.kind = DirectoryKind::kAsk;
    message.ear = 30001;
    message.pid = 0;
    ++message.nonce;
    capture.datagram(kAsks, {kAnswers.nid, 21000}, bytes_of(message));
    message.kind = outcome;
    message.ear = outcome == DirectoryKind::kFound ? 1 : 0;
    message.pid = outcome == DirectoryKind::kFound ? kAnswers.pid : 0;
    capture.datagram({kAnswers.nid, 21000}, kAsks, bytes_of(message));
  }
  for (const LetterKind kind : {LetterKind::kAsk, LetterKind::kShort}) {
    const Letter letter{kLetterMagic, kind, 4711};
    const bool asks = kind == LetterKind::kAsk;
    capture.datagram(asks ? kAsks : kAnswers, asks ? kAnswers : kAsks, bytes_of(letter));
  }
  NamesNews news{kNewsMagic,         kJobKey,  kUid, NewsKind::kMoved, kAnswers.nid, kAnswers.pid,
                 0x6666000000000001, kLives[1]};
  capture.datagram({kAnswers.nid, 33333}, {kAsks.nid, 30001}, bytes_of(news));
  news.kind = NewsKind::kHeard;
  capture.datagram({kAsks.nid, 30001}, {kAnswers.nid, 33333}, bytes_of(news));
}

/// What libfabric puts in front of a message: that of its provider tcp, which has the length of all, and that of
/// ofi_rxm.
Bytes as_of_libfabric(const Bytes& message) {
  constexpr std::size_t kRxmBytes = 64;
  struct {
    std::uint8_t version = 3, operation = 0;
    std::uint16_t flags = 0;
    std::uint8_t data = 0, vectors = 0, head_bytes = 16, reserved = 0;
    std::uint64_t bytes = 0;
  } head;
  head.bytes = sizeof head + kRxmBytes + message.size();
  return joined(joined(bytes_of(head), Bytes(kRxmBytes)), message);
}

class OfiCapture {
 public:
  explicit OfiCapture(const std::string& path) : capture_(path) {}

  static Bytes message(bool from_asker, OfiKind kind, std::uint32_t link, std::uint64_t count, const Bytes& rest = {}) {
    const ProcessId from = from_asker ? kAsks : kAnswers;
    OfiEnvelope head{kOfiMagic,
                     kJobKey,
                     kUid,
                     kind,
                     from.nid,
                     from.pid,
                     kLives[from_asker ? 0 : 1],
                     kind == OfiKind::kHello ? 0 : kLives[from_asker ? 1 : 0],
                     link,
                     kind == OfiKind::kGoodbye ? 1u : 0u,
                     count};
    Bytes lined(sizeof head);  // What is behind its last field is as it was.
    std::memcpy(lined.data(), &head, offsetof(OfiEnvelope, count) + sizeof head.count);
    return as_of_libfabric(joined(lined, rest));
  }

  void send(bool from_asker, std::span<const std::byte> bytes) {
    capture_.segment(from_asker ? kAsks : kAnswers, from_asker ? kAnswers : kAsks, bytes);
  }

 private:
  IpCapture capture_;
};

void write_fabric(const std::string& path) {
  OfiCapture capture(path);
  const auto make = OfiCapture::message;
  capture.send(true, make(true, OfiKind::kHello, 1, HelloCount{0x123456789abc, 30001}.packed(), {}));
  capture.send(false, make(false, OfiKind::kWelcome, 1, 64, {}));
  ExamplePacket put = example_put(300);
  put.header.operation_id = 77;
  put.header.flags = kFlagAnswerWanted;
  // Two messages in one segment, the second of which ends in another.
  const Bytes two = joined(make(true, OfiKind::kProbe, 1, 0, {}), make(true, OfiKind::kPacket, 1, 0, whole(put)));
  capture.send(true, std::span(two).first(300));
  capture.send(true, std::span(two).subspan(300));
  ExamplePacket answer = example_packets()[1];
  answer.header.operation_id = 77;
  capture.send(false, make(false, OfiKind::kPacket, 1, 0, whole(answer)));
  ExamplePacket lent = example_put(100'000);
  const OfiLoan loan{0x7fff00001000, 0x8888000000000001};
  capture.send(true, make(true, OfiKind::kLoan, 1, 1, joined(bytes_of(lent.header), bytes_of(loan))));
  capture.send(false, make(false, OfiKind::kCredit, 1, 2, {}));
  capture.send(true, make(true, OfiKind::kGoodbye, 1, 2, {}));
  capture.send(true, make(true, OfiKind::kHello, 2, HelloCount{0x123456789abc, 30001}.packed(), {}));
  capture.send(false, make(false, OfiKind::kRefusal, 2, 0, {}));
}

/// What both processes of an exchange in a node capture: each packet as it is sent, and as it is received.
void write_node(const std::string& path) {
  std::string why;
  const auto file = CaptureFile::create(path, "10.0.0.1-1001", &why);
  if (file == nullptr) throw std::runtime_error(why);
  std::uint64_t now_ns = 1'000'000'000;
  const auto write = [&](CaptureRecord record, const ExamplePacket* packet, bool of_asker) {
    record.magic = kCaptureMagic;
    record.source = of_asker ? kAsks : kAnswers;
    record.target = of_asker ? kAnswers : kAsks;
    for (const CaptureDirection direction : {CaptureDirection::kSent, CaptureDirection::kReceived}) {
      record.direction = direction;
      const CapturePayload place = record.payload;
      if (direction == CaptureDirection::kSent) record.payload = CapturePayload::kHere;
      const bool is_here = packet != nullptr && record.payload == CapturePayload::kHere;
      file->write(now_ns += 1000, record, packet != nullptr ? &packet->header : nullptr,
                  is_here ? packet->payload.data() : nullptr);
      record.payload = place;
    }
  };
  CaptureRecord record{};
  record.kind = CaptureKind::kPacket;
  record.medium = CaptureMedium::kSharedMemory;
  for (const ExamplePacket& packet : example_packets()) write(record, &packet, packet.of_asker);
  // A put whose payload stays with its sender, one whose payload is written to its place, and their acknowledgements.
  ExamplePacket put = example_put(100);
  put.header.flags = kFlagAnswerWanted;
  for (const CapturePayload place : {CapturePayload::kAtSender, CapturePayload::kPlaced}) {
    record.payload = place;
    ++put.header.operation_id;
    write(record, &put, true);
    CaptureRecord acknowledgement{};
    acknowledgement.kind = CaptureKind::kAcknowledgement;
    acknowledgement.medium = CaptureMedium::kOtherNodes;
    acknowledgement.operation_id = put.header.operation_id;
    write(acknowledgement, nullptr, false);
  }
  CaptureRecord own{};
  own.kind = CaptureKind::kPacket;
  own.medium = CaptureMedium::kLoopback;
  write(own, &put, true);
}

}  // namespace
}  // namespace portofu::wireshark

int main(int argument_count, char** arguments) {
  using namespace portofu::wireshark;
  if (argument_count != 2) return 2;
  const std::string directory = std::string(arguments[1]) + "/";
  try {
    write_packets(directory + "packets.pcap");
    write_frames(directory + "frames.pcap");
    write_directory(directory + "directory.pcap");
    write_fabric(directory + "fabric.pcap");
    write_node(directory + "node.pcapng");
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
  return 0;
}
