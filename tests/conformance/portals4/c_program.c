/* A program as the world writes them: C, portals4.h, -lportals and nothing else. s3_01_c_program_test.cpp compiles it
 * by the compiler's own command line and runs it; it sends to itself and ends with 0 if all was as the specification
 * says, else with the number of the line. */
#include <portals4.h>

#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      return __LINE__;                                        \
    }                                                         \
  } while (0)

/* 3.2: "Constants defined in this specification must be compile time constants": sizes of arrays, values of
 * enumerators, initializers of static objects. */
#define CONSTANT(name) enum { constant_##name = (name) != 0 ? 1 : 2 };
CONSTANT(PTL_MAJOR_VERSION)
CONSTANT(PTL_MINOR_VERSION)
CONSTANT(PTL_INVALID_HANDLE)
CONSTANT(PTL_EQ_NONE)
CONSTANT(PTL_CT_NONE)
CONSTANT(PTL_SIZE_MAX)
CONSTANT(PTL_IFACE_DEFAULT)
CONSTANT(PTL_PT_ANY)
CONSTANT(PTL_NID_ANY)
CONSTANT(PTL_PID_ANY)
CONSTANT(PTL_PID_MAX)
CONSTANT(PTL_RANK_ANY)
CONSTANT(PTL_UID_ANY)
CONSTANT(PTL_TIME_FOREVER)
CONSTANT(PTL_SR_LAST)
CONSTANT(PTL_OP_LAST)
CONSTANT(PTL_DATATYPE_LAST)
CONSTANT(PTL_NI_INIT_OPTIONS_MASK)
CONSTANT(PTL_PT_ALLOC_OPTIONS_MASK)
CONSTANT(PTL_MD_OPTIONS_MASK)
CONSTANT(PTL_LE_APPEND_OPTIONS_MASK)
CONSTANT(PTL_ME_APPEND_OPTIONS_MASK)
CONSTANT(PTL_TARGET_BIND_INACCESSIBLE)
CONSTANT(PTL_TOTAL_DATA_ORDERING)
CONSTANT(PTL_COHERENT_ATOMICS)
CONSTANT(PTL_INTERRUPTED)
CONSTANT(PTL_LE_ACK_DISABLE)
CONSTANT(PTL_ME_ACK_DISABLE)

static ptl_handle_any_t initialized[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE};
static ptl_handle_eq_t no_queue = PTL_EQ_NONE;
static ptl_handle_ct_t no_counter = PTL_CT_NONE;
static const char operation_names[PTL_OP_LAST][8] = {"min"};
static const char type_names[PTL_DATATYPE_LAST][8] = {"int8"};

/* 3.2: "constants whose type is specified to be integral must be valid labels for switch statements". Two that were
 * equal would not compile; -Wswitch tells of enumerators that were forgotten. */
static int number_of_rc(int rc) {
  switch (rc) {
    case PTL_OK: return 1;
    case PTL_FAIL: return 2;
    case PTL_NO_INIT: return 3;
    case PTL_ARG_INVALID: return 4;
    case PTL_NO_SPACE: return 5;
    case PTL_IN_USE: return 6;
    case PTL_IGNORED: return 7;
    case PTL_LIST_TOO_LONG: return 8;
    case PTL_PID_IN_USE: return 9;
    case PTL_PT_FULL: return 10;
    case PTL_PT_IN_USE: return 11;
    case PTL_PT_EQ_NEEDED: return 12;
    case PTL_EQ_EMPTY: return 13;
    case PTL_EQ_DROPPED: return 14;
    case PTL_CT_NONE_REACHED: return 15;
    case PTL_ABORTED: return 16;
  }
  return 0;
}

