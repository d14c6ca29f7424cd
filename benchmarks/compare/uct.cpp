// UCT between processes, over the transport utofu, whose library is preloaded.
//
//   flagged     half round trips of two puts, data and then a flag behind them, for which the other side polls; by zero
//               copy both, and as short ones where they can be. As compare_utofu does without UCT

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include <array>

#include "world.h"

using namespace bench;

namespace {

void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) fail(std::string(call) + ": " + ucs_status_string(status));
}
#define CHECK(call) check((call), #call)

constexpr std::size_t kLongest = 4 << 20;

/// One interface and its endpoint to the other process; memory to send from, and memory for what comes. The flag stands
/// behind the data.
class Side {
 public:
  explicit Side(World& w) : source(w.options, kLongest + 64), sink(w.options, kLongest + 64), w_(w) {
    open();
    source_handle_ = registered(source);
    sink_handle_ = registered(sink);
    connect();
  }
  ~Side() {
    while (uct_iface_flush(iface_, 0, nullptr) != UCS_OK) progress();
    w_.meet();
    uct_rkey_release(component_, &key_);
    uct_ep_destroy(ep_);
    uct_iface_close(iface_);
    uct_md_mem_dereg(md_, source_handle_);
    uct_md_mem_dereg(md_, sink_handle_);
    uct_md_close(md_);
    uct_worker_destroy(worker_);
    ucs_async_context_destroy(async_);
  }

  void progress() { uct_worker_progress(worker_); }

  void put(std::size_t at, std::size_t bytes) {
    const uct_iov_t piece = {source.data + at, bytes, source_handle_, 0, 1};
    ++left_.count;
    post(UCS_INPROGRESS, [&] { return uct_ep_put_zcopy(ep_, &piece, 1, remote_ + at, key_.rkey, &left_); });
  }

  void put_short(std::size_t at, std::size_t bytes) {
    post(UCS_OK, [&] {
      return uct_ep_put_short(ep_, source.data + at, static_cast<unsigned>(bytes), remote_ + at, key_.rkey);
    });
  }

  /// Whether puts whose memory is in use are under way.
  bool busy() const { return left_.count > 1; }

  Buffer source, sink;

 private:
  template <class Call>
  void post(ucs_status_t expected, Call&& call) {
    ucs_status_t status;
    while ((status = call()) == UCS_ERR_NO_RESOURCE) progress();
    if (status != expected) fail(std::string("a put: ") + ucs_status_string(status));
  }

  void open() {
    uct_component_h* components = nullptr;
    unsigned count = 0;
    CHECK(uct_query_components(&components, &count));
    for (unsigned i = 0; i < count; ++i) {
      uct_component_attr_t about{};
      about.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
      CHECK(uct_component_query(components[i], &about));
      if (std::strcmp(about.name, "utofu") == 0) component_ = components[i];
    }
    uct_release_component_list(components);
    if (component_ == nullptr) fail("the library of the component is not preloaded", kNotApplicable);
    uct_md_config_t* md_config = nullptr;
    CHECK(uct_md_config_read(component_, nullptr, nullptr, &md_config));
    CHECK(uct_md_open(component_, "tni0", md_config, &md_));
    uct_config_release(md_config);
    CHECK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async_));
    CHECK(uct_worker_create(async_, UCS_THREAD_MODE_SINGLE, &worker_));
    uct_iface_config_t* config = nullptr;
    CHECK(uct_md_iface_config_read(md_, "utofu", nullptr, nullptr, &config));
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device = {"utofu", "tni0"};
    CHECK(uct_iface_open(md_, worker_, &params, config, &iface_));
    uct_config_release(config);
    uct_iface_progress_enable(iface_, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
  }

  uct_mem_h registered(const Buffer& buffer) {
    uct_mem_h handle = nullptr;
    CHECK(uct_md_mem_reg(md_, buffer.data, buffer.size, UCT_MD_MEM_ACCESS_ALL, &handle));
    return handle;
  }

  /// Addresses and keys are longer than a card, so they go in parts.
  std::vector<unsigned char> exchanged(const std::vector<unsigned char>& mine) {
    using Part = std::array<unsigned char, 64>;
    std::vector<unsigned char> its(mine.size());
    for (std::size_t at = 0; at < mine.size(); at += sizeof(Part)) {
      Part part{};
      const std::size_t bytes = std::min(sizeof part, mine.size() - at);
      std::memcpy(part.data(), mine.data() + at, bytes);
      std::memcpy(its.data() + at, w_.share(part)[static_cast<std::size_t>(1 - w_.rank)].data(), bytes);
    }
    return its;
  }

  void connect() {
    uct_iface_attr_t attr{};
    uct_md_attr_t md_attr{};
    CHECK(uct_iface_query(iface_, &attr));
    CHECK(uct_md_query(md_, &md_attr));
    std::vector<unsigned char> address(attr.iface_addr_len), key(md_attr.rkey_packed_size);
    CHECK(uct_iface_get_address(iface_, reinterpret_cast<uct_iface_addr_t*>(address.data())));
    CHECK(uct_md_mkey_pack(md_, sink_handle_, key.data()));
    address = exchanged(address);
    key = exchanged(key);
    remote_ = w_.share(reinterpret_cast<std::uint64_t>(sink.data))[static_cast<std::size_t>(1 - w_.rank)];
    CHECK(uct_rkey_unpack(component_, key.data(), &key_));
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface = iface_;
    params.dev_addr = reinterpret_cast<const uct_device_addr_t*>(address.data());
    params.iface_addr = reinterpret_cast<const uct_iface_addr_t*>(address.data());
    CHECK(uct_ep_create(&params, &ep_));
  }

  World& w_;
  uct_component_h component_ = nullptr;
  uct_md_h md_ = nullptr;
  ucs_async_context_t* async_ = nullptr;
  uct_worker_h worker_ = nullptr;
  uct_iface_h iface_ = nullptr;
  uct_ep_h ep_ = nullptr;
  uct_mem_h source_handle_ = nullptr, sink_handle_ = nullptr;
  uct_rkey_bundle_t key_{};
  std::uint64_t remote_ = 0;
  uct_completion_t left_ = {[](uct_completion_t*) {}, 1, UCS_OK};
};

void run_flagged(World& w) {
  Side side(w);
  for (const double point : w.options.points_or(kFlaggedBytes)) {
    const auto bytes = static_cast<std::size_t>(point);
    for (const bool shortly : {false, true}) {
      flagged(
          w, side, shortly ? "data, flag, short" : "data, flag", bytes,
          [&](std::size_t at, std::size_t length) {
            shortly&& length <= 32 ? side.put_short(at, length) : side.put(at, length);
          },
          [&] { side.progress(); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  if (options.group != "flagged") fail("the program for UCT cannot measure " + options.group, kNotApplicable);
  return run_processes(options, options.processes, run_flagged);
}
