/// The C interface of uTofu, in the order of chapter 3 of the user's guide. The numbers are those that programs built
/// for Fugaku know; none of them ever changes. Needs C99 or C++11, and a machine with 64-bit pointers.
///
/// Return values: every function that returns int gives UTOFU_SUCCESS or a negative UTOFU_ERR_*. An argument error
/// changes nothing. UTOFU_ERR_INVALID_POINTER: a pointer that is needed is NULL. UTOFU_ERR_INVALID_FLAGS: a bit that
/// the function does not know. UTOFU_ERR_INVALID_VCQ_HDL: no such VCQ in this process (the handle of a freed VCQ, too).
/// UTOFU_ERR_OUT_OF_RESOURCE: the engine of this process could not be opened, or the system refuses a queue or a gate
/// its name. UTOFU_ERR_OUT_OF_MEMORY: no memory.
///
/// Threads: every function may be called by any thread at any time, also for VCQs and VBGs without the thread-safe
/// flag; no function blocks on a peer.
#ifndef UTOFU_H
#define UTOFU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define UTOFU_API __attribute__((visibility("default")))
#else
#define UTOFU_API
#endif

// In C++ enumerations have a type, so that any number which a C program hands over is a value, and can be refused.
#if defined(__cplusplus) && __cplusplus >= 201103L
#define UTOFU_ENUM_TYPE : int
#else
#define UTOFU_ENUM_TYPE
#endif

// ---- 3.9.3 Version of this header ----------------------------------------------------------------------------------

#define UTOFU_VERSION_MAJOR 1
#define UTOFU_VERSION_MINOR 0

// ---- 3.1 Common definitions ----------------------------------------------------------------------------------------

typedef uint16_t utofu_tni_id_t;    ///< A network interface of a node: 0 .. TNIs - 1.
typedef uint16_t utofu_cq_id_t;     ///< A control queue of a TNI: 0 .. CQs - 1.
typedef uint16_t utofu_bg_id_t;     ///< A barrier gate of a TNI: 0 .. VBGs - 1.
typedef uint16_t utofu_cmp_id_t;    ///< A VCQ among those that share a CQ: 0 .. num_cmp_ids - 1.
typedef uintptr_t utofu_vcq_hdl_t;  ///< A VCQ of this process. Never 0.
typedef uint64_t utofu_vcq_id_t;    ///< A VCQ anywhere, with a default path to it. Compare ids only with equal paths.
typedef uint64_t utofu_vbg_id_t;    ///< A VBG anywhere.
typedef uint8_t utofu_path_id_t;    ///< A path to one remote VCQ. Never 0.
typedef uint64_t utofu_stadd_t;     ///< An address in registered memory; adding bytes to it gives another one.

/// Meaning of each: guide 3.1.2.
enum utofu_return_code {
  UTOFU_SUCCESS = 0,
  UTOFU_ERR_NOT_FOUND = -1,      ///< The queue is empty.
  UTOFU_ERR_NOT_COMPLETED = -2,  ///< The barrier goes on.
  UTOFU_ERR_NOT_PROCESSED = -3,
  UTOFU_ERR_BUSY = -4,  ///< A queue is full, or a barrier is in the wrong state; later it may work.
  UTOFU_ERR_USED = -5,
  UTOFU_ERR_FULL = -6,
  UTOFU_ERR_NOT_AVAILABLE = -7,
  UTOFU_ERR_NOT_SUPPORTED = -8,
  UTOFU_ERR_TCQ_OTHER = -128,  ///< Only from utofu_poll_tcq, like the following.
  UTOFU_ERR_TCQ_DESC = -129,
  UTOFU_ERR_TCQ_MEMORY = -130,
  UTOFU_ERR_TCQ_STADD = -131,
  UTOFU_ERR_TCQ_LENGTH = -132,
  UTOFU_ERR_MRQ_OTHER = -192,  ///< Only from utofu_poll_mrq, like the following.
  UTOFU_ERR_MRQ_PEER = -193,
  UTOFU_ERR_MRQ_LCL_MEMORY = -194,
  UTOFU_ERR_MRQ_RMT_MEMORY = -195,
  UTOFU_ERR_MRQ_LCL_STADD = -196,
  UTOFU_ERR_MRQ_RMT_STADD = -197,
  UTOFU_ERR_MRQ_LCL_LENGTH = -198,
  UTOFU_ERR_MRQ_RMT_LENGTH = -199,
  UTOFU_ERR_BARRIER_OTHER = -256,  ///< Only from utofu_poll_barrier and utofu_poll_reduce_*, like the following.
  UTOFU_ERR_BARRIER_MISMATCH = -257,
  UTOFU_ERR_INVALID_ARG = -512,
  UTOFU_ERR_INVALID_POINTER = -513,
  UTOFU_ERR_INVALID_FLAGS = -514,
  UTOFU_ERR_INVALID_COORDS = -515,
  UTOFU_ERR_INVALID_PATH = -516,
  UTOFU_ERR_INVALID_TNI_ID = -517,
  UTOFU_ERR_INVALID_CQ_ID = -518,
  UTOFU_ERR_INVALID_BG_ID = -519,
  UTOFU_ERR_INVALID_CMP_ID = -520,
  UTOFU_ERR_INVALID_VCQ_HDL = -521,
  UTOFU_ERR_INVALID_VCQ_ID = -522,
  UTOFU_ERR_INVALID_VBG_ID = -523,
  UTOFU_ERR_INVALID_PATH_ID = -524,
  UTOFU_ERR_INVALID_STADD = -525,
  UTOFU_ERR_INVALID_ADDRESS = -526,
  UTOFU_ERR_INVALID_SIZE = -527,
  UTOFU_ERR_INVALID_STAG = -528,
  UTOFU_ERR_INVALID_EDATA = -529,
  UTOFU_ERR_INVALID_NUMBER = -530,
  UTOFU_ERR_INVALID_OP = -531,
  UTOFU_ERR_INVALID_DESC = -532,
  UTOFU_ERR_INVALID_DATA = -533,
  UTOFU_ERR_OUT_OF_RESOURCE = -640,
  UTOFU_ERR_OUT_OF_MEMORY = -641,
  UTOFU_ERR_FATAL = -768
};

