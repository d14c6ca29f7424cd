#include "memory.h"

#include <stdio.h>
#include <sys/mman.h>
#include <ucm/api/ucm.h>
#include <ucs/debug/log.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <uct/base/uct_iface.h>

ucs_config_field_t uct_utofu_md_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_utofu_md_config_t, super), UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},
    {"EXCLUSIVE", "n",
     "Each interface takes a CQ of its own if there is one. A TNI has few, and so the processes of a node may run out "
     "of "
     "them",
     ucs_offsetof(uct_utofu_md_config_t, exclusive), UCS_CONFIG_TYPE_BOOL},
    {"THREAD_SAFE", "n",
     "VCQs are thread-safe. For interfaces of one TNI that several threads use at the same time, unless they are "
     "exclusive",
     ucs_offsetof(uct_utofu_md_config_t, thread_safe), UCS_CONFIG_TYPE_BOOL},
    {"WAKEUP", "n",
     "Interfaces can be waited for by a descriptor, as UCP_FEATURE_WAKEUP wants it. A thread looks for them. Makes "
     "VCQs "
     "thread-safe",
     ucs_offsetof(uct_utofu_md_config_t, wakeup), UCS_CONFIG_TYPE_BOOL},
    {"ALL_TNIS", "n",
     "One domain with one device, `tnis`, over all TNIs, instead of one for each. Long puts and gets are spread over "
     "them",
     ucs_offsetof(uct_utofu_md_config_t, all_tnis), UCS_CONFIG_TYPE_BOOL},
    {"RCACHE", "try", "Keep registrations of memory for later use", ucs_offsetof(uct_utofu_md_config_t, use_rcache),
     UCS_CONFIG_TYPE_TERNARY},
    {"", "", NULL, ucs_offsetof(uct_utofu_md_config_t, rcache), UCS_CONFIG_TYPE_TABLE(uct_md_config_rcache_table)},
    {NULL}};

ucs_status_t uct_utofu_status(int rc) {
  switch (rc) {
    case UTOFU_SUCCESS: return UCS_OK;
    case UTOFU_ERR_BUSY: return UCS_ERR_NO_RESOURCE;
    case UTOFU_ERR_OUT_OF_MEMORY:
    case UTOFU_ERR_FULL: return UCS_ERR_NO_MEMORY;
    case UTOFU_ERR_MRQ_PEER: return UCS_ERR_ENDPOINT_TIMEOUT;
    case UTOFU_ERR_TCQ_STADD:
    case UTOFU_ERR_TCQ_LENGTH:
    case UTOFU_ERR_TCQ_MEMORY:
    case UTOFU_ERR_MRQ_LCL_STADD:
    case UTOFU_ERR_MRQ_LCL_LENGTH:
    case UTOFU_ERR_MRQ_LCL_MEMORY: return UCS_ERR_INVALID_ADDR;
    case UTOFU_ERR_MRQ_RMT_STADD:
    case UTOFU_ERR_MRQ_RMT_LENGTH:
    case UTOFU_ERR_MRQ_RMT_MEMORY: return UCS_ERR_REJECTED;
    case UTOFU_ERR_INVALID_STADD: /* An atomic on an address that is not aligned. */ return UCS_ERR_INVALID_PARAM;
    default: return UCS_ERR_IO_ERROR;
  }
}

static int wants_all(uct_component_t* component) {
  uct_md_config_t* config;
  if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK) {
    return 0;
  }
  const int all = ucs_derived_of(config, uct_utofu_md_config_t)->all_tnis;
  uct_config_release(config);
  return all;
}

ucs_status_t uct_utofu_md_resources(uct_component_t* component, uct_md_resource_desc_t** resources_p,
                                    unsigned* num_resources_p) {
  utofu_tni_id_t* tnis = NULL;
  size_t count = 0;
  if (wants_all(component)) {
    return uct_md_query_single_md_resource(component, resources_p, num_resources_p);
  }
  if (utofu_get_onesided_tnis(&tnis, &count) != UTOFU_SUCCESS || count == 0) {
    free(tnis);
    return uct_md_query_empty_md_resource(resources_p, num_resources_p);
  }
  uct_md_resource_desc_t* const resources = ucs_calloc(count, sizeof *resources, "utofu resources");
  if (resources == NULL) {
    free(tnis);
    return UCS_ERR_NO_MEMORY;
  }
  for (size_t i = 0; i < count; i++) {
    ucs_snprintf_zero(resources[i].md_name, sizeof resources[i].md_name, "tni%u", tnis[i]);
  }
  free(tnis);
  *resources_p = resources;
  *num_resources_p = (unsigned)count;
  return UCS_OK;
}

