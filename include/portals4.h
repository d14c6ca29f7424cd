/// The C interface of Portals 4.3, in the order of chapter 3 of the spec. Every function may be called from any thread.
/// The numbers behind the names are a contract between this header and libportals.so.4: a value, once released, never
/// changes; new ones are added at the end. Needs C99 or C++11, and a machine with 64-bit pointers.
#ifndef PORTALS4_H
#define PORTALS4_H

#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PTL_API __attribute__((visibility("default")))
#else
#define PTL_API
#endif

// In C++ enumerations have a type, so that any number which a C program hands over is a value, and can be refused.
#if defined(__cplusplus) && __cplusplus >= 201103L
#define PTL_ENUM_TYPE : int
#else
#define PTL_ENUM_TYPE
#endif

// ---- 3.2 Constants -------------------------------------------------------------------------------------------------

#define PTL_MAJOR_VERSION 4
#define PTL_MINOR_VERSION 3

// ---- 3.3 Base types ------------------------------------------------------------------------------------------------

typedef uint64_t ptl_size_t;  ///< Bytes, offsets and counts.
#define PTL_SIZE_MAX UINT64_MAX

/// Handles are plain numbers, all of one C type, so that one constant initializes each of them. The library never hands
/// out 0 (a zeroed structure holds no valid handle) nor a number from 0xfffffff0 upwards (constants).
typedef uint32_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_le_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_ct_t;
#define PTL_INVALID_HANDLE 0xffffffffu
#define PTL_EQ_NONE 0xfffffffeu  ///< Where an EQ may be named: there is none, nothing is logged.
#define PTL_CT_NONE 0xfffffffdu  ///< Where a CT may be named: there is none, nothing is counted.

typedef uint32_t ptl_pt_index_t;     ///< 0 <= index <= limits.max_pt_index
typedef ptl_pt_index_t ptl_index_t;  ///< Its name in the header of Atos; not in the specification.
typedef uint64_t ptl_match_bits_t;   ///< Compared bit by bit, under the ignore bits of the ME.
typedef uint64_t ptl_hdr_data_t;     ///< 64 bits that travel in the header of a put or atomic (3.15.2).
typedef uint32_t ptl_interface_t;    ///< A physical interface; the README lists the numbers.
typedef uint32_t ptl_nid_t;          ///< A node. In Portofu its IPv4 address as an integer.
typedef uint32_t ptl_pid_t;          ///< A process on its node. Portofu never hands out 0.
typedef uint32_t ptl_rank_t;         ///< Index into the map of a logically addressed NI.
typedef uint32_t ptl_uid_t;          ///< Usage id, stamped on each message by the engine.
#define PTL_IFACE_DEFAULT UINT32_MAX
#define PTL_PT_ANY UINT32_MAX    ///< In PtlPTAlloc: any free index.
#define PTL_NID_ANY UINT32_MAX   ///< In match_id: any node.
#define PTL_PID_ANY UINT32_MAX   ///< In match_id: any process. In PtlNIInit: any free pid.
#define PTL_RANK_ANY UINT32_MAX  ///< In match_id of a logically addressed NI: any rank.
#define PTL_UID_ANY UINT32_MAX   ///< In an LE or ME: any usage id may access it.
#define PTL_PID_MAX 65535u       ///< A pid that a program asks for is smaller than this.

/// Status registers; they only grow, until the NI ends.
typedef enum PTL_ENUM_TYPE {
  PTL_SR_DROP_COUNT = 0,             ///< Messages dropped; refusals that the next two count are not in it.
  PTL_SR_PERMISSION_VIOLATIONS = 1,  ///< Messages whose usage id did not fit the entry.
  PTL_SR_OPERATION_VIOLATIONS = 2    ///< Messages whose operation (put, get) the entry does not allow.
} ptl_sr_index_t;
#define PTL_SR_LAST (PTL_SR_OPERATION_VIOLATIONS + 1)
typedef int64_t ptl_sr_value_t;

typedef uint32_t ptl_time_t;  ///< Milliseconds.
#define PTL_TIME_FOREVER UINT32_MAX

// ---- 3.4 Return codes (table 3-7) ----------------------------------------------------------------------------------

// Macros, not an enum: the spec and its users compare an ni_fail_type with PTL_OK, which compilers object to for enums.
#define PTL_OK 0
#define PTL_FAIL 1                   ///< PtlInit could not set the library up.
#define PTL_NO_INIT 2                ///< No PtlInit has succeeded in this process.
#define PTL_ARG_INVALID 3            ///< The caller's mistake: a handle, an index, an option, a range.
#define PTL_NO_SPACE 4               ///< No memory, or a limit of the NI is reached.
#define PTL_IN_USE 5                 ///< The entry has operations or headers pending, or is unlinked already.
#define PTL_IGNORED 6                ///< The logical map was not set, or there is none to read.
#define PTL_LIST_TOO_LONG 7          ///< limits.max_list_size is reached.
#define PTL_PID_IN_USE 8             ///< Another process of the node holds the pid.
#define PTL_PT_FULL 9                ///< The portal table has no free entry.
#define PTL_PT_IN_USE 10             ///< The index is taken, or entries are still on its lists.
#define PTL_PT_EQ_NEEDED 11          ///< Flow control needs an EQ on the portal table entry.
#define PTL_EQ_EMPTY 12              ///< No event, now or within the timeout.
#define PTL_EQ_DROPPED 13            ///< Success, and events were lost just before the one returned.
#define PTL_CT_NONE_REACHED 14       ///< No counter reached its test within the timeout.
#define PTL_ABORTED 15               ///< PtlAbort was called.
#define PTL_INTERRUPTED PTL_ABORTED  ///< Deprecated name, for programs written before Portals 4.3.