// ---- 3.2 TNI query -------------------------------------------------------------------------------------------------

#define UTOFU_ONESIDED_CAP_FLAG_SESSION_MODE (1UL << 0)
#define UTOFU_ONESIDED_CAP_FLAG_ARMW (1UL << 1)

#define UTOFU_ONESIDED_CAP_ARMW_OP_CSWAP (1UL << 0)
#define UTOFU_ONESIDED_CAP_ARMW_OP_SWAP (1UL << 1)
#define UTOFU_ONESIDED_CAP_ARMW_OP_ADD (1UL << 2)
#define UTOFU_ONESIDED_CAP_ARMW_OP_XOR (1UL << 3)
#define UTOFU_ONESIDED_CAP_ARMW_OP_AND (1UL << 4)
#define UTOFU_ONESIDED_CAP_ARMW_OP_OR (1UL << 5)

#define UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER (1UL << 1)
#define UTOFU_BARRIER_CAP_REDUCE_OP_BAND (1UL << 2)
#define UTOFU_BARRIER_CAP_REDUCE_OP_BOR (1UL << 3)
#define UTOFU_BARRIER_CAP_REDUCE_OP_BXOR (1UL << 4)
#define UTOFU_BARRIER_CAP_REDUCE_OP_MAX (1UL << 5)
#define UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC (1UL << 6)
#define UTOFU_BARRIER_CAP_REDUCE_OP_SUM (1UL << 7)
#define UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM (1UL << 8)

/// What one-sided communication can do on a TNI; sizes in bytes. @spec guide 3.2.2.1, values in table 6.4
struct utofu_onesided_caps {
  unsigned long int flags;          ///< UTOFU_ONESIDED_CAP_FLAG_*
  unsigned long int armw_ops;       ///< UTOFU_ONESIDED_CAP_ARMW_OP_*
  unsigned int num_cmp_ids;         ///< VCQs that can share a CQ.
  unsigned int num_reserved_stags;  ///< STags of a VCQ that a program may choose.
  size_t cache_line_size;
  size_t stag_address_alignment;  ///< Of memory that is registered with a chosen STag.
  size_t max_toq_desc_size;       ///< Room that one prepared descriptor needs at most.
  size_t max_putget_size;
  size_t max_piggyback_size;
  size_t max_edata_size;
  size_t max_mtu;
  size_t max_gap;  ///< No unit.
};

/// What barrier communication can do on a TNI. @spec guide 3.2.2.2, values in table 6.5
struct utofu_barrier_caps {
  unsigned long int flags;       ///< 0
  unsigned long int reduce_ops;  ///< UTOFU_BARRIER_CAP_REDUCE_OP_*
  size_t max_uint64_reduction;   ///< Elements.
  size_t max_double_reduction;   ///< Elements.
};

