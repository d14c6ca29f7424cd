// The way in: libfabric loads the plug-in and asks for this table. @spec fi_provider(7)

#include <rdma/providers/fi_prov.h>

#include "engine/config/settings.h"
#include "lib/libfabric/domain.h"
#include "lib/libfabric/info.h"

namespace {

void clean_up() {}

constexpr std::string_view kOurPrefix = "PORTOFU_";

fi_param_type type_of(portofu::SettingKind kind) {
  switch (kind) {
    case portofu::SettingKind::kInteger: return FI_PARAM_INT;
    case portofu::SettingKind::kPowerOfTwo: return FI_PARAM_SIZE_T;
    default: return FI_PARAM_STRING;
  }
}

/// `fi_info -e` shows the settings, by the names that libfabric makes of them: FI_PORTOFU_WINDOW.
void define_settings(const fi_provider& known) {
  for (const portofu::SettingRow& row : portofu::setting_table()) {
    const std::string_view name = row.name;
    if (!name.starts_with(kOurPrefix)) continue;
    fi_param_define(&known, name.substr(kOurPrefix.size()).data(), type_of(row.kind), "%s Default: %s. Allowed: %s.",
                    row.sentence, portofu::default_text(row).c_str(), portofu::allowed_text(row).c_str());
  }
}

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
  define_settings(provider);
  return &provider;
}
