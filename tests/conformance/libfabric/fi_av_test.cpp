// fi_av(3): address vectors.

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/conformance/libfabric/fabric_fixture.h"

namespace portofu::test {
namespace {

class FiAv : public Fabric {
 protected:
  using Name = std::array<std::byte, 64>;

  fid_av* open_av(const char* name, std::uint64_t flags = 0, int expected = 0) {
    fi_av_attr attr{};
    attr.name = name;
    attr.flags = flags;
    fid_av* av = nullptr;
    EXPECT_EQ(fi_av_open(domain, &attr, &av, nullptr), expected);
    return av;
  }

  static Name name_of(const Node& node) {
    Name name{};
    std::size_t bytes = name.size();
    EXPECT_EQ(fi_getname(&node.ep->fid, name.data(), &bytes), 0);
    return name;
  }

  /// "10.0.0.1:4711/0" of an address in a vector.
  static std::string text_of(fid_av* av, fi_addr_t address) {
    Name name{};
    std::size_t bytes = name.size();
    if (fi_av_lookup(av, address, name.data(), &bytes) != 0) return "none";
    std::array<char, 64> text{};
    std::size_t text_bytes = text.size();
    EXPECT_EQ(fi_av_straddr(av, name.data(), text.data(), &text_bytes), text.data());
    EXPECT_EQ(std::strlen(text.data()) + 1, text_bytes);
    return text.data();
  }
};

TEST_F(FiAv, Addresses_are_looked_up_and_removed) {
  std::array<std::byte, 64> name, found;
  std::size_t bytes = name.size();
  ASSERT_EQ(fi_getname(&b.ep->fid, name.data(), &bytes), 0);
  std::size_t found_bytes = found.size();
  ASSERT_EQ(fi_av_lookup(a.av, to_b, found.data(), &found_bytes), 0);
  EXPECT_EQ(found_bytes, bytes);
  EXPECT_TRUE(std::equal(name.begin(), name.begin() + bytes, found.begin()));
  std::array<char, 64> text{};
  std::size_t text_bytes = text.size();
  EXPECT_NE(fi_av_straddr(a.av, name.data(), text.data(), &text_bytes), nullptr);
  ASSERT_EQ(fi_av_remove(a.av, &to_b, 1, 0), 0);
  const int sent = 0;
  EXPECT_EQ(fi_send(a.ep, &sent, sizeof sent, nullptr, to_b, nullptr), -FI_EINVAL);
  found_bytes = found.size();
  EXPECT_EQ(fi_av_lookup(a.av, to_b, found.data(), &found_bytes), -FI_EINVAL);
  name.fill(std::byte{0});
  fi_addr_t bad = 0;
  EXPECT_EQ(fi_av_insert(a.av, name.data(), 1, &bad, 0, nullptr), 0);
  EXPECT_EQ(bad, FI_ADDR_NOTAVAIL);
  bytes = 2;
  EXPECT_EQ(fi_getname(&b.ep->fid, name.data(), &bytes), -FI_ETOOSMALL);
}

TEST_F(FiAv, Places_are_given_in_order_and_anew) {
  fid_av* av = open_av(nullptr);
  std::array<fi_addr_t, 3> places{};
  for (int i = 0; i < 3; ++i) {
    const std::string service = std::to_string(5000 + i);
    ASSERT_EQ(fi_av_insertsvc(av, "10.1.1.1", service.c_str(), &places[i], 0, nullptr), 1);
    EXPECT_EQ(places[i], static_cast<fi_addr_t>(i));
  }
  ASSERT_EQ(fi_av_remove(av, &places[1], 1, 0), 0);
  EXPECT_EQ(fi_av_remove(av, &places[1], 1, 0), -FI_EINVAL);
  EXPECT_EQ(text_of(av, 1), "none");
  fi_addr_t again = 0;
  ASSERT_EQ(fi_av_insertsvc(av, "10.1.1.1", "6000", &again, 0, nullptr), 1);
  EXPECT_EQ(again, 1u) << "the lowest place that is not in use";
  EXPECT_EQ(text_of(av, 1), "10.1.1.1:6000/0");
  EXPECT_EQ(fi_close(&av->fid), 0);
}

/// "Attempting to insert a duplicate copy of the same address into an AV may result in undefined behavior." Here it has
/// one place, until it is removed as often as it was inserted.
TEST_F(FiAv, Address_that_is_inserted_again_keeps_its_place) {
  const Name of_a = name_of(a);
  fi_addr_t again = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(b.av, of_a.data(), 1, &again, 0, nullptr), 1);
  EXPECT_EQ(again, to_a);
  const fi_addr_t other = b.insert(b);
  EXPECT_NE(other, to_a);
  int word = 3;
  for (const fi_addr_t source : {to_a, to_a, fi_addr_t{FI_ADDR_NOTAVAIL}}) {
    EXPECT_EQ(fi_inject(b.ep, &word, sizeof word, to_a), source == to_a ? 0 : -FI_EINVAL);
    ASSERT_EQ(fi_recv(b.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(a.ep, &word, sizeof word, to_b), 0);
    EXPECT_EQ(b.next().source, source);
    EXPECT_EQ(fi_av_remove(b.av, &to_a, 1, 0), source == to_a ? 0 : -FI_EINVAL);
  }
  ASSERT_EQ(fi_av_insert(b.av, of_a.data(), 1, &again, 0, nullptr), 1);
  EXPECT_EQ(again, to_a) << "the lowest place that is not in use";
}

TEST_F(FiAv, Range_of_nodes_and_services) {
  fid_av* av = open_av(nullptr);
  std::array<fi_addr_t, 4> places{};
  ASSERT_EQ(fi_av_insertsym(av, "10.1.1.1", 2, "5000", 2, places.data(), 0, nullptr), 4);
  EXPECT_EQ(text_of(av, places[0]), "10.1.1.1:5000/0");
  EXPECT_EQ(text_of(av, places[1]), "10.1.1.1:5001/0");
  EXPECT_EQ(text_of(av, places[2]), "10.1.1.2:5000/0");
  EXPECT_EQ(text_of(av, places[3]), "10.1.1.2:5001/0");
  EXPECT_EQ(fi_av_insertsym(av, "localhost", 2, "5000", 1, places.data(), 0, nullptr), -FI_EINVAL)
      << "a name without a number has none behind it";
  EXPECT_EQ(fi_av_insertsym(av, nullptr, 1, "5000", 1, places.data(), 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(FiAv, Host_name_is_an_address) {
  fid_av* av = open_av(nullptr);
  fi_addr_t by_name = 0, by_number = 0;
  ASSERT_EQ(fi_av_insertsvc(av, "localhost", "5000", &by_name, 0, nullptr), 1);
  ASSERT_EQ(fi_av_insertsvc(av, "127.0.0.1", "5001", &by_number, 0, nullptr), 1);
  const std::string name = text_of(av, by_name);
  const std::string number = text_of(av, by_number);
  EXPECT_EQ(name.substr(0, name.find(':')), number.substr(0, number.find(':')));
  EXPECT_EQ(fi_av_insertsvc(av, "localhost", "no_number", &by_name, 0, nullptr), 0);
  EXPECT_EQ(by_name, FI_ADDR_NOTAVAIL);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(FiAv, Errors_of_an_insertion_come_one_by_one) {
  std::array<Name, 1> good{name_of(b)};
  std::array<std::byte, 32> both{};
  std::memcpy(both.data() + 16, good[0].data(), 16);
  std::array<int, 2> errors{7, 7};
  std::array<fi_addr_t, 2> places{};
  EXPECT_EQ(fi_av_insert(a.av, both.data(), 2, places.data(), FI_SYNC_ERR, errors.data()), 1);
  EXPECT_EQ(errors, (std::array<int, 2>{FI_EINVAL, 0}));
  EXPECT_EQ(places[0], FI_ADDR_NOTAVAIL);
}

TEST_F(FiAv, Named_vector_is_shared) {
  const std::string name = "test/" + std::to_string(getpid());
  EXPECT_EQ(open_av(name.c_str(), FI_READ, -FI_ENOENT), nullptr);
  open_av(nullptr, FI_READ, -FI_EINVAL);
  fid_av* writer = open_av(name.c_str());
  fid_av* reader = open_av(name.c_str(), FI_READ);
  ASSERT_NE(reader, nullptr);
  const Name of_b = name_of(b);
  fi_addr_t place = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(reader, of_b.data(), 1, &place, 0, nullptr), -FI_EACCES);
  ASSERT_EQ(fi_av_insert(writer, of_b.data(), 1, &place, 0, nullptr), 1);
  EXPECT_EQ(text_of(reader, place), text_of(writer, place));
  // An endpoint with the one sends to what was inserted by the other.
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &reader->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep), 0);
  int received = 0;
  const int sent = 6;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(ep, &sent, sizeof sent, nullptr, place, nullptr), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, 6);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&reader->fid), 0);
  EXPECT_EQ(fi_close(&writer->fid), 0);
  EXPECT_EQ(open_av(name.c_str(), FI_READ, -FI_ENOENT), nullptr) << "nobody has it any more";
}

