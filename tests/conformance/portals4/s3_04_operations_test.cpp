// Portals 4.3, 3.4, 3.15.2 to 3.15.7 and 3.16.1 to 3.16.5: every data movement operation, at once and triggered, with
// every kind of wrong argument: PTL_ARG_INVALID, and nothing happens. Portofu checks all arguments.

#include <functional>

#include "../harness/fixture.h"

using namespace conformance;

namespace {

constexpr ptl_size_t kBytes = 64;  ///< Of each memory descriptor.

/// All that an operation may be told; each function takes what it knows.
struct Arguments {
  ptl_handle_md_t md = PTL_INVALID_HANDLE;      ///< What is sent from, or the only one.
  ptl_handle_md_t get_md = PTL_INVALID_HANDLE;  ///< What is fetched into.
  ptl_size_t offset = 0;
  ptl_size_t get_offset = 0;
  ptl_size_t length = 8;
  ptl_ack_req_t ack = PTL_NO_ACK_REQ;
  ptl_process_t target{};
  ptl_pt_index_t pt = kPt;
  ptl_op_t op = PTL_SUM;
  ptl_op_t swap_op = PTL_CSWAP;
  ptl_datatype_t type = PTL_INT64_T;
  const void* operand = nullptr;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
};

struct Function {
  const char* name;
  bool acknowledges, computes, fetches, swaps, waits;
  int (*call)(const Arguments& a);
};

constexpr ptl_size_t kNever = 1000;  ///< Threshold of the triggered ones.

const Function kFunctions[] = {
    {"PtlPut", true, false, false, false, false,
     [](const Arguments& a) { return PtlPut(a.md, a.offset, a.length, a.ack, a.target, a.pt, 0, 0, nullptr, 0); }},
    {"PtlGet", false, false, false, false, false,
     [](const Arguments& a) { return PtlGet(a.md, a.offset, a.length, a.target, a.pt, 0, 0, nullptr); }},
    {"PtlAtomic", true, true, false, false, false,
     [](const Arguments& a) {
       return PtlAtomic(a.md, a.offset, a.length, a.ack, a.target, a.pt, 0, 0, nullptr, 0, a.op, a.type);
     }},
    {"PtlFetchAtomic", false, true, true, false, false,
     [](const Arguments& a) {
       return PtlFetchAtomic(a.get_md, a.get_offset, a.md, a.offset, a.length, a.target, a.pt, 0, 0, nullptr, 0, a.op,
                             a.type);
     }},
    {"PtlSwap", false, true, true, true, false,
     [](const Arguments& a) {
       return PtlSwap(a.get_md, a.get_offset, a.md, a.offset, a.length, a.target, a.pt, 0, 0, nullptr, 0, a.operand,
                      a.swap_op, a.type);
     }},
    {"PtlTriggeredPut", true, false, false, false, true,
     [](const Arguments& a) {
       return PtlTriggeredPut(a.md, a.offset, a.length, a.ack, a.target, a.pt, 0, 0, nullptr, 0, a.ct, kNever);
     }},
    {"PtlTriggeredGet", false, false, false, false, true,
     [](const Arguments& a) {
       return PtlTriggeredGet(a.md, a.offset, a.length, a.target, a.pt, 0, 0, nullptr, a.ct, kNever);
     }},
    {"PtlTriggeredAtomic", true, true, false, false, true,
     [](const Arguments& a) {
       return PtlTriggeredAtomic(a.md, a.offset, a.length, a.ack, a.target, a.pt, 0, 0, nullptr, 0, a.op, a.type, a.ct,
                                 kNever);
     }},
    {"PtlTriggeredFetchAtomic", false, true, true, false, true,
     [](const Arguments& a) {
       return PtlTriggeredFetchAtomic(a.get_md, a.get_offset, a.md, a.offset, a.length, a.target, a.pt, 0, 0, nullptr,
                                      0, a.op, a.type, a.ct, kNever);
     }},
    {"PtlTriggeredSwap", false, true, true, true, true, [](const Arguments& a) {
       return PtlTriggeredSwap(a.get_md, a.get_offset, a.md, a.offset, a.length, a.target, a.pt, 0, 0, nullptr, 0,
                               a.operand, a.swap_op, a.type, a.ct, kNever);
     }}};

/// One way to spoil the arguments, and the functions that it concerns.
struct Mistake {
  std::string name;
  std::function<void(Arguments&)> make;
  bool Function::*concerns = nullptr;  ///< nullptr: all functions.
};

bool concerns(const Mistake& mistake, const Function& function) {
  return mistake.concerns == nullptr || function.*mistake.concerns;
}

/// Objects of one interface, and some that are not of it or are no more.
struct Scene {
  explicit Scene(Process& self) : ni(self), other(self, kNonMatching), ends(ni) {
    good.md = bind_quiet(ni, sent, kBytes, ends.source_eq);
    good.get_md = bind_quiet(ni, fetched, kBytes, ends.source_eq);
    good.target = ni.target();
    good.operand = &operand;
    good.ct = alloc_ct(ni);
    freed_md = bind_quiet(ni, sent, kBytes, ends.source_eq);
    freed_ct = alloc_ct(ni);
    REQUIRE_OK(PtlMDRelease(freed_md));
    REQUIRE_OK(PtlCTFree(freed_ct));
    other_md = bind_md(other, md_of(sent, kBytes));
    other_ct = alloc_ct(other);
    entry = append(ni, me_of(ni, target_memory, kBytes));
    unreliable_md = bind_md(ni, md_of(sent, kBytes, ends.source_eq, PTL_CT_NONE, PTL_MD_UNRELIABLE));
  }