// ---- 3.5 Initialization and cleanup --------------------------------------------------------------------------------

/// Starts the library for this process, or takes one more reference on it.
/// @return PTL_OK | PTL_FAIL
/// @post   each success needs one PtlFini; a child of fork must call PtlInit itself. SPEC: after the last PtlFini the
///         library may be started again.
/// @spec   Portals 4.3, 3.5.1
PTL_API int PtlInit(void);

/// Gives one reference back; the last one ends every NI and frees every object of this process.
/// @spec Portals 4.3, 3.5.2
PTL_API void PtlFini(void);

/// Makes every PtlEQWait, PtlEQPoll, PtlCTWait and PtlCTPoll, waiting now or called later, return PTL_ABORTED.
/// @post may be called in a signal handler. PtlEQFree and PtlCTFree then wait until the callers inside have left.
/// @spec Portals 4.3, 3.5.3
PTL_API void PtlAbort(void);

// ---- 3.6 Network interfaces ----------------------------------------------------------------------------------------

/// Limits of one NI. Counts are numbers of objects, sizes are bytes.
typedef struct {
  int max_entries;                   ///< LEs or MEs allocated at once.
  int max_unexpected_headers;        ///< Headers kept for entries that are not posted yet.
  int max_mds;                       ///< MDs allocated at once.
  int max_cts;                       ///< CTs allocated at once.
  int max_eqs;                       ///< EQs allocated at once.
  int max_pt_index;                  ///< Largest index, itself legal; at least 249.
  int max_iovecs;                    ///< Elements in the iovec of one MD, LE or ME.
  int max_list_size;                 ///< Entries on one list of a portal table entry.
  int max_triggered_ops;             ///< Triggered operations waiting at once.
  ptl_size_t max_msg_size;           ///< Length of a put, get or reply.
  ptl_size_t max_atomic_size;        ///< Length of an atomic; up to here a byte of memory is written only once.
  ptl_size_t max_fetch_atomic_size;  ///< Length of a fetching atomic or swap.
  ptl_size_t max_waw_ordered_size;   ///< Up to here a write or read after a write is ordered per address; >= 64.
  ptl_size_t max_war_ordered_size;   ///< Up to here a write after a read is ordered per address; >= 8.
  ptl_size_t max_volatile_size;      ///< Up to here PTL_MD_VOLATILE is honoured.
  unsigned int features;             ///< PTL_TARGET_BIND_INACCESSIBLE | ...
} ptl_ni_limits_t;
#define PTL_TARGET_BIND_INACCESSIBLE (1u << 0)  ///< An LE or ME may cover memory that is not mapped.
#define PTL_TOTAL_DATA_ORDERING (1u << 1)       ///< Two short messages are written one whole after the other (2.7).
#define PTL_COHERENT_ATOMICS (1u << 2)          ///< Atomics are atomic against those of the CPU (3.15.4).

// Options of PtlNIInit: exactly one of the first pair, exactly one of the second.
#define PTL_NI_MATCHING (1u << 0)
#define PTL_NI_NO_MATCHING (1u << 1)
#define PTL_NI_LOGICAL (1u << 2)
#define PTL_NI_PHYSICAL (1u << 3)
#define PTL_NI_INIT_OPTIONS_MASK (PTL_NI_MATCHING | PTL_NI_NO_MATCHING | PTL_NI_LOGICAL | PTL_NI_PHYSICAL)

/// A process: rank on a logically addressed NI, phys on a physically addressed one. 8 bytes; rank lies over phys.nid.
typedef union {
  struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
  } phys;
  ptl_rank_t rank;
} ptl_process_t;  // 3.9.1; stands here because the functions of 3.6 use it.

/// Opens one of the four logical NIs of a physical interface, or takes one more reference on it.
/// @param iface      PTL_IFACE_DEFAULT, or a number from the README
/// @param options    PTL_NI_MATCHING or PTL_NI_NO_MATCHING, with PTL_NI_LOGICAL or PTL_NI_PHYSICAL
/// @param pid        0 <= pid < PTL_PID_MAX, or PTL_PID_ANY; ignored if the NI is open already
/// @param desired    wishes, NULL for the defaults
/// @param actual     out, may be NULL: the limits that hold
/// @param ni_handle  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_PID_IN_USE | PTL_NO_SPACE
/// @post   all NIs of one interface have one nid and pid; a logically addressed NI needs PtlSetMap before its first use
/// @spec   Portals 4.3, 3.6.2
PTL_API int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t *desired,
                      ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);

/// Gives one reference on an NI back; the last one frees the NI with all its objects.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.6.3
PTL_API int PtlNIFini(ptl_handle_ni_t ni_handle);

/// Reads one status register.
/// @param status_register  0 <= status_register < PTL_SR_LAST
/// @param status           out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.6.4
PTL_API int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);

/// Says which NI an object belongs to; an NI belongs to itself.
/// @param handle     of any kind
/// @param ni_handle  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.6.5
PTL_API int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);

/// Sets the map from ranks to processes of a logically addressed NI, in place of an earlier one. Local to this process.
/// @param map_size  number of elements, > 0
/// @param mapping   element N is the nid and pid of rank N; copied before return
/// @return PTL_OK | PTL_IGNORED | PTL_NO_INIT | PTL_ARG_INVALID (also: physically addressed NI) | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.6.6
PTL_API int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping);