static int number_of_event(ptl_event_kind_t kind) {
  switch (kind) {
    case PTL_EVENT_GET: return 1;
    case PTL_EVENT_GET_OVERFLOW: return 2;
    case PTL_EVENT_PUT: return 3;
    case PTL_EVENT_PUT_OVERFLOW: return 4;
    case PTL_EVENT_ATOMIC: return 5;
    case PTL_EVENT_ATOMIC_OVERFLOW: return 6;
    case PTL_EVENT_FETCH_ATOMIC: return 7;
    case PTL_EVENT_FETCH_ATOMIC_OVERFLOW: return 8;
    case PTL_EVENT_REPLY: return 9;
    case PTL_EVENT_SEND: return 10;
    case PTL_EVENT_ACK: return 11;
    case PTL_EVENT_PT_DISABLED: return 12;
    case PTL_EVENT_LINK: return 13;
    case PTL_EVENT_AUTO_UNLINK: return 14;
    case PTL_EVENT_AUTO_FREE: return 15;
    case PTL_EVENT_SEARCH: return 16;
    case PTL_EVENT_ERROR: return 17;
  }
  return 0;
}

static int number_of_failure(ptl_ni_fail_t failure) {
  switch (failure) {
    case PTL_NI_OK: return 1;
    case PTL_NI_UNDELIVERABLE: return 2;
    case PTL_NI_PT_DISABLED: return 3;
    case PTL_NI_DROPPED: return 4;
    case PTL_NI_PERM_VIOLATION: return 5;
    case PTL_NI_OP_VIOLATION: return 6;
    case PTL_NI_SEGV: return 7;
    case PTL_NI_NO_MATCH: return 8;
  }
  return 0;
}

static int number_of_operation(ptl_op_t operation) {
  switch (operation) {
    case PTL_MIN: return 1;
    case PTL_MAX: return 2;
    case PTL_SUM: return 3;
    case PTL_DIFF: return 4;
    case PTL_PROD: return 5;
    case PTL_LOR: return 6;
    case PTL_LAND: return 7;
    case PTL_BOR: return 8;
    case PTL_BAND: return 9;
    case PTL_LXOR: return 10;
    case PTL_BXOR: return 11;
    case PTL_SWAP: return 12;
    case PTL_CSWAP: return 13;
    case PTL_CSWAP_NE: return 14;
    case PTL_CSWAP_LE: return 15;
    case PTL_CSWAP_LT: return 16;
    case PTL_CSWAP_GE: return 17;
    case PTL_CSWAP_GT: return 18;
    case PTL_MSWAP: return 19;
  }
  return 0;
}

static int number_of_type(ptl_datatype_t type) {
  switch (type) {
    case PTL_INT8_T: return 1;
    case PTL_UINT8_T: return 2;
    case PTL_INT16_T: return 3;
    case PTL_UINT16_T: return 4;
    case PTL_INT32_T: return 5;
    case PTL_UINT32_T: return 6;
    case PTL_INT64_T: return 7;
    case PTL_UINT64_T: return 8;
    case PTL_FLOAT: return 9;
    case PTL_FLOAT_COMPLEX: return 10;
    case PTL_DOUBLE: return 11;
    case PTL_DOUBLE_COMPLEX: return 12;
    case PTL_LONG_DOUBLE: return 13;
    case PTL_LONG_DOUBLE_COMPLEX: return 14;
  }
  return 0;
}

static int number_of_choice(ptl_list_t list, ptl_search_op_t search, ptl_ack_req_t ack, ptl_sr_index_t index) {
  int number = 0;
  switch (list) {
    case PTL_PRIORITY_LIST: number += 1; break;
    case PTL_OVERFLOW_LIST: number += 2; break;
  }
  switch (search) {
    case PTL_SEARCH_ONLY: number += 10; break;
    case PTL_SEARCH_DELETE: number += 20; break;
  }
  switch (ack) {
    case PTL_NO_ACK_REQ: number += 100; break;
    case PTL_ACK_REQ: number += 200; break;
    case PTL_CT_ACK_REQ: number += 300; break;
    case PTL_OC_ACK_REQ: number += 400; break;
  }
  switch (index) {
    case PTL_SR_DROP_COUNT: number += 1000; break;
    case PTL_SR_PERMISSION_VIOLATIONS: number += 2000; break;
    case PTL_SR_OPERATION_VIOLATIONS: number += 3000; break;
  }
  return number;
}

/* Handles are integers: labels, too, and comparable with ==. */
static int is_none(ptl_handle_any_t handle) {
  switch (handle) {
    case PTL_INVALID_HANDLE:
    case PTL_EQ_NONE:
    case PTL_CT_NONE: return 1;
    default: return 0;
  }
}