  Ni ni;
  Ni other;
  Ends ends;
  Arguments good;
  ptl_handle_md_t freed_md = 0, other_md = 0, unreliable_md = 0;
  ptl_handle_ct_t freed_ct = 0, other_ct = 0;
  ptl_handle_me_t entry = 0;
  std::int64_t operand = 0;
  alignas(64) std::int64_t sent[kBytes / 8] = {};
  alignas(64) std::int64_t fetched[kBytes / 8] = {};
  alignas(64) std::int64_t target_memory[kBytes / 8] = {};
};

/// Handles that name no object of the wanted kind.
std::vector<ptl_handle_any_t> no_handles(const Scene& s) {
  return {s.ni, s.ends.source_eq, s.entry, PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE, 0u, 0xfffffff0u, 0x7fffffffu};
}

std::vector<Mistake> wrong_handles(const Scene& s) {
  std::vector<Mistake> mistakes;
  const auto add = [&](const char* what, ptl_handle_any_t handle, ptl_handle_any_t Arguments::*where,
                       bool Function::*which) {
    mistakes.push_back({what + std::string(" is ") + std::to_string(handle),
                        [handle, where](Arguments& a) { a.*where = handle; }, which});
  };
  std::vector<ptl_handle_any_t> for_md = no_handles(s);
  for_md.insert(for_md.end(), {s.good.ct, s.freed_md});
  for (ptl_handle_any_t handle : for_md) {
    add("md", handle, &Arguments::md, nullptr);
    add("get_md", handle, &Arguments::get_md, &Function::fetches);
  }
  std::vector<ptl_handle_any_t> for_ct = no_handles(s);
  for_ct.insert(for_ct.end(), {s.good.md, s.freed_ct, s.other_ct});
  for (ptl_handle_any_t handle : for_ct) add("ct", handle, &Arguments::ct, &Function::waits);
  // 3.15.6: "It is an error to use memory descriptors bound to different network interfaces".
  add("md of another interface", s.other_md, &Arguments::md, &Function::fetches);
  add("get_md of another interface", s.other_md, &Arguments::get_md, &Function::fetches);
  // 3.16.1: the counter belongs to the interface of the operation.
  add("md of another interface than ct", s.other_md, &Arguments::md, &Function::waits);
  return mistakes;
}

std::vector<Mistake> wrong_ranges(const Scene& s) {
  std::vector<Mistake> mistakes;
  const auto add = [&](ptl_size_t offset, ptl_size_t length) {
    const std::string name = std::to_string(offset) + " + " + std::to_string(length);
    mistakes.push_back({"sent " + name, [=](Arguments& a) {
                          a.offset = offset;
                          a.length = length;
                        }});
    mistakes.push_back({"fetched " + name,
                        [=](Arguments& a) {
                          a.get_offset = offset;
                          a.length = length;
                        },
                        &Function::fetches});
  };
  add(kBytes, 8);
  add(kBytes - 7, 8);
  add(0, kBytes + 8);
  add(PTL_SIZE_MAX, 8);
  add(PTL_SIZE_MAX - 7, 8);
  add(8, PTL_SIZE_MAX - 7);
  add(0, PTL_SIZE_MAX - 7);
  for (const ptl_pt_index_t pt :
       {static_cast<ptl_pt_index_t>(s.ni.limits().max_pt_index) + 1, ptl_pt_index_t{65536}, ptl_pt_index_t{PTL_PT_ANY}})
    mistakes.push_back({"pt_index " + std::to_string(pt), [pt](Arguments& a) { a.pt = pt; }});
  mistakes.push_back({"pid any", [](Arguments& a) { a.target.phys.pid = PTL_PID_ANY; }});
  mistakes.push_back({"pid 0", [](Arguments& a) { a.target.phys.pid = 0; }});
  mistakes.push_back({"nid any", [](Arguments& a) { a.target.phys.nid = PTL_NID_ANY; }});
  return mistakes;
}

std::vector<Mistake> wrong_kinds(const Scene& s) {
  std::vector<Mistake> mistakes;
  for (int ack : {-1, 4, 255, 1 << 30})
    mistakes.push_back({"ack_req " + std::to_string(ack),
                        [ack](Arguments& a) { a.ack = static_cast<ptl_ack_req_t>(ack); }, &Function::acknowledges});
  // C.1, 3.15.2: "If the memory descriptor is using the PTL_MD_UNRELIABLE option, then only PTL_NO_ACK_REQ".
  mistakes.push_back({"unreliable with acknowledgment",
                      [&s](Arguments& a) {
                        a.md = s.unreliable_md;
                        a.ack = PTL_CT_ACK_REQ;
                      },
                      &Function::acknowledges});
  for (int op : {-1, 0, static_cast<int>(PTL_INT64_T), static_cast<int>(PTL_OP_LAST), 256})
    mistakes.push_back({"operation " + std::to_string(op),
                        [op](Arguments& a) { a.op = a.swap_op = static_cast<ptl_op_t>(op); }, &Function::computes});
  for (int type : {-1, 0, static_cast<int>(PTL_SUM), static_cast<int>(PTL_DATATYPE_LAST), 256})
    mistakes.push_back({"datatype " + std::to_string(type),
                        [type](Arguments& a) { a.type = static_cast<ptl_datatype_t>(type); }, &Function::computes});
  // Table 3-4: swaps are for PtlSwap, all else is not.
  mistakes.push_back({"operation of the other kind",
                      [](Arguments& a) {
                        a.op = PTL_SWAP;
                        a.swap_op = PTL_SUM;
                      },
                      &Function::computes});
  mistakes.push_back({"operation that the type does not have",
                      [](Arguments& a) {
                        a.op = PTL_BOR;
                        a.swap_op = PTL_MSWAP;
                        a.type = PTL_DOUBLE;
                      },
                      &Function::computes});
  mistakes.push_back({"no whole item", [](Arguments& a) { a.length = 7; }, &Function::computes});
  mistakes.push_back({"operand NULL", [](Arguments& a) { a.operand = nullptr; }, &Function::swaps});
  mistakes.push_back({"two items of a conditional swap", [](Arguments& a) { a.length = 16; }, &Function::swaps});
  return mistakes;
}

/// Calls every function rightly once, and wrongly in every way; only what was right may be seen of it.
void expect_refused(const Scene& s, const std::vector<Mistake>& mistakes) {
  int right = 0;
  for (const Function& function : kFunctions) {
    REQUIRE_OK(function.call(s.good));
    right += function.waits ? 0 : 1;
    for (const Mistake& mistake : mistakes) {
      if (!concerns(mistake, function)) continue;
      Arguments arguments = s.good;
      mistake.make(arguments);
      EXPECT_EQ(name_of_rc(function.call(arguments)), name_of_rc(PTL_ARG_INVALID))
          << function.name << ": " << mistake.name;
    }
  }
  for (int i = 0; i < right; ++i) next_event(s.ends.target_eq);
  REQUIRE_OK(PtlCTSet(s.good.ct, {kNever, 0}));
  for (const Function& function : kFunctions)
    if (function.waits) next_event(s.ends.target_eq);
  put(s.ends.md, s.ni.target(), {.length = 0, .hdr_data = 99});
  EXPECT_EQ(next_event(s.ends.target_eq, PTL_EVENT_PUT).hdr_data, 99u) << "nothing that was refused has left";
}

}  // namespace