/// Copies the map of a logically addressed NI.
/// @param map_size         number of elements that fit into mapping; those beyond the map stay untouched
/// @param mapping          out
/// @param actual_map_size  out: number of elements of the whole map, may be more than map_size
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID (also: physically addressed NI) | PTL_IGNORED (no map is set)
/// @spec   Portals 4.3, 3.6.7
PTL_API int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
                      ptl_size_t *actual_map_size);

// ---- 3.7 Portal table entries --------------------------------------------------------------------------------------

#define PTL_PT_ONLY_USE_ONCE (1u << 0)   ///< The priority list will hold only USE_ONCE entries. A hint in Portofu.
#define PTL_PT_ONLY_TRUNCATE (1u << 1)   ///< The priority list will hold no NO_TRUNCATE entry. A hint in Portofu.
#define PTL_PT_FLOWCTRL (1u << 2)        ///< Lack of resources disables the entry instead of dropping (2.8).
#define PTL_PT_ALLOC_DISABLED (1u << 3)  ///< The entry starts disabled, until PtlPTEnable.
#define PTL_PT_ALLOC_OPTIONS_MASK \
  (PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_FLOWCTRL | PTL_PT_ALLOC_DISABLED)

/// Allocates a portal table entry.
/// @param options       bits of PTL_PT_ALLOC_OPTIONS_MASK
/// @param eq_handle     gets the events of all entries on the lists; PTL_EQ_NONE for no full events
/// @param pt_index_req  the wanted index, or PTL_PT_ANY
/// @param pt_index      out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_PT_FULL | PTL_PT_IN_USE | PTL_PT_EQ_NEEDED
/// @spec   Portals 4.3, 3.7.1
PTL_API int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
                       ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index);

/// Frees a portal table entry whose lists are empty; its EQ stays.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_PT_IN_USE
/// @spec   Portals 4.3, 3.7.2
PTL_API int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/// Refuses new messages to a portal table entry. Blocks until those under way are done and their events delivered.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   initiators see PTL_NI_PT_DISABLED; no PTL_EVENT_PT_DISABLED is made here
/// @spec   Portals 4.3, 3.7.3
PTL_API int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/// Accepts messages to a portal table entry again, whoever disabled it. Blocks until it is enabled.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.7.4
PTL_API int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

// ---- 3.8, 3.9 Identification of users and processes ----------------------------------------------------------------

/// Gives the usage id of this process, the same on all its NIs.
/// @param uid  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.8.1
PTL_API int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);

/// Gives the address of this process as the NI speaks it: rank, or nid and pid.
/// @param id  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID (also: no map is set, or this process is not in it)
/// @spec   Portals 4.3, 3.9.2
PTL_API int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

/// Gives nid and pid of this process, whatever the addressing of the NI.
/// @param id  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.9.3
PTL_API int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);

// ---- 3.10 Memory descriptors ---------------------------------------------------------------------------------------

/// Memory of the initiator. It may cover memory that is not mapped, even the whole address space
/// (start NULL, length PTL_SIZE_MAX); only what an operation touches must be there.
typedef struct {
  void *start;                ///< First byte, or the ptl_iovec_t array if PTL_IOVEC is set.
  ptl_size_t length;          ///< Bytes, or elements of the array if PTL_IOVEC is set.
  unsigned int options;       ///< Bits of PTL_MD_OPTIONS_MASK.
  ptl_handle_eq_t eq_handle;  ///< For full events, or PTL_EQ_NONE.
  ptl_handle_ct_t ct_handle;  ///< For counts, or PTL_CT_NONE.
} ptl_md_t;

/// One piece of a scattered region: iov_base (any alignment), iov_len (bytes). Offsets run through the pieces in order.
typedef struct iovec ptl_iovec_t;

// Bit 0 is for all three kinds of region, bits 1 to 9 for MDs, 10 to 24 for LEs and MEs, 25 to 28 for MEs.
// *_DISABLE holds back full events and does not touch counts; *_EVENT_CT_* enables counts, which are off by default.
#define PTL_IOVEC (1u << 0)                     ///< start is an array of ptl_iovec_t, length its elements.
#define PTL_MD_EVENT_SEND_DISABLE (1u << 1)     ///< No PTL_EVENT_SEND.
#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 2)  ///< No event whose ni_fail_type is PTL_NI_OK.
#define PTL_MD_EVENT_CT_SEND (1u << 3)
#define PTL_MD_EVENT_CT_REPLY (1u << 4)
#define PTL_MD_EVENT_CT_ACK (1u << 5)
#define PTL_MD_EVENT_CT_BYTES (1u << 6)  ///< A success counts mlength, not 1; a failure counts 1.
#define PTL_MD_UNORDERED (1u << 7)       ///< Messages may overtake each other.
#define PTL_MD_VOLATILE (1u << 8)        ///< Up to max_volatile_size the call returns with the buffer free.
#define PTL_MD_UNRELIABLE (1u << 9)      ///< Puts may be lost; only with PTL_NO_ACK_REQ.
#define PTL_MD_OPTIONS_MASK                                                                                   \
  (PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_SEND |              \
   PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES | PTL_MD_UNORDERED | PTL_MD_VOLATILE | \
   PTL_MD_UNRELIABLE)

/// Makes a memory descriptor, which lives until PtlMDRelease.
/// @param md         copied before return; an iovec array must stay unchanged until the release
/// @param md_handle  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.10.3
PTL_API int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);

/// Frees a memory descriptor, not the memory it describes.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   the caller has seen SEND or REPLY of each operation; an ACK that is still to come is discarded
/// @spec   Portals 4.3, 3.10.4
PTL_API int PtlMDRelease(ptl_handle_md_t md_handle);