/* VCQs of a process share a CQ, or have one each if that is wanted, as long as there are any. */
static ucs_status_t create_vcq(uct_utofu_md_t* md) {
  uct_utofu_vcq_t* const vcq = &md->vcqs[md->vcq_count];
  const utofu_tni_id_t tni = md->tnis[md->vcq_count % md->rails];
  int rc = utofu_create_vcq(tni, md->vcq_flags, &vcq->hdl);
  if (rc == UTOFU_ERR_NOT_AVAILABLE || rc == UTOFU_ERR_FULL) {
    rc = utofu_create_vcq(tni, md->vcq_flags & ~UTOFU_VCQ_FLAG_EXCLUSIVE, &vcq->hdl);
  }
  if (rc != UTOFU_SUCCESS || (rc = utofu_query_vcq_id(vcq->hdl, &vcq->id)) != UTOFU_SUCCESS) {
    ucs_error("tni%u: no VCQ can be made: uTofu says %d", tni, rc);
    return UCS_ERR_NO_RESOURCE;
  }
  vcq->taken = 0;
  vcq->epoch = 0;
  md->vcq_count++;
  return UCS_OK;
}

/* Those of one more interface: all rails, or none that count. */
static ucs_status_t create_vcqs(uct_utofu_md_t* md) {
  const unsigned before = md->vcq_count;
  ucs_status_t status = UCS_OK;
  if (before == UCT_UTOFU_MAX_IFACES * md->rails) {
    ucs_error("%s: %u interfaces are open already", md->name, UCT_UTOFU_MAX_IFACES);
    return UCS_ERR_NO_RESOURCE;
  }
  for (unsigned rail = 0; rail < md->rails && status == UCS_OK; rail++) {
    status = create_vcq(md);
  }
  while (status != UCS_OK && md->vcq_count > before) {
    utofu_free_vcq(md->vcqs[--md->vcq_count].hdl);
  }
  return status;
}

ucs_status_t uct_utofu_md_take_vcq(uct_utofu_md_t* md, unsigned* slot_p) {
  ucs_status_t status = UCS_OK;
  unsigned slot = 0;
  pthread_mutex_lock(&md->lock);
  while (slot < md->vcq_count && md->vcqs[slot].taken) {
    slot += md->rails;
  }
  if (slot == md->vcq_count) {
    status = create_vcqs(md);
  }
  if (status == UCS_OK) {
    md->vcqs[slot].taken = 1;
    md->vcqs[slot].epoch = (uint8_t)~md->vcqs[slot].epoch;
    *slot_p = slot;
  }
  pthread_mutex_unlock(&md->lock);
  return status;
}

void uct_utofu_md_give_vcq(uct_utofu_md_t* md, unsigned slot) {
  pthread_mutex_lock(&md->lock);
  md->vcqs[slot].taken = 0;
  pthread_mutex_unlock(&md->lock);
}

/* With md->lock. */
static int register_with(uct_utofu_md_t* md, uct_utofu_mem_t* mem, unsigned slot) {
  utofu_stadd_t stadd;
  const int rc = utofu_reg_mem(md->vcqs[slot].hdl, (void*)mem->start, mem->length, 0, &stadd);
  if (rc == UTOFU_SUCCESS) {
    __atomic_store_n(&mem->stadds[slot], stadd, __ATOMIC_RELEASE);
  }
  return rc;
}

utofu_stadd_t uct_utofu_mem_register_late(uct_utofu_md_t* md, uct_utofu_mem_t* mem, unsigned slot) {
  pthread_mutex_lock(&md->lock);
  if (mem->stadds[slot] == UCT_UTOFU_NO_STADD) {
    const int rc = register_with(md, mem, slot);
    if (rc != UTOFU_SUCCESS) {
      ucs_error("%s: %zu bytes cannot be registered: uTofu says %d", md->name, mem->length, rc);
    }
  }
  pthread_mutex_unlock(&md->lock);
  return mem->stadds[slot];
}

static void deregister_mem(uct_utofu_md_t* md, uct_utofu_mem_t* mem) {
  pthread_mutex_lock(&md->lock);
  for (unsigned slot = 0; slot < md->vcq_count; slot++) {
    if (mem->stadds[slot] != UCT_UTOFU_NO_STADD) {
      const int rc = utofu_dereg_mem(md->vcqs[slot].hdl, mem->stadds[slot], 0);
      if (rc != UTOFU_SUCCESS) {
        ucs_warn("%s: memory cannot be deregistered: uTofu says %d", md->name, rc);
      }
    }
  }
  pthread_mutex_unlock(&md->lock);
}

