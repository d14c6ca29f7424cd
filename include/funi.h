// The network interface of FUNet: J. C. Hoe, "Effective Parallel Computation on Workstation Cluster with a User-level
// Communication Network", MIT, 1994, here "the thesis". -lfuni.
//
// A program sends and receives through four circular queues in its own memory, and moves their ends by registers. The
// interface takes packets out of the send queues, delivers them, and repeats what a receiver has rejected. lib/funi has
// a page about it.
//
// An interface and all that is done with it belong to one thread at a time. What a function says about errors is all
// that it returns beside FUNI_SUCCESS. A forked child inherits no interface.
#ifndef FUNI_H
#define FUNI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FUNI_API __attribute__((visibility("default")))
#else
#define FUNI_API
#endif

// Codes are this library's own; the thesis has none.
#define FUNI_SUCCESS 0
#define FUNI_ERR_ARGUMENT (-1)   ///< A value out of range, a null pointer, a register or bit that there is not.
#define FUNI_ERR_PRIVILEGE (-2)  ///< A register that only the system may write.
#define FUNI_ERR_BUSY (-3)       ///< The register may be written only while what uses it is halted.
#define FUNI_ERR_ADDRESS (-4)    ///< An address that nothing is mapped at; bit MERR is set where the interface met it.
#define FUNI_ERR_NODE (-5)       ///< A packet to a node without a route. It was not sent.
#define FUNI_ERR_PACKET (-6)     ///< A transfer that is longer than 16 words or no multiple of 4. It was not sent.
#define FUNI_ERR_PEER (-7)       ///< A packet to a process that has ended. It was given up.
#define FUNI_ERR_MEMORY (-8)     ///< No memory, or no room in the 32 bits of addresses.
#define FUNI_ERR_NETWORK (-9)    ///< Portals, or the launcher, refuses.
#define FUNI_ERR_TIMEOUT (-10)   ///< It has not come about in time.
#define FUNI_ERR_HANDLER (-11)   ///< A handler sent what only the program itself may send (cmam.h).

// ---- 3.1.1 Packets and slots ---------------------------------------------------------------------------------------

#define FUNI_SLOT_WORDS 32      ///< 32-bit words of a slot of a queue.
#define FUNI_MESSAGE_WORDS 21   ///< Words behind the header of a message, at most.
#define FUNI_TRANSFER_WORDS 16  ///< Words that a transfer moves, at most; a multiple of 4.
#define FUNI_TYPES 512          ///< Types of packets, which mean nothing to the interface.
#define FUNI_NODES 65536        ///< Nodes are numbered from 0.
#define FUNI_GROUPS 2048        ///< Group identifiers; those whose lower five bits are all set belong to the system.

/// The first word of a slot: bit 31 for a transfer, then the type, the length in words, and the node.
#define FUNI_HEADER(type, length, node) \
  (((uint32_t)(type)&0x1ffu) << 21 | ((uint32_t)(length)&0x1fu) << 16 | ((uint32_t)(node)&0xffffu))
#define FUNI_XFER 0x80000000u
#define FUNI_HEADER_TYPE(header) ((uint32_t)(header) >> 21 & 0x1ffu)
#define FUNI_HEADER_LENGTH(header) ((uint32_t)(header) >> 16 & 0x1fu)
#define FUNI_HEADER_NODE(header) ((uint32_t)(header)&0xffffu)

// ---- 3.1.2 Registers -----------------------------------------------------------------------------------------------

/// The sixteen registers. RP is reply, RQ is request; SQ is a send queue, RQ behind it a receive queue. HD is the head,
/// where the producer writes next; TL is the tail, where the consumer reads next; both count slots.
typedef enum {
  FUNI_CNTL,       ///< Bits below.
  FUNI_QMASK,      ///< Slots of each queue, less one: 2^N - 1 with N from 1 to 16.
  FUNI_GID,        ///< Group of the packets that leave and may enter. Privileged.
  FUNI_TICKET,     ///< A bit for each line of the cache: 1 is free. Privileged.
  FUNI_RPSQ_BASE,  ///< Address of a queue, a multiple of 128. Writing it makes head and tail zero.
  FUNI_RQSQ_BASE,
  FUNI_RPRQ_BASE,
  FUNI_RQRQ_BASE,
  FUNI_RPSQ_HD,  ///< The program moves it behind what it has written.
  FUNI_RQSQ_HD,
  FUNI_RPRQ_HD,  ///< The interface moves it behind what it has delivered.
  FUNI_RQRQ_HD,
  FUNI_RPSQ_TL,  ///< The interface moves it behind what it has retrieved.
  FUNI_RQSQ_TL,
  FUNI_RPRQ_TL,  ///< The program moves it behind what it has read.
  FUNI_RQRQ_TL,
  FUNI_REGISTERS
} funi_register_t;

