-- The names, fields and checksum of portofu.lua, which loads this file: both lie in one directory. The numbers are those
-- of the engine's headers; tests/wireshark compares them.

local m = {}

-- What a format begins with: three letters, and its version, which is the only one that is known here.
m.magics = {Pod = 2, PoD = 2, PoL = 1, PoN = 1, Pof = 8, Poc = 1}

-- ---- Names of numbers ----------------------------------------------------------------------------------------------

-- Names of consecutive numbers from `first` on, and that of 0 if there is one.
local function from(first, names, zero)
  local named = {[0] = zero}
  for i, name in ipairs(names) do named[first + i - 1] = name end
  return named
end

m.packet_types = from(0, {"invalid", "put", "get", "atomic", "fetch_atomic", "swap", "data", "answer", "tofu_put",
                          "tofu_get", "tofu_armw", "tofu_fault", "tofu_gate"})
m.ni_fails = from(0, {"ok", "undeliverable", "pt_disabled", "dropped", "perm_violation", "op_violation", "segv",
                      "no_match", "bad_stadd", "bad_length", "truncated", "canceled"})
m.frame_kinds = from(0, {"invalid", "open", "accept", "data", "ack", "probe", "close", "check", "no_receiver",
                         "no_sender"})
m.traffic_classes = from(0, {"request", "answer"})
m.ofi_kinds = from(1, {"hello", "welcome", "refusal", "packet", "credit", "probe", "goodbye", "loan"})
m.directory_kinds = from(1, {"ask", "found", "nobody"})
m.letter_kinds = from(1, {"ask", "short"})
m.news_kinds = from(1, {"moved", "heard"})
m.atomic_operations = from(32, {"min", "max", "sum", "diff", "prod", "lor", "land", "bor", "band", "lxor", "bxor",
                                "swap", "cswap", "cswap_ne", "cswap_le", "cswap_lt", "cswap_ge", "cswap_gt", "mswap",
                                "atomic_read", "atomic_write"}, "none")
m.atomic_types = from(64, {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float",
                           "float_complex", "double", "double_complex", "long_double", "long_double_complex"}, "none")
m.capture_kinds = from(1, {"packet", "acknowledgement"})
m.capture_directions = from(0, {"received", "sent"})
m.capture_media = from(0, {"loopback", "shared_memory", "other_nodes"})
m.capture_payloads = from(0, {"here", "at_sender", "placed"})
m.reduce_operations = from(1, {"barrier", "band", "bor", "bxor", "max", "maxloc", "sum", "bfpsum"})
m.interfaces = {[0] = "non-matching, physical", "matching, physical", "non-matching, logical", "matching, logical",
                "libfabric", [6] = "uTofu"}

-- ---- Fields --------------------------------------------------------------------------------------------------------

local f = {}
m.fields = f
local function field(name, text, kind, ...)
  f[name] = ProtoField[kind]("portofu." .. name, text, ...)
end
local function number(name, text, bits, names, mask)
  field(name, text, "uint" .. bits, base.DEC, names, mask)
end
local function hex(name, text, bits, mask) field(name, text, "uint" .. bits, base.HEX, nil, mask) end
local function flag(name, text, mask, bits) field(name, text, "bool", bits or 8, nil, mask) end

field("envelope", "Envelope of a datagram", "none")
hex("envelope.checksum", "Checksum", 32)
field("magic", "Format", "string")
hex("job_key", "Job key", 32)
number("uid", "Usage ID", 32)
field("nid", "NID of the sender", "ipv4")
number("pid", "PID of the sender", 32)