// ---- 3.11 List entries ---------------------------------------------------------------------------------------------

/// Memory of the target on a non-matching NI. start NULL and length 0 make an entry that only reports.
typedef struct {
  void *start;                ///< As in ptl_md_t.
  ptl_size_t length;          ///< As in ptl_md_t. A longer message is truncated.
  ptl_handle_ct_t ct_handle;  ///< For counts, or PTL_CT_NONE.
  ptl_uid_t uid;              ///< Who may access it, or PTL_UID_ANY.
  unsigned int options;       ///< Bits of PTL_LE_APPEND_OPTIONS_MASK.
} ptl_le_t;

typedef enum PTL_ENUM_TYPE { PTL_PRIORITY_LIST = 0, PTL_OVERFLOW_LIST = 1 } ptl_list_t;

typedef enum PTL_ENUM_TYPE {
  PTL_SEARCH_ONLY = 0,   ///< Report a matching unexpected header, leave it.
  PTL_SEARCH_DELETE = 1  ///< Report a matching unexpected header, take it off the list.
} ptl_search_op_t;

// "Comm events" are GET, PUT, ATOMIC, FETCH_ATOMIC and SEARCH; "overflow events" the four *_OVERFLOW.
#define PTL_LE_OP_PUT (1u << 10)                  ///< Allows puts; with OP_GET also fetching atomics and swaps.
#define PTL_LE_OP_GET (1u << 11)                  ///< Allows gets.
#define PTL_LE_USE_ONCE (1u << 12)                ///< One message, then it is unlinked.
#define PTL_LE_ACK_DISABLE (1u << 13)             ///< Deprecated since Portals 4.3, honoured: sends no acknowledgment.
#define PTL_LE_UNEXPECTED_HDR_DISABLE (1u << 14)  ///< Overflow list: keeps no headers, makes no AUTO_FREE.
#define PTL_LE_IS_ACCESSIBLE (1u << 15)           ///< Promise: all of its memory is mapped.
#define PTL_LE_EVENT_LINK_DISABLE (1u << 16)      ///< No LINK.
#define PTL_LE_EVENT_COMM_DISABLE (1u << 17)      ///< No comm events.
#define PTL_LE_EVENT_FLOWCTRL_DISABLE (1u << 18)  ///< No PT_DISABLED for a message that matched this entry.
#define PTL_LE_EVENT_SUCCESS_DISABLE (1u << 19)   ///< No comm or overflow event with PTL_NI_OK.
#define PTL_LE_EVENT_OVER_DISABLE (1u << 20)      ///< No overflow events.
#define PTL_LE_EVENT_UNLINK_DISABLE (1u << 21)    ///< No AUTO_UNLINK and no AUTO_FREE.
#define PTL_LE_EVENT_CT_COMM (1u << 22)           ///< Counts comm events.
#define PTL_LE_EVENT_CT_OVERFLOW (1u << 23)       ///< Counts overflow events.
#define PTL_LE_EVENT_CT_BYTES (1u << 24)          ///< A success counts mlength, not 1; a failure counts 1.
#define PTL_LE_APPEND_OPTIONS_MASK                                                                                    \
  (PTL_IOVEC | PTL_LE_OP_PUT | PTL_LE_OP_GET | PTL_LE_USE_ONCE | PTL_LE_ACK_DISABLE | PTL_LE_UNEXPECTED_HDR_DISABLE | \
   PTL_LE_IS_ACCESSIBLE | PTL_LE_EVENT_LINK_DISABLE | PTL_LE_EVENT_COMM_DISABLE | PTL_LE_EVENT_FLOWCTRL_DISABLE |     \
   PTL_LE_EVENT_SUCCESS_DISABLE | PTL_LE_EVENT_OVER_DISABLE | PTL_LE_EVENT_UNLINK_DISABLE | PTL_LE_EVENT_CT_COMM |    \
   PTL_LE_EVENT_CT_OVERFLOW | PTL_LE_EVENT_CT_BYTES)

/// Appends one list entry to a list of a portal table entry of a non-matching NI.
/// @param pt_index   index, 0 <= pt_index <= limits.max_pt_index, allocated
/// @param le         copied before return; the memory and an iovec array must stay until the entry is unlinked
/// @param ptl_list   PTL_PRIORITY_LIST | PTL_OVERFLOW_LIST
/// @param user_ptr   comes back in the events of this entry
/// @param le_handle  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE | PTL_LIST_TOO_LONG
/// @post   for the priority list, unexpected headers are searched first: each match makes an overflow event, and a
///         USE_ONCE entry that found one is never linked. PTL_EVENT_LINK follows the linking unless disabled.
/// @spec   Portals 4.3, 3.11.2
PTL_API int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le, ptl_list_t ptl_list,
                        void *user_ptr, ptl_handle_le_t *le_handle);

/// Takes a list entry off its list.
/// @return PTL_OK (no event of it will come, the handle is dead) | PTL_NO_INIT | PTL_ARG_INVALID |
///         PTL_IN_USE (pending operations, unexpected headers, or unlinked already; the entry is unchanged)
/// @spec   Portals 4.3, 3.11.3
PTL_API int PtlLEUnlink(ptl_handle_le_t le_handle);