/// Gives the TNIs for one-sided communication.
/// @param tni_ids   an array that the caller frees with free()
/// @param num_tnis  its length
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.2.1.1
UTOFU_API int utofu_get_onesided_tnis(utofu_tni_id_t** tni_ids, size_t* num_tnis);

/// Gives the TNIs for barrier communication.
/// @return as utofu_get_onesided_tnis, and so are the parameters
/// @spec guide 3.2.1.2
UTOFU_API int utofu_get_barrier_tnis(utofu_tni_id_t** tni_ids, size_t* num_tnis);

/// Gives capabilities and limits of a TNI. The structure belongs to the library.
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_TNI_ID | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.2.1.3
UTOFU_API int utofu_query_onesided_caps(utofu_tni_id_t tni_id, struct utofu_onesided_caps** tni_caps);

/// Gives capabilities and limits of a TNI for barriers. The structure belongs to the library.
/// @return as utofu_query_onesided_caps
/// @spec guide 3.2.1.4
UTOFU_API int utofu_query_barrier_caps(utofu_tni_id_t tni_id, struct utofu_barrier_caps** tni_caps);

// ---- 3.3 VCQ management --------------------------------------------------------------------------------------------

#define UTOFU_VCQ_FLAG_THREAD_SAFE (1UL << 0)   ///< Every VCQ of Portofu is.
#define UTOFU_VCQ_FLAG_EXCLUSIVE (1UL << 1)     ///< Shares its CQ with no other VCQ.
#define UTOFU_VCQ_FLAG_SESSION_MODE (1UL << 2)  ///< Its descriptors wait until arriving puts start them (2.2.8).

/// Creates a VCQ on a TNI.
/// @param flags  UTOFU_VCQ_FLAG_*; exclusive and session mode exclude each other
/// @return UTOFU_SUCCESS | UTOFU_ERR_FULL: all CQs and component ids are taken | UTOFU_ERR_NOT_AVAILABLE: no CQ is left
///         for an exclusive or session mode VCQ | UTOFU_ERR_INVALID_TNI_ID | ..._FLAGS | ..._POINTER
/// @spec guide 3.3.1.1
UTOFU_API int utofu_create_vcq(utofu_tni_id_t tni_id, unsigned long int flags, utofu_vcq_hdl_t* vcq_hdl);

/// Creates a VCQ with a component id of the caller's choice, on the first shared CQ of this process.
/// @param flags  0 or UTOFU_VCQ_FLAG_THREAD_SAFE
/// @return as utofu_create_vcq | UTOFU_ERR_USED: another VCQ has the component id | UTOFU_ERR_INVALID_CMP_ID
/// @spec guide 3.3.1.2
UTOFU_API int utofu_create_vcq_with_cmp_id(utofu_tni_id_t tni_id, utofu_cmp_id_t cmp_id, unsigned long int flags,
                                           utofu_vcq_hdl_t* vcq_hdl);

/// Frees a VCQ with its registrations; what is under way ends without a notice.
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_HDL
/// @spec guide 3.3.1.3
UTOFU_API int utofu_free_vcq(utofu_vcq_hdl_t vcq_hdl);

/// Gives the id of a VCQ of this process; the path in it is the node's own A, B, C.
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_HDL | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.3.2.1
UTOFU_API int utofu_query_vcq_id(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t* vcq_id);

/// Computes the id of a VCQ anywhere.
/// @param coords  six: X, Y, Z any, A < 2, B < 3, C < 2
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_COORDS | ..._TNI_ID | ..._CQ_ID | ..._CMP_ID | ..._POINTER
/// @spec guide 3.3.2.2
UTOFU_API int utofu_construct_vcq_id(uint8_t coords[], utofu_tni_id_t tni_id, utofu_cq_id_t cq_id,
                                     utofu_cmp_id_t cmp_id, utofu_vcq_id_t* vcq_id);

/// Changes the default path in an id. @param path_coords  three: A, B, C; NULL takes those of the remote node
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_ID | UTOFU_ERR_INVALID_PATH | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.3.2.3
UTOFU_API int utofu_set_vcq_id_path(utofu_vcq_id_t* vcq_id, uint8_t path_coords[]);

/// Takes an id apart. @param coords  six @param extra_val  the component id
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_ID | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.3.3.1
UTOFU_API int utofu_query_vcq_info(utofu_vcq_id_t vcq_id, uint8_t coords[], utofu_tni_id_t* tni_id,
                                   utofu_cq_id_t* cq_id, uint16_t* extra_val);

