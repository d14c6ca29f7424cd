// Tagged messages of libfabric between two processes, over the provider that COMPARE_PROVIDER names: ours ("portofu",
// found by FI_PROVIDER_PATH) and others by the same calls.
//
//   latency     half round trips of messages, received by receives that wait
//   rate        windows of messages of 8 bytes, each window answered by one message

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <map>

#include "world.h"

using namespace bench;

namespace {

const std::vector<double> kLatencyBytes = {0, 8, 64, 1024, 8192, 65536};
const std::vector<double> kWindows = {1, 4, 16, 64, 256};
constexpr std::uint64_t kTag = 7;

void check(long rc, const char* call) {
  if (rc < 0) fail(std::string(call) + ": " + fi_strerror(static_cast<int>(-rc)));
}
#define CHECK(call) check((call), #call)

/// Where an endpoint is found.
struct Card {
  std::array<char, 60> address{};
  std::uint32_t bytes = 0;
};

/// An endpoint that knows the other one, and counts what its completion queue tells.
class Side {
 public:
  Side(World& w, std::size_t bytes) : source(w.options, bytes), sink(w.options, bytes) {
    const char* provider = std::getenv("COMPARE_PROVIDER");
    fi_info* hints = fi_allocinfo();
    hints->caps = FI_TAGGED;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(provider != nullptr ? provider : "portofu");
    const int found = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &info_);
    if (found != 0) fail(std::string("no provider ") + hints->fabric_attr->prov_name, kNotApplicable);
    fi_freeinfo(hints);
    CHECK(fi_fabric(info_->fabric_attr, &fabric_, nullptr));
    CHECK(fi_domain(fabric_, info_, &domain_, nullptr));
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    queue.size = 1024;
    CHECK(fi_cq_open(domain_, &queue, &queue_, nullptr));
    fi_av_attr addresses{};
    addresses.type = FI_AV_TABLE;
    CHECK(fi_av_open(domain_, &addresses, &addresses_, nullptr));
    CHECK(fi_endpoint(domain_, info_, &endpoint_, nullptr));
    CHECK(fi_ep_bind(endpoint_, &addresses_->fid, 0));
    CHECK(fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV));
    CHECK(fi_enable(endpoint_));
    meet_peer(w);
  }
  ~Side() {
    for (fid* closed : {&endpoint_->fid, &addresses_->fid, &queue_->fid, &domain_->fid, &fabric_->fid})
      fi_close(closed);
    fi_freeinfo(info_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void send(std::size_t bytes) {
    const bool injects = bytes <= info_->tx_attr->inject_size;
    for (long rc = -FI_EAGAIN; rc == -FI_EAGAIN;) {
      rc = injects ? fi_tinject(endpoint_, source.data, bytes, peer_, kTag)
                   : fi_tsend(endpoint_, source.data, bytes, nullptr, peer_, kTag, nullptr);
      if (rc == -FI_EAGAIN) look();
      if (rc != -FI_EAGAIN) check(rc, "send");
    }
    if (!injects) await(sends_, ++awaited_sends_);
  }
  void post(int count) {
    for (int i = 0; i < count; ++i) {
      long rc = 0;
      while ((rc = fi_trecv(endpoint_, sink.data, sink.size, nullptr, FI_ADDR_UNSPEC, kTag, 0, nullptr)) == -FI_EAGAIN)
        look();
      check(rc, "fi_trecv");
    }
  }
  void await_messages(int count) { await(receives_, awaited_receives_ += static_cast<std::uint64_t>(count)); }

  void look() {
    std::array<fi_cq_tagged_entry, 16> told;
    const ssize_t count = fi_cq_read(queue_, told.data(), told.size());
    if (count == -FI_EAGAIN) return;
    check(count, "fi_cq_read");
    for (ssize_t i = 0; i < count; ++i)
      ++((told[static_cast<std::size_t>(i)].flags & FI_RECV) != 0 ? receives_ : sends_);
  }

  Buffer source, sink;

 private:
  void meet_peer(World& w) {
    Card mine;
    std::size_t bytes = mine.address.size();
    CHECK(fi_getname(&endpoint_->fid, mine.address.data(), &bytes));
    mine.bytes = static_cast<std::uint32_t>(bytes);
    const std::vector<Card> all = w.share(mine);
    const Card& other = all[static_cast<std::size_t>(1 - w.rank)];
    if (fi_av_insert(addresses_, other.address.data(), 1, &peer_, 0, nullptr) != 1) fail("fi_av_insert");
  }

  void await(const std::uint64_t& come, std::uint64_t awaited) {
    while (come < awaited) look();
  }

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_av* addresses_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::uint64_t sends_ = 0, receives_ = 0, awaited_sends_ = 0, awaited_receives_ = 0;
};

void run_latency(World& w) {
  Side side(w, 4 << 20);
  for (const double point : w.options.points_or(kLatencyBytes)) {
    const auto bytes = static_cast<std::size_t>(point);
    w.point(
        "tagged", point, "us", [](double seconds) { return seconds * 1e6 / 2; },
        [&](long count) {
          w.round_trips(
              count, [&] { side.send(bytes); }, [&] { side.post(1), side.await_messages(1); }, [&] { side.look(); });
        });
  }
  w.meet();
}

/// Receives wait before the messages come: one window is posted while the answer to the last one is under way.
void run_rate(World& w) {
  Side side(w, 4096);
  for (const double point : w.options.points_or(kWindows)) {
    const int window = static_cast<int>(point);
    w.point(
        "tagged", point, "M/s", [window](double seconds) { return window / seconds / 1e6; },
        [&](long count) {
          side.post(w.rank == 1 ? window : 1);
          w.meet();
          for (long i = 0; i < count; ++i) {
            if (w.rank == 0) {
              for (int sent = 0; sent < window; ++sent) side.send(8);
              side.await_messages(1);
              if (i + 1 < count) side.post(1);
            } else {
              side.await_messages(window);
              if (i + 1 < count) side.post(window);
              side.send(8);
            }
          }
        });
  }
  w.meet();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const std::map<std::string, void (*)(World&)> groups = {{"latency", run_latency}, {"rate", run_rate}};
  const auto group = groups.find(options.group);
  if (group == groups.end()) fail("the program for libfabric cannot measure " + options.group, kNotApplicable);
  return run_processes(options, 2, group->second);
}