/// Searches the unexpected headers as PtlLEAppend would, without linking the entry or judging permissions.
/// @param ptl_search_op  PTL_SEARCH_ONLY | PTL_SEARCH_DELETE
/// @param le             USE_ONCE stops at the first match, otherwise all matches are reported
/// @param user_ptr       comes back in the events of this search
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   a match makes SEARCH (ONLY) or its overflow event (DELETE); the end of a search that was not stopped by a
///         match makes SEARCH with PTL_NI_NO_MATCH. A CT counts matches as successes and that end as a failure.
/// @spec   Portals 4.3, 3.11.4
PTL_API int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
                        ptl_search_op_t ptl_search_op, void *user_ptr);

// ---- 3.12 Match list entries ---------------------------------------------------------------------------------------

/// Memory of the target on a matching NI: an LE that accepts only what fits match_id, match_bits and ignore_bits.
typedef struct {
  void *start;                   ///< As in ptl_le_t.
  ptl_size_t length;             ///< As in ptl_le_t, but see PTL_ME_NO_TRUNCATE.
  ptl_handle_ct_t ct_handle;     ///< As in ptl_le_t.
  ptl_uid_t uid;                 ///< As in ptl_le_t.
  unsigned int options;          ///< Bits of PTL_ME_APPEND_OPTIONS_MASK.
  ptl_process_t match_id;        ///< The initiator; PTL_NID_ANY, PTL_PID_ANY or PTL_RANK_ANY accept any.
  ptl_match_bits_t match_bits;   ///< Accepts if ((incoming ^ match_bits) & ~ignore_bits) == 0.
  ptl_match_bits_t ignore_bits;  ///< Bits set here are not compared.
  ptl_size_t min_free;           ///< With MANAGE_LOCAL: unlinks itself when fewer bytes are left; 0 for never.
} ptl_me_t;

#define PTL_ME_OP_PUT PTL_LE_OP_PUT
#define PTL_ME_OP_GET PTL_LE_OP_GET
#define PTL_ME_USE_ONCE PTL_LE_USE_ONCE
#define PTL_ME_ACK_DISABLE PTL_LE_ACK_DISABLE
#define PTL_ME_UNEXPECTED_HDR_DISABLE PTL_LE_UNEXPECTED_HDR_DISABLE
#define PTL_ME_IS_ACCESSIBLE PTL_LE_IS_ACCESSIBLE
#define PTL_ME_EVENT_LINK_DISABLE PTL_LE_EVENT_LINK_DISABLE
#define PTL_ME_EVENT_COMM_DISABLE PTL_LE_EVENT_COMM_DISABLE
#define PTL_ME_EVENT_FLOWCTRL_DISABLE PTL_LE_EVENT_FLOWCTRL_DISABLE
#define PTL_ME_EVENT_SUCCESS_DISABLE PTL_LE_EVENT_SUCCESS_DISABLE
#define PTL_ME_EVENT_OVER_DISABLE PTL_LE_EVENT_OVER_DISABLE
#define PTL_ME_EVENT_UNLINK_DISABLE PTL_LE_EVENT_UNLINK_DISABLE
#define PTL_ME_EVENT_CT_COMM PTL_LE_EVENT_CT_COMM
#define PTL_ME_EVENT_CT_OVERFLOW PTL_LE_EVENT_CT_OVERFLOW
#define PTL_ME_EVENT_CT_BYTES PTL_LE_EVENT_CT_BYTES
#define PTL_ME_MANAGE_LOCAL (1u << 25)          ///< The entry keeps the offset and fills up; the message's is ignored.
#define PTL_ME_NO_TRUNCATE (1u << 26)           ///< A message that does not fit does not match.
#define PTL_ME_MAY_ALIGN (1u << 27)             ///< With MANAGE_LOCAL: the library may align each message.
#define PTL_ME_LOCAL_INC_UH_RLENGTH (1u << 28)  ///< With MANAGE_LOCAL: matched headers at append move the offset too.
#define PTL_ME_APPEND_OPTIONS_MASK                                                            \
  (PTL_LE_APPEND_OPTIONS_MASK | PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE | PTL_ME_MAY_ALIGN | \
   PTL_ME_LOCAL_INC_UH_RLENGTH)

/// Appends one match list entry to a list of a portal table entry of a matching NI.
/// @param pt_index   index, 0 <= pt_index <= limits.max_pt_index, allocated
/// @param me         copied before return; the memory and an iovec array must stay until the entry is unlinked
/// @param ptl_list   PTL_PRIORITY_LIST | PTL_OVERFLOW_LIST
/// @param user_ptr   comes back in the events of this entry
/// @param me_handle  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE | PTL_LIST_TOO_LONG
/// @post   as PtlLEAppend; with LOCAL_INC_UH_RLENGTH an entry that is used up by matched headers makes AUTO_UNLINK
///         and is not linked
/// @spec   Portals 4.3, 3.12.2
PTL_API int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, ptl_list_t ptl_list,
                        void *user_ptr, ptl_handle_me_t *me_handle);

/// Takes a match list entry off its list.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_IN_USE, as PtlLEUnlink
/// @spec   Portals 4.3, 3.12.3
PTL_API int PtlMEUnlink(ptl_handle_me_t me_handle);

/// Searches the unexpected headers as PtlMEAppend would; parameters, results and events as PtlLESearch.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   PTL_ME_LOCAL_INC_UH_RLENGTH has no effect here
/// @spec   Portals 4.3, 3.12.4
PTL_API int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
                        ptl_search_op_t ptl_search_op, void *user_ptr);

// ---- 3.13 Events and event queues ----------------------------------------------------------------------------------