static size_t stadds_bytes(const uct_utofu_md_t* md) {
  return UCT_UTOFU_MAX_IFACES * md->rails * sizeof(utofu_stadd_t);
}

static ucs_status_t register_mem(uct_utofu_md_t* md, uct_utofu_mem_t* mem, ucs_log_level_t level) {
  ucs_status_t status = UCS_OK;
  memset(mem->stadds, 0xff, stadds_bytes(md)); /* UCT_UTOFU_NO_STADD */
  pthread_mutex_lock(&md->lock);
  if (md->vcq_count == 0) {
    status = create_vcqs(md);
  }
  for (unsigned rail = 0; rail < md->rails && status == UCS_OK; rail++) {
    const int rc = register_with(md, mem, rail);
    status = uct_utofu_status(rc);
    if (status != UCS_OK) {
      ucs_log(level, "%s: %zu bytes cannot be registered: uTofu says %d", md->name, mem->length, rc);
    }
  }
  pthread_mutex_unlock(&md->lock);
  if (status != UCS_OK) {
    deregister_mem(md, mem); /* What has been registered on other rails. */
  }
  return status;
}

static ucs_status_t mem_reg(uct_md_h tl_md, void* address, size_t length, unsigned flags, uct_mem_h* memh_p) {
  uct_utofu_md_t* const md = ucs_derived_of(tl_md, uct_utofu_md_t);
  uct_utofu_mem_t* const mem = ucs_malloc(sizeof *mem + stadds_bytes(md), "utofu memory handle");
  if (mem == NULL) {
    return UCS_ERR_NO_MEMORY;
  }
  mem->start = (uintptr_t)address;
  mem->length = length;
  const ucs_status_t status = register_mem(md, mem, uct_md_reg_log_lvl(flags));
  if (status != UCS_OK) {
    ucs_free(mem);
    return status;
  }
  *memh_p = mem;
  return UCS_OK;
}

/* @return what is to be called once nobody reaches the memory any more; NULL: nobody asks */
static uct_completion_t* invalidation_of(const uct_md_mem_dereg_params_t* params) {
  const unsigned flags = UCT_MD_MEM_DEREG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0);
  return (flags & UCT_MD_MEM_DEREG_FLAG_INVALIDATE) != 0 ? params->comp : NULL;
}

/* Behind utofu_dereg_mem, a key of the memory is good for nothing. */
static void tell_invalidated(void* completion) { uct_invoke_completion(completion, UCS_OK); }

static ucs_status_t mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t* params) {
  UCT_MD_MEM_DEREG_CHECK_PARAMS(params, 1);
  deregister_mem(ucs_derived_of(tl_md, uct_utofu_md_t), params->memh);
  ucs_free(params->memh);
  if (invalidation_of(params) != NULL) {
    tell_invalidated(invalidation_of(params));
  }
  return UCS_OK;
}

/* A registration in the cache of UCS, which drops it when its memory is unmapped. */
typedef struct cached_mem {
  ucs_rcache_region_t super;
  uct_utofu_mem_t mem;
} cached_mem_t;

static ucs_status_t cached_reg(uct_md_h tl_md, void* address, size_t length, unsigned flags, uct_mem_h* memh_p) {
  uct_utofu_md_t* const md = ucs_derived_of(tl_md, uct_utofu_md_t);
  ucs_rcache_region_t* region;
  const ucs_status_t status = ucs_rcache_get(md->rcache, address, length, PROT_READ | PROT_WRITE, &flags, &region);
  if (status == UCS_OK) {
    *memh_p = &ucs_derived_of(region, cached_mem_t)->mem;
  }
  return status;
}

/* A region that is to be invalidated is not found any more, and ends with its last user. */
static ucs_status_t cached_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t* params) {
  UCT_MD_MEM_DEREG_CHECK_PARAMS(params, 1);
  ucs_rcache_t* const rcache = ucs_derived_of(tl_md, uct_utofu_md_t)->rcache;
  ucs_rcache_region_t* const region = &ucs_container_of(params->memh, cached_mem_t, mem)->super;
  if (invalidation_of(params) != NULL) {
    ucs_rcache_region_invalidate(rcache, region, tell_invalidated, invalidation_of(params));
  }
  ucs_rcache_region_put(rcache, region);
  return UCS_OK;
}

