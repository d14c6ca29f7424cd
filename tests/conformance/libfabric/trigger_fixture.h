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

  int queue(fi_deferred_work& work) { return fi_control(&domain->fid, FI_QUEUE_WORK, &work); }

  fid_cntr* gate = nullptr;
  fid_cntr* done = nullptr;
};

}  // namespace portofu::test