/// Kinds of full events. A *_OVERFLOW means: an entry just appended met a header that had come before it.
typedef enum PTL_ENUM_TYPE {
  PTL_EVENT_GET = 0,  ///< Target: the data of a get has been read.
  PTL_EVENT_GET_OVERFLOW = 1,
  PTL_EVENT_PUT = 2,  ///< Target: the data of a put is in memory.
  PTL_EVENT_PUT_OVERFLOW = 3,
  PTL_EVENT_ATOMIC = 4,  ///< Target: a non-fetching atomic is done.
  PTL_EVENT_ATOMIC_OVERFLOW = 5,
  PTL_EVENT_FETCH_ATOMIC = 6,  ///< Target: a fetching atomic or swap is done.
  PTL_EVENT_FETCH_ATOMIC_OVERFLOW = 7,
  PTL_EVENT_REPLY = 8,         ///< Initiator: the data of a get, fetching atomic or swap is in the MD.
  PTL_EVENT_SEND = 9,          ///< Initiator: the send buffer is free again; says nothing of the target.
  PTL_EVENT_ACK = 10,          ///< Initiator: the target has processed the put or atomic.
  PTL_EVENT_PT_DISABLED = 11,  ///< Target: flow control has disabled the portal table entry.
  PTL_EVENT_LINK = 12,         ///< Target: the entry is on its list.
  PTL_EVENT_AUTO_UNLINK = 13,  ///< Target: the entry left its list by itself, after all its comm events.
  PTL_EVENT_AUTO_FREE = 14,    ///< Target: an unlinked overflow entry has no headers left; its last event.
  PTL_EVENT_SEARCH = 15,       ///< Target: a search found a header, or ended (PTL_NI_NO_MATCH).
  PTL_EVENT_ERROR = 16         ///< An error that fits no other kind; has user_ptr and ni_fail_type only.
} ptl_event_kind_t;

/// How an operation ended.
typedef enum PTL_ENUM_TYPE {
  PTL_NI_OK = 0,              ///< Well.
  PTL_NI_UNDELIVERABLE = 1,   ///< The message could not reach the target.
  PTL_NI_PT_DISABLED = 2,     ///< The portal table entry was disabled. Initiator only.
  PTL_NI_DROPPED = 3,         ///< The target dropped it for another reason. Initiator only.
  PTL_NI_PERM_VIOLATION = 4,  ///< The usage id did not fit. Initiator only.
  PTL_NI_OP_VIOLATION = 5,    ///< The entry does not allow the operation. Initiator only.
  PTL_NI_SEGV = 6,            ///< Memory was not accessible.
  PTL_NI_NO_MATCH = 7         ///< A search found nothing, or nothing more.
} ptl_ni_fail_t;

/// What a put or atomic asks the target to send back.
typedef enum PTL_ENUM_TYPE {
  PTL_NO_ACK_REQ = 0,  ///< Nothing.
  PTL_ACK_REQ = 1,     ///< Enough for a full event and for a count.
  PTL_CT_ACK_REQ = 2,  ///< Enough for a count; the fields of a full event may be empty.
  PTL_OC_ACK_REQ = 3   ///< That it was processed, even if dropped or refused; a disabled entry fails it.
} ptl_ack_req_t;       // 3.15.1

/// Operations of atomics: target = target OP initiator; the swaps write the initiator's value, if the operand permits.
/// Legal combinations with datatypes and functions: table 3-4 of the spec. No number is an operation and a datatype,
/// none is 0: what a table leaves out, or is in the other's place, ends in PTL_ARG_INVALID and not in a wrong result.
/// Programs that were compiled when both were counted from 0 are refused, too, until they are compiled anew.
typedef enum PTL_ENUM_TYPE {
  PTL_MIN = 32,
  PTL_MAX = 33,
  PTL_SUM = 34,
  PTL_DIFF = 35,  ///< Target minus initiator.
  PTL_PROD = 36,
  PTL_LOR = 37,
  PTL_LAND = 38,
  PTL_BOR = 39,
  PTL_BAND = 40,
  PTL_LXOR = 41,
  PTL_BXOR = 42,
  PTL_SWAP = 43,      ///< Always; the only swap of more than one item.
  PTL_CSWAP = 44,     ///< If operand == target.
  PTL_CSWAP_NE = 45,  ///< If operand != target.
  PTL_CSWAP_LE = 46,  ///< If operand <= target.
  PTL_CSWAP_LT = 47,  ///< If operand < target.
  PTL_CSWAP_GE = 48,  ///< If operand >= target.
  PTL_CSWAP_GT = 49,  ///< If operand > target.
  PTL_MSWAP = 50      ///< The bits that are set in the operand.
} ptl_op_t;           // 3.15.4
#define PTL_OP_LAST (PTL_MSWAP + 1)

typedef enum PTL_ENUM_TYPE {
  PTL_INT8_T = 64,
  PTL_UINT8_T = 65,
  PTL_INT16_T = 66,
  PTL_UINT16_T = 67,
  PTL_INT32_T = 68,
  PTL_UINT32_T = 69,
  PTL_INT64_T = 70,
  PTL_UINT64_T = 71,
  PTL_FLOAT = 72,
  PTL_FLOAT_COMPLEX = 73,
  PTL_DOUBLE = 74,
  PTL_DOUBLE_COMPLEX = 75,
  PTL_LONG_DOUBLE = 76,  ///< As the C compiler of this machine has it.
  PTL_LONG_DOUBLE_COMPLEX = 77
} ptl_datatype_t;  // 3.15.4
#define PTL_DATATYPE_LAST (PTL_LONG_DOUBLE_COMPLEX + 1)

