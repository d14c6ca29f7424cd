// Active messages on FUNi: the primitives of appendix A of the thesis (funi.h), and what its matrix product needs
// beside. -lfuni.
//
// A message names a function of the receiver, which is called with the message's words as arguments. Requests and
// replies have queues of their own. A handler of a request may send replies; a handler of a reply may send nothing.
// Handlers run inside of the calls of this header, in the thread that makes them; that is one thread of a process.
//
// All processes run the same program. A handler is a function of the program itself, not of a library: what travels is
// where it lies in the program. Words have 32 bits.
//
// Functions return FUNI_SUCCESS or a code of funi.h. Beside what they say themselves, all that send, poll or wait
// return what the interface has met, as funi_read does, and FUNI_ERR_PACKET if a message came that is none of CMAM's.
#ifndef CMAM_H
#define CMAM_H

#include <funi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CMAM_API __attribute__((visibility("default")))
#else
#define CMAM_API
#endif

#define CMAM_MOST_BYTES 80  ///< Of the arguments of one message.
#define CMAM_SEGMENTS 64    ///< Open at a time.
#define CMAM_SEGMENT_BYTES (1 << 24)

/// Of cmam_4.
typedef void (*cmam_handler_t)(int i1, int i2, int i3, int i4);
/// Of cmam_n. The arguments are gone when it returns.
typedef void (*cmam_n_handler_t)(const void* arguments, int bytes);
/// Of cmam_indirect_4: gets the address of the pointer that it was called by.
typedef void (*cmam_indirect_handler_t)(void* pointer, int i1, int i2, int i3, int i4);
/// Of cmam_indirect_n.
typedef void (*cmam_indirect_n_handler_t)(void* pointer, const void* arguments, int bytes);
/// Called when a segment is complete.
typedef int (*cmam_end_t)(void* info, void* base);

/// Begins active messages on an interface. Sets up its queues, 256 slots each.
/// @param ni     stays the caller's, and must stay open; its queues must have halted, as behind funi_open
/// @param node   own number
/// @param nodes  that take part, numbered from 0; there must be a route to each
/// @return FUNI_ERR_ARGUMENT, FUNI_ERR_BUSY if the process has begun them before, FUNI_ERR_MEMORY
CMAM_API int cmam_open(funi_t ni, uint32_t node, uint32_t nodes);

/// Ends active messages. Messages that have not been handled are lost; call cmam_barrier before.
/// @return FUNI_ERR_BUSY from a handler
CMAM_API int cmam_close(void);

/// Own number. @return -1 before cmam_open
CMAM_API int cmam_self_address(void);

/// How many nodes there are. @return 0 before cmam_open
CMAM_API int cmam_partition_size(void);

// ---- Sending -------------------------------------------------------------------------------------------------------

// What sends waits while a send queue is full, and calls handlers meanwhile: requests those of both classes, replies
// those of replies. Behind each packet, too, it handles what has come.
// Return: FUNI_SUCCESS, FUNI_ERR_ARGUMENT, FUNI_ERR_HANDLER for a request from a handler, or a reply from one of a
// reply.

/// Sends a request with four arguments.
/// @param node  of the receiver
/// @param fun   called there
CMAM_API int cmam_4(int node, cmam_handler_t fun, int i1, int i2, int i3, int i4);

/// Sends a reply with four arguments.
CMAM_API int cmam_reply_4(int node, cmam_handler_t fun, int i1, int i2, int i3, int i4);

/// Sends a request for the function that a variable of the receiver points to.
/// @param fun  where the variable is, which is a static one of the program
CMAM_API int cmam_indirect_4(int node, cmam_indirect_handler_t* fun, int i1, int i2, int i3, int i4);

/// Sends a reply for the function that a variable of the receiver points to.
CMAM_API int cmam_reply_indirect_4(int node, cmam_indirect_handler_t* fun, int i1, int i2, int i3, int i4);

