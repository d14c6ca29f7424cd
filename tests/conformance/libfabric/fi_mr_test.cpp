// fi_mr(3): memory regions, in all modes that an application may ask for.

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

/// A domain whose mode is what the application has put into its fi_info.
class FiMr : public Fabric {
 protected:
  void SetUp() override {}

  void open_with(int mode) {
    info = get_info(make_hints().get());
    ASSERT_NE(info, nullptr);
    info->domain_attr->mr_mode = mode;
    ASSERT_NO_FATAL_FAILURE(open_domains());
    a.open(domain, info.get());
    b.open(domain_of_b, info.get());
    meet();
  }

  /// Writes through an endpoint. @return the error
  int write(std::uint64_t remote, std::uint64_t key, fi_addr_t target) {
    EXPECT_EQ(fi_write(a.ep, &sent, sizeof sent, nullptr, target, remote, key, nullptr), 0);
    return a.next().err;
  }

  std::uint64_t word = 0;
  const std::uint64_t sent = 12;
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(&word);
};

TEST_F(FiMr, Modes_that_nobody_needs_are_cleared) {
  Info hints = make_hints();
  for (const int mode : {FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_ENDPOINT, 0}) {
    hints->domain_attr->mr_mode = mode;
    const Info found = get_info(hints.get());
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->domain_attr->mr_mode, 0);
  }
  for (const int mode : {static_cast<int>(FI_MR_BASIC), static_cast<int>(FI_MR_SCALABLE)}) {
    hints->domain_attr->mr_mode = mode;
    EXPECT_EQ(get_info(hints.get())->domain_attr->mr_mode, mode);
  }
}