static ucs_status_t cache_wants_reg(void* context, ucs_rcache_t* rcache, void* arg, ucs_rcache_region_t* rregion,
                                    uint16_t rcache_flags) {
  cached_mem_t* const region = ucs_derived_of(rregion, cached_mem_t);
  const unsigned* const flags = arg;
  const int quiet = (rcache_flags & UCS_RCACHE_MEM_REG_HIDE_ERRORS) != 0;
  region->mem.start = region->super.super.start;
  region->mem.length = region->super.super.end - region->super.super.start;
  return register_mem(context, &region->mem, quiet ? UCS_LOG_LEVEL_DIAG : uct_md_reg_log_lvl(*flags));
}

static void cache_wants_dereg(void* context, ucs_rcache_t* rcache, ucs_rcache_region_t* rregion) {
  deregister_mem(context, &ucs_derived_of(rregion, cached_mem_t)->mem);
}

static void cache_wants_text(void* context, ucs_rcache_t* rcache, ucs_rcache_region_t* rregion, char* text,
                             size_t size) {
  snprintf(text, size, "stadd 0x%lx", (unsigned long)ucs_derived_of(rregion, cached_mem_t)->mem.stadds[0]);
}

static ucs_rcache_ops_t rcache_ops = {
    .mem_reg = cache_wants_reg, .mem_dereg = cache_wants_dereg, .dump_region = cache_wants_text};

static ucs_status_t mkey_pack(uct_md_h tl_md, uct_mem_h memh, const uct_md_mkey_pack_params_t* params, void* buffer) {
  const uct_utofu_md_t* const md = ucs_derived_of(tl_md, uct_utofu_md_t);
  const uct_utofu_mem_t* const mem = memh;
  uct_utofu_rkey_t rkey = {.start = mem->start, .length = mem->length, .count = md->rails};
  for (unsigned rail = 0; rail < md->rails; rail++) {
    rkey.rails[rail] = (uct_utofu_rail_t){.vcq_id = md->vcqs[rail].id, .stadd = mem->stadds[rail]};
  }
  memcpy(buffer, &rkey, uct_utofu_rkey_bytes(md->rails));
  return UCS_OK;
}

ucs_status_t uct_utofu_rkey_unpack(uct_component_t* component, const void* buffer, uct_rkey_t* rkey_p,
                                   void** handle_p) {
  uct_utofu_rkey_t* const rkey = ucs_malloc(sizeof *rkey, "utofu rkey");
  if (rkey == NULL) {
    return UCS_ERR_NO_MEMORY;
  }
  memcpy(rkey, buffer, uct_utofu_rkey_bytes(1));
  int bad = rkey->count < 1 || rkey->count > UCT_UTOFU_MAX_RAILS;
  if (!bad) {
    memcpy(rkey, buffer, uct_utofu_rkey_bytes(rkey->count));
  }
  for (unsigned rail = 0; !bad && rail < rkey->count; rail++) {
    bad = utofu_set_vcq_id_path(&rkey->rails[rail].vcq_id, NULL) != UTOFU_SUCCESS;
  }
  if (bad) {
    ucs_free(rkey);
    return UCS_ERR_INVALID_PARAM;
  }
  *rkey_p = (uintptr_t)rkey;
  *handle_p = NULL;
  return UCS_OK;
}

ucs_status_t uct_utofu_rkey_release(uct_component_t* component, uct_rkey_t rkey, void* handle) {
  ucs_free((void*)rkey);
  return UCS_OK;
}

static ucs_status_t md_query(uct_md_h tl_md, uct_md_attr_t* attr) {
  const uct_utofu_md_t* const md = ucs_derived_of(tl_md, uct_utofu_md_t);
  attr->cap.flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_INVALIDATE;
  attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
  attr->cap.alloc_mem_types = 0;
  attr->cap.detect_mem_types = 0;
  attr->cap.max_alloc = 0;
  attr->cap.max_reg = 1ul << 40; /* Guide 3.6.1.1. */
  attr->reg_cost = md->reg_cost;
  attr->rkey_packed_size = uct_utofu_rkey_bytes(md->rails);
  memset(&attr->local_cpus, 0xff, sizeof attr->local_cpus);
  return UCS_OK;
}

static void md_close(uct_md_h tl_md) {
  uct_utofu_md_t* const md = ucs_derived_of(tl_md, uct_utofu_md_t);
  if (md->rcache != NULL) {
    ucs_rcache_destroy(md->rcache);
  }
  for (unsigned slot = 0; slot < md->vcq_count; slot++) {
    utofu_free_vcq(md->vcqs[slot].hdl);
  }
  pthread_mutex_destroy(&md->lock);
  ucs_free(md);
}

