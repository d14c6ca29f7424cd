// fi_eq(3): event queues.

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiEq : public Fabric {
 protected:
  /// An address vector whose insertions are told.
  void open_told(fi_wait_obj wait_obj) {
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = wait_obj;
    fi_av_attr av_attr{};
    av_attr.flags = FI_EVENT;
    ASSERT_EQ(fi_eq_open(fabric, &eq_attr, &eq, nullptr), 0);
    ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
    ASSERT_EQ(fi_av_bind(av, &eq->fid, 0), 0);
  }

  fid_eq* eq = nullptr;
  fid_av* av = nullptr;
};

TEST_F(FiEq, Insertion_tells_an_event_queue) {
  ASSERT_NO_FATAL_FAILURE(open_told(FI_WAIT_FD));
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAGAIN);
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_getname(&b.ep->fid, name.data(), &bytes), 0);
  EXPECT_EQ(fi_av_insert(av, name.data(), 1, &address, 0, &address), 0);
  ASSERT_EQ(fi_eq_sread(eq, &event, &entry, sizeof entry, 1000, 0), static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(event, static_cast<std::uint32_t>(FI_AV_COMPLETE));
  EXPECT_EQ(entry.data, 1u);
  EXPECT_EQ(entry.context, &address);
  EXPECT_EQ(entry.fid, &av->fid);
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(FiEq, Vector_takes_one_of_its_own_fabric) {
  ASSERT_NO_FATAL_FAILURE(open_told(FI_WAIT_UNSPEC));
  fid_fabric* other = nullptr;
  fid_eq* foreign = nullptr;
  fid_av* second = nullptr;
  fi_av_attr attr{};
  ASSERT_EQ(fi_fabric(info->fabric_attr, &other, nullptr), 0);
  ASSERT_EQ(fi_eq_open(other, nullptr, &foreign, nullptr), 0);
  ASSERT_EQ(fi_av_open(domain, &attr, &second, nullptr), 0);
  EXPECT_EQ(fi_av_bind(second, &foreign->fid, 0), -FI_EDOMAIN);
  for (fid* object : {&foreign->fid, &other->fid}) EXPECT_EQ(fi_close(object), 0) << "nobody uses it";
  EXPECT_EQ(fi_av_bind(second, &eq->fid, 0), 0);
  for (fid* object : {&second->fid, &av->fid, &eq->fid}) EXPECT_EQ(fi_close(object), 0);
}

/// fi_av(3), FI_EVENT: "one EQ error entry generated for each failed address insertion, followed by one non-error
/// event"; FI_SYNC_ERR "applies to synchronous insertions only".
TEST_F(FiEq, Insertions_that_fail_are_told_before_the_end) {
  ASSERT_NO_FATAL_FAILURE(open_told(FI_WAIT_UNSPEC));
  std::array<std::byte, 3 * 16> names{};  // The first and the last one are nobody's.
  std::array<std::byte, 64> name;
  std::size_t bytes = name.size();
  ASSERT_EQ(fi_getname(&b.ep->fid, name.data(), &bytes), 0);
  ASSERT_EQ(bytes, 16u);
  std::copy_n(name.begin(), bytes, names.begin() + 16);
  std::array<fi_addr_t, 3> places{};
  std::array<int, 3> own{7, 7, 7};
  ASSERT_EQ(fi_av_insert(av, names.data(), places.size(), places.data(), FI_SYNC_ERR, own.data()), 0);
  EXPECT_EQ(own, (std::array<int, 3>{7, 7, 7}));
  EXPECT_EQ(places[0], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(places[1], 0u) << "what fails takes no index: that of the first address inserted is 0 (fi_av(3))";
  EXPECT_EQ(places[2], FI_ADDR_NOTAVAIL);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  for (const std::uint64_t index : {0, 2}) {
    EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAVAIL);
    fi_eq_err_entry error{};
    ASSERT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof error));
    EXPECT_EQ(error.fid, &av->fid);
    EXPECT_EQ(error.context, own.data());
    EXPECT_EQ(error.data, index);
    EXPECT_EQ(error.err, FI_EINVAL);
  }
  ASSERT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(event, static_cast<std::uint32_t>(FI_AV_COMPLETE));
  EXPECT_EQ(entry.data, 1u);
  EXPECT_EQ(entry.context, own.data());
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(FiEq, What_is_written_is_read_in_order) {
  fi_eq_attr attr{};
  ASSERT_EQ(fi_eq_open(fabric, &attr, &eq, nullptr), 0);
  for (std::uint32_t i = 1; i <= 3; ++i) ASSERT_EQ(fi_eq_write(eq, i, &i, sizeof i, 0), 4);
  std::uint32_t event = 0;
  std::uint32_t word = 0;
  EXPECT_EQ(fi_eq_read(eq, &event, &word, sizeof word, FI_PEEK), 4);
  EXPECT_EQ(fi_eq_read(eq, &event, &word, 2, 0), -FI_ETOOSMALL);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(fi_eq_sread(eq, &event, &word, sizeof word, 100, 0), 4);
    EXPECT_EQ(event, i);
    EXPECT_EQ(word, i);
  }
  EXPECT_EQ(fi_eq_sread(eq, &event, &word, sizeof word, 1, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

/// "If the timeout expires or the calling thread is signaled and no data is available to be read from the event queue,
/// -FI_EAGAIN is returned."
TEST_F(FiEq, Blocking_read_ends_with_an_event_or_a_signal_of_the_system) {
  for (const fi_wait_obj wait_obj : {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD}) {
    fi_eq_attr attr{};
    attr.wait_obj = wait_obj;
    ASSERT_EQ(fi_eq_open(fabric, &attr, &eq, nullptr), 0);
    fi_mutex_cond names{};
    EXPECT_EQ(wait_obj == FI_WAIT_MUTEX_COND ? fi_control(&eq->fid, FI_GETWAIT, &names) : 0, 0);
    std::uint32_t event = 0;
    std::uint32_t word = 0;
    send_signals_during([&] { EXPECT_EQ(fi_eq_sread(eq, &event, &word, sizeof word, -1, 0), -FI_EAGAIN); });
    std::thread writer([&] { EXPECT_EQ(fi_eq_write(eq, 7, &event, sizeof event, 0), 4); });
    EXPECT_EQ(fi_eq_sread(eq, &event, &word, sizeof word, -1, 0), 4);
    writer.join();
    EXPECT_EQ(fi_eq_sread(eq, &event, &word, sizeof word, 1, 0), -FI_EAGAIN);
    EXPECT_EQ(fi_close(&eq->fid), 0);
  }
}

TEST_F(FiEq, Flags_that_it_does_not_know_are_refused) {
  fi_eq_attr attr{};
  attr.flags = FI_WRITE | FI_AFFINITY;
  ASSERT_EQ(fi_eq_open(fabric, &attr, &eq, nullptr), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
  attr.flags = FI_PEER;
  EXPECT_EQ(fi_eq_open(fabric, &attr, &eq, nullptr), -FI_EBADFLAGS);
}

TEST_F(FiEq, Failed_insertion_is_an_error) {
  ASSERT_NO_FATAL_FAILURE(open_told(FI_WAIT_NONE));
  const std::array<std::byte, 16> nobody{};
  fi_addr_t place = 0;
  EXPECT_EQ(fi_av_insert(av, nobody.data(), 1, &place, 0, &place), 0);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), -FI_EAVAIL);
  fi_eq_err_entry error{};
  EXPECT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(error.err, FI_EINVAL);
  EXPECT_EQ(error.data, 0u);
  EXPECT_EQ(error.context, &place);
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof entry, 0), static_cast<ssize_t>(sizeof entry));
  EXPECT_EQ(entry.data, 0u);
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

/// "On input, err_data_size indicates the size of the err_data buffer in bytes. On output, err_data_size will be set to
/// the number of bytes copied to the err_data buffer."
TEST_F(FiEq, Buffer_for_data_of_an_error_stays_that_of_the_application) {
  ASSERT_NO_FATAL_FAILURE(open_told(FI_WAIT_NONE));
  const std::array<std::byte, 16> nobody{};
  EXPECT_EQ(fi_av_insert(av, nobody.data(), 1, nullptr, 0, nullptr), 0);
  int data = 0;
  fi_eq_err_entry error{};
  error.err_data = &data;
  error.err_data_size = sizeof data;
  EXPECT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(error.err_data, &data);
  EXPECT_EQ(error.err_data_size, 0u);
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

}  // namespace
}  // namespace portofu::test