TEST_F(FiMr, Basic_has_virtual_addresses_and_keys_of_the_provider) {
  open_with(FI_MR_BASIC);
  fid_mr* region = open_memory(&word, sizeof word, 77);
  EXPECT_EQ(write(address, fi_mr_key(region), to_b), 0);
  EXPECT_EQ(word, 12u);
  EXPECT_EQ(write(address + 1, fi_mr_key(region), to_b), FI_EKEYREJECTED);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// "This field is ignored unless the application has requested the FI_HMEM capability."
TEST_F(FiMr, Interface_of_a_device_is_ignored) {
  open_with(0);
  const iovec piece{&word, sizeof word};
  fi_mr_attr attr{};
  attr.mr_iov = &piece;
  attr.iov_count = 1;
  attr.access = FI_REMOTE_WRITE;
  attr.requested_key = 9;
  attr.iface = FI_HMEM_CUDA;
  attr.device.cuda = 3;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_regattr(domain_of_b, &attr, 0, &region), 0);
  EXPECT_EQ(write(0, 9, to_b), 0);
  EXPECT_EQ(word, 12u);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// fi_mr_bind: "Generates an event whenever a remote RMA write or atomic operation modifies the memory region." Those
/// that fetch are reads for the counter of the endpoint, all the same (fi_endpoint(3), FI_REMOTE_READ).
TEST_F(FiMr, Counter_counts_all_that_modifies_the_region) {
  info = get_info(make_hints().get());
  ASSERT_NE(info, nullptr);
  ASSERT_NO_FATAL_FAILURE(open_domains());
  a.open(domain, info.get());
  fid_cntr* reads = open_cntr(domain_of_b);
  fid_cntr* changes = open_cntr(domain_of_b);
  b.open(domain_of_b, info.get(), 0, reads, FI_REMOTE_READ);
  meet();
  fid_mr* region = open_memory(&word, sizeof word, 5);
  ASSERT_EQ(fi_mr_bind(region, &changes->fid, FI_REMOTE_WRITE), 0);
  std::uint64_t one = 1, old = 0;
  ASSERT_EQ(fi_atomic(a.ep, &one, 1, nullptr, to_b, 0, 5, FI_UINT64, FI_SUM, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(fi_cntr_wait(changes, 1, kPatienceMs), 0);
  ASSERT_EQ(fi_fetch_atomic(a.ep, &one, 1, nullptr, &old, nullptr, to_b, 0, 5, FI_UINT64, FI_SUM, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(fi_cntr_wait(changes, 2, kPatienceMs), 0);
  std::uint64_t two = 2;
  ASSERT_EQ(
      fi_compare_atomic(a.ep, &one, 1, nullptr, &two, nullptr, &old, nullptr, to_b, 0, 5, FI_UINT64, FI_CSWAP, nullptr),
      0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(fi_cntr_wait(changes, 3, kPatienceMs), 0);
  ASSERT_EQ(fi_fetch_atomic(a.ep, nullptr, 1, nullptr, &old, nullptr, to_b, 0, 5, FI_UINT64, FI_ATOMIC_READ, nullptr),
            0);
  EXPECT_EQ(a.next().err, 0);
  ASSERT_EQ(fi_read(a.ep, &old, sizeof old, nullptr, to_b, 0, 5, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(fi_cntr_wait(reads, 4, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_read(changes), 3u) << "these change nothing";
  EXPECT_EQ(fi_cntr_read(reads), 4u);
  EXPECT_EQ(word, 1u);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiMr, Thousands_come_and_go) {
  open_with(0);
  ASSERT_GE(info->domain_attr->mr_cnt, 50'000u);
  std::vector<fid_mr*> regions(50'000);
  const std::clock_t begin = std::clock();
  for (std::size_t i = 0; i < regions.size(); ++i) regions[i] = open_memory(&word, sizeof word, i);
  for (fid_mr* region : regions) ASSERT_EQ(fi_close(&region->fid), 0);
  EXPECT_LT(std::clock() - begin, 20 * CLOCKS_PER_SEC) << "none looks at all others";
}

TEST_F(FiMr, Region_has_its_key_before_it_can_be_reached) {
  open_with(FI_MR_RMA_EVENT);
  fid_mr* first = nullptr;
  fid_mr* second = nullptr;
  ASSERT_EQ(fi_mr_reg(domain_of_b, &word, sizeof word, FI_REMOTE_WRITE, 0, 5, FI_RMA_EVENT, &first, nullptr), 0);
  EXPECT_EQ(fi_mr_reg(domain_of_b, &word, sizeof word, FI_REMOTE_WRITE, 0, 5, 0, &second, nullptr), -FI_ENOKEY);
  EXPECT_EQ(write(0, 5, to_b), FI_EKEYREJECTED) << "it is not enabled";
  ASSERT_EQ(fi_mr_enable(first), 0);
  EXPECT_EQ(write(0, 5, to_b), 0);
  EXPECT_EQ(fi_close(&first->fid), 0);
}

TEST_F(FiMr, Virtual_addresses_alone) {
  open_with(FI_MR_VIRT_ADDR);
  fid_mr* region = open_memory(&word, sizeof word, 77);
  EXPECT_EQ(fi_mr_key(region), 77u);
  EXPECT_EQ(write(address, 77, to_b), 0);
  EXPECT_EQ(write(0, 77, to_b), FI_EKEYREJECTED);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiMr, Keys_of_the_provider_alone) {
  open_with(FI_MR_PROV_KEY);
  fid_mr* first = open_memory(&word, sizeof word, 77);
  fid_mr* second = open_memory(&word, sizeof word, 77);
  EXPECT_NE(fi_mr_key(first), fi_mr_key(second));
  EXPECT_EQ(write(0, fi_mr_key(second), to_b), 0);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(FiMr, Memory_that_is_only_used_here_may_be_registered) {
  open_with(FI_MR_LOCAL | FI_MR_ALLOCATED);
  std::uint64_t local = 9;
  fid_mr* source = nullptr;
  ASSERT_EQ(fi_mr_reg(domain, &local, sizeof local, FI_SEND | FI_WRITE, 0, 1, 0, &source, nullptr), 0);
  fid_mr* region = open_memory(&word, sizeof word, 1);
  EXPECT_NE(fi_mr_desc(source), nullptr);
  ASSERT_EQ(fi_write(a.ep, &local, sizeof local, fi_mr_desc(source), to_b, 0, 1, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(word, 9u);
  EXPECT_EQ(fi_close(&source->fid), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiMr, Region_of_an_endpoint_is_reached_through_it_alone) {
  open_with(FI_MR_ENDPOINT);
  fid_mr* region = open_memory(&word, sizeof word, 5);
  EXPECT_EQ(write(0, 5, to_b), FI_EKEYREJECTED) << "it is not enabled";
  EXPECT_EQ(fi_mr_enable(region), -FI_EOPBADSTATE) << "it is bound to no endpoint";
  EXPECT_EQ(fi_mr_bind(region, nullptr, 0), -FI_EINVAL);
  ASSERT_EQ(fi_mr_bind(region, &b.ep->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(region), 0);
  EXPECT_EQ(fi_mr_bind(region, &b.ep->fid, 0), -FI_EOPBADSTATE);
  EXPECT_EQ(write(0, 5, to_b), 0);
  EXPECT_EQ(write(0, 5, a.insert(a)), FI_EKEYREJECTED);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// fi_endpoint(3): "fi_ep_bind is used to associate an endpoint with other allocated resources, such as ... memory
/// regions."
TEST_F(FiMr, Region_is_bound_to_an_endpoint_from_either_side) {
  open_with(FI_MR_ENDPOINT);
  fid_mr* region = open_memory(&word, sizeof word, 5);
  ASSERT_EQ(fi_ep_bind(b.ep, &region->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(a.ep, &region->fid, 0), domain == domain_of_b ? -FI_EOPBADSTATE : -FI_EDOMAIN);
  ASSERT_EQ(fi_mr_enable(region), 0);
  EXPECT_EQ(write(0, 5, to_b), 0);
  EXPECT_EQ(word, 12u);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiMr, Endpoint_of_another_domain_is_none_of_a_region) {
  open_with(FI_MR_ENDPOINT);
  fid_domain* other = nullptr;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_domain(fabric, info.get(), &other, nullptr), 0);
  ASSERT_EQ(fi_mr_reg(other, &word, sizeof word, FI_REMOTE_WRITE, 0, 5, 0, &region, nullptr), 0);
  EXPECT_EQ(fi_mr_bind(region, &a.ep->fid, 0), -FI_EDOMAIN);
  EXPECT_EQ(fi_ep_bind(a.ep, &region->fid, 0), -FI_EDOMAIN);
  for (fid* object : {&region->fid, &other->fid}) EXPECT_EQ(fi_close(object), 0);
}

/// Whatever receives may be bound: of a scalable endpoint all contexts, or one.
TEST_F(FiMr, Region_of_a_scalable_endpoint_is_reached_through_its_contexts) {
  open_with(FI_MR_ENDPOINT);
  fid_av* av = nullptr;
  fid_ep *sep = nullptr, *tx = nullptr, *sender = nullptr;
  std::array<fid_ep*, 2> rx{};
  ASSERT_NO_FATAL_FAILURE(open_sender(1, &av, &sender));
  info->ep_attr->rx_ctx_cnt = 2;
  ASSERT_EQ(fi_scalable_ep(domain_of_b, info.get(), &sep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(sep, &b.av->fid, 0), 0);
  ASSERT_EQ(fi_tx_context(sep, 0, nullptr, &tx, nullptr), 0);
  fid_mr* of_all = open_memory(&word, sizeof word, 5);
  fid_mr* of_one = open_memory(&word, sizeof word, 6);
  EXPECT_EQ(fi_mr_bind(of_one, &tx->fid, 0), -FI_EINVAL) << "nothing is reached by it";
  ASSERT_EQ(fi_mr_bind(of_all, &sep->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(of_all), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_rx_context(sep, i, nullptr, &rx[i], nullptr), 0);
    ASSERT_EQ(fi_ep_bind(rx[i], &b.cq->fid, FI_RECV), 0);
    ASSERT_EQ(fi_enable(rx[i]), 0);
  }
  ASSERT_EQ(fi_mr_bind(of_one, &rx[1]->fid, 0), 0);
  ASSERT_EQ(fi_mr_enable(of_one), 0);
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  fi_addr_t to = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_getname(&sep->fid, name.data(), &bytes), 0);
  ASSERT_EQ(fi_av_insert(av, name.data(), 1, &to, 0, nullptr), 1);
  const auto write_to = [&](int index, std::uint64_t key) {
    EXPECT_EQ(fi_write(sender, &word, 8, nullptr, fi_rx_addr(to, index, 1), 0, key, nullptr), 0);
    return a.next().err;
  };
  EXPECT_EQ(write_to(0, 5), 0);
  EXPECT_EQ(write_to(1, 5), 0);
  EXPECT_EQ(write_to(0, 6), FI_EKEYREJECTED);
  EXPECT_EQ(write_to(1, 6), 0);
  for (fid* object :
       {&of_all->fid, &of_one->fid, &tx->fid, &rx[0]->fid, &rx[1]->fid, &sep->fid, &sender->fid, &av->fid})
    EXPECT_EQ(fi_close(object), 0);
}

TEST_F(FiMr, Counter_of_a_region_counts_its_writes) {
  open_with(FI_MR_RMA_EVENT);
  fid_cntr* writes = open_cntr(domain_of_b);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain_of_b, &word, sizeof word, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 5, FI_RMA_EVENT, &region,
                      nullptr),
            0);
  ASSERT_EQ(fi_mr_bind(region, &writes->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(write(0, 5, to_b), FI_EKEYREJECTED) << "it is not enabled";
  ASSERT_EQ(fi_mr_enable(region), 0);
  EXPECT_EQ(write(0, 5, to_b), 0);
  std::uint64_t fetched = 0;
  ASSERT_EQ(fi_read(a.ep, &fetched, sizeof fetched, nullptr, to_b, 0, 5, nullptr), 0);
  EXPECT_EQ(a.next().err, 0);
  EXPECT_EQ(fi_cntr_wait(writes, 1, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_read(writes), 1u);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(FiMr, Mistakes_are_told) {
  open_with(0);
  fid_mr* region = nullptr;
  EXPECT_NE(fi_mr_reg(domain, &word, sizeof word, FI_MULTICAST, 0, 1, 0, &region, nullptr), 0);
  EXPECT_EQ(fi_mr_regv(domain, nullptr, 0, FI_REMOTE_READ, 0, 1, 0, &region, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_mr_reg(domain, &word, sizeof word, FI_REMOTE_READ, 0, 1, FI_MORE, &region, nullptr), -FI_EBADFLAGS);
}

TEST_F(FiMr, Raw_key_is_the_key) {
  open_with(0);
  fid_mr* region = open_memory(&word, sizeof word, 5);
  std::uint64_t base = 9;
  std::array<std::uint8_t, 8> raw{};
  std::size_t bytes = 1;
  EXPECT_EQ(fi_mr_raw_attr(region, &base, raw.data(), &bytes, 0), -FI_ETOOSMALL);
  ASSERT_EQ(bytes, info->domain_attr->mr_key_size);
  ASSERT_EQ(fi_mr_raw_attr(region, &base, raw.data(), &bytes, 0), 0);
  std::uint64_t key = 0;
  EXPECT_EQ(fi_mr_map_raw(domain, base, raw.data(), bytes - 1, &key, 0), -FI_EINVAL);
  ASSERT_EQ(fi_mr_map_raw(domain, base, raw.data(), bytes, &key, 0), 0);
  EXPECT_EQ(write(base, key, to_b), 0);
  EXPECT_EQ(fi_mr_unmap_key(domain, key), 0);
  const iovec changed{&word, sizeof word};
  EXPECT_EQ(fi_mr_refresh(region, &changed, 1, 0), 0);
  EXPECT_EQ(write(base, key, to_b), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// "Indicates that the memory regions associated with completion counters must be explicitly enabled after being bound
/// to any counter", fi_domain(3) says of FI_MR_RMA_EVENT. It is not in the mode of the domain, so they need not be.
TEST_F(FiMr, Counter_is_bound_to_a_region_that_nobody_enables) {
  open_with(0);
  fid_cntr* writes = open_cntr(domain_of_b);
  fid_mr* region = open_memory(&word, sizeof word, 5);
  EXPECT_EQ(write(0, 5, to_b), 0);
  ASSERT_EQ(fi_mr_bind(region, &writes->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(write(0, 5, to_b), 0);
  EXPECT_EQ(fi_cntr_wait(writes, 1, kPatienceMs), 0);
  EXPECT_EQ(fi_cntr_read(writes), 1u);
  EXPECT_EQ(fi_close(&writes->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(write(0, 5, to_b), FI_EKEYREJECTED);
}

/// The flag says what a region will be used for. It is created disabled where the mode of the domain says so.
TEST_F(FiMr, Region_for_events_is_reached_where_nobody_enables_regions) {
  open_with(0);
  fid_cntr* writes = open_cntr(domain_of_b);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain_of_b, &word, sizeof word, FI_REMOTE_WRITE, 0, 5, FI_RMA_EVENT, &region, nullptr), 0);
  EXPECT_EQ(write(0, 5, to_b), 0);
  ASSERT_EQ(fi_mr_bind(region, &writes->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(write(0, 5, to_b), 0);
  EXPECT_EQ(fi_cntr_wait(writes, 1, kPatienceMs), 0);
  ASSERT_EQ(fi_mr_enable(region), 0) << "it is";
  EXPECT_EQ(write(0, 5, to_b), 0);
  EXPECT_EQ(fi_cntr_wait(writes, 2, kPatienceMs), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// "After calling fi_mr_enable(), no further resource bindings may be made to the memory region."
TEST_F(FiMr, Region_that_was_enabled_is_bound_to_nothing_more) {
  open_with(FI_MR_RMA_EVENT);
  fid_cntr* writes = open_cntr(domain_of_b);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain_of_b, &word, sizeof word, FI_REMOTE_WRITE, 0, 5, FI_RMA_EVENT, &region, nullptr), 0);
  ASSERT_EQ(fi_mr_enable(region), 0);
  EXPECT_EQ(fi_mr_bind(region, &writes->fid, FI_REMOTE_WRITE), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

/// "An application can register any range of addresses in their virtual address space, whether or not those addresses
/// are backed by physical pages or have been allocated."
TEST_F(FiMr, Memory_may_come_after_its_registration) {
  open_with(0);
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  fid_mr* region = open_memory(place, bytes, 5);
  EXPECT_EQ(write(0, 5, to_b), FI_EFAULT);
  ASSERT_EQ(mprotect(place, bytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(write(8, 5, to_b), 0);
  EXPECT_EQ(static_cast<std::uint64_t*>(place)[1], sent);
  EXPECT_EQ(fi_close(&region->fid), 0);
  munmap(place, bytes);
}

/// A process that reads memory of another one, and stops in the middle of it until it is told to go on.
[[noreturn]] void read_and_stop(const LoneNode::Name& owner, std::vector<std::byte>& into) {
  if (!conformance::enter_node(2)) _exit(1);
  const LoneNode reader;
  const fi_addr_t to_owner = reader.know(owner);
  for (const std::size_t bytes : {std::size_t{1}, into.size()}) {
    if (fi_read(reader->ep, into.data(), bytes, nullptr, to_owner, 0, 5, nullptr) != 0) _exit(2);
    if (bytes != 1) raise(SIGSTOP);
    if (reader->next().err != 0) _exit(3);
  }
  _exit(0);
}

/// fi_close of what is still in use is -FI_EBUSY: the region is there until it is closed, and so is its key. Closing it
/// again closes that one, not what has the same key by then.
TEST_F(FiMr, Region_in_use_keeps_its_key_until_it_is_closed) {
  if (std::getenv("PORTOFU_TEST_NODES") != nullptr) GTEST_SKIP() << "a process that is stopped has not connected";
  open_with(0);
  std::vector<std::byte> bytes(std::size_t{64} << 20);
  LoneNode::Name owner{};
  std::size_t name_bytes = owner.size();
  ASSERT_EQ(fi_getname(&b.ep->fid, owner.data(), &name_bytes), 0);
  fid_mr* region = open_memory(bytes.data(), bytes.size(), 5);
  const pid_t reader = fork();
  if (reader == 0) read_and_stop(owner, bytes);
  int status = 0;
  pid_t changed = 0;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (changed == 0 && std::chrono::steady_clock::now() < deadline) {
    EXPECT_TRUE(b.is_quiet());
    changed = waitpid(reader, &status, WUNTRACED | WNOHANG);
  }
  ASSERT_TRUE(changed == reader && WIFSTOPPED(status));
  EXPECT_TRUE(b.is_quiet());
  EXPECT_EQ(fi_close(&region->fid), -FI_EBUSY);
  fid_mr* other = nullptr;
  EXPECT_EQ(fi_mr_reg(domain_of_b, &word, sizeof word, FI_REMOTE_WRITE, 0, 5, 0, &other, nullptr), -FI_ENOKEY);
  EXPECT_EQ(kill(reader, SIGCONT), 0);
  while ((changed = waitpid(reader, &status, WNOHANG)) == 0) EXPECT_TRUE(b.is_quiet());
  EXPECT_TRUE(changed == reader && WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(fi_close(&region->fid), 0);
  ASSERT_EQ(fi_mr_reg(domain_of_b, &word, sizeof word, FI_REMOTE_WRITE, 0, 5, 0, &other, nullptr), 0);
  EXPECT_EQ(write(0, 5, to_b), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
}

}  // namespace
}  // namespace portofu::test