field("frame", "Frame of the reliable wire", "none")
hex("frame.checksum", "Checksum", 32)
number("frame.format", "Format", 8)
number("frame.kind", "Kind", 8, m.frame_kinds)
number("frame.traffic", "Class", 8, m.traffic_classes)
hex("frame.flags", "Flags", 8)
flag("frame.flags.gap", "Gap", 1)
hex("frame.link", "Link", 64)
hex("frame.acceptance", "Acceptance", 64)
hex("frame.life", "Life of the sending process", 64)
number("frame.sent_ns", "Left at (ns, its clock)", 64)
number("frame.sequence", "Sequence number", 32)
number("frame.packet_bytes", "Bytes of the packet", 32)
number("frame.packet_offset", "Offset in the packet", 32)
number("frame.fragment_index", "Fragment", 16)
number("frame.fragment_count", "Fragments", 16)
number("frame.body_bytes", "Bytes behind the header", 32)
number("frame.ear", "Port for news of names", 32)
field("frame.fragment", "Piece of a packet", "bytes")
number("ack.next_request", "Next request", 32)
number("ack.next_answer", "Next answer", 32)
hex("ack.selected_requests", "Requests behind it that are here", 64)
hex("ack.selected_answers", "Answers behind it that are here", 64)
number("ack.echo_ns", "Latest that has arrived left at (ns)", 64)
number("ack.hold_ns", "How long ago it arrived (ns)", 64)

field("ofi", "Message of the fabric wire", "none")
number("ofi.kind", "Kind", 32, m.ofi_kinds)
hex("ofi.life", "Life of the sending process", 64)
hex("ofi.peer_life", "Life that is meant", 64)
number("ofi.link", "Link", 32)
number("ofi.ends", "The sending process ends", 32)
number("ofi.count", "Count", 64)
hex("ofi.hello.node", "Node of the sender", 64)
number("ofi.hello.ear", "Port for news of names", 16)
field("ofi.loan", "Loan", "none")
hex("ofi.loan.address", "Address", 64)
hex("ofi.loan.key", "Key", 64)

field("knock", "Knock at a port", "none")
number("knock.sent_ns", "Left at (ns, its clock)", 64)

field("directory", "Directory of control queues", "none")
number("directory.kind", "Kind", 32, m.directory_kinds)
hex("directory.key", "Claim key", 64)
hex("directory.nonce", "Nonce", 64)
number("directory.pid", "PID of the owner", 32)
number("directory.ear", "Port for news, or whether there will be some", 32)

field("letter", "Letter to a process that accepts no connection", "none")
number("letter.kind", "Kind", 32, m.letter_kinds)
number("letter.sent_ns", "The question left at (ns, its clock)", 64)

field("news", "News of names", "none")
number("news.kind", "Kind", 32, m.news_kinds)
field("news.nid", "NID of the process", "ipv4")
number("news.pid", "PID of the process", 32)
hex("news.nonce", "Nonce", 64)
hex("news.life", "Life that is over", 64)

field("capture", "Seen by a process", "none")
number("capture.kind", "Kind", 8, m.capture_kinds)
number("capture.direction", "Direction", 8, m.capture_directions)
number("capture.medium", "Wire", 8, m.capture_media)
number("capture.payload", "Payload", 8, m.capture_payloads)
field("capture.source_nid", "NID of the sender", "ipv4")
number("capture.source_pid", "PID of the sender", 32)
field("capture.target_nid", "NID of the receiver", "ipv4")
number("capture.target_pid", "PID of the receiver", 32)