// ---- 3.4 VBG management --------------------------------------------------------------------------------------------

#define UTOFU_VBG_FLAG_THREAD_SAFE (1UL << 0)   ///< Every VBG of Portofu is.
#define UTOFU_VBG_ID_NULL ((utofu_vbg_id_t)-1)  ///< No signal, or no packet.

/// One gate of a circuit. @spec guide 3.4.4.1
struct utofu_vbg_setting {
  utofu_vbg_id_t vbg_id;          ///< The gate, of this process.
  utofu_vbg_id_t src_lcl_vbg_id;  ///< Where its signal comes from: a gate of the same TNI, or UTOFU_VBG_ID_NULL.
  utofu_vbg_id_t src_rmt_vbg_id;  ///< Where its packet comes from, or UTOFU_VBG_ID_NULL.
  utofu_vbg_id_t dst_lcl_vbg_id;  ///< Where its signal goes: a gate of the same TNI, or UTOFU_VBG_ID_NULL.
  utofu_vbg_id_t dst_rmt_vbg_id;  ///< Where its packet goes, or UTOFU_VBG_ID_NULL.
  uint8_t dst_path_coords[3];     ///< Path of the packet; the first may be UTOFU_PATH_COORD_NULL.
};

/// Allocates gates of a TNI: one start/end gate, and relay gates.
/// @param num_vbgs  at least 1
/// @param vbg_ids   takes `num_vbgs` ids, the start/end gate first
/// @return UTOFU_SUCCESS | UTOFU_ERR_FULL | UTOFU_ERR_INVALID_TNI_ID | ..._NUMBER | ..._FLAGS | ..._POINTER
/// @spec guide 3.4.1.1
UTOFU_API int utofu_alloc_vbg(utofu_tni_id_t tni_id, size_t num_vbgs, unsigned long int flags,
                              utofu_vbg_id_t vbg_ids[]);

/// Frees what one call allocated. @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VBG_ID | ..._NUMBER | ..._POINTER
/// @spec guide 3.4.1.2
UTOFU_API int utofu_free_vbg(utofu_vbg_id_t vbg_ids[], size_t num_vbgs);

/// Connects gates that one call allocated; the first is the start/end gate.
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VBG_ID | ..._NUMBER | ..._PATH | ..._POINTER | UTOFU_ERR_BUSY: a
///         barrier is under way
/// @spec guide 3.4.2.1
UTOFU_API int utofu_set_vbg(struct utofu_vbg_setting vbg_settings[], size_t num_vbg_settings);

/// Takes an id apart. @param coords  six
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VBG_ID | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.4.3.1
UTOFU_API int utofu_query_vbg_info(utofu_vbg_id_t vbg_id, uint8_t coords[], utofu_tni_id_t* tni_id,
                                   utofu_bg_id_t* bg_id, uint16_t* extra_val);

// ---- 3.5 Communication path management -----------------------------------------------------------------------------

#define UTOFU_PATH_COORD_NULL ((uint8_t)-1)

/// Turns a path into an id for UTOFU_ONESIDED_FLAG_PATH. @param path_coords  three: A, B, C; or NULL
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_ID | UTOFU_ERR_INVALID_PATH | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.5.1.1
UTOFU_API int utofu_get_path_id(utofu_vcq_id_t vcq_id, uint8_t path_coords[], utofu_path_id_t* path_id);

/// Turns the id of a path into the path.
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_ID | UTOFU_ERR_INVALID_PATH_ID | ..._POINTER
/// @spec guide 3.5.1.2
UTOFU_API int utofu_get_path_coords(utofu_vcq_id_t vcq_id, utofu_path_id_t path_id, uint8_t path_coords[]);

// ---- 3.6 STADD management ------------------------------------------------------------------------------------------

#define UTOFU_REG_MEM_FLAG_READ_ONLY (1UL << 0)

/// Registers memory with a VCQ. The same region is counted and keeps its STADD; one that overlaps has another.
/// @param addr  not NULL; must stay mapped until it is deregistered
/// @param size  bytes, 1 .. 2^40
/// @return UTOFU_SUCCESS | UTOFU_ERR_FULL | UTOFU_ERR_INVALID_ADDRESS | ..._SIZE | ..._FLAGS | ..._VCQ_HDL |
///         ..._POINTER
/// @spec guide 3.6.1.1
UTOFU_API int utofu_reg_mem(utofu_vcq_hdl_t vcq_hdl, void* addr, size_t size, unsigned long int flags,
                            utofu_stadd_t* stadd);

