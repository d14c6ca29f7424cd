#pragma once
// Endpoints that know each other, as an application opens them: libfabric itself loads the provider.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_prov.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tests/conformance/harness/process.h"
#include "tests/support/eventually.h"

namespace portofu::test {

/// Before libfabric looks for providers: where ours is, and that no other is wanted but what the engine needs between
/// nodes.
inline const bool provider_is_found = [] {
  setenv("FI_PROVIDER_PATH", PORTOFU_FABRIC_PROVIDER_PATH, 1);
  setenv("FI_PROVIDER", "portofu,tcp,ofi_rxm", 1);
  return true;
}();

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

inline Info make_hints() {
  Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("portofu");
  hints->mode = ~std::uint64_t{0};
  return hints;
}

/// @return nullptr if there is none, with its error in `result`
inline Info get_info(const fi_info* hints, int* result = nullptr, const char* node = nullptr,
                     const char* service = nullptr, std::uint64_t flags = 0) {
  fi_info* found = nullptr;
  const int got = fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &found);
  if (result != nullptr) *result = got;
  return Info(got == 0 ? found : nullptr);
}

/// Two endpoints of a process share its engine. PORTOFU_TEST_ENGINES=2: the second has an engine of its own, as if it
/// belonged to another process, so that messages go through shared memory; PORTOFU_TEST_NODES (harness/process.h): the
/// two are on nodes of their own, so that messages go over the fabric.
inline bool have_two_engines() {
  return std::getenv("PORTOFU_TEST_ENGINES") != nullptr || std::getenv("PORTOFU_TEST_NODES") != nullptr;
}

/// A second copy of the provider, which shares nothing with the first: libfabric would load the first only once.
/// @return nullptr if it cannot be loaded
inline fi_provider* second_provider() {
  void* library = dlopen(PORTOFU_SECOND_PROVIDER, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto enter = reinterpret_cast<fi_provider* (*)()>(dlsym(library, "fi_prov_ini"));
  return enter == nullptr ? nullptr : enter();
}

/// The fabric of the second engine.
inline int open_second_fabric(fi_fabric_attr* attr, fid_fabric** fabric) {
  fi_provider* const provider = second_provider();
  return provider == nullptr ? -FI_ENODEV : provider->fabric(attr, fabric, nullptr);
}

/// Runs a blocking call in a thread that is sent signals until the call is over. One that comes before it sleeps ends
/// nothing.
template <class Call>
void send_signals_during(Call&& call) {
  struct sigaction before {
  }, quiet{};
  quiet.sa_handler = [](int) {};
  quiet.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGUSR1, &quiet, &before), 0);
  std::atomic<bool> over{false};
  std::thread caller([&] {
    call();
    over.store(true);
  });
  while (!over.load()) {
    pthread_kill(caller.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  caller.join();
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

/// A completion, or an error.
struct Completion : fi_cq_err_entry {
  fi_addr_t source = FI_ADDR_NOTAVAIL;
};

/// Puts an endpoint of this process into an address vector.
inline fi_addr_t insert_endpoint(fid_av* av, fid_ep* ep) {
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  EXPECT_EQ(fi_getname(&ep->fid, name.data(), &bytes), 0);
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(av, name.data(), 1, &address, 0, nullptr), 1);
  return address;
}

inline constexpr auto kPatience = kLongestWait;
inline constexpr int kPatienceMs = 1000 * kLongestWait.count();

/// An endpoint with all that it needs.
struct Node {
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_cntr* cntr = nullptr;
  fid_ep* ep = nullptr;

  void open(fid_domain* domain, fi_info* info, std::uint64_t cq_flags = 0, fid_cntr* cntr_to_bind = nullptr,
            std::uint64_t cntr_flags = 0, fi_wait_obj wait = FI_WAIT_UNSPEC, fid_cntr* second_cntr = nullptr,
            std::uint64_t second_flags = 0) {
    fi_av_attr av_attr{};
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    cq_attr.wait_obj = wait;
    ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
    ASSERT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain, info, &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV | cq_flags), 0);
    if (cntr_to_bind != nullptr) {
      ASSERT_EQ(fi_ep_bind(ep, &cntr_to_bind->fid, cntr_flags), 0);
    }
    if (second_cntr != nullptr) {
      ASSERT_EQ(fi_ep_bind(ep, &second_cntr->fid, second_flags), 0);
    }
    ASSERT_EQ(fi_enable(ep), 0);
  }

  void close() {
    for (fid* object :
         {ep != nullptr ? &ep->fid : nullptr, cq != nullptr ? &cq->fid : nullptr, av != nullptr ? &av->fid : nullptr}) {
      if (object == nullptr) continue;
      EXPECT_EQ(fi_close(object), 0);
    }
    *this = {};
  }

  fi_addr_t insert(const Node& other) const { return insert_endpoint(av, other.ep); }

  /// Waits for the next completion; `err` is 0, or what went wrong.
  Completion next() const {
    Completion completion{};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const ssize_t got = fi_cq_readfrom(cq, reinterpret_cast<fi_cq_tagged_entry*>(&completion), 1, &completion.source);
      if (got == 1) return completion;
      if (got == -FI_EAVAIL) {
        EXPECT_EQ(fi_cq_readerr(cq, &completion, 0), 1);
        return completion;
      }
      EXPECT_EQ(got, -FI_EAGAIN);
    }
    ADD_FAILURE() << "no completion came";
    return completion;
  }

  bool is_quiet() const {
    fi_cq_tagged_entry entry{};
    for (int i = 0; i < 100; ++i) {
      if (fi_cq_read(cq, &entry, 1) != -FI_EAGAIN) return false;
    }
    return true;
  }
};