// 3.4, 3.15.2: a handle of another kind, a constant, a freed one, one of another interface.
TEST_PROCESSES(1, OperationArguments, Section3_4__handles) {
  const Scene scene(self);
  expect_refused(scene, wrong_handles(scene));
}

// 3.15.2: "It is an error for the local offset and length parameters to specify memory outside the memory described by
// the memory descriptor handle"; an index beyond the table, a target that no process can be.
TEST_PROCESSES(1, OperationArguments, Section3_4__ranges_and_targets) {
  const Scene scene(self);
  expect_refused(scene, wrong_ranges(scene));
}

// 3.15.1, 3.15.4, table 3-4: values that the types do not have, combinations that the table does not have.
TEST_PROCESSES(1, OperationArguments, Section3_4__kinds_and_combinations) {
  const Scene scene(self);
  expect_refused(scene, wrong_kinds(scene));
}

// 3.6.1: one byte, or one item, more than max_msg_size, max_atomic_size, max_fetch_atomic_size.
TEST_PROCESSES(1, OperationArguments, Section3_6_1__lengths_beyond_the_limits) {
  const Scene scene(self);
  const ptl_ni_limits_t& limits = scene.ni.limits();
  Arguments arguments = scene.good;
  arguments.md = arguments.get_md = bind_md(scene.ni, md_of(nullptr, PTL_SIZE_MAX));
  arguments.swap_op = PTL_SWAP;
  arguments.type = PTL_UINT8_T;
  for (const Function& function : kFunctions) {
    const ptl_size_t most = function.fetches    ? limits.max_fetch_atomic_size
                            : function.computes ? limits.max_atomic_size
                                                : limits.max_msg_size;
    if (most == PTL_SIZE_MAX) continue;
    arguments.length = most + 1;
    EXPECT_EQ(name_of_rc(function.call(arguments)), name_of_rc(PTL_ARG_INVALID)) << function.name;
  }
}