/* What a domain does not do. UCT calls these without a look at its flags. */
#define UNSUPPORTED                                                              \
  .mem_alloc = (uct_md_mem_alloc_func_t)ucs_empty_function_return_unsupported,   \
  .mem_free = (uct_md_mem_free_func_t)ucs_empty_function_return_unsupported,     \
  .mem_advise = (uct_md_mem_advise_func_t)ucs_empty_function_return_unsupported, \
  .mem_query = (uct_md_mem_query_func_t)ucs_empty_function_return_unsupported,   \
  .is_sockaddr_accessible = ucs_empty_function_return_zero_int,                  \
  .detect_memory_type = (uct_md_detect_memory_type_func_t)ucs_empty_function_return_unsupported

static uct_md_ops_t md_ops = {.close = md_close,
                              .query = md_query,
                              .mkey_pack = mkey_pack,
                              .mem_reg = mem_reg,
                              .mem_dereg = mem_dereg,
                              UNSUPPORTED};

static uct_md_ops_t cached_md_ops = {.close = md_close,
                                     .query = md_query,
                                     .mkey_pack = mkey_pack,
                                     .mem_reg = cached_reg,
                                     .mem_dereg = cached_dereg,
                                     UNSUPPORTED};

static ucs_status_t open_rcache(uct_utofu_md_t* md, const uct_utofu_md_config_t* config) {
  ucs_rcache_params_t params;
  if (config->use_rcache == UCS_NO) {
    return UCS_OK;
  }
  uct_md_set_rcache_params(&params, &config->rcache);
  params.region_struct_size = sizeof(cached_mem_t) + stadds_bytes(md);
  params.max_alignment = ucs_get_page_size();
  params.ucm_events = UCM_EVENT_VM_UNMAPPED;
  params.context = md;
  params.ops = &rcache_ops;
  const ucs_status_t status = ucs_rcache_create(&params, "utofu", ucs_stats_get_root(), &md->rcache);
  if (status == UCS_OK) {
    md->super.ops = &cached_md_ops;
    md->reg_cost = ucs_linear_func_make(uct_md_rcache_overhead(&config->rcache), 0);
    return UCS_OK;
  }
  md->rcache = NULL;
  return config->use_rcache == UCS_YES ? status : UCS_OK;
}

/* The one that a domain is named by, or all. @return 0: there is no such domain */
static int choose_tnis(uct_utofu_md_t* md, const char* name) {
  utofu_tni_id_t* tnis = NULL;
  size_t count = 0;
  unsigned tni;
  if (sscanf(name, "tni%u", &tni) == 1) {
    md->tnis[0] = (utofu_tni_id_t)tni;
    md->rails = 1;
    ucs_snprintf_zero(md->name, sizeof md->name, "tni%u", tni);
    return 1;
  }
  if (strcmp(name, uct_utofu_component.name) == 0 && utofu_get_onesided_tnis(&tnis, &count) == UTOFU_SUCCESS) {
    for (; md->rails < ucs_min(count, (size_t)UCT_UTOFU_MAX_RAILS); md->rails++) {
      md->tnis[md->rails] = tnis[md->rails];
    }
  }
  free(tnis);
  ucs_snprintf_zero(md->name, sizeof md->name, "tnis");
  return md->rails > 0;
}

ucs_status_t uct_utofu_md_open(uct_component_t* component, const char* name, const uct_md_config_t* config,
                               uct_md_h* md_p) {
  const uct_utofu_md_config_t* const wanted = ucs_derived_of(config, uct_utofu_md_config_t);
  uct_utofu_md_t* const md = ucs_calloc(1, sizeof *md, "utofu memory domain");
  if (md == NULL) {
    return UCS_ERR_NO_MEMORY;
  }
  md->super.ops = &md_ops;
  md->super.component = component;
  if (!choose_tnis(md, name)) {
    ucs_free(md);
    return UCS_ERR_NO_DEVICE;
  }
  md->reg_cost = ucs_linear_func_make(1e-6, 0);
  md->wakeup = wanted->wakeup;
  md->vcq_flags = (wanted->exclusive ? UTOFU_VCQ_FLAG_EXCLUSIVE : 0) |
                  (wanted->thread_safe || wanted->wakeup ? UTOFU_VCQ_FLAG_THREAD_SAFE : 0);
  pthread_mutex_init(&md->lock, NULL);
  ucs_status_t status = UCS_ERR_NO_DEVICE;
  if (utofu_query_onesided_caps(md->tnis[0], &md->caps) == UTOFU_SUCCESS) {
    status = open_rcache(md, wanted);
  }
  if (status != UCS_OK) {
    md_close(&md->super);
    return status;
  }
  *md_p = &md->super;
  return UCS_OK;
}