/// Registers memory under a STag of the caller's choice.
/// @param addr, size  multiples of stag_address_alignment
/// @param stag        less than num_reserved_stags
/// @return as utofu_reg_mem | UTOFU_ERR_USED | UTOFU_ERR_INVALID_STAG
/// @spec guide 3.6.1.2
UTOFU_API int utofu_reg_mem_with_stag(utofu_vcq_hdl_t vcq_hdl, void* addr, size_t size, unsigned int stag,
                                      unsigned long int flags, utofu_stadd_t* stadd);

/// Computes the STADD that a VCQ anywhere gives to a chosen STag; asks nobody.
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_ID | UTOFU_ERR_INVALID_STAG | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.6.1.3
UTOFU_API int utofu_query_stadd(utofu_vcq_id_t vcq_id, unsigned int stag, utofu_stadd_t* stadd);

/// Takes one registration back. @param flags  0
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_STADD | ..._FLAGS | ..._VCQ_HDL
/// @spec guide 3.6.1.4
UTOFU_API int utofu_dereg_mem(utofu_vcq_hdl_t vcq_hdl, utofu_stadd_t stadd, unsigned long int flags);

// ---- 3.7 One-sided communication -----------------------------------------------------------------------------------

#define UTOFU_ONESIDED_FLAG_STRONG_ORDER (1UL << 0)
#define UTOFU_ONESIDED_FLAG_PACKET_RESPONSE \
  (1UL << 1)  ///< Not in the guide; works like UTOFU_ONESIDED_FLAG_STRONG_ORDER.
#define UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE (1UL << 2)
#define UTOFU_ONESIDED_FLAG_PADDING (1UL << 3)
#define UTOFU_ONESIDED_FLAG_CACHE_INJECTION (1UL << 5)
#define UTOFU_ONESIDED_FLAG_DELAY_START (1UL << 8)
#define UTOFU_ONESIDED_FLAG_TCQ_NOTICE (1UL << 14)
#define UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE (1UL << 15)
#define UTOFU_ONESIDED_FLAG_SPS(sps) ((unsigned long int)(sps) << 24)
#define UTOFU_ONESIDED_FLAG_PATH(path_id) ((unsigned long int)(path_id) << 28)

enum utofu_armw_op UTOFU_ENUM_TYPE {
  UTOFU_ARMW_OP_SWAP = 1,
  UTOFU_ARMW_OP_ADD = 2,
  UTOFU_ARMW_OP_XOR = 3,
  UTOFU_ARMW_OP_AND = 4,
  UTOFU_ARMW_OP_OR = 5
};

enum utofu_mrq_notice_type UTOFU_ENUM_TYPE {
  UTOFU_MRQ_TYPE_LCL_PUT = 0,
  UTOFU_MRQ_TYPE_RMT_PUT = 1,
  UTOFU_MRQ_TYPE_LCL_GET = 2,
  UTOFU_MRQ_TYPE_RMT_GET = 3,
  UTOFU_MRQ_TYPE_LCL_ARMW = 4,
  UTOFU_MRQ_TYPE_RMT_ARMW = 5
};

/// What a remote or local MRQ notice says; which type sets which field: guide 3.7.6.1.
struct utofu_mrq_notice {
  uint8_t notice_type;  ///< enum utofu_mrq_notice_type
  uint8_t padding1[7];
  utofu_vcq_id_t vcq_id;  ///< The other side's.
  uint64_t edata;
  uint64_t rmt_value;       ///< LCL_ARMW: what was there before. RMT_*: the same as rmt_stadd, as on Tofu.
  utofu_stadd_t lcl_stadd;  ///< LCL_GET, RMT_GET: end of the range that was written.
  utofu_stadd_t rmt_stadd;  ///< End of the remote range; the address itself for an ARMW.
  uint64_t reserved[2];
};

// Common to all start functions.
//   vcq_hdl      the local VCQ
//   rmt_vcq_id   the remote VCQ, with a default path
//   lcl_stadd, rmt_stadd
//                judged when the descriptor is carried out: errors come from utofu_poll_tcq and utofu_poll_mrq.
//                UTOFU_ERR_MRQ_RMT_STADD also tells of an ARMW whose remote address is not aligned
//   length       bytes, 0 .. max_putget_size (piggyback: max_piggyback_size; piggyback8: 8)
//   stride       bytes from block to block; num_blocks blocks, 0 does nothing
//   edata        less than 256 ^ max_edata_size
//   flags        UTOFU_ONESIDED_FLAG_*
//   mtu, gap     at most max_mtu and max_gap; they change nothing here
//   cbdata       for utofu_poll_tcq
// Return: UTOFU_SUCCESS | UTOFU_ERR_BUSY: the TOQ or the TCQ is full, nothing was posted | UTOFU_ERR_INVALID_VCQ_HDL |
//   ..._VCQ_ID | ..._SIZE | ..._EDATA | ..._FLAGS | ..._PATH_ID | ..._OP | ..._POINTER |
//   ..._ARG: mtu or gap | ..._NUMBER: more blocks than a TOQ has entries

