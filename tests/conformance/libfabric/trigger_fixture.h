#pragma once
// A counter for which deferred work of fi_trigger(3) waits, and one that counts its end.

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {

class FiTrigger : public Fabric {
 protected:
  void SetUp() override {
    Fabric::SetUp();
    gate = open_cntr(domain);
    done = open_cntr(domain);
  }

  fi_deferred_work work_at(std::uint64_t threshold, fi_op_type op, fid_cntr* completion) {
    fi_deferred_work work{};
    work.threshold = threshold;
    work.triggering_cntr = gate;
    work.completion_cntr = completion;
    work.op_type = op;
    return work;
  }

  /// Sends a message to b that waits for one count of `gate`. @param value, context  live until it has left
  ssize_t send_at_gate(int* value, fi_triggered_context2* context) {
    context->event_type = FI_TRIGGER_THRESHOLD;
    context->trigger.threshold = {gate, 1};
    const iovec piece{value, sizeof *value};
    fi_msg msg{};
    msg.msg_iov = &piece;
    msg.iov_count = 1;
    msg.addr = to_b;
    msg.context = context;
    return fi_sendmsg(a.ep, &msg, FI_TRIGGER);
  }

  int queue(fi_deferred_work& work) { return fi_control(&domain->fid, FI_QUEUE_WORK, &work); }

  fid_cntr* gate = nullptr;
  fid_cntr* done = nullptr;
};

}  // namespace portofu::test
