/* Atomics of 32 and 64 bits. The local notice of the MRQ has the old value, and says that the atomic is complete. They
 * are atomic with those of any TNI and of the CPU (guide 2.2.5). */
#include "iface.h"

/* One atomic. */
typedef struct atomic {
  unsigned bytes;  /* 4 or 8 */
  unsigned opcode; /* uct_atomic_op_t */
  uint64_t value;  /* Operand, or what is swapped in. */
  uint64_t compare;
  void* result; /* NULL: nobody wants the old value. */
  uct_completion_t* comp;
} atomic_t;

/* @return 0: none */
static enum utofu_armw_op armw_of(unsigned opcode) {
  switch (opcode) {
    case UCT_ATOMIC_OP_ADD: return UTOFU_ARMW_OP_ADD;
    case UCT_ATOMIC_OP_AND: return UTOFU_ARMW_OP_AND;
    case UCT_ATOMIC_OP_OR: return UTOFU_ARMW_OP_OR;
    case UCT_ATOMIC_OP_XOR: return UTOFU_ARMW_OP_XOR;
    case UCT_ATOMIC_OP_SWAP: return UTOFU_ARMW_OP_SWAP;
    default: return (enum utofu_armw_op)0;
  }
}

static int start(utofu_vcq_hdl_t vcq, utofu_vcq_id_t to, utofu_stadd_t stadd, const atomic_t* what,
                 uct_utofu_op_t* op) {
  const unsigned long flags = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER;
  if (what->opcode == UCT_ATOMIC_OP_CSWAP) {
    return what->bytes == 4
               ? utofu_cswap4(vcq, to, (uint32_t)what->compare, (uint32_t)what->value, stadd, op->tag, flags, op)
               : utofu_cswap8(vcq, to, what->compare, what->value, stadd, op->tag, flags, op);
  }
  const enum utofu_armw_op armw = armw_of(what->opcode);
  return what->bytes == 4 ? utofu_armw4(vcq, to, armw, (uint32_t)what->value, stadd, op->tag, flags, op)
                          : utofu_armw8(vcq, to, armw, what->value, stadd, op->tag, flags, op);
}

static ucs_status_t post(uct_ep_h tl_ep, uint64_t remote_addr, uct_rkey_t rkey, const atomic_t* what) {
  uct_utofu_iface_t* const iface = uct_utofu_iface_of(tl_ep);
  uct_utofu_ep_t* const ep = ucs_derived_of(tl_ep, uct_utofu_ep_t);
  const uct_utofu_rkey_t* const key = (const uct_utofu_rkey_t*)rkey;
  if (ucs_unlikely(remote_addr < key->start || remote_addr - key->start + what->bytes > key->length)) {
    ucs_error("an atomic at 0x%lx is outside of the memory of the key", (unsigned long)remote_addr);
    return UCS_ERR_INVALID_PARAM;
  }
  if (what->opcode != UCT_ATOMIC_OP_CSWAP && armw_of(what->opcode) == 0) {
    return UCS_ERR_UNSUPPORTED;
  }
  ucs_status_t status = uct_utofu_ep_may_post(iface, ep, UCT_UTOFU_ATOMIC, key->rails[0].vcq_id);
  if (ucs_unlikely(status != UCS_OK)) {
    return status;
  }
  uct_utofu_op_t* const op = uct_utofu_op_take(iface, ep, 1, 0);
  if (ucs_unlikely(op == NULL)) {
    return UCS_ERR_NO_RESOURCE;
  }
  op->what = UCT_UTOFU_ATOMIC;
  op->to = key->rails[0].vcq_id;
  if (what->result != NULL) {
    op->kind = what->bytes == 4 ? UCT_UTOFU_OP_FETCH32 : UCT_UTOFU_OP_FETCH64;
    op->result = what->result;
    op->comp = what->comp;
  }
  status = uct_utofu_op_posted(
      iface, op, start(iface->vcq, key->rails[0].vcq_id, key->rails[0].stadd + (remote_addr - key->start), what, op));
  return status == UCS_OK && what->result != NULL ? UCS_INPROGRESS : status;
}

ucs_status_t uct_utofu_ep_atomic32_post(uct_ep_h tl_ep, unsigned opcode, uint32_t value, uint64_t remote_addr,
                                        uct_rkey_t rkey) {
  const atomic_t what = {.bytes = 4, .opcode = opcode, .value = value};
  return post(tl_ep, remote_addr, rkey, &what);
}

ucs_status_t uct_utofu_ep_atomic64_post(uct_ep_h tl_ep, unsigned opcode, uint64_t value, uint64_t remote_addr,
                                        uct_rkey_t rkey) {
  const atomic_t what = {.bytes = 8, .opcode = opcode, .value = value};
  return post(tl_ep, remote_addr, rkey, &what);
}

ucs_status_t uct_utofu_ep_atomic32_fetch(uct_ep_h tl_ep, unsigned opcode, uint32_t value, uint32_t* result,
                                         uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp) {
  const atomic_t what = {.bytes = 4, .opcode = opcode, .value = value, .result = result, .comp = comp};
  return post(tl_ep, remote_addr, rkey, &what);
}

ucs_status_t uct_utofu_ep_atomic64_fetch(uct_ep_h tl_ep, unsigned opcode, uint64_t value, uint64_t* result,
                                         uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t* comp) {
  const atomic_t what = {.bytes = 8, .opcode = opcode, .value = value, .result = result, .comp = comp};
  return post(tl_ep, remote_addr, rkey, &what);
}

ucs_status_t uct_utofu_ep_atomic_cswap32(uct_ep_h tl_ep, uint32_t compare, uint32_t swap, uint64_t remote_addr,
                                         uct_rkey_t rkey, uint32_t* result, uct_completion_t* comp) {
  const atomic_t what = {
      .bytes = 4, .opcode = UCT_ATOMIC_OP_CSWAP, .value = swap, .compare = compare, .result = result, .comp = comp};
  return post(tl_ep, remote_addr, rkey, &what);
}

ucs_status_t uct_utofu_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare, uint64_t swap, uint64_t remote_addr,
                                         uct_rkey_t rkey, uint64_t* result, uct_completion_t* comp) {
  const atomic_t what = {
      .bytes = 8, .opcode = UCT_ATOMIC_OP_CSWAP, .value = swap, .compare = compare, .result = result, .comp = comp};
  return post(tl_ep, remote_addr, rkey, &what);
}