/// Writes local memory into remote memory. @spec guide 3.7.1.1
UTOFU_API int utofu_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                        utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, void* cbdata);

/// utofu_put with a transmission gap. @spec guide 3.7.1.2
UTOFU_API int utofu_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                            utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, size_t mtu,
                            size_t gap, void* cbdata);

/// Several puts at equal distances, one descriptor each. @spec guide 3.7.1.3
UTOFU_API int utofu_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                               utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                               unsigned long int flags, void* cbdata);

/// utofu_put_stride with a transmission gap. @spec guide 3.7.1.4
UTOFU_API int utofu_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                   utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                   uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* cbdata);

/// Writes a few bytes that travel in the descriptor; `lcl_data` may be reused at once. @spec guide 3.7.1.5
UTOFU_API int utofu_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, void* lcl_data,
                                  utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                  void* cbdata);

/// utofu_put_piggyback with the low-order bytes of a number. @spec guide 3.7.1.6
UTOFU_API int utofu_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data,
                                   utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                   void* cbdata);

/// Reads remote memory into local memory. @spec guide 3.7.1.7
UTOFU_API int utofu_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                        utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, void* cbdata);

/// utofu_get with a transmission gap. @spec guide 3.7.1.8
UTOFU_API int utofu_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                            utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags, size_t mtu,
                            size_t gap, void* cbdata);

/// Several gets at equal distances, one descriptor each. @spec guide 3.7.1.9
UTOFU_API int utofu_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                               utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks, uint64_t edata,
                               unsigned long int flags, void* cbdata);

/// utofu_get_stride with a transmission gap. @spec guide 3.7.1.10
UTOFU_API int utofu_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                   utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                   uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* cbdata);

/// Changes a remote 32-bit word atomically; the old value comes with the local MRQ notice. @spec guide 3.7.1.11
UTOFU_API int utofu_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                          uint32_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags,
                          void* cbdata);

/// utofu_armw4 for 64 bits. @spec guide 3.7.1.12
UTOFU_API int utofu_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                          uint64_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags,
                          void* cbdata);

/// Replaces a remote 32-bit word if it has the expected value. @spec guide 3.7.1.13
UTOFU_API int utofu_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value, uint32_t new_value,
                           utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata);

/// utofu_cswap4 for 64 bits. @spec guide 3.7.1.14
UTOFU_API int utofu_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value, uint64_t new_value,
                           utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags, void* cbdata);

/// Takes a place in the TOQ and does nothing. @spec guide 3.7.1.15
UTOFU_API int utofu_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void* cbdata);

// Each start function has a preparation function: it posts nothing and writes the descriptor into the caller's memory.
//   desc       room for max_toq_desc_size bytes a descriptor, at a multiple of 8
//   desc_size  set to the bytes written; prepared descriptors may be put one behind the other
// Return: as for the start function, but for UTOFU_ERR_BUSY; ..._POINTER also for a misplaced `desc`. @spec guide 3.7.2

/// Prepares what utofu_put posts. @spec guide 3.7.2.1
UTOFU_API int utofu_prepare_put(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                void* desc, size_t* desc_size);

/// Prepares what utofu_put_gap posts. @spec guide 3.7.2.2
UTOFU_API int utofu_prepare_put_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                    utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                    size_t mtu, size_t gap, void* desc, size_t* desc_size);

/// Prepares what utofu_put_stride posts. @spec guide 3.7.2.3
UTOFU_API int utofu_prepare_put_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                       utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                       uint64_t edata, unsigned long int flags, void* desc, size_t* desc_size);

/// Prepares what utofu_put_stride_gap posts. @spec guide 3.7.2.4
UTOFU_API int utofu_prepare_put_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                           utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                           uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* desc,
                                           size_t* desc_size);

/// Prepares what utofu_put_piggyback posts. @spec guide 3.7.2.5
UTOFU_API int utofu_prepare_put_piggyback(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, void* lcl_data,
                                          utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                                          unsigned long int flags, void* desc, size_t* desc_size);

