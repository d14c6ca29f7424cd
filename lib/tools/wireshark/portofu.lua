-- Portofu for Wireshark: every message, frame and packet that leaves a process, in datagrams, in the TCP connections of
-- libfabric, and in captures of the engine itself (PORTOFU_PCAPNG). README.md beside this file says how to use it. The
-- formats are those of the engine's headers; tests/wireshark compares names and numbers with them.
--
-- Nothing is read beyond what was captured, so a capture that is damaged brings expert notes, and never an error.

local p = Proto("portofu", "Portofu")

-- ---- Numbers -------------------------------------------------------------------------------------------------------

local PUT, GET, ATOMIC, FETCH_ATOMIC, SWAP, DATA, ANSWER = 1, 2, 3, 4, 5, 6, 7
local TOFU_PUT, TOFU_GET, TOFU_ARMW, TOFU_FAULT, TOFU_GATE = 8, 9, 10, 11, 12
local OPEN, ACCEPT, FRAME_DATA, ACK, NO_RECEIVER, NO_SENDER = 1, 2, 3, 4, 8, 9
local HELLO, WELCOME, REFUSAL, OFI_PACKET, LOAN = 1, 2, 3, 4, 8
local CAPTURED_PACKET, ACKNOWLEDGEMENT, SENT, PAYLOAD_HERE = 1, 2, 1, 0
local SWAP_OPERATION, CSWAP_OPERATION, LETTER_SHORT = 43, 44, 2

local FRAME_FORMAT = 5

local ENVELOPE_BYTES, FRAME_BYTES, PACKET_BYTES, OFI_BYTES = 24, 64, 64, 64
local ACK_BYTES, LOAN_BYTES, DIRECTORY_BYTES, NEWS_BYTES, LETTER_BYTES, KNOCK_BYTES = 40, 16, 40, 40, 16, 8
local OPERAND_BYTES, GATE_BYTES, RECORD_BYTES = 32, 8, 32

-- Messages that are longer are not put together.
local MOST_TOGETHER = 16 * 1024 * 1024

local known = require("portofu_fields")
local f, e = known.fields, known.experts
p.fields = f
p.experts = e

-- ---- What is known of other frames of the capture ------------------------------------------------------------------

local notes        -- By place (frame number, or that and more): what to say of others. Written once per capture.
local open         -- Requests without an answer, by who, whom and what.
local pieces       -- Fragments, by link, acceptance, class and sequence number of the first.
local sequences    -- Frames with data, by link, acceptance, class and sequence number.
local highest      -- The highest of these, by the same without the number.
local messages     -- First packet of a message that is not complete, by flow and class.
local places       -- "address:port" of our endpoints: a knock has nothing else to be known by.

function p.init()
  notes, open, pieces, sequences, highest, messages, places = {}, {}, {}, {}, {}, {}, {}
end

-- What is known of a place. A context `c` is of one format in one frame: `id` names it, `frame` and `time` (s) say
-- where and when, `from` and `to` between whom, `first` whether it is seen for the first time, `partial` whether the
-- capture has only its beginning. `view` keeps apart what both ends have captured.
local function note(id)
  notes[id] = notes[id] or {}
  return notes[id]
end

local function ask(c, key)
  if c.first then open[c.view .. key] = {id = c.id, frame = c.frame, time = c.time} end
end

local function answer(c, key)
  local request = c.first and open[c.view .. key]
  if not request then return end
  local own = note(c.id)
  own.request, own.time = request.frame, c.time - request.time
  if not note(request.id).response then note(request.id).response = c.frame end
end

local function show_links(c, tree)
  local own = notes[c.id]
  if not own then return end
  if own.response then tree:add(f.response_in, own.response):set_generated() end
  if own.request then
    tree:add(f.request_in, own.request):set_generated()
    local seconds = math.floor(own.time)
    tree:add(f.time, NSTime.new(seconds, math.floor((own.time - seconds) * 1e9 + 0.5))):set_generated()
  end
end

-- ---- Tools ---------------------------------------------------------------------------------------------------------

local function add_all(tree, tvb, layout)
  for i = 1, #layout, 3 do tree:add_le(f[layout[i]], tvb(layout[i + 1], layout[i + 2])) end
end

local function key64(range) return tostring(range:le_uint64()) end
local function hex64(range) return "0x" .. range:le_uint64():tohex():gsub("^0+(.)", "%1") end
local function name_of(names, value) return names[value] or ("unknown (" .. value .. ")") end