/// fi_av(3), map_addr: "If name is non-NULL and map_addr is 0, then the map_addr used by the provider will be
/// returned". Programs find what others have inserted there, in order.
TEST_F(FiAv, Named_vector_shows_the_places_of_its_addresses) {
  const std::string name = "places/" + std::to_string(getpid());
  fi_av_attr attr{};
  attr.name = name.c_str();
  attr.count = 3;
  fid_av* writer = nullptr;
  fid_av* reader = nullptr;
  ASSERT_EQ(fi_av_open(domain, &attr, &writer, nullptr), 0);
  fi_av_attr reading = attr;
  reading.map_addr = nullptr;
  reading.flags = FI_READ;
  ASSERT_EQ(fi_av_open(domain, &reading, &reader, nullptr), 0);
  ASSERT_NE(reading.map_addr, nullptr);
  std::array<fi_addr_t, 3> places{};
  ASSERT_EQ(fi_av_insertsym(writer, "10.1.1.1", 1, "5001", 3, places.data(), 0, nullptr), 3);
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(static_cast<const fi_addr_t*>(attr.map_addr)[i], places[i]);
    EXPECT_EQ(static_cast<const fi_addr_t*>(reading.map_addr)[i], places[i]);
  }
  EXPECT_EQ(fi_close(&reader->fid), 0);
  ASSERT_EQ(fi_av_open(domain, &reading, &reader, nullptr), 0) << "at an address that it was given";
  EXPECT_EQ(fi_close(&reader->fid), 0);
  EXPECT_EQ(fi_close(&writer->fid), 0);
}