// Bits of FUNI_CNTL, numbered as in the list of 3.1.2.
#define FUNI_MERR (1u << 0)         ///< The interface met an address where nothing is mapped. Cleared by the system.
#define FUNI_CTXM (1u << 2)         ///< Context switch: rejects all packets, and sends none. Privileged.
#define FUNI_CTXR1 (1u << 3)        ///< No packet is without its acknowledgement: GID and TICKET may be written.
#define FUNI_CTXR1_PRIME (1u << 4)  ///< Nothing is sent any more; acknowledgements may be missing.
#define FUNI_CTXR2 (1u << 5)        ///< All that was accepted has been delivered.
#define FUNI_DRAIN (1u << 6)        ///< Transfers are delivered into the receive queue, data and all. Privileged.
#define FUNI_CRQM (1u << 7)         ///< Halts the receive queues, so that they may be changed.
#define FUNI_CRQR (1u << 8)         ///< They have halted.
#define FUNI_CSQM (1u << 9)         ///< Halts the send queues, so that they may be changed.
#define FUNI_CSQR (1u << 10)        ///< They have halted.

typedef struct funi_interface* funi_t;

/// What an interface begins with; all zero is a good choice.
typedef struct {
  uint32_t group;          ///< Group identifier, < 2048; its lower five bits must not all be set.
  uint32_t node;           ///< Own number, < 65536. funi_open_job takes the rank.
  uint32_t largest_queue;  ///< Slots of the largest queue that QMASK will ask for, a power of 2; 0 is 256. 512 and more
                           ///< take about 9 MiB for each class.
} funi_options_t;

/// Where an interface is. The numbers are of Portals.
typedef struct {
  uint32_t nid;
  uint32_t pid;
  uint32_t reply_entry;
  uint32_t request_entry;
} funi_address_t;

/// Opens an interface as an operating system prepares it for a program (3.2.1): group set, cache empty, CSQM and CRQM
/// set. Packets of the group are accepted from now on, ten of each class, until there are queues.
/// @param options  NULL is all zero
/// @param ni       out
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_MEMORY, FUNI_ERR_NETWORK
FUNI_API int funi_open(const funi_options_t* options, funi_t* ni);

/// Opens an interface in a job that `ptl_run` has started: the node is the rank, and there is a route to every rank.
/// Waits for all ranks. Without a launcher the job is this process alone.
/// @param node, nodes  out: own number, and how many there are
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_MEMORY, FUNI_ERR_NETWORK
FUNI_API int funi_open_job(const funi_options_t* options, funi_t* ni, uint32_t* node, uint32_t* nodes);

/// Closes an interface. One of a job first waits, two seconds at most, until all its packets are delivered, and then
/// for all ranks. Packets that are still in the cache or in a queue are lost, also those that were received.
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_TIMEOUT if packets were not delivered
FUNI_API int funi_close(funi_t ni);

/// Where the interface is, for the route tables of others.
/// @return FUNI_ERR_ARGUMENT
FUNI_API int funi_get_address(funi_t ni, funi_address_t* address);

/// Enters a node into the route table (3.3.1), which is the system's.
/// @param node  < 65536
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_MEMORY
FUNI_API int funi_set_route(funi_t ni, uint32_t node, const funi_address_t* address);

/// Gives memory of this process an address of 32 bits, as all addresses of the interface are. Queues, and sources and
/// destinations of transfers must be mapped. Processes that map and unmap alike get the same addresses.
/// @param start    stays the caller's
/// @param bytes    at least 1
/// @param address  out: never 0; equal to `start` modulo 4096
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_MEMORY
FUNI_API int funi_map(funi_t ni, void* start, size_t bytes, uint32_t* address);

/// Takes an address back that funi_map has given. Transfers from and to it fail from now on.
/// @return FUNI_ERR_ARGUMENT; FUNI_ERR_ADDRESS if funi_map has not given it; FUNI_ERR_BUSY for the memory of a receive
///         queue that has not halted
FUNI_API int funi_unmap(funi_t ni, uint32_t address);

/// The address of memory that is mapped.
/// @param address  out
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_ADDRESS
FUNI_API int funi_address_of(funi_t ni, const void* start, size_t bytes, uint32_t* address);

/// Reads a register. This is also when the interface works: it takes acknowledgements, delivers what has arrived, and
/// retrieves and sends what waits. It accepts and rejects packets at any time.
/// @param value  out, also with an error of the interface
/// @return FUNI_ERR_ARGUMENT; what the interface has met (FUNI_ERR_ADDRESS, FUNI_ERR_NODE, FUNI_ERR_PACKET,
///         FUNI_ERR_PEER), again by every call until funi_take_fault has taken it
FUNI_API int funi_read(funi_t ni, funi_register_t which, uint32_t* value);