/// An endpoint of a process that has no other, with fabric and domain.
class LoneNode {
 public:
  LoneNode() {
    const Info info = get_info(make_hints().get());
    EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric_, nullptr), 0);
    EXPECT_EQ(fi_domain(fabric_, info.get(), &domain_, nullptr), 0);
    node_.open(domain_, info.get());
  }
  ~LoneNode() {
    node_.close();
    EXPECT_EQ(fi_close(&domain_->fid), 0);
    EXPECT_EQ(fi_close(&fabric_->fid), 0);
  }
  LoneNode(const LoneNode&) = delete;
  LoneNode& operator=(const LoneNode&) = delete;

  using Name = std::array<std::byte, 16>;
  Name name() const {
    Name name{};
    std::size_t bytes = name.size();
    EXPECT_EQ(fi_getname(&node_.ep->fid, name.data(), &bytes), 0);
    return name;
  }
  fi_addr_t know(const Name& other) const {
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(node_.av, other.data(), 1, &address, 0, nullptr), 1);
    return address;
  }
  const Node* operator->() const { return &node_; }
  fid_domain* domain() const { return domain_; }

 private:
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  Node node_;
};

/// Two endpoints, `a` and `b`. `to_b` is b in the vector of a, `to_a` the other way. They have one domain, but with two
/// engines each has its own. Tests talk from a to b: what belongs to the target is made in domain_of_b.
class Fabric : public ::testing::Test {
 protected:
  void SetUp() override { open(make_hints().get()); }
  void TearDown() override {
    a.close();
    b.close();
    for (fid* object : objects_) EXPECT_EQ(fi_close(object), 0);
    if (domain_of_b != domain) close_domain(domain_of_b, fabric_of_b);
    close_domain(domain, fabric);
    domain = domain_of_b = nullptr;
    fabric = fabric_of_b = nullptr;
  }

  void open(const fi_info* hints, std::uint64_t cq_flags = 0) {
    info = get_info(hints);
    ASSERT_NE(info, nullptr);
    ASSERT_NO_FATAL_FAILURE(open_domains());
    a.open(domain, info.get(), cq_flags);
    b.open(domain_of_b, info.get(), cq_flags);
    meet();
  }

  /// @pre `info` says what they are like
  void open_domains() {
    ASSERT_TRUE(conformance::enter_node(0));
    ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
    fabric_of_b = fabric;
    domain_of_b = domain;
    if (!have_two_engines()) return;
    ASSERT_TRUE(conformance::enter_node(1));
    ASSERT_EQ(open_second_fabric(info->fabric_attr, &fabric_of_b), 0);
    ASSERT_EQ(fi_domain(fabric_of_b, info.get(), &domain_of_b, nullptr), 0);
  }

  void meet() {
    to_b = a.insert(b);
    to_a = b.insert(a);
  }

  fid_cntr* open_cntr(fid_domain* owner) {
    fid_cntr* cntr = nullptr;
    fi_cntr_attr attr{};
    EXPECT_EQ(fi_cntr_open(owner, &attr, &cntr, nullptr), 0);
    objects_.push_back(&cntr->fid);
    return cntr;
  }

  /// Memory of b that both may reach; closed by the caller.
  fid_mr* open_memory(void* memory, std::size_t bytes, std::uint64_t key,
                      std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE) {
    fid_mr* region = nullptr;
    EXPECT_EQ(fi_mr_reg(domain_of_b, memory, bytes, access, 0, key, 0, &region, nullptr), 0);
    return region;
  }

  /// Opens an endpoint beside `a` that tells at its queue, with a vector that names contexts of scalable endpoints.
  void open_sender(int context_bits, fid_av** vector, fid_ep** sender) {
    fi_av_attr attr{};
    attr.rx_ctx_bits = context_bits;
    ASSERT_EQ(fi_av_open(domain, &attr, vector, nullptr), 0);
    ASSERT_EQ(fi_endpoint(domain, info.get(), sender, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(*sender, &(*vector)->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(*sender, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(*sender), 0);
  }

  /// To be closed last.
  void keep(fid* object) { objects_.push_back(object); }

  Info info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_fabric* fabric_of_b = nullptr;
  fid_domain* domain_of_b = nullptr;
  Node a;
  Node b;
  fi_addr_t to_a = FI_ADDR_NOTAVAIL;
  fi_addr_t to_b = FI_ADDR_NOTAVAIL;

 private:
  static void close_domain(fid_domain* closed, fid_fabric* fabric_of_it) {
    EXPECT_EQ(closed != nullptr ? fi_close(&closed->fid) : 0, 0);
    EXPECT_EQ(fabric_of_it != nullptr ? fi_close(&fabric_of_it->fid) : 0, 0);
  }

  std::vector<fid*> objects_;
};

}  // namespace portofu::test