field("packet", "Packet", "none")
number("type", "Type", 8, m.packet_types)
hex("flags", "Flags", 8)
flag("flags.answer_wanted", "An answer is wanted", 0x01)
flag("flags.published", "The entry is published", 0x01)
flag("flags.answer_stream", "Of an answer", 0x02)
flag("flags.overflow_list", "Overflow list", 0x04)
flag("flags.silent", "Raises no ACK", 0x08)
flag("flags.tells_data", "Header data is for the target's event", 0x08)
flag("flags.cut", "The message ends here", 0x10)
flag("flags.unordered", "May be overtaken", 0x20)
flag("flags.placed", "The data is at its place", 0x40)
number("interface_index", "Interface", 8, m.interfaces)
number("ni_fail_type", "Outcome", 8, m.ni_fails)
number("pt_index", "Portal table index", 16)
hex("tofu_meta", "uTofu", 16)
number("tofu_meta.edata", "EDATA", 16, nil, 0x00ff)
flag("tofu_meta.tcq_notice", "TCQ notice", 0x0100, 16)
flag("tofu_meta.local_notice", "Local MRQ notice", 0x0200, 16)
flag("tofu_meta.remote_notice", "Remote MRQ notice", 0x0400, 16)
flag("tofu_meta.strong_order", "Strong order", 0x0800, 16)
number("tofu_meta.steps", "Session progress steps", 16, nil, 0xf000)
number("atomic_operation", "Atomic operation", 8, m.atomic_operations)
number("atomic_type", "Datatype", 8, m.atomic_types)
number("payload_bytes", "Payload bytes in this packet", 32)
number("operation_id", "Operation", 32)
hex("match_bits", "Match bits", 64)
hex("local_stadd", "Local STADD", 64)
hex("vcq_handle", "VCQ handle of the sender", 64)
hex("hdr_data", "Header data", 64)
number("sender_setting", "Setting of the gate that sends", 64)
hex("sender_id", "VCQ or gate that sends", 64)
number("remote_offset", "Offset", 64)
hex("remote_stadd", "Remote STADD", 64)
number("rounds_left", "Packets that still come", 32)
number("gate_setting", "Setting of the gate that has asked", 32)
number("length", "Length of the message", 64)
number("initiator_rank", "Rank of the initiator", 32)
number("endpoint", "Endpoint of libfabric", 32)
hex("tofu_queue", "Queue of the target", 32)
number("tofu_queue.tni", "TNI", 32, nil, 0x0ff00000)
number("tofu_queue.queue", "CQ or gate", 32, nil, 0x000fff00)
number("tofu_queue.component", "Component", 32, nil, 0x000000ff)
hex("wire_word", "Word of the wire", 32)
field("operand", "Operand", "bytes")
field("payload", "Payload", "bytes")
field("gate", "Value of a gate", "none")
number("gate.operation", "Reduction", 8, m.reduce_operations)
number("gate.item_count", "Items", 8)
number("gate.mismatch", "Somebody had another operation", 8)

field("request_in", "Request in", "framenum", base.NONE, frametype.REQUEST)
field("response_in", "Response in", "framenum", base.NONE, frametype.RESPONSE)
field("time", "Time since the request", "relative_time")
field("reassembled_in", "Packet is put together in", "framenum")
field("piece_in", "Piece of the packet in", "framenum")
field("sent_before_in", "Sent before in", "framenum", base.NONE, frametype.RETRANS_PREV)
field("message_in", "Message begins in", "framenum")
field("message_ends_in", "Message ends in", "framenum")
number("message_offset", "Bytes of the message before", 64)

local e = {}
m.experts = e
local function expert_note(name, text, group, severity)
  e[name] = ProtoExpert.new("portofu.expert." .. name, text, expert.group[group], expert.severity[severity])
end
expert_note("refused", "Refused", "RESPONSE_CODE", "WARN")
expert_note("failed", "The operation failed", "RESPONSE_CODE", "WARN")
expert_note("retransmission", "Sent again", "SEQUENCE", "NOTE")
expert_note("duplicate", "The network has doubled it", "SEQUENCE", "NOTE")
expert_note("late", "Overtaken by later frames", "SEQUENCE", "CHAT")
expert_note("gap", "It is not sent again: a gap in its place", "SEQUENCE", "NOTE")
expert_note("cut", "The sender cuts its message off", "SEQUENCE", "WARN")
expert_note("checksum", "Wrong checksum: the receiver ignores it", "CHECKSUM", "ERROR")
expert_note("version", "Another version than this dissector knows", "UNDECODED", "WARN")
expert_note("short", "Shorter than it should be", "MALFORMED", "ERROR")
expert_note("unknown", "No honest sender sends this", "MALFORMED", "ERROR")

-- ---- Checksum ------------------------------------------------------------------------------------------------------

local crc_table = {}
for i = 0, 255 do
  local crc = i
  for _ = 1, 8 do
    crc = bit.band(crc, 1) == 1 and bit.bxor(bit.rshift(crc, 1), 0x82f63b78) or bit.rshift(crc, 1)
  end
  crc_table[i] = crc
end

-- CRC32C of all bytes of the range.
function m.crc32c(range)
  local crc = bit.bnot(0)
  for i = 1, range:len(), 256 do
    local bytes = range:raw(i - 1, math.min(256, range:len() - i + 1))
    for j = 1, #bytes do
      crc = bit.bxor(bit.rshift(crc, 8), crc_table[bit.band(bit.bxor(crc, bytes:byte(j)), 255)])
    end
  end
  return bit.tohex(bit.bnot(crc))
end

return m