/// Writes a register as a program does. Privileged bits of FUNI_CNTL, and what only the interface sets, keep their
/// values. The interface works as in funi_read.
/// @param value  addresses lose their lower seven bits
/// @return as funi_read; FUNI_ERR_PRIVILEGE; FUNI_ERR_BUSY for a base or QMASK whose queues have not halted;
///         FUNI_ERR_ADDRESS for queues that are set going where no memory is mapped
FUNI_API int funi_write(funi_t ni, funi_register_t which, uint32_t value);

/// Writes a register as the operating system does (4.1.2): also GID and TICKET, all bits of FUNI_CNTL, and the ends of
/// queues that the interface moves. RESET is not there: close the interface and open another.
/// @return as funi_write; FUNI_ERR_BUSY for GID and TICKET without CTXR1
FUNI_API int funi_write_privileged(funi_t ni, funi_register_t which, uint32_t value);

/// Sleeps until a packet or an acknowledgement arrives, and lets the interface work. Returns at once if a register that
/// was read since the last funi_wait has another value by now, since each call may take in what has arrived.
/// @param timeout_ms  at most so long; 0 looks once
/// @return as funi_read; FUNI_ERR_TIMEOUT if nothing has arrived
FUNI_API int funi_wait(funi_t ni, uint32_t timeout_ms);

/// What went wrong in the interface, the first since it was asked last.
typedef struct {
  int error;         ///< FUNI_SUCCESS if nothing has.
  uint32_t node;     ///< Where the packet was to go.
  uint32_t address;  ///< Where nothing is mapped, of FUNI_ERR_ADDRESS.
} funi_fault_t;

/// Takes the fault, so that calls succeed again. A fault that lasts (MERR) is there again with the next call.
/// @return FUNI_ERR_ARGUMENT
FUNI_API int funi_take_fault(funi_t ni, funi_fault_t* fault);

/// What an interface has done, in the units that a machine charges. By class: [0] replies, [1] requests.
typedef struct {
  uint64_t register_reads;   ///< Of registers that are not cached: 28 cycles of the processor each (6.1.1).
  uint64_t cached_reads;     ///< Of the heads of the receive queues (2.7).
  uint64_t register_writes;  ///< 2 cycles each (6.1.1).
  uint64_t retrieved[2];     ///< Packets that went from a send queue into the cache.
  uint64_t dispatched[2];    ///< Packets that left for the network, repeated ones too.
  uint64_t accepted[2];      ///< Positive acknowledgements that came back.
  uint64_t rejected[2];      ///< Negative acknowledgements that came back.
  uint64_t delivered[2];     ///< Packets that went into a receive queue.
  uint64_t held[2];          ///< Of them, those that had to wait in the receive buffer.
  uint64_t words_read;       ///< 32-bit words that the interface read from memory.
  uint64_t words_written;    ///< 32-bit words that the interface wrote to memory.
} funi_counts_t;

/// Counts of what the interface has done so far.
/// @param counts  out
/// @return FUNI_ERR_ARGUMENT
FUNI_API int funi_get_counts(funi_t ni, funi_counts_t* counts);

// ---- 4.2 Switching of contexts -------------------------------------------------------------------------------------

#define FUNI_SYSTEM_GROUP 2047  ///< Of packets that the system brings back.
#define FUNI_DRAIN_SLOTS 16     ///< Of a queue that the receive buffer is drained into, which has ten packets.

/// The state of an interface that belongs to a program, apart from its memory.
typedef struct {
  uint32_t registers[FUNI_REGISTERS];
  uint32_t drained[2];  ///< Packets that the buffer had, replies and requests.
  uint32_t memory[(2 * FUNI_DRAIN_SLOTS + 1) * FUNI_SLOT_WORDS];
} funi_context_t;

/// Makes the context of a program that begins: cache empty, CSQM and CRQM set.
/// @param group  < 2048; its lower five bits must not all be set, and differ from those of other contexts
/// @return FUNI_ERR_ARGUMENT
FUNI_API int funi_begin_context(funi_context_t* context, uint32_t group);

/// Switches a program out: waits for all acknowledgements, keeps the registers, and drains what was accepted and found
/// no slot. Packets that were rejected stay in the cache. Afterwards the interface rejects all packets.
/// @param context     out; must stay where it is until it is restored
/// @param timeout_ms  at most so long
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_TIMEOUT, or as funi_write; then the context is as it was, or the interface is
/// still
///         in context switch mode, and the call may be made again
FUNI_API int funi_save_context(funi_t ni, funi_context_t* context, uint32_t timeout_ms);

/// Switches a program in, on an interface that is in context switch mode. What was drained comes back as packets to
/// itself, under FUNI_SYSTEM_GROUP, so that nothing else comes between.
/// @return as funi_save_context
FUNI_API int funi_restore_context(funi_t ni, const funi_context_t* context, uint32_t timeout_ms);

/// Name of a code. Any thread.
/// @return such as "FUNI_ERR_PEER"; "unknown" for what is no code
FUNI_API const char* funi_error_name(int error);

#ifdef __cplusplus
}
#endif

#endif
