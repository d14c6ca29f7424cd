/* The memory domain of the UCT component `utofu`: one TNI, the VCQs that this process has made on it, and registered
 * memory. A STADD is valid for one VCQ, so a registration keeps one per VCQ: that of VCQ 0 is what peers are told, the
 * others are made when an interface with another VCQ first uses the memory as the local side. */
#ifndef UCT_UTOFU_MEMORY_H
#define UCT_UTOFU_MEMORY_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <pthread.h>
#include <ucs/memory/rcache.h>
#include <uct/base/uct_md.h>
#include <utofu.h>

/* Interfaces of a domain in one process that are open at the same time, if there are so many VCQs: a CQ has eight, and
 * the CQs of a TNI are there for all processes of the node. */
#define UCT_UTOFU_MAX_IFACES 64u
/* TNIs of a domain, for one over all of them. Each interface has a VCQ on each, which are called its rails. */
#define UCT_UTOFU_MAX_RAILS 6u
#define UCT_UTOFU_MAX_VCQS (UCT_UTOFU_MAX_IFACES * UCT_UTOFU_MAX_RAILS)

/* The STag, of those that a program may choose, of the control memory of each interface: peers compute its STADD. */
#define UCT_UTOFU_CONTROL_STAG 200u
#define UCT_UTOFU_BUFFERS_STAG 201u /* The same of its buffers. */

#define UCT_UTOFU_NO_STADD ((utofu_stadd_t)-1)

typedef struct uct_utofu_vcq {
  utofu_vcq_hdl_t hdl;
  utofu_vcq_id_t id;
  int taken;     /* An interface polls it, or has left it with operations that never ended. */
  uint8_t epoch; /* 0 or 255 in turns: what its peers begin with. Notices of the earlier interface may still come. */
} uct_utofu_vcq_t;

typedef struct uct_utofu_md_config {
  uct_md_config_t super;
  int exclusive;
  int thread_safe;
  int wakeup;
  int all_tnis;
  ucs_ternary_auto_value_t use_rcache;
  uct_md_rcache_config_t rcache;
} uct_utofu_md_config_t;

typedef struct uct_utofu_md {
  uct_md_t super;
  utofu_tni_id_t tnis[UCT_UTOFU_MAX_RAILS];
  unsigned rails;
  char name[16];
  struct utofu_onesided_caps* caps; /* Of the library. */
  ucs_rcache_t* rcache;             /* NULL: every registration is made anew. */
  ucs_linear_func_t reg_cost;
  int wakeup;              /* Interfaces can be waited for by a descriptor. */
  unsigned long vcq_flags; /* UTOFU_VCQ_FLAG_* */
  pthread_mutex_t lock;    /* Holds the following, and STADDs that are made later. */
  uct_utofu_vcq_t vcqs[UCT_UTOFU_MAX_VCQS];
  unsigned vcq_count; /* VCQs stay until the domain closes, because registrations name them. */
} uct_utofu_md_t;

/* A memory handle. */
typedef struct uct_utofu_mem {
  uintptr_t start;
  size_t length;
  utofu_stadd_t stadds[]; /* By VCQ, UCT_UTOFU_MAX_IFACES for each rail; UCT_UTOFU_NO_STADD: not registered there. */
} uct_utofu_mem_t;

typedef struct uct_utofu_rail {
  utofu_vcq_id_t vcq_id; /* Packed: as its owner names it. Unpacked: with the path from here. */
  utofu_stadd_t stadd;
} uct_utofu_rail_t;

/* A remote key, packed and unpacked alike, but that a packed one ends behind its last rail. */
typedef struct uct_utofu_rkey {
  uint64_t start;
  uint64_t length;
  uint64_t count; /* Of rails. */
  uct_utofu_rail_t rails[UCT_UTOFU_MAX_RAILS];
} uct_utofu_rkey_t;

static inline size_t uct_utofu_rkey_bytes(size_t rails) {
  return offsetof(uct_utofu_rkey_t, rails) + rails * sizeof(uct_utofu_rail_t);
}

extern uct_component_t uct_utofu_component;

ucs_status_t uct_utofu_md_resources(uct_component_t* component, uct_md_resource_desc_t** resources_p,
                                    unsigned* num_resources_p);
ucs_status_t uct_utofu_md_open(uct_component_t* component, const char* name, const uct_md_config_t* config,
                               uct_md_h* md_p);
ucs_status_t uct_utofu_rkey_unpack(uct_component_t* component, const void* buffer, uct_rkey_t* rkey_p, void** handle_p);
ucs_status_t uct_utofu_rkey_release(uct_component_t* component, uct_rkey_t rkey, void* handle);
extern ucs_config_field_t uct_utofu_md_config_table[];

/* What a return code of uTofu means for a user of UCX. */
ucs_status_t uct_utofu_status(int rc);

/* Takes VCQs for an interface, one for each rail. @param slot_p  the index of the first in md->vcqs */
ucs_status_t uct_utofu_md_take_vcq(uct_utofu_md_t* md, unsigned* slot_p);
void uct_utofu_md_give_vcq(uct_utofu_md_t* md, unsigned slot);

/* Registers memory with one more VCQ. @return UCT_UTOFU_NO_STADD: that failed */
utofu_stadd_t uct_utofu_mem_register_late(uct_utofu_md_t* md, uct_utofu_mem_t* mem, unsigned slot);

static inline utofu_stadd_t uct_utofu_mem_stadd(uct_utofu_md_t* md, uct_utofu_mem_t* mem, unsigned slot) {
  const utofu_stadd_t stadd = __atomic_load_n(&mem->stadds[slot], __ATOMIC_ACQUIRE);
  return ucs_likely(stadd != UCT_UTOFU_NO_STADD) ? stadd : uct_utofu_mem_register_late(md, mem, slot);
}

#endif
