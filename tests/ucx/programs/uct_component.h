// The component utofu of UCT and one of its memory domains, for programs on UCT.
#ifndef PORTOFU_TESTS_UCX_UCT_COMPONENT_H
#define PORTOFU_TESTS_UCX_UCT_COMPONENT_H

#include <string.h>
#include <uct/api/uct.h>

#include "pair.h"

static uct_component_h component;
static uct_md_h md;

static void open_component(const char* tni) {
  uct_component_h* components;
  unsigned count;
  uct_md_config_t* config;
  UCX_OK(uct_query_components(&components, &count));
  for (unsigned i = 0; i < count; i++) {
    uct_component_attr_t about = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    UCX_OK(uct_component_query(components[i], &about));
    if (strcmp(about.name, "utofu") == 0) {
      component = components[i];
    }
  }
  CHECK(component != NULL, "there is no component utofu");
  uct_release_component_list(components);
  UCX_OK(uct_md_config_read(component, NULL, NULL, &config));
  UCX_OK(uct_md_open(component, strcmp(tni, "tnis") == 0 ? "utofu" : tni, config, &md));
  uct_config_release(config);
}

#endif