/// Prepares what utofu_put_piggyback8 posts. @spec guide 3.7.2.6
UTOFU_API int utofu_prepare_put_piggyback8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t lcl_data,
                                           utofu_stadd_t rmt_stadd, size_t length, uint64_t edata,
                                           unsigned long int flags, void* desc, size_t* desc_size);

/// Prepares what utofu_get posts. @spec guide 3.7.2.7
UTOFU_API int utofu_prepare_get(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                void* desc, size_t* desc_size);

/// Prepares what utofu_get_gap posts. @spec guide 3.7.2.8
UTOFU_API int utofu_prepare_get_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                    utofu_stadd_t rmt_stadd, size_t length, uint64_t edata, unsigned long int flags,
                                    size_t mtu, size_t gap, void* desc, size_t* desc_size);

/// Prepares what utofu_get_stride posts. @spec guide 3.7.2.9
UTOFU_API int utofu_prepare_get_stride(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                       utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                       uint64_t edata, unsigned long int flags, void* desc, size_t* desc_size);

/// Prepares what utofu_get_stride_gap posts. @spec guide 3.7.2.10
UTOFU_API int utofu_prepare_get_stride_gap(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, utofu_stadd_t lcl_stadd,
                                           utofu_stadd_t rmt_stadd, size_t length, size_t stride, size_t num_blocks,
                                           uint64_t edata, unsigned long int flags, size_t mtu, size_t gap, void* desc,
                                           size_t* desc_size);

/// Prepares what utofu_armw4 posts. @spec guide 3.7.2.11
UTOFU_API int utofu_prepare_armw4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                                  uint32_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags,
                                  void* desc, size_t* desc_size);

/// Prepares what utofu_armw8 posts. @spec guide 3.7.2.12
UTOFU_API int utofu_prepare_armw8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, enum utofu_armw_op armw_op,
                                  uint64_t op_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags,
                                  void* desc, size_t* desc_size);

/// Prepares what utofu_cswap4 posts. @spec guide 3.7.2.13
UTOFU_API int utofu_prepare_cswap4(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint32_t old_value,
                                   uint32_t new_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags,
                                   void* desc, size_t* desc_size);

/// Prepares what utofu_cswap8 posts. @spec guide 3.7.2.14
UTOFU_API int utofu_prepare_cswap8(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t rmt_vcq_id, uint64_t old_value,
                                   uint64_t new_value, utofu_stadd_t rmt_stadd, uint64_t edata, unsigned long int flags,
                                   void* desc, size_t* desc_size);

/// Prepares what utofu_nop posts. @spec guide 3.7.2.15
UTOFU_API int utofu_prepare_nop(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void* desc, size_t* desc_size);

// ---- 3.7.3, 3.7.4, 3.7.5 Posting, completion and queries -----------------------------------------------------------

/// Posts prepared descriptors, all of them or none, and starts what UTOFU_ONESIDED_FLAG_DELAY_START held back.
/// @param desc_size  bytes; 0 only starts what was held back
/// @param cbdata     for each of the descriptors
/// @return UTOFU_SUCCESS | UTOFU_ERR_BUSY | UTOFU_ERR_INVALID_DESC | UTOFU_ERR_INVALID_SIZE if the TOQ has fewer
///         entries | ..._VCQ_HDL | ..._POINTER
/// @spec guide 3.7.3.1
UTOFU_API int utofu_post_toq(utofu_vcq_hdl_t vcq_hdl, void* desc, size_t desc_size, void* cbdata);

/// Takes the next TCQ notice, in the order of posting. @param flags  0
/// @return UTOFU_SUCCESS | UTOFU_ERR_NOT_FOUND | UTOFU_ERR_TCQ_*: that descriptor failed before it left
/// @spec guide 3.7.4.1
UTOFU_API int utofu_poll_tcq(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, void** cbdata);

/// Takes the next MRQ notice. @param flags  0
/// @return UTOFU_SUCCESS | UTOFU_ERR_NOT_FOUND | UTOFU_ERR_MRQ_*: that communication failed after it left
/// @spec guide 3.7.4.2
UTOFU_API int utofu_poll_mrq(utofu_vcq_hdl_t vcq_hdl, unsigned long int flags, struct utofu_mrq_notice* notice);

/// Counts the descriptors of all VCQs of the CQ that are posted and whose TCQ entries are not read.
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_VCQ_HDL | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.7.5.1
UTOFU_API int utofu_query_num_unread_tcq(utofu_vcq_hdl_t vcq_hdl, size_t* count);