-- The magic at an offset: its letters if they are ours, and its version.
local function magic_at(tvb, offset)
  if tvb:len() < offset + 4 then return nil end
  local letters = tvb:raw(offset, 3)
  if known.magics[letters] then return letters, tvb(offset + 3, 1):uint() end
  return nil
end

-- Adds the magic. Returns whether what follows can be understood.
local function add_magic(tree, tvb, offset)
  local letters, version = magic_at(tvb, offset)
  local item = tree:add(f.magic, tvb(offset, 4), letters .. " " .. version)
  if version ~= known.magics[letters] then item:add_proto_expert_info(e.version) end
  return version == known.magics[letters]
end

local function add_info(c, text)
  local info = tostring(c.pinfo.cols.info)
  c.pinfo.cols.info = c.count == 0 and text or info .. " | " .. text
  c.count = c.count + 1
end

-- ---- Packets (engine/wire/header.h) --------------------------------------------------------------------------------

local FLAGS = {
  {0x01, "answer_wanted", "published"}, {0x02, "answer_stream", "answer_stream"},
  {0x04, "overflow_list", "overflow_list"}, {0x08, "tells_data", "silent"}, {0x10, "cut", "cut"},
  {0x20, "unordered", "unordered"}, {0x40, "placed", "placed"},
}

local function add_flags(tree, range, of_answer)
  local item = tree:add_le(f.flags, range)
  for _, one in ipairs(FLAGS) do item:add_le(f["flags." .. one[of_answer and 3 or 2]], range) end
end

-- A packet of a gate without a value says how many more of them come, and to which setting of the other gate.
local function is_notice_of_gate(kind, tvb) return kind == TOFU_GATE and tvb(8, 4):le_uint() == 0 end

local function add_tofu_fields(tree, tvb, kind)
  local meta = tree:add_le(f.tofu_meta, tvb(4, 2))
  for _, name in ipairs({"edata", "tcq_notice", "local_notice", "remote_notice", "strong_order", "steps"}) do
    meta:add_le(f["tofu_meta." .. name], tvb(4, 2))
  end
  local first = kind == TOFU_GET and "local_stadd" or kind == TOFU_GATE and "sender_setting" or "vcq_handle"
  add_all(tree, tvb, {first, 16, 8, "sender_id", 24, 8})
  add_all(tree, tvb, is_notice_of_gate(kind, tvb) and {"rounds_left", 32, 4, "gate_setting", 36, 4}
                                                  or {"remote_stadd", 32, 8})
  add_all(tree, tvb, {"length", 40, 8})
  local queue = tree:add_le(f.tofu_queue, tvb(48, 4))
  for _, name in ipairs({"tni", "queue", "component"}) do queue:add_le(f["tofu_queue." .. name], tvb(48, 4)) end
end

local function add_portals_fields(tree, tvb, kind, interface)
  add_all(tree, tvb, {"pt_index", 4, 2, "match_bits", 16, 8, "hdr_data", 24, 8, "remote_offset", 32, 8,
                      "length", 40, 8, interface == 4 and "endpoint" or "initiator_rank", 48, 4})
end

local function add_gate_value(tree, payload)
  if payload:len() < GATE_BYTES then return end
  add_all(tree:add(f.gate, payload), payload, {"gate.operation", 0, 1, "gate.item_count", 1, 1,
                                               "gate.mismatch", 2, 1})
end

-- What is here of the payload.
local function add_payload(c, tree, payload, h)
  local has_operand = h.kind == SWAP and h.operation ~= SWAP_OPERATION
                      or h.kind == TOFU_ARMW and h.operation == CSWAP_OPERATION
  local begin = has_operand and math.min(OPERAND_BYTES, payload:len()) or 0
  if begin > 0 then tree:add(f.operand, payload(0, begin)) end
  if payload:len() > begin then tree:add(f.payload, payload(begin)) end
  if h.kind == TOFU_GATE then add_gate_value(tree, payload) end
end

local function begins_message(h)
  local streams = h.kind == PUT or h.kind == TOFU_PUT or (h.kind == ANSWER and h.payload_bytes > 0)
  return streams and not h.placed and h.payload_bytes < h.length
end