/// Sends a request with up to 20 words of arguments.
/// @param nbyte  a multiple of 4, at most CMAM_MOST_BYTES
CMAM_API int cmam_n(int node, cmam_n_handler_t fun, const void* arguments, int nbyte);

/// Sends a reply with up to 20 words of arguments.
CMAM_API int cmam_reply_n(int node, cmam_n_handler_t fun, const void* arguments, int nbyte);

/// Sends a request with up to 20 words for the function that a variable of the receiver points to.
CMAM_API int cmam_indirect_n(int node, cmam_indirect_n_handler_t* fun, const void* arguments, int nbyte);

/// Sends a reply with up to 20 words for the function that a variable of the receiver points to.
CMAM_API int cmam_reply_indirect_n(int node, cmam_indirect_n_handler_t* fun, const void* arguments, int nbyte);

/// Sends 16 bytes into a segment of the receiver, as a request.
/// @param seg_addr  what cmam_open_segment gave there, plus an offset in bytes, a multiple of 16
CMAM_API int cmam_xfer_4(int node, unsigned int seg_addr, int i1, int i2, int i3, int i4);

/// Sends 16 bytes into a segment of the receiver, as a reply.
CMAM_API int cmam_reply_xfer_4(int node, unsigned int seg_addr, int i1, int i2, int i3, int i4);

/// Sends up to 64 bytes from memory to memory, as a request: the interfaces move them, no handler does.
/// @param seg_addr  of the segment that the bytes are counted for
/// @param source    memory that is mapped (funi_map), aligned to 16 bytes
/// @param dest      address of the receiver's memory, aligned to 16 bytes
/// @param nbyte     a multiple of 16, at most 64. `source` may be changed when cmam_is_sent says so
CMAM_API int cmam_mfer_n(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte);

/// Sends up to 64 bytes from memory to memory, as a reply.
CMAM_API int cmam_reply_mfer_n(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte);

/// Sends a block by cmam_xfer_4.
/// @param nbyte  a multiple of 16
CMAM_API int cmam_xfer(int node, unsigned int seg_addr, const void* source, int nbyte);

/// Sends a block by cmam_reply_xfer_4.
CMAM_API int cmam_reply_xfer(int node, unsigned int seg_addr, const void* source, int nbyte);

/// Sends a block by cmam_mfer_n.
/// @param nbyte  a multiple of 16
CMAM_API int cmam_mfer(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte);

/// Sends a block by cmam_reply_mfer_n.
CMAM_API int cmam_reply_mfer(int node, unsigned int seg_addr, const void* source, uint32_t dest, int nbyte);

// ---- Receiving and waiting -----------------------------------------------------------------------------------------

/// Whether the interface has retrieved all that was sent, so that sources may be changed.
/// @return 1, 0, or an error
CMAM_API int cmam_is_sent(void);

/// Opens a segment: memory that others send a number of bytes into. It closes by itself when they have come.
/// @param base   aligned to 16 bytes
/// @param nbyte  a multiple of 16, at most CMAM_SEGMENT_BYTES
/// @param fun    called then, inside of whatever call handles the last of them; or NULL
/// @return what the senders name it by, >= 0; FUNI_ERR_ARGUMENT; FUNI_ERR_MEMORY if CMAM_SEGMENTS are open
CMAM_API int cmam_open_segment(void* base, int nbyte, cmam_end_t fun, void* info);

/// Calls the handlers of all that has come, replies first; from a handler of a request those of replies only.
/// @return FUNI_ERR_HANDLER from a handler of a reply
CMAM_API int cmam_poll(void);

/// Polls until `*flag` is at least `value`, and takes `value` off it. Sleeps while nothing comes.
/// @return FUNI_ERR_HANDLER from a handler
CMAM_API int cmam_wait(int* flag, int value);

/// Waits until all nodes have called it, and handles what comes meanwhile.
/// @return FUNI_ERR_HANDLER from a handler
CMAM_API int cmam_barrier(void);

#ifdef __cplusplus
}
#endif

#endif
