/* The component `utofu`, which registers itself when its library is loaded: UCX loads no modules but its own, so the
 * library is preloaded. */
#include "iface.h"

uct_component_t uct_utofu_component = {
    .query_md_resources = uct_utofu_md_resources,
    .md_open = uct_utofu_md_open,
    .cm_open = (uct_component_cm_open_func_t)ucs_empty_function_return_unsupported,
    .rkey_unpack = uct_utofu_rkey_unpack,
    .rkey_ptr = (uct_component_rkey_ptr_func_t)ucs_empty_function_return_unsupported,
    .rkey_release = uct_utofu_rkey_release,
    .name = "utofu",
    .md_config = {.name = "uTofu memory domain",
                  .prefix = "UTOFU_",
                  .table = uct_utofu_md_config_table,
                  .size = sizeof(uct_utofu_md_config_t)},
    .cm_config = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list = UCT_COMPONENT_TL_LIST_INITIALIZER(&uct_utofu_component),
    .flags = 0,
    .md_vfs_init = (uct_component_md_vfs_init_func_t)ucs_empty_function,
};

UCT_TL_DEFINE_ENTRY(&uct_utofu_component, utofu, uct_utofu_query_devices, uct_utofu_iface_t, "UTOFU_",
                    uct_utofu_iface_config_table, uct_utofu_iface_config_t)

UCT_SINGLE_TL_INIT(&uct_utofu_component, utofu, ctor, , )