/// "The removed address ... is invalid until it is returned again by a new fi_av_insert", for all who have the vector.
TEST_F(FiAv, What_is_removed_from_a_named_vector_is_nobodys_address) {
  const std::string name = "removed-" + std::to_string(getpid());
  fid_av* writer = open_av(name.c_str());
  fid_av* reader = open_av(name.c_str(), FI_READ);
  std::array<fi_addr_t, 3> places{};
  ASSERT_EQ(fi_av_insertsym(writer, "10.1.1.1", 1, "5001", 3, places.data(), 0, nullptr), 3);
  EXPECT_EQ(text_of(reader, places[1]), "10.1.1.1:5002/0");
  ASSERT_EQ(fi_av_remove(writer, &places[1], 1, 0), 0);
  EXPECT_EQ(text_of(reader, places[1]), "none");
  EXPECT_EQ(text_of(reader, places[2]), "10.1.1.1:5003/0");
  EXPECT_EQ(fi_av_remove(writer, &places[1], 1, 0), -FI_EINVAL);
  // "An address is inserted at the lowest index that corresponds to an unused table location."
  fi_addr_t place = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insertsvc(writer, "10.1.1.1", "6000", &place, 0, nullptr), 1);
  EXPECT_EQ(place, places[1]);
  EXPECT_EQ(text_of(reader, place), "10.1.1.1:6000/0");
  ASSERT_EQ(fi_av_insertsvc(writer, "10.1.1.1", "6001", &place, 0, nullptr), 1);
  EXPECT_EQ(place, 3u);
  EXPECT_EQ(fi_close(&reader->fid), 0);
  EXPECT_EQ(fi_close(&writer->fid), 0);
}

/// A sender, or a source, that others have removed is none.
TEST_F(FiAv, Who_was_removed_from_a_named_vector_is_no_target_and_no_source) {
  const std::string name = "nobody-" + std::to_string(getpid());
  fid_av* writer = open_av(name.c_str());
  fid_av* reader = open_av(name.c_str());
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &reader->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep), 0);
  const Name of_b = name_of(b);
  fi_addr_t place = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(writer, of_b.data(), 1, &place, 0, nullptr), 1);
  Node known;
  known.ep = ep;
  const fi_addr_t to_ep = b.insert(known);
  int word = 3;
  for (const bool removed : {false, true}) {
    if (removed) {
      ASSERT_EQ(fi_av_remove(writer, &place, 1, 0), 0);
    }
    EXPECT_EQ(fi_inject(ep, &word, sizeof word, place), removed ? -FI_EINVAL : 0);
    ASSERT_EQ(fi_recv(ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_inject(b.ep, &word, sizeof word, to_ep), 0);
    EXPECT_EQ(a.next().source, removed ? FI_ADDR_NOTAVAIL : place);
  }
  for (fid* object : {&ep->fid, &reader->fid, &writer->fid}) EXPECT_EQ(fi_close(object), 0);
}