static int check_constants(void) {
  EXPECT(number_of_rc(PTL_ABORTED) == 16 && number_of_rc(PTL_INTERRUPTED) == 16);
  EXPECT(number_of_event(PTL_EVENT_SEARCH) == 16);
  EXPECT(number_of_failure(PTL_NI_NO_MATCH) == 8);
  EXPECT(number_of_operation((ptl_op_t)(PTL_OP_LAST - 1)) != 0 && number_of_operation((ptl_op_t)PTL_OP_LAST) == 0);
  EXPECT(number_of_type((ptl_datatype_t)(PTL_DATATYPE_LAST - 1)) != 0);
  EXPECT(number_of_type((ptl_datatype_t)PTL_DATATYPE_LAST) == 0);
  EXPECT(number_of_choice(PTL_OVERFLOW_LIST, PTL_SEARCH_DELETE, PTL_OC_ACK_REQ, PTL_SR_DROP_COUNT) == 1422);
  EXPECT(sizeof operation_names == PTL_OP_LAST * 8 && sizeof type_names == PTL_DATATYPE_LAST * 8);
  EXPECT(number_of_operation((ptl_op_t)0) == 0 && number_of_type((ptl_datatype_t)0) == 0);
  EXPECT(is_none(initialized[0]) && is_none(no_queue) && is_none(no_counter) && !is_none(0));
  EXPECT(no_queue != no_counter && initialized[0] == PTL_INVALID_HANDLE);
  EXPECT(constant_PTL_OP_LAST == 1);
  return 0;
}

static int talk_to_myself(void) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_handle = PTL_INVALID_HANDLE;
  ptl_handle_me_t me_handle = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = PTL_PT_ANY;
  ptl_process_t myself;
  ptl_ct_event_t count;
  ptl_event_t event;
  ptl_md_t md;
  ptl_me_t me;
  char out[] = "from C";
  char in[sizeof out] = "";
  EXPECT(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
  EXPECT(PtlGetPhysId(ni, &myself) == PTL_OK);
  EXPECT(PtlEQAlloc(ni, 16, &eq) == PTL_OK && PtlCTAlloc(ni, &ct) == PTL_OK);
  EXPECT(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt) == PTL_OK && pt == 0);
  memset(&me, 0, sizeof me);
  me.start = in;
  me.length = sizeof in;
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
  me.match_id.phys.nid = PTL_NID_ANY;
  me.match_id.phys.pid = PTL_PID_ANY;
  me.match_bits = 42;
  EXPECT(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, in, &me_handle) == PTL_OK);
  memset(&md, 0, sizeof md);
  md.start = out;
  md.length = sizeof out;
  md.options = PTL_MD_EVENT_CT_ACK;
  md.eq_handle = PTL_EQ_NONE;
  md.ct_handle = ct;
  EXPECT(PtlMDBind(ni, &md, &md_handle) == PTL_OK);
  EXPECT(PtlPut(md_handle, 0, sizeof out, PTL_CT_ACK_REQ, myself, pt, 42, 0, NULL, 7) == PTL_OK);
  EXPECT(PtlCTWait(ct, 1, &count) == PTL_OK && count.success == 1 && count.failure == 0);
  EXPECT(PtlEQWait(eq, &event) == PTL_OK && number_of_event(event.type) == 3);
  EXPECT(event.hdr_data == 7 && event.user_ptr == in && memcmp(in, out, sizeof out) == 0);
  EXPECT(PtlHandleIsEqual(ni, ni) && !PtlHandleIsEqual(eq, ct));
  EXPECT(PtlMEUnlink(me_handle) == PTL_OK && PtlMDRelease(md_handle) == PTL_OK);
  EXPECT(PtlPTFree(ni, pt) == PTL_OK && PtlEQFree(eq) == PTL_OK && PtlCTFree(ct) == PTL_OK);
  EXPECT(PtlNIFini(ni) == PTL_OK);
  return 0;
}

int main(void) {
  int wrong = check_constants();
  if (wrong != 0) return 1;
  EXPECT(PtlAtomicSync() == PTL_NO_INIT);
  EXPECT(PtlInit() == PTL_OK);
  wrong = talk_to_myself();
  PtlFini();
  return wrong != 0;
}