// Table 3-4: each of the 19 operations with each of the 14 datatypes is allowed or refused alike, at once and
// triggered.
TEST_PROCESSES(1, OperationArguments, Section3_16_3__triggered_atomics_know_the_same_table) {
  static_assert(PTL_OP_LAST - PTL_MIN == 19 && PTL_DATATYPE_LAST - PTL_INT8_T == 14);
  static_assert(PTL_MIN > 0 && PTL_INT8_T >= static_cast<int>(PTL_OP_LAST));
  const Scene scene(self);
  Arguments arguments = scene.good;
  unsigned char operand[32] = {};
  arguments.operand = operand;
  for (int op = PTL_MIN; op < PTL_OP_LAST; ++op)
    for (int type = PTL_INT8_T; type < PTL_DATATYPE_LAST; ++type) {
      arguments.op = arguments.swap_op = static_cast<ptl_op_t>(op);
      arguments.type = static_cast<ptl_datatype_t>(type);
      arguments.length = 0;  // Legal for every type; what counts is the table.
      int allowed = 0;
      for (int i = 2; i < 5; ++i) {
        const int rc = kFunctions[i].call(arguments);
        EXPECT_EQ(name_of_rc(kFunctions[i + 5].call(arguments)), name_of_rc(rc))
            << kFunctions[i].name << ", operation " << op << ", datatype " << type;
        allowed += rc == PTL_OK ? 1 << i : 0;
      }
      EXPECT_TRUE(allowed == 0 || allowed == 12 || allowed == 16) << "operation " << op << ", datatype " << type;
      REQUIRE_OK(PtlCTCancelTriggered(arguments.ct));
    }
}

// 3.4, table 3-7: PTL_NO_INIT before PtlInit and after the last PtlFini, whatever else is wrong.
TEST_PROCESSES(1, OperationArguments, Section3_4__no_init_comes_before_everything) {
  const auto expect_no_init = [](const Scene& s) {
    std::vector<Mistake> mistakes = wrong_kinds(s);
    for (const Mistake& one : wrong_ranges(s)) mistakes.push_back(one);
    mistakes.push_back({"nothing", [](Arguments&) {}});
    for (const Function& function : kFunctions)
      for (const Mistake& mistake : mistakes) {
        Arguments arguments = s.good;
        mistake.make(arguments);
        EXPECT_EQ(name_of_rc(function.call(arguments)), name_of_rc(PTL_NO_INIT))
            << function.name << ": " << mistake.name;
      }
  };
  const Scene scene(self);
  for (int i = 0; i < 2; ++i) PtlFini();  // One for each interface of the scene.
  expect_no_init(scene);
}
