// The way in: libfabric loads the plug-in and asks for this table. @spec fi_provider(7)

#include <rdma/providers/fi_prov.h>

#include "lib/libfabric/domain.h"
#include "lib/libfabric/info.h"

namespace {

void clean_up() {}

/// An application that asks for more than a provider reports does not see it, so it reports what libfabric has.
fi_provider provider = {
    .version = FI_VERSION(0, 1),
    .fi_version = FI_VERSION(1, 17),
    .context = {},
    .name = portofu::fabric::kProviderName.data(),
    .getinfo = portofu::fabric::get_info,
    .fabric = portofu::fabric::open_fabric,
    .cleanup = clean_up,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini() {
  provider.fi_version = fi_version();
  return &provider;
}
