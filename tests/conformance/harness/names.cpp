#include "names.h"

#include <sstream>

namespace conformance {
namespace {

#define NAME(constant) \
  case constant: return #constant

}  // namespace

std::string name_of_rc(int rc) {
  switch (rc) {
    NAME(PTL_OK);
    NAME(PTL_FAIL);
    NAME(PTL_NO_INIT);
    NAME(PTL_ARG_INVALID);
    NAME(PTL_NO_SPACE);
    NAME(PTL_IN_USE);
    NAME(PTL_IGNORED);
    NAME(PTL_LIST_TOO_LONG);
    NAME(PTL_PID_IN_USE);
    NAME(PTL_PT_FULL);
    NAME(PTL_PT_IN_USE);
    NAME(PTL_PT_EQ_NEEDED);
    NAME(PTL_EQ_EMPTY);
    NAME(PTL_EQ_DROPPED);
    NAME(PTL_CT_NONE_REACHED);
    NAME(PTL_ABORTED);
    default: return "return code " + std::to_string(rc);
  }
}

std::string name_of_event(ptl_event_kind_t kind) {
  switch (kind) {
    NAME(PTL_EVENT_GET);
    NAME(PTL_EVENT_GET_OVERFLOW);
    NAME(PTL_EVENT_PUT);
    NAME(PTL_EVENT_PUT_OVERFLOW);
    NAME(PTL_EVENT_ATOMIC);
    NAME(PTL_EVENT_ATOMIC_OVERFLOW);
    NAME(PTL_EVENT_FETCH_ATOMIC);
    NAME(PTL_EVENT_FETCH_ATOMIC_OVERFLOW);
    NAME(PTL_EVENT_REPLY);
    NAME(PTL_EVENT_SEND);
    NAME(PTL_EVENT_ACK);
    NAME(PTL_EVENT_PT_DISABLED);
    NAME(PTL_EVENT_LINK);
    NAME(PTL_EVENT_AUTO_UNLINK);
    NAME(PTL_EVENT_AUTO_FREE);
    NAME(PTL_EVENT_SEARCH);
    NAME(PTL_EVENT_ERROR);
  }
  return "event kind " + std::to_string(static_cast<int>(kind));
}

std::string name_of_failure(ptl_ni_fail_t failure) {
  switch (failure) {
    NAME(PTL_NI_OK);
    NAME(PTL_NI_UNDELIVERABLE);
    NAME(PTL_NI_PT_DISABLED);
    NAME(PTL_NI_DROPPED);
    NAME(PTL_NI_PERM_VIOLATION);
    NAME(PTL_NI_OP_VIOLATION);
    NAME(PTL_NI_SEGV);
    NAME(PTL_NI_NO_MATCH);
  }
  return "failure type " + std::to_string(static_cast<int>(failure));
}

std::string describe(const ptl_event_t& event) {
  std::ostringstream text;
  text << name_of_event(event.type) << ' ' << name_of_failure(event.ni_fail_type) << " {user_ptr " << event.user_ptr
       << ", pt_index " << event.pt_index << ", match_bits 0x" << std::hex << event.match_bits << ", hdr_data 0x"
       << event.hdr_data << std::dec << ", rlength " << event.rlength << ", mlength " << event.mlength
       << ", remote_offset " << event.remote_offset << ", start " << event.start << '}';
  return text.str();
}

}  // namespace conformance