/// One full event. Table 3-3 of the spec says which fields a kind fills; Portofu zeroes the others.
typedef struct {
  void *start;                  ///< First byte written or read at the target; on overflow, in the overflow entry.
  void *user_ptr;               ///< From the local call that the event belongs to.
  ptl_hdr_data_t hdr_data;      ///< From the initiator of a put or atomic.
  ptl_match_bits_t match_bits;  ///< From the initiator; 0 on a non-matching NI.
  ptl_size_t rlength;           ///< Bytes the initiator asked for.
  ptl_size_t mlength;           ///< Bytes moved; less than rlength if truncated. In SEND: bytes sent.
  ptl_size_t remote_offset;     ///< Bytes. At the target: asked for; at the initiator: used by the target.
  ptl_uid_t uid;                ///< Of the initiator.
  ptl_process_t initiator;      ///< Rank, or nid and pid, as the NI is addressed.
  ptl_event_kind_t type;
  ptl_list_t ptl_list;  ///< The list that the message matched in.
  ptl_pt_index_t pt_index;
  ptl_ni_fail_t ni_fail_type;
  ptl_op_t atomic_operation;   ///< Of an atomic.
  ptl_datatype_t atomic_type;  ///< Of an atomic.
} ptl_event_t;

/// Makes an event queue.
/// @param count      events it must hold at least; the slots for PTL_EVENT_PT_DISABLED come on top
/// @param eq_handle  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @post   a full queue loses its oldest events (PTL_EQ_DROPPED); with flow control the portal table entry is
///         disabled instead
/// @spec   Portals 4.3, 3.13.5
PTL_API int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);

/// Frees an event queue that no MD and no portal table entry uses.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   whoever waits at it, or at an object of an interface that is closed, returns at once with PTL_INTERRUPTED
/// @spec   Portals 4.3, 3.13.6
PTL_API int PtlEQFree(ptl_handle_eq_t eq_handle);

/// Takes the next event off a queue, if there is one.
/// @param event  out
/// @return PTL_OK | PTL_EQ_DROPPED | PTL_EQ_EMPTY | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.13.7
PTL_API int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/// Waits for the next event of a queue and takes it. Of several waiting threads exactly one gets it.
/// @param event  out
/// @return PTL_OK | PTL_EQ_DROPPED | PTL_NO_INIT | PTL_ARG_INVALID | PTL_ABORTED
/// @spec   Portals 4.3, 3.13.8
PTL_API int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/// Takes an event off the first queue in the array that has one, or waits for one.
/// @param eq_handles  queues of NIs of one physical interface
/// @param size        number of queues
/// @param timeout     milliseconds; 0 looks once; PTL_TIME_FOREVER
/// @param event       out
/// @param which       out: index into eq_handles
/// @return PTL_OK | PTL_EQ_DROPPED | PTL_EQ_EMPTY | PTL_NO_INIT | PTL_ARG_INVALID | PTL_ABORTED
/// @spec   Portals 4.3, 3.13.9
PTL_API int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout, ptl_event_t *event,
                      unsigned int *which);

// ---- 3.14 Counting events ------------------------------------------------------------------------------------------

/// Value of a counting event. Both fields count modulo 2^64.
typedef struct {
  ptl_size_t success;  ///< Events or bytes.
  ptl_size_t failure;  ///< Events.
} ptl_ct_event_t;

/// Makes a counting event with both counts zero.
/// @param ct_handle  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.14.2
PTL_API int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);

/// Frees a counting event that no MD and no entry uses.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   triggered operations below their threshold are deleted; those that have reached it still run; whoever waits
///         for it returns at once with PTL_INTERRUPTED
/// @spec   Portals 4.3, 3.14.3
PTL_API int PtlCTFree(ptl_handle_ct_t ct_handle);

/// Deletes the triggered operations that wait on a counting event; its value stays.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.14.4
PTL_API int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);

/// Reads a counting event.
/// @param event  out
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.14.5
PTL_API int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);

/// Waits until success >= test or failure != 0. Several threads may wait on one counter.
/// @param event  out: the value then
/// @return PTL_OK (a failure too: look at event) | PTL_NO_INIT | PTL_ARG_INVALID | PTL_ABORTED
/// @spec   Portals 4.3, 3.14.6
PTL_API int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);

// clang-format off
/// Waits until one of several counters would end its PtlCTWait; the first such in the array is reported.
/// @param ct_handles  counters of NIs of one physical interface
/// @param tests       one success value for each counter
/// @param size        number of counters
/// @param timeout     milliseconds; 0 looks once; PTL_TIME_FOREVER
/// @param event       out: value of the counter
/// @param which       out: index into ct_handles
/// @return PTL_OK | PTL_CT_NONE_REACHED | PTL_NO_INIT | PTL_ARG_INVALID | PTL_ABORTED
/// @spec   Portals 4.3, 3.14.7
PTL_API int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
                      ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which);
// clang-format on

/// Sets both counts, each atomically for itself; triggers what has then reached its threshold.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.14.8
PTL_API int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);

/// Adds to one of the counts; triggers what has then reached its threshold.
/// @param increment  at most one field is not zero
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.14.9
PTL_API int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

// ---- 3.15 Data movement --------------------------------------------------------------------------------------------