-- Notes where a packet stands in its message of several packets.
local function follow_message(c, h, payload)
  local stream = c.view .. c.from .. ">" .. c.to .. (h.of_answer and "a" or "r")
  local message = messages[stream]
  if h.kind ~= DATA then
    messages[stream] = nil
    if not begins_message(h) then return end
    message = {id = c.id, frame = c.frame, length = h.length, got = 0, parts = {}, whole = h.length <= MOST_TOGETHER}
    messages[stream] = message
  elseif not message then
    return
  end
  local own = note(c.id)
  own.message, own.before = message.frame, message.got
  message.got = message.got + h.payload_bytes
  message.whole = message.whole and payload ~= nil and payload:len() == h.payload_bytes
  if message.whole and h.payload_bytes > 0 then message.parts[#message.parts + 1] = payload:bytes() end
  if message.got < message.length and not h.cut then return end
  note(message.id).message_end = c.frame
  messages[stream] = nil
  if not message.whole or message.got ~= message.length then return end
  own.data = ByteArray.new()
  for _, part in ipairs(message.parts) do own.data:append(part) end
end

local function show_message(c, tree)
  local own = notes[c.id]
  if not own or not own.message then return end
  if own.message ~= c.frame then tree:add(f.message_in, own.message):set_generated() end
  if own.message_end then tree:add(f.message_ends_in, own.message_end):set_generated() end
  tree:add(f.message_offset, UInt64(own.before)):set_generated()
  if own.data then own.data:tvb("Message") end
end

-- What links requests and answers. A fault names the put that it is about by queue and end of range.
local function link_operation(c, h, tvb)
  if h.kind == ANSWER then return answer(c, c.to .. ">" .. c.from .. " op " .. h.operation_id) end
  if h.kind == TOFU_FAULT then
    return answer(c, c.to .. ">" .. c.from .. " put " .. key64(tvb(16, 8)) .. " " .. key64(tvb(32, 8)))
  end
  if h.kind == DATA or h.kind == TOFU_GATE then return end
  if h.answer_wanted then return ask(c, c.from .. ">" .. c.to .. " op " .. h.operation_id) end
  if h.kind == TOFU_PUT then
    local past = tvb(32, 8):le_uint64() + tvb(40, 8):le_uint64()
    ask(c, c.from .. ">" .. c.to .. " put " .. key64(tvb(16, 8)) .. " " .. tostring(past))
  end
end

local function packet_text(h, tvb)
  local name = name_of(known.packet_types, h.kind)
  if h.kind == ANSWER or h.kind == TOFU_FAULT or (h.kind == DATA and h.cut) then
    name = name .. " " .. name_of(known.ni_fails, h.fail)
  end
  if h.kind >= ATOMIC and h.kind <= SWAP or h.kind == TOFU_ARMW then
    name = name .. " " .. name_of(known.atomic_operations, h.operation)
  end
  if h.kind >= PUT and h.kind <= SWAP then
    name = name .. ", table index " .. tvb(4, 2):le_uint() .. ", match bits " .. hex64(tvb(16, 8))
  elseif h.kind >= TOFU_PUT and h.kind <= TOFU_ARMW then
    name = name .. ", STADD " .. hex64(tvb(32, 8))
  end
  local bytes = h.kind == DATA and tostring(h.payload_bytes) or key64(tvb(40, 8))
  return h.kind == TOFU_GATE and name or name .. ", " .. bytes .. " bytes"
end

-- Dissects a packet at the beginning of a range; what is behind its header is payload.
-- elsewhere: the payload is not in the capture
local function dissect_packet(c, root, tvb, elsewhere)
  local tree = root:add(f.packet, tvb)
  if tvb:len() < PACKET_BYTES then return tree:add_proto_expert_info(e.short) end
  local flags = tvb(1, 1):uint()
  local h = {kind = tvb(0, 1):uint(), fail = tvb(3, 1):uint(), operation = tvb(6, 1):uint(),
             payload_bytes = tvb(8, 4):le_uint(), operation_id = tvb(12, 4):le_uint(),
             length = tvb(40, 8):le_uint64():tonumber(), answer_wanted = bit.band(flags, 0x01) ~= 0,
             cut = bit.band(flags, 0x10) ~= 0, placed = bit.band(flags, 0x40) ~= 0}
  h.of_answer = h.kind == ANSWER or h.kind == TOFU_FAULT or (h.kind == DATA and bit.band(flags, 0x02) ~= 0)
  local kind = tree:add_le(f.type, tvb(0, 1))
  if not known.packet_types[h.kind] or h.kind == 0 then kind:add_proto_expert_info(e.unknown) end
  add_flags(tree, tvb(1, 1), h.kind == ANSWER)
  add_all(tree, tvb, {"interface_index", 2, 1})
  local outcome = tree:add_le(f.ni_fail_type, tvb(3, 1))
  if h.fail ~= 0 then outcome:add_proto_expert_info(e.failed) end
  if h.cut then tree:add_proto_expert_info(e.cut) end
  add_all(tree, tvb, {"atomic_operation", 6, 1, "atomic_type", 7, 1, "payload_bytes", 8, 4, "operation_id", 12, 4})
  local of_tofu = h.kind >= TOFU_PUT and h.kind <= TOFU_GATE
  if of_tofu then add_tofu_fields(tree, tvb, h.kind) else add_portals_fields(tree, tvb, h.kind, tvb(2, 1):uint()) end
  add_all(tree, tvb, {"uid", 52, 4, "job_key", 56, 4, "wire_word", 60, 4})
  local here = math.min(tvb:len() - PACKET_BYTES, h.payload_bytes)
  local payload = not elsewhere and here > 0 and tvb(PACKET_BYTES, here) or nil
  if payload then add_payload(c, tree, payload, h) end
  if not elsewhere and not c.partial and here < h.payload_bytes then tree:add_proto_expert_info(e.short) end
  if c.captured then c.view = c.sent == h.of_answer and "target " or "initiator " end
  if c.first then
    link_operation(c, h, tvb)
    follow_message(c, h, payload)
  end
  show_links(c, tree)
  show_message(c, tree)
  add_info(c, packet_text(h, tvb))
end

-- ---- Frames of the reliable wire (engine/wire/reliable/frame.h) ----------------------------------------------------

-- Notes frames with data that come again, late, or not at all.
local function follow_sequence(c, way, sequence, sent)
  local key = way .. sequence
  local before = sequences[key]
  if before then
    note(c.id).before_in, note(c.id).doubled = before.frame, before.sent == sent
    return false
  end
  sequences[key] = {frame = c.frame, sent = sent}
  if highest[way] and sequence < highest[way] then note(c.id).late = true end
  highest[way] = math.max(highest[way] or 0, sequence)
  return true
end

-- Keeps a piece of a packet. The last one that was missing puts the packet together.
local function keep_piece(c, key, h, body)
  local packet = pieces[key] or {count = h.fragments, have = 0, bodies = {}, ids = {}}
  pieces[key] = packet
  if packet.count ~= h.fragments or packet.bodies[h.fragment] then return end
  packet.bodies[h.fragment], packet.have = body:bytes(), packet.have + 1
  packet.ids[#packet.ids + 1] = {c.id, c.frame}
  if packet.have < packet.count then return end
  local whole = ByteArray.new()
  for i = 0, packet.count - 1 do whole:append(packet.bodies[i]) end
  for _, id in ipairs(packet.ids) do note(id[1]).whole_in = c.frame end
  note(c.id).whole, note(c.id).pieces = whole, packet.ids
  pieces[key] = {count = 0, bodies = {}}
end

local function show_sequence(c, tree)
  local own = notes[c.id]
  if not own then return end
  if own.before_in then
    tree:add(f.sent_before_in, own.before_in):set_generated()
    tree:add_proto_expert_info(own.doubled and e.duplicate or e.retransmission)
    add_info(c, own.doubled and "doubled" or "sent again")
  end
  if own.late then tree:add_proto_expert_info(e.late) end
end

local function dissect_frame_data(c, tree, tvb, h, body)
  local way = c.from .. h.link .. "." .. h.acceptance .. "." .. h.traffic .. "."
  local seen_once = not c.first or follow_sequence(c, way, h.sequence, h.sent)
  show_sequence(c, tree)
  c.first = c.first and seen_once
  if h.gap then return tree:add_proto_expert_info(e.gap) end
  if h.fragments == 1 then return dissect_packet(c, c.root, body) end
  if body:len() > 0 then tree:add(f["frame.fragment"], body) end
  if h.fragment >= h.fragments or h.fragments > 64 then return tree:add_proto_expert_info(e.unknown) end
  if c.first and body:len() > 0 then keep_piece(c, way .. (h.sequence - h.fragment), h, body) end
  local own = notes[c.id]
  if own and own.whole_in and own.whole_in ~= c.frame then
    tree:add(f.reassembled_in, own.whole_in):set_generated()
  end
  if not (own and own.whole) then return add_info(c, "piece " .. h.fragment + 1 .. " of " .. h.fragments) end
  for _, id in ipairs(own.pieces) do tree:add(f.piece_in, id[2]):set_generated() end
  dissect_packet(c, c.root, own.whole:tvb("Packet"):range())
end

local ACK_LAYOUT = {"ack.next_request", 0, 4, "ack.next_answer", 4, 4, "ack.selected_requests", 8, 8,
                    "ack.selected_answers", 16, 8, "ack.echo_ns", 24, 8, "ack.hold_ns", 32, 8}

local function dissect_frame_kind(c, tree, tvb, h, body)
  add_info(c, name_of(known.frame_kinds, h.kind))
  local opening = " link " .. h.link
  if h.kind == OPEN then ask(c, c.from .. ">" .. c.to .. opening) end
  if h.kind == ACCEPT then answer(c, c.to .. ">" .. c.from .. opening) end
  if h.kind == OPEN or h.kind == ACCEPT then show_links(c, tree) end
  if h.kind == NO_RECEIVER or h.kind == NO_SENDER then tree:add_proto_expert_info(e.refused) end
  if h.kind == FRAME_DATA then return dissect_frame_data(c, tree, tvb, h, body) end
  if h.kind ~= ACK then return end
  if body:len() == ACK_BYTES then add_all(tree, body, ACK_LAYOUT) else tree:add_proto_expert_info(e.short) end
end

local function dissect_frame(c, root, tvb)
  local tree = root:add(f.frame, tvb)
  c.root = root
  if tvb:len() < FRAME_BYTES then return tree:add_proto_expert_info(e.short) end
  local sum = tree:add_le(f["frame.checksum"], tvb(0, 4))
  if not c.partial and known.crc32c(tvb(4)) ~= bit.tohex(tvb(0, 4):le_uint()) then
    sum:add_proto_expert_info(e.checksum)
    c.first = false
  end
  local format = tree:add(f["frame.format"], tvb(4, 1))
  if tvb(4, 1):uint() ~= FRAME_FORMAT then return format:add_proto_expert_info(e.version) end
  local h = {kind = tvb(5, 1):uint(), traffic = tvb(6, 1):uint(), gap = bit.band(tvb(7, 1):uint(), 1) ~= 0,
             link = key64(tvb(8, 8)), acceptance = key64(tvb(16, 8)), sent = key64(tvb(32, 8)),
             sequence = tvb(40, 4):le_uint(), fragment = tvb(52, 2):le_uint(), fragments = tvb(54, 2):le_uint()}
  local kind = tree:add(f["frame.kind"], tvb(5, 1))
  if not known.frame_kinds[h.kind] or h.kind == 0 then kind:add_proto_expert_info(e.unknown) end
  add_all(tree, tvb, {"frame.traffic", 6, 1})
  tree:add(f["frame.flags"], tvb(7, 1)):add(f["frame.flags.gap"], tvb(7, 1))
  add_all(tree, tvb, {"frame.link", 8, 8, "frame.acceptance", 16, 8, "frame.life", 24, 8, "frame.sent_ns", 32, 8,
                      "frame.sequence", 40, 4, "frame.packet_bytes", 44, 4, "frame.packet_offset", 48, 4,
                      "frame.fragment_index", 52, 2, "frame.fragment_count", 54, 2, "frame.body_bytes", 56, 4,
                      "frame.ear", 60, 4})
  local behind = tvb:len() - FRAME_BYTES
  if not c.partial and tvb(56, 4):le_uint() ~= behind then tree:add_proto_expert_info(e.short) end
  dissect_frame_kind(c, tree, tvb, h, behind > 0 and tvb(FRAME_BYTES) or tvb(0, 0))
end

-- ---- What stands alone in a datagram -------------------------------------------------------------------------------

-- An envelope and a frame (engine/wire/ofi/fabric_datagrams.h).
local function dissect_envelope(c, root, tvb)
  local tree = root:add(f.envelope, tvb(0, ENVELOPE_BYTES))
  local sum = tree:add_le(f["envelope.checksum"], tvb(0, 4))
  if not add_magic(tree, tvb, 4) then return end
  if known.crc32c(tvb(4, ENVELOPE_BYTES - 4)) ~= bit.tohex(tvb(0, 4):le_uint()) then
    sum:add_proto_expert_info(e.checksum)
    c.first = false
  end
  add_all(tree, tvb, {"job_key", 8, 4, "uid", 12, 4, "nid", 16, 4, "pid", 20, 4})
  places[c.from], places[c.to] = true, true
  dissect_frame(c, root, tvb(ENVELOPE_BYTES))
end

-- Question and answer (engine/wire/ofi/directory_message.h).
local function dissect_directory(c, tree, tvb)
  add_all(tree, tvb, {"job_key", 4, 4, "uid", 8, 4, "directory.kind", 12, 4, "directory.key", 16, 8,
                      "directory.nonce", 24, 8, "directory.pid", 32, 4, "directory.ear", 36, 4})
  local kind = tvb(12, 4):le_uint()
  local name = name_of(known.directory_kinds, kind)
  add_info(c, "directory: " .. name .. " " .. hex64(tvb(16, 8)))
  if not known.directory_kinds[kind] then tree:add_proto_expert_info(e.unknown) end
  if name == "nobody" then tree:add_proto_expert_info(e.refused) end
  local question = "directory " .. key64(tvb(16, 8)) .. key64(tvb(24, 8))
  if name == "ask" then ask(c, question) else answer(c, question) end
  show_links(c, tree)
end

-- News and "heard" (engine/segment/known_by.h).
local function dissect_news(c, tree, tvb)
  add_all(tree, tvb, {"job_key", 4, 4, "uid", 8, 4, "news.kind", 12, 4, "news.nid", 16, 4, "news.pid", 20, 4,
                      "news.nonce", 24, 8, "news.life", 32, 8})
  local kind = tvb(12, 4):le_uint()
  local name = name_of(known.news_kinds, kind)
  add_info(c, "names: " .. name)
  if not known.news_kinds[kind] then tree:add_proto_expert_info(e.unknown) end
  if name == "moved" then ask(c, "news " .. key64(tvb(24, 8))) else answer(c, "news " .. key64(tvb(24, 8))) end
  show_links(c, tree)
end

-- Letters and knocks (engine/wire/ofi/doorplate.h).
local function dissect_letter(c, tree, tvb)
  add_all(tree, tvb, {"letter.kind", 4, 4, "letter.sent_ns", 8, 8})
  local kind, number = tvb(4, 4):le_uint(), " letter " .. key64(tvb(8, 8))
  add_info(c, "letter: " .. name_of(known.letter_kinds, kind))
  if not known.letter_kinds[kind] then tree:add_proto_expert_info(e.unknown) end
  if kind == LETTER_SHORT then tree:add_proto_expert_info(e.refused) end
  if kind == LETTER_SHORT then answer(c, c.to .. c.from .. number) else ask(c, c.from .. c.to .. number) end
  show_links(c, tree)
end

-- Datagrams of one kind, which begin with their magic.
local SMALL = {PoD = {bytes = DIRECTORY_BYTES, field = f.directory, dissect = dissect_directory},
               PoN = {bytes = NEWS_BYTES, field = f.news, dissect = dissect_news},
               PoL = {bytes = LETTER_BYTES, field = f.letter, dissect = dissect_letter}}

local function dissect_small(c, root, tvb, format)
  local tree = root:add(format.field, tvb())
  if not add_magic(tree, tvb, 0) then return end
  if tvb:len() < format.bytes then return tree:add_proto_expert_info(e.short) end
  format.dissect(c, tree, tvb)
end

local function dissect_knock(c, root, tvb)
  local tree = root:add(f.knock, tvb())
  add_all(tree, tvb, {"knock.sent_ns", 0, 8})
  add_info(c, "knock")
end

-- ---- Messages of the fabric wire (engine/wire/ofi/ofi_message.h) ---------------------------------------------------

local function dissect_ofi_packet(c, root, tree, tvb, lent)
  if tvb:len() < OFI_BYTES + PACKET_BYTES + (lent and LOAN_BYTES or 0) then
    return tree:add_proto_expert_info(e.short)
  end
  if lent then
    local at = OFI_BYTES + PACKET_BYTES
    add_all(tree:add(f["ofi.loan"], tvb(at, LOAN_BYTES)), tvb, {"ofi.loan.address", at, 8, "ofi.loan.key", at + 8, 8})
    return dissect_packet(c, root, tvb(OFI_BYTES, PACKET_BYTES), true)
  end
  dissect_packet(c, root, tvb(OFI_BYTES))
end

-- tvb: a message, from its magic on
local function dissect_ofi(c, root, tvb)
  local tree = root:add(f.ofi, tvb(0, math.min(OFI_BYTES, tvb:len())))
  if not add_magic(tree, tvb, 0) then return end
  if tvb:len() < OFI_BYTES then return tree:add_proto_expert_info(e.short) end
  add_all(tree, tvb, {"job_key", 4, 4, "uid", 8, 4, "ofi.kind", 12, 4, "nid", 16, 4, "pid", 20, 4, "ofi.life", 24, 8,
                      "ofi.peer_life", 32, 8, "ofi.link", 40, 4, "ofi.ends", 44, 4, "ofi.count", 48, 8})
  local kind = tvb(12, 4):le_uint()
  local link, count = tvb(40, 4):le_uint(), key64(tvb(48, 8))
  local life, peer_life = key64(tvb(24, 8)), key64(tvb(32, 8))
  -- A message is known by its sender's life and what it says; packets are numbered in their link.
  c.id = c.frame .. ":" .. life .. "." .. link .. "." .. kind .. "." .. count
  c.from, c.to = life, peer_life
  add_info(c, name_of(known.ofi_kinds, kind))
  if not known.ofi_kinds[kind] then tree:add_proto_expert_info(e.unknown) end
  if kind == HELLO then
    add_all(tree, tvb, {"ofi.hello.ear", 48, 2})
    tree:add(f["ofi.hello.node"], tvb(50, 6), tvb(48, 8):le_uint64():rshift(16))
    ask(c, "hello " .. life .. " " .. link)
  end
  if kind == WELCOME or kind == REFUSAL then answer(c, "hello " .. peer_life .. " " .. link) end
  if kind == REFUSAL then tree:add_proto_expert_info(e.refused) end
  if kind == HELLO or kind == WELCOME or kind == REFUSAL then show_links(c, tree) end
  if kind == OFI_PACKET or kind == LOAN then dissect_ofi_packet(c, root, tree, tvb, kind == LOAN) end
end

-- ---- Captures of the engine (engine/wire/capture/capture_record.h) -------------------------------------------------

local function dissect_record(c, root, tvb)
  local tree = root:add(f.capture, tvb(0, math.min(RECORD_BYTES, tvb:len())))
  if magic_at(tvb, 0) ~= "Poc" then return tree:add_proto_expert_info(e.unknown) end
  if not add_magic(tree, tvb, 0) then return end
  if tvb:len() < RECORD_BYTES then return tree:add_proto_expert_info(e.short) end
  add_all(tree, tvb, {"capture.kind", 4, 1, "capture.direction", 5, 1, "capture.medium", 6, 1, "capture.payload", 7, 1,
                      "capture.source_nid", 8, 4, "capture.source_pid", 12, 4, "capture.target_nid", 16, 4,
                      "capture.target_pid", 20, 4})
  local kind, operation_id = tvb(4, 1):uint(), tvb(24, 4):le_uint()
  c.captured, c.sent = true, tvb(5, 1):uint() == SENT
  c.from = tostring(tvb(8, 4):le_ipv4()) .. ":" .. tvb(12, 4):le_uint()
  c.to = tostring(tvb(16, 4):le_ipv4()) .. ":" .. tvb(20, 4):le_uint()
  c.pinfo.cols.src, c.pinfo.cols.dst = c.from, c.to
  add_info(c, c.sent and "sent" or "received")
  if kind == CAPTURED_PACKET then
    if tvb:len() == RECORD_BYTES then return tree:add_proto_expert_info(e.short) end
    return dissect_packet(c, root, tvb(RECORD_BYTES), tvb(7, 1):uint() ~= PAYLOAD_HERE)
  end
  if kind ~= ACKNOWLEDGEMENT then return tree:add_proto_expert_info(e.unknown) end
  c.view = c.sent and "target " or "initiator "
  add_all(tree, tvb, {"operation_id", 24, 4})
  add_info(c, "acknowledgement of " .. operation_id)
  answer(c, c.to .. ">" .. c.from .. " op " .. operation_id)
  show_links(c, tree)
end

-- ---- How it is found -----------------------------------------------------------------------------------------------

local function context(tvb, pinfo)
  local from, to = tostring(pinfo.src) .. ":" .. pinfo.src_port, tostring(pinfo.dst) .. ":" .. pinfo.dst_port
  return {pinfo = pinfo, id = tostring(pinfo.number), frame = pinfo.number, time = pinfo.rel_ts, from = from, to = to,
          source = from, target = to, view = "", first = not pinfo.visited, count = 0,
          partial = tvb:reported_len() > tvb:len()}
end

local function begin(tvb, pinfo, root)
  pinfo.cols.protocol = "Portofu"
  return root:add(p, tvb())
end

local function dissect_udp(tvb, pinfo, root)
  local bytes, c = tvb:len(), context(tvb, pinfo)
  local letters = magic_at(tvb, 0)
  if SMALL[letters] and bytes <= SMALL[letters].bytes then
    dissect_small(c, begin(tvb, pinfo, root), tvb, SMALL[letters])
  elseif letters == "Pof" and bytes >= OFI_BYTES then
    dissect_ofi(c, begin(tvb, pinfo, root), tvb())
  elseif magic_at(tvb, 4) == "Pod" and bytes > ENVELOPE_BYTES then
    dissect_envelope(c, begin(tvb, pinfo, root), tvb)
  elseif bytes == KNOCK_BYTES and (places[c.to] or places[c.from]) then
    dissect_knock(c, begin(tvb, pinfo, root), tvb)
  else
    return 0
  end
  return bytes
end

p.dissector = dissect_udp
p:register_heuristic("udp", function(tvb, pinfo, root) return dissect_udp(tvb, pinfo, root) > 0 end)
DissectorTable.get("udp.port"):add_for_decode_as(p)

-- TCP connections of libfabric: what its provider tcp puts in front of a message begins with its version, and has the
-- length of all. Behind it stands what ofi_rxm adds, and then ours.
local stream = Proto("portofu_tcp", "Portofu in a TCP connection of libfabric")
local LIBFABRIC_VERSION, LIBFABRIC_BYTES, MOST_LIBFABRIC_BYTES, MOST_IN_FRONT = 3, 16, 2 * 1024 * 1024, 160

local function libfabric_length(tvb, _, offset)
  if tvb:len() < offset + LIBFABRIC_BYTES then return LIBFABRIC_BYTES end
  local length = tvb(offset + 8, 8):le_uint64():tonumber()
  return length >= LIBFABRIC_BYTES and length <= MOST_LIBFABRIC_BYTES and length or LIBFABRIC_BYTES
end

-- Where our message begins; nil: nowhere.
local function begin_of_ofi(tvb)
  local at = tvb:raw(0, math.min(tvb:len(), MOST_IN_FRONT)):find("Pof", LIBFABRIC_BYTES, true)
  return at and at - 1 + 4 <= tvb:len() and at - 1 or nil
end

local function dissect_libfabric(c, tvb, root)
  local at = begin_of_ofi(tvb)
  if not at then return tvb:len() end
  places[c.source], places[c.target] = true, true
  dissect_ofi(c, begin(tvb(at):tvb(), c.pinfo, root), tvb(at))
  return tvb:len()
end

function stream.dissector(tvb, pinfo, root)
  local c = context(tvb, pinfo)
  local all = c.first
  if c.partial then return dissect_libfabric(c, tvb, root) end  -- Nobody could put its rest together.
  dissect_tcp_pdus(tvb, root, LIBFABRIC_BYTES, libfabric_length, function(message, _, tree)
    c.first, c.view = all, ""
    return dissect_libfabric(c, message, tree)
  end)
  return tvb:len()
end

stream:register_heuristic("tcp", function(tvb, pinfo, root)
  if tvb:len() < LIBFABRIC_BYTES or tvb(0, 1):uint() ~= LIBFABRIC_VERSION then return false end
  if not begin_of_ofi(tvb) then return false end
  pinfo.conversation = stream
  stream.dissector(tvb, pinfo, root)
  return true
end)
DissectorTable.get("tcp.port"):add_for_decode_as(stream)

-- Captures of the engine have the link type that is free for such uses.
local record = Proto("portofu_capture", "Portofu, as a process has seen it")
function record.dissector(tvb, pinfo, root)
  dissect_record(context(tvb, pinfo), begin(tvb, pinfo, root), tvb)
  return tvb:len()
end
DissectorTable.get("wtap_encap"):add(wtap.USER0, record)
