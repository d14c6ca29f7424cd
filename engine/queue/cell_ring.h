#pragma once
// The ring that carries the packets of one sender to one receiver, in memory that both map (or in private memory for
// packets to oneself). Before it: wire/shm or wire/loopback claims a cell. After it: the receiver's wire peeks.
//
// Layout: control (one line a writer), cells, data area. A cell is the header's line and one line of inline payload;
// the last word of the header's line is the sequence word, written last and with release, and only ever at this place,
// so that no payload can look like one. Its low half tells the lap: (position + 1) mod 2^16, which the cell's previous
// lap never left there; its high half says where the payload lies: 0 inline, kInHeader in the header's line in place of
// `length`, which then equals `payload_bytes`, kAreaBit + index of a chunk of the sender's area (which is not the
// ring's business), kLent where it has always been: in the sender's memory, where the LentPlace says that stands
// inline; else 1 + index of its first granule.
//
// What is lent from memory that the receiver does not map costs a copy by the kernel, which either end can make: the
// receiver out of the sender's memory, or, once the receiver has said where a message goes (offer), the sender into the
// receiver's. The word `taker` of the LentPlace says who has got it; the receiver begins with the first packet, the
// sender with the last.
//
// Only the sender writes cells and data, only the receiver writes `released`. Use of the data area is first in, first
// out and ends with the cell, so the sender keeps, in private memory, where the data of each cell ended. Neither end
// believes the other: the receiver bounds offset and length, the sender bounds `released`.
//
// Beside the cells the receiver tells the sender which of its operations are complete: 8 bytes each, and no packet.
//
// One thread at a time uses each end. Acquire and release sites are labelled (R1) to (R6) with their partner.

#include "engine/queue/cell_consumer.h"
#include "engine/queue/cell_producer.h"