/// Sends data to a process. Returns at once; events and counts go to the EQ and CT of the MD.
/// @param local_offset   bytes into the MD; local_offset + length must lie inside it
/// @param length         bytes, <= limits.max_msg_size
/// @param ack_req        what the target shall send back; with PTL_MD_UNRELIABLE only PTL_NO_ACK_REQ
/// @param target_id      rank, or nid and pid, as the NI is addressed
/// @param match_bits     ignored on a non-matching NI
/// @param remote_offset  bytes into the target's entry; ignored by an entry with PTL_ME_MANAGE_LOCAL
/// @param user_ptr       comes back in the local events
/// @param hdr_data       arrives in the target's event
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   here SEND, and ACK if asked for; at the target PUT, later PUT_OVERFLOW if it was unexpected
/// @spec   Portals 4.3, 3.15.2
PTL_API int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                   ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data);

/// Fetches data from a process into the MD; parameters as PtlPut.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   here REPLY; at the target GET, later GET_OVERFLOW if it was unexpected
/// @spec   Portals 4.3, 3.15.3
PTL_API int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
                   ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr);

/// Combines data with the memory of a process, item by item; other parameters as PtlPut.
/// @param length     bytes, <= limits.max_atomic_size, a multiple of the size of datatype
/// @param operation  PTL_MIN .. PTL_BXOR
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   each item is atomic for itself; events as PtlPut with ATOMIC, ATOMIC_OVERFLOW at the target
/// @spec   Portals 4.3, 3.15.5
PTL_API int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                      ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                      ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                      ptl_datatype_t datatype);

/// Changes the memory of a process as PtlAtomic does, and brings the old value back.
/// @param get_md_handle  where the old value goes; REPLY is reported here
/// @param put_md_handle  where the data comes from, of the same NI, not overlapping; SEND is reported here
/// @param length         bytes, <= limits.max_fetch_atomic_size, a multiple of the size of datatype
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   at the target FETCH_ATOMIC, later FETCH_ATOMIC_OVERFLOW if it was unexpected; the entry needs OP_PUT and
///         OP_GET
/// @spec   Portals 4.3, 3.15.6
PTL_API int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                           ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                           ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                           void *user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);

/// Swaps data with the memory of a process, always or under a condition; other parameters as PtlFetchAtomic.
/// @param length     bytes; one item of datatype unless the operation is PTL_SWAP
/// @param operand    one item: what PTL_CSWAP* compares, what PTL_MSWAP masks with; copied before return, unused for
///                   PTL_SWAP
/// @param operation  PTL_SWAP .. PTL_MSWAP
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @post   the old value comes back, whether swapped or not
/// @spec   Portals 4.3, 3.15.7
PTL_API int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                    ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                    const void *operand, ptl_op_t operation, ptl_datatype_t datatype);

/// Called at the target: blocks until the CPU, or another datatype, may use the memory that atomics have touched.
/// @return PTL_OK | PTL_NO_INIT
/// @post   nothing to do where PTL_COHERENT_ATOMICS is set
/// @spec   Portals 4.3, 3.15.8
PTL_API int PtlAtomicSync(void);

// ---- 3.16 Triggered operations -------------------------------------------------------------------------------------

// Each keeps the operation of the same name until the success count of trig_ct_handle is >= threshold, at once if it is
// so already. They run in the order of their thresholds, equal ones in the order of the calls, and take the data that
// is in the buffer when they run.

/// PtlPut, triggered.
/// @param threshold  of trig_ct_handle; the other parameters as PtlPut
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.16.1
PTL_API int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                            ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                            ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/// PtlGet, triggered.
/// @param threshold  of trig_ct_handle; the other parameters as PtlGet
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.16.2
PTL_API int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                            ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset, void *user_ptr, ptl_handle_ct_t trig_ct_handle,
                            ptl_size_t threshold);

/// PtlAtomic, triggered.
/// @param threshold  of trig_ct_handle; the other parameters as PtlAtomic
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.16.3
PTL_API int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
                               ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
                               ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                               ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                               ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/// PtlFetchAtomic, triggered.
/// @param threshold  of trig_ct_handle; the other parameters as PtlFetchAtomic
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.16.4
PTL_API int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
                                    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
                                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                                    ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                    ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                                    ptl_size_t threshold);

/// PtlSwap, triggered. The operand is copied before return, not when it runs.
/// @param threshold  of trig_ct_handle; the other parameters as PtlSwap
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.16.5
PTL_API int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                             ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                             ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                             void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand, ptl_op_t operation,
                             ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);

/// PtlCTInc, triggered. ct_handle may be trig_ct_handle itself.
/// @param threshold  of trig_ct_handle; the other parameters as PtlCTInc
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.16.6
PTL_API int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment, ptl_handle_ct_t trig_ct_handle,
                              ptl_size_t threshold);

/// PtlCTSet, triggered. ct_handle may be trig_ct_handle itself.
/// @param threshold  of trig_ct_handle; the other parameters as PtlCTSet
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID | PTL_NO_SPACE
/// @spec   Portals 4.3, 3.16.7
PTL_API int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct, ptl_handle_ct_t trig_ct_handle,
                              ptl_size_t threshold);

// ---- 3.17 Deferred communication -----------------------------------------------------------------------------------

/// Announces a burst of operations, which the library may hold back until PtlEndBundle. May be nested.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.17.1
PTL_API int PtlStartBundle(ptl_handle_ni_t ni_handle);

/// Ends one PtlStartBundle; everything held back so far starts.
/// @return PTL_OK | PTL_NO_INIT | PTL_ARG_INVALID
/// @spec   Portals 4.3, 3.17.2
PTL_API int PtlEndBundle(ptl_handle_ni_t ni_handle);

// ---- 3.18 Handles --------------------------------------------------------------------------------------------------

/// Compares two handles, valid or not.
/// @return 1 if both name the same object, else 0
/// @spec   Portals 4.3, 3.18.1
PTL_API int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

#ifdef __cplusplus
}
#endif

#endif  // PORTALS4_H