/// Counts the notices of the VCQ that have arrived and are not read. Not in the guide.
/// @return as utofu_query_num_unread_tcq
UTOFU_API int utofu_query_num_unread_mrq(utofu_vcq_hdl_t vcq_hdl, size_t* count);

// ---- 3.8 Barrier communication -------------------------------------------------------------------------------------

enum utofu_reduce_op UTOFU_ENUM_TYPE {
  UTOFU_REDUCE_OP_BARRIER = 1,
  UTOFU_REDUCE_OP_BAND = 2,
  UTOFU_REDUCE_OP_BOR = 3,
  UTOFU_REDUCE_OP_BXOR = 4,
  UTOFU_REDUCE_OP_MAX = 5,
  UTOFU_REDUCE_OP_MAXLOC = 6,
  UTOFU_REDUCE_OP_SUM = 7,
  UTOFU_REDUCE_OP_BFPSUM = 8
};

/// Starts a barrier on the circuit of a start/end gate.
/// @param flags  0
/// @return UTOFU_SUCCESS | UTOFU_ERR_BUSY: a barrier or a reduction is under way, or its result was not taken |
///         UTOFU_ERR_INVALID_VBG_ID | ..._FLAGS
/// @spec guide 3.8.1.1
UTOFU_API int utofu_barrier(utofu_vbg_id_t vbg_id, unsigned long int flags);

/// Starts a reduction of integers on the circuit of a start/end gate.
/// @param num_data  1 .. max_uint64_reduction; even for UTOFU_REDUCE_OP_MAXLOC
/// @param flags     0
/// @return as utofu_barrier | UTOFU_ERR_INVALID_OP | ..._NUMBER | ..._POINTER
/// @spec guide 3.8.1.2
UTOFU_API int utofu_reduce_uint64(utofu_vbg_id_t vbg_id, enum utofu_reduce_op op, uint64_t data[], size_t num_data,
                                  unsigned long int flags);

/// Starts a reduction of floating-point numbers on the circuit of a start/end gate.
/// @param num_data  1 .. max_double_reduction
/// @param flags     0
/// @return as utofu_barrier | UTOFU_ERR_INVALID_OP | ..._NUMBER | ..._POINTER
/// @spec guide 3.8.1.3
UTOFU_API int utofu_reduce_double(utofu_vbg_id_t vbg_id, enum utofu_reduce_op op, double data[], size_t num_data,
                                  unsigned long int flags);

/// Looks whether a barrier is over.
/// @param flags  0
/// @return UTOFU_SUCCESS | UTOFU_ERR_NOT_COMPLETED | UTOFU_ERR_BUSY: none was started | UTOFU_ERR_BARRIER_* |
///         UTOFU_ERR_INVALID_VBG_ID | ..._FLAGS
/// @spec guide 3.8.2.1
UTOFU_API int utofu_poll_barrier(utofu_vbg_id_t vbg_id, unsigned long int flags);

/// Looks whether a reduction of integers is over, and takes the result.
/// @param flags  0
/// @param data   written on UTOFU_SUCCESS only
/// @return as utofu_poll_barrier | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.8.2.2
UTOFU_API int utofu_poll_reduce_uint64(utofu_vbg_id_t vbg_id, unsigned long int flags, uint64_t data[]);

/// Looks whether a reduction of floating-point numbers is over, and takes the result.
/// @param flags  0
/// @param data   written on UTOFU_SUCCESS only
/// @return as utofu_poll_barrier | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.8.2.3
UTOFU_API int utofu_poll_reduce_double(utofu_vbg_id_t vbg_id, unsigned long int flags, double data[]);

// ---- 3.9 Supplemental features -------------------------------------------------------------------------------------

/// Version of the interconnect: 3.0. NULL is ignored. @spec guide 3.9.1.1
UTOFU_API void utofu_query_tofu_version(int* major_ver, int* minor_ver);

/// Version of the library. NULL is ignored. @spec guide 3.9.1.2
UTOFU_API void utofu_query_utofu_version(int* major_ver, int* minor_ver);

/// Gives the coordinates of this node: those of the hosts file, of PORTOFU_COORDS, or of where the job has put it.
/// @param coords  room for six
/// @return UTOFU_SUCCESS | UTOFU_ERR_INVALID_POINTER
/// @spec guide 3.9.2.1
UTOFU_API int utofu_query_my_coords(uint8_t coords[]);

#ifdef __cplusplus
}
#endif

#endif  // UTOFU_H