/// Each process has the places that it has put in: a source that has one left is known by that.
TEST_F(FiAv, Source_in_two_places_of_a_named_vector_is_known_while_one_is_left) {
  const std::string name = "twice-" + std::to_string(getpid());
  fid_av* writer = open_av(name.c_str());
  fid_av* reader = open_av(name.c_str());
  Node known;
  ASSERT_EQ(fi_endpoint(domain, info.get(), &known.ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(known.ep, &reader->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(known.ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(known.ep), 0);
  const Name of_b = name_of(b);
  std::array<fi_addr_t, 2> places{};
  ASSERT_EQ(fi_av_insert(writer, of_b.data(), 1, places.data(), 0, nullptr), 1);
  ASSERT_EQ(fi_av_insert(reader, of_b.data(), 1, &places[1], 0, nullptr), 1);
  const fi_addr_t to_known = b.insert(known);
  int word = 3;
  const auto source_of_next = [&] {
    EXPECT_EQ(fi_recv(known.ep, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(fi_inject(b.ep, &word, sizeof word, to_known), 0);
    return a.next().source;
  };
  const fi_addr_t first = source_of_next();
  ASSERT_TRUE(first == places[0] || first == places[1]) << first;
  const fi_addr_t other = first == places[0] ? places[1] : places[0];
  ASSERT_EQ(fi_av_remove(writer, &places[first == places[0] ? 0 : 1], 1, 0), 0);
  EXPECT_EQ(source_of_next(), other);
  ASSERT_EQ(fi_av_remove(writer, &places[first == places[0] ? 1 : 0], 1, 0), 0);
  EXPECT_EQ(source_of_next(), FI_ADDR_NOTAVAIL);
  for (fid* object : {&known.ep->fid, &reader->fid, &writer->fid}) EXPECT_EQ(fi_close(object), 0);
}

/// A vector with a name that knows an endpoint twice, and a sender that has it.
class FiAvTwice : public FiAv {
 protected:
  static constexpr int kMost = 40;

  void SetUp() override {
    ASSERT_EQ(setenv("PORTOFU_UNEXPECTED_MIB", "1", 1), 0);
    FiAv::SetUp();
    ASSERT_EQ(unsetenv("PORTOFU_UNEXPECTED_MIB"), 0);
    vector = open_av(("order-" + std::to_string(getpid())).c_str());
    ASSERT_EQ(fi_endpoint(domain, info.get(), &sender, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(sender, &vector->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(sender, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(sender), 0);
    const Name of_b = name_of(b);
    for (fi_addr_t& place : places) ASSERT_EQ(fi_av_insert(vector, of_b.data(), 1, &place, 0, nullptr), 1);
    ASSERT_NE(places[0], places[1]);
  }
  void TearDown() override {
    for (fid* object : {&sender->fid, &vector->fid}) EXPECT_EQ(fi_close(object), 0);
    FiAv::TearDown();
  }

  void send_long(fi_addr_t place) { ASSERT_EQ(fi_send(sender, long_.data(), long_.size(), nullptr, place, &long_), 0); }
  void send_last(fi_addr_t place) { ASSERT_EQ(fi_send(sender, long_.data(), 8, nullptr, place, &long_), 0); }
  /// @param left  of those that are long
  void expect_last_behind(int left) {
    for (int i = 0; i <= left; ++i) {
      ASSERT_EQ(fi_recv(b.ep, received_.data(), received_.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
      EXPECT_EQ(b.next().len, i < left ? received_.size() : 8u) << i;
    }
  }

  fid_av* vector = nullptr;
  fid_ep* sender = nullptr;
  std::array<fi_addr_t, 2> places{};

 private:
  std::vector<char> long_ = std::vector<char>(1 << 20), received_ = std::vector<char>(1 << 20);
};

/// fi_endpoint(3), FI_ORDER_SAS: "send operations ... transmit in the order submitted relative to other send
/// operations" to one endpoint, and by whichever of its addresses. Here more is sent than the target keeps.
TEST_F(FiAvTwice, Messages_stay_in_order_whichever_place_is_named) {
  for (int i = 0; i < kMost; ++i) send_long(places[i % 3 == 0 ? 1 : 0]);
  send_last(places[1]);
  expect_last_behind(kMost);
  for (int i = 0; i <= kMost; ++i) EXPECT_EQ(a.next().err, 0);
}

/// What waits goes on by the place that is left.
TEST_F(FiAvTwice, Place_that_is_left_keeps_the_order) {
  for (const bool first : {true, false}) {
    for (int i = 0; i < kMost; ++i) send_long(places[first ? 0 : 1]);
    ASSERT_EQ(fi_av_remove(vector, &places[first ? 1 : 0], 1, 0), 0);
    send_last(places[first ? 0 : 1]);
    expect_last_behind(kMost);
    for (int i = 0; i <= kMost; ++i) EXPECT_EQ(a.next().err, 0);
    const Name of_b = name_of(b);
    ASSERT_EQ(fi_av_insert(vector, of_b.data(), 1, &places[first ? 1 : 0], 0, nullptr), 1);
  }
}

TEST_F(FiAv, Places_of_a_named_vector_are_given_once_whoever_asks) {
  const std::string name = "threads-" + std::to_string(getpid());
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 200;
  std::array<std::array<fi_addr_t, kEach>, kThreads> places{};
  std::array<fid_domain*, kThreads> domains{};
  std::array<fid_av*, kThreads> vectors{};
  for (std::size_t i = 0; i < kThreads; ++i) {
    ASSERT_EQ(fi_domain(fabric, info.get(), &domains[i], nullptr), 0);
    fi_av_attr attr{};
    attr.name = name.c_str();
    ASSERT_EQ(fi_av_open(domains[i], &attr, &vectors[i], nullptr), 0);
  }
  const auto run = [&](std::size_t thread) {
    for (std::size_t i = 0; i < kEach; ++i) {
      fi_addr_t& place = places[thread][i];
      const std::string service = std::to_string(1 + thread * kEach + i);
      ASSERT_EQ(fi_av_insertsvc(vectors[thread], "10.1.1.1", service.c_str(), &place, 0, nullptr), 1);
      if (i % 3 == 2) continue;
      ASSERT_EQ(fi_av_remove(vectors[thread], &place, 1, 0), 0);
      ASSERT_EQ(fi_av_insertsvc(vectors[thread], "10.1.1.1", service.c_str(), &place, 0, nullptr), 1);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  std::vector<bool> given(kThreads * kEach);
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    for (std::size_t i = 0; i < kEach; ++i) {
      const fi_addr_t place = places[thread][i];
      ASSERT_LT(place, given.size()) << "a lower one was free";
      EXPECT_FALSE(given[place]);
      given[place] = true;
      EXPECT_EQ(text_of(vectors[0], place), "10.1.1.1:" + std::to_string(1 + thread * kEach + i) + "/0");
    }
  }
  for (fid_av* vector : vectors) EXPECT_EQ(fi_close(&vector->fid), 0);
  for (fid_domain* opened : domains) EXPECT_EQ(fi_close(&opened->fid), 0);
}

// close(2) is a place where a thread is cancelled (pthreads(7)); fi_close(3) is none.
TEST_F(FiAv, Closed_by_a_thread_that_is_to_be_cancelled__is_closed) {
  fid_av* const av = open_av(("cancelled-" + std::to_string(getpid())).c_str());
  ASSERT_NE(av, nullptr);
  bool is_closed = false;
  std::thread closer([av, &is_closed] {
    pthread_cancel(pthread_self());
    is_closed = fi_close(&av->fid) == 0;
  });
  closer.join();
  EXPECT_TRUE(is_closed);
}

/// What they leave is a file that nobody has a lock on.
TEST_F(FiAv, File_of_users_that_were_killed_goes_when_anybody_opens_a_name) {
  const std::string name = "left-" + std::to_string(getpid());
  const std::string path = "/dev/shm/portofu-av-" + std::to_string(geteuid()) + "-" + name;
  fid_av* av = open_av(name.c_str());
  ASSERT_NE(av, nullptr);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  fid_av* other = open_av((name + "-other").c_str());
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << "it is in use";
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  const int left = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(left, 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
  close(left);
  other = open_av((name + "-other").c_str());
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "nobody has a lock on it";
  EXPECT_EQ(fi_close(&other->fid), 0);
}

/// Endpoints whose application has asked for Internet addresses.
class FiAvInternet : public FiAv {
 protected:
  void SetUp() override {
    Info hints = make_hints();
    hints->addr_format = FI_SOCKADDR_IN;
    open(hints.get());
  }
};

TEST_F(FiAvInternet, Endpoints_talk_by_them) {
  const Name of_b = name_of(b);
  sockaddr_in name{};
  std::memcpy(&name, of_b.data(), sizeof name);
  EXPECT_EQ(name.sin_family, AF_INET);
  EXPECT_NE(name.sin_port, 0);
  EXPECT_NE(name.sin_addr.s_addr, 0u);
  Name found{};
  std::size_t bytes = found.size();
  ASSERT_EQ(fi_av_lookup(a.av, to_b, found.data(), &bytes), 0);
  EXPECT_EQ(bytes, sizeof name);
  EXPECT_EQ(found, of_b);
  int received = 0;
  const int sent = 17;
  ASSERT_EQ(fi_recv(b.ep, &received, sizeof received, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to_b), 0);
  EXPECT_EQ(b.next().err, 0);
  EXPECT_EQ(received, 17);
}

TEST_F(FiAvInternet, What_others_have_made_is_an_address_too) {
  std::array<sockaddr_in, 2> made{};
  made[0].sin_family = AF_INET;
  made[0].sin_port = htons(5000);
  ASSERT_EQ(inet_pton(AF_INET, "10.1.1.1", &made[0].sin_addr), 1);
  std::memset(made[0].sin_zero, 7, sizeof made[0].sin_zero);
  made[1] = made[0];
  made[1].sin_port = 0;
  fid_av* av = open_av(nullptr);
  std::array<fi_addr_t, 2> places{};
  EXPECT_EQ(fi_av_insert(av, made.data(), 2, places.data(), 0, nullptr), 1);
  EXPECT_EQ(text_of(av, places[0]), "10.1.1.1:5000/0");
  EXPECT_EQ(places[1], FI_ADDR_NOTAVAIL) << "no process has the PID 0";
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(FiAv, Events_need_a_queue) {
  fid_av* av = open_av(nullptr, FI_EVENT);
  const Name of_b = name_of(b);
  fi_addr_t place = 0;
  EXPECT_EQ(fi_av_insert(av, of_b.data(), 1, &place, 0, nullptr), -FI_ENOEQ);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(FiAv, What_it_cannot_do_is_refused) {
  fi_av_attr attr{};
  fid_av* av = nullptr;
  attr.type = static_cast<fi_av_type>(FI_AV_TABLE + 1);
  EXPECT_EQ(fi_av_open(domain, &attr, &av, nullptr), -FI_EINVAL);
  attr = {};
  attr.flags = FI_MULTICAST;
  EXPECT_EQ(fi_av_open(domain, &attr, &av, nullptr), -FI_EBADFLAGS);
  av = open_av(nullptr);
  const Name of_b = name_of(b);
  fi_addr_t mine = 77;
  EXPECT_EQ(fi_av_insert(av, of_b.data(), 1, &mine, FI_AV_USER_ID, nullptr), -FI_EBADFLAGS);
  EXPECT_EQ(fi_av_insert(av, of_b.data(), 1, &mine, FI_MORE, nullptr), 1);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

/// "Applications may also pass in an FI_ADDR_STR formatted address as the node parameter. In such cases, the service
/// parameter must be NULL."
TEST_F(FiAv, Node_may_be_a_whole_address) {
  std::array<fi_addr_t, 2> places{};
  ASSERT_EQ(fi_av_insertsvc(a.av, "10.1.1.1", "5000", &places[0], 0, nullptr), 1);
  ASSERT_EQ(fi_av_insertsvc(a.av, "fi_sockaddr_in://10.1.1.1:5000", nullptr, &places[1], 0, nullptr), 1);
  std::array<std::array<std::byte, 16>, 2> addresses{};
  for (int i = 0; i < 2; ++i) {
    std::size_t bytes = addresses[i].size();
    ASSERT_EQ(fi_av_lookup(a.av, places[i], addresses[i].data(), &bytes), 0);
  }
  EXPECT_EQ(addresses[0], addresses[1]);
  EXPECT_NE(fi_av_insertsvc(a.av, "fi_sockaddr_in://10.1.1.1:5000", "5000", &places[1], 0, nullptr), 1);
  EXPECT_NE(fi_av_insertsvc(a.av, "10.1.1.1", nullptr, &places[1], 0, nullptr), 1);
}

}  // namespace
}  // namespace portofu::test
