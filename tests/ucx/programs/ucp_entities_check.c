// One process, the layer UCP over whatever UCX_TLS names: several workers, each with a context, that talk to each
// other.
//   types     tagged messages of all three kinds of datatypes, synchronous ones too, expected or not, probed or not
//   cancel    receives that are cancelled, sends of which the receiver is closed by force
//   close     endpoints that are closed flushed or by force, with operations under way, and made anew
//   lost      endpoints with error handling: the other side closes by force, or its worker goes, in all protocols
//   memory    puts and gets of many sizes at once behind one flush of a worker, from memory that is mapped or not
//   threads   threads that share a worker
//   sockets   a listener and its clients
// Usage: ucp_entities_check CASE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#include "ucp_entities.h"

// ---- types ----

// A generic datatype: what it packs is in the order of memory, byte by byte turned over.
typedef struct {
  unsigned char* data;
  size_t bytes;
} turned_t;

static void* start_pack(void* context, const void* buffer, size_t count) {
  turned_t* const state = memory_of(sizeof *state);
  (void)context;
  *state = (turned_t){(unsigned char*)buffer, count};
  return state;
}
static void* start_unpack(void* context, void* buffer, size_t count) { return start_pack(context, buffer, count); }
static size_t packed_size(void* state) { return ((turned_t*)state)->bytes; }
static size_t pack_turned(void* state, size_t offset, void* to, size_t most) {
  const turned_t* const self = state;
  const size_t bytes = self->bytes - offset < most ? self->bytes - offset : most;
  for (size_t i = 0; i < bytes; i++) {
    ((unsigned char*)to)[i] = (unsigned char)~self->data[offset + i];
  }
  return bytes;
}
static ucs_status_t unpack_turned(void* state, size_t offset, const void* from, size_t bytes) {
  const turned_t* const self = state;
  CHECK(offset + bytes <= self->bytes, "more is unpacked than there is");
  for (size_t i = 0; i < bytes; i++) {
    self->data[offset + i] = (unsigned char)~((const unsigned char*)from)[i];
  }
  return UCS_OK;
}
static void finish_turned(void* state) { free(state); }

static ucp_datatype_t generic_type(void) {
  static const ucp_generic_dt_ops_t ops = {.start_pack = start_pack,
                                           .start_unpack = start_unpack,
                                           .packed_size = packed_size,
                                           .pack = pack_turned,
                                           .unpack = unpack_turned,
                                           .finish = finish_turned};
  ucp_datatype_t type;
  UCX_OK(ucp_dt_create_generic(&ops, NULL, &type));
  return type;
}

enum { kContig, kIov, kGeneric, kTypes, kPieces = 20 };

// A buffer seen as one of the types. Data of the generic one are turned over at both ends, so all are alike in memory.
typedef struct {
  unsigned char* data;
  size_t bytes;
  ucp_dt_iov_t iov[kPieces];
  ucp_datatype_t type;
  const void* buffer;
  size_t count;
} view_t;

static void make_view(view_t* view, unsigned kind, size_t bytes, ucp_datatype_t generic) {
  view->data = memory_of(bytes);
  view->bytes = bytes;
  view->type = kind == kContig ? ucp_dt_make_contig(1) : kind == kIov ? ucp_dt_make_iov() : generic;
  view->buffer = kind == kIov ? (const void*)view->iov : view->data;
  view->count = kind == kIov ? kPieces : bytes;
  for (size_t i = 0, at = 0; i < kPieces; i++) {
    const size_t left = bytes - at, piece = i + 1 == kPieces ? left : i % 3 == 2 ? 0 : left / 4;
    view->iov[i] = (ucp_dt_iov_t){view->data + at, piece};
    at += piece;
  }
}

static ucp_request_param_t typed(const view_t* view) {
  return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = view->type};
}

static ucs_status_ptr_t receive(entity_t* to, view_t* into, ucp_tag_t tag, int probes) {
  const ucp_request_param_t param = typed(into);
  ucp_tag_recv_info_t info;
  ucp_tag_message_h message;
  if (!probes) {
    return ucp_tag_recv_nbx(to->worker, (void*)into->buffer, into->count, tag, ~0ull, &param);
  }
  UNTIL((message = ucp_tag_probe_nb(to->worker, tag, ~0ull, 1, &info)) != NULL);
  CHECK(info.length == into->bytes && info.sender_tag == tag, "a probe finds %zu bytes of %zu", info.length,
        into->bytes);
  return ucp_tag_msg_recv_nbx(to->worker, (void*)into->buffer, into->count, message, &param);
}

static void send_typed(entity_t* from, entity_t* to, view_t* out, view_t* in, unsigned how) {
  static uint64_t number;
  const int sync = how & 1, expected = (how & 2) != 0, probes = !expected && (how & 4) != 0;
  const ucp_request_param_t param = typed(out);
  const uint64_t tag = ++number;
  ucs_status_ptr_t received = NULL;
  pair_fill(out->data, out->bytes, tag * 77);
  memset(in->data, 0, in->bytes);
  if (expected) {
    received = receive(to, in, tag, 0);
  }
  const ucs_status_ptr_t sent = sync ? ucp_tag_send_sync_nbx(from->ep, out->buffer, out->count, tag, &param)
                                     : ucp_tag_send_nbx(from->ep, out->buffer, out->count, tag, &param);
  if (!expected) {
    for (unsigned i = 0; i < 20; i++) {
      progress();
    }
    CHECK(!sync || !UCS_PTR_IS_PTR(sent) || ucp_request_check_status(sent) == UCS_INPROGRESS,
          "a synchronous send ends before its receive");
    received = receive(to, in, tag, probes);
  }
  ENDS_OK(received);
  ENDS_OK(sent);
}

static void run_types_with(int handles_errors) {
  static const size_t sizes[] = {0, 1, 7, 100, 4000, 8184, 8200, 20000, 70001, 300000, kLong};
  const ucp_datatype_t generic = generic_type();
  entity_t *const from = make_entity(UCS_THREAD_MODE_SINGLE), *const to = make_entity(UCS_THREAD_MODE_SINGLE);
  from->ep = connect_to(from, to, handles_errors);
  to->ep = connect_to(to, from, handles_errors);
  for (unsigned size = 0; size < sizeof sizes / sizeof sizes[0]; size++) {
    for (unsigned kinds = 0; kinds < kTypes * kTypes; kinds++) {
      view_t out, in;
      // What is turned over at one end only is so in memory.
      const int turned = (kinds / kTypes == kGeneric) != (kinds % kTypes == kGeneric);
      make_view(&out, kinds / kTypes, sizes[size], generic);
      make_view(&in, kinds % kTypes, sizes[size], generic);
      for (unsigned how = 0; how < 6; how++) {
        send_typed(from, to, &out, &in, how);
        for (size_t i = 0; i < in.bytes; i++) {
          const unsigned char wanted = turned ? (unsigned char)~out.data[i] : out.data[i];
          CHECK(in.data[i] == wanted, "byte %zu of %zu, types %u, how %u", i, in.bytes, kinds, how);
        }
      }
      free(out.data);
      free(in.data);
    }
  }
  UCX_OK(close_ep(from->ep, 0));
  UCX_OK(close_ep(to->ep, 0));
  close_worker(from);
  close_worker(to);
  entity_count = 0;
  ucp_dt_destroy(generic);
}

static void run_types(void) {
  run_types_with(0);
  run_types_with(1);
}

// ---- cancel ----

static void run_cancel(void) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  entity_t *const from = make_entity(UCS_THREAD_MODE_SINGLE), *const to = make_entity(UCS_THREAD_MODE_SINGLE);
  unsigned char* const data = memory_of(kLong);
  unsigned char* const got = memory_of(kLong);
  from->ep = connect_to(from, to, 0);
  for (unsigned round = 0; round < 100; round++) {
    const ucs_status_ptr_t first = ucp_tag_recv_nbx(to->worker, got, kLong, 5, ~0ull, &param);
    const ucs_status_ptr_t second = ucp_tag_recv_nbx(to->worker, got, kLong, 5, ~0ull, &param);
    ucp_request_cancel(to->worker, first);
    CHECK(end_of(first) == UCS_ERR_CANCELED, "a receive is not cancelled");
    const size_t bytes = round % 2 ? 1000 : kLong;
    pair_fill(data, bytes, round);
    const ucs_status_ptr_t sent = ucp_tag_send_nbx(from->ep, data, bytes, 5, &param);
    ENDS_OK(second);
    ENDS_OK(sent);
    CHECK_CONTENT(got, bytes, round, "the message behind a cancelled receive");
    // Too short.
    const ucs_status_ptr_t small = ucp_tag_recv_nbx(to->worker, got, 10, 6, ~0ull, &param);
    const ucs_status_ptr_t large = ucp_tag_send_nbx(from->ep, data, bytes, 6, &param);
    CHECK(end_of(small) == UCS_ERR_MESSAGE_TRUNCATED, "a message is longer than its receive");
    ENDS_OK(large);
  }
  UCX_OK(close_ep(from->ep, 0));
  close_worker(from);
  close_worker(to);
  free(data);
  free(got);
}

// ---- close ----

static void run_close(void) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  entity_t *const from = make_entity(UCS_THREAD_MODE_SINGLE), *const to = make_entity(UCS_THREAD_MODE_SINGLE);
  unsigned char* const data = memory_of(kLong);
  unsigned char* const got = memory_of(kLong);
  static const size_t sizes[] = {8, 5000, 100000, kLong};
  for (unsigned round = 0; round < 120; round++) {
    const int by_force = round % 3 == 2;
    const size_t bytes = sizes[round % 4];
    const ucp_ep_h there = connect_to(from, to, by_force), back = round % 2 ? connect_to(to, from, by_force) : NULL;
    ucs_status_ptr_t received = NULL;
    pair_fill(data, bytes, round);
    if (!by_force) {
      received = ucp_tag_recv_nbx(to->worker, got, bytes, round, ~0ull, &param);
    }
    const ucs_status_ptr_t sent = ucp_tag_send_nbx(there, data, bytes, round, &param);
    const ucs_status_t closed = close_ep(there, by_force ? UCP_EP_CLOSE_FLAG_FORCE : 0);
    CHECK(closed == UCS_OK, "round %u: an endpoint closes with %s", round, ucs_status_string(closed));
    const ucs_status_t end = end_of(sent);
    if (!by_force) {
      UCX_OK(end);
      ENDS_OK(received);
      CHECK_CONTENT(got, bytes, round, "a message before the end of an endpoint");
    }
    if (back != NULL) {
      const ucs_status_t other = close_ep(back, by_force ? UCP_EP_CLOSE_FLAG_FORCE : 0);
      CHECK(other == UCS_OK || by_force, "round %u: the other endpoint closes with %s", round,
            ucs_status_string(other));
    }
    // What was sent before an end by force, and taken by nobody.
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;
    for (unsigned i = 0; by_force && i < 50; i++) {
      progress();
      if ((message = ucp_tag_probe_nb(to->worker, 0, 0, 1, &info)) != NULL) {
        end_of(ucp_tag_msg_recv_nbx(to->worker, got, kLong, message, &param));
      }
    }
  }
  close_worker(from);
  close_worker(to);
  free(data);
  free(got);
}

// ---- lost ----

enum { kTag, kSync, kStream, kAm, kPut, kGet, kFetch, kFlush, kProtocols };

// Memory of a worker that may go at any time.
typedef struct {
  ucp_mem_h memh;
  void* packed;
  uint64_t at;
} opened_t;

static opened_t open_memory(entity_t* to, void* memory, size_t bytes) {
  opened_t opened = {.at = (uintptr_t)memory};
  size_t packed_bytes;
  const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                       .address = memory,
                                       .length = bytes};
  UCX_OK(ucp_mem_map(to->context, &params, &opened.memh));
  UCX_OK(ucp_rkey_pack(to->context, opened.memh, &opened.packed, &packed_bytes));
  return opened;
}

static ucs_status_ptr_t operate(ucp_ep_h ep, unsigned protocol, void* data, size_t bytes, uint64_t at, ucp_rkey_h key) {
  const ucp_request_param_t param = {.op_attr_mask = 0};
  static uint64_t reply;
  const ucp_request_param_t fetches = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                       .datatype = ucp_dt_make_contig(8),
                                       .reply_buffer = &reply};
  switch (protocol) {
    case kTag: return ucp_tag_send_nbx(ep, data, bytes, 1, &param);
    case kSync: return ucp_tag_send_sync_nbx(ep, data, bytes, 1, &param);
    case kStream: return ucp_stream_send_nbx(ep, data, bytes, &param);
    case kAm: return ucp_am_send_nbx(ep, kAmId, NULL, 0, data, bytes, &param);
    case kPut: return ucp_put_nbx(ep, data, bytes, at, key, &param);
    case kGet: return ucp_get_nbx(ep, data, bytes, at, key, &param);
    case kFetch: return ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, data, 1, at, key, &fetches);
    default: return ucp_ep_flush_nbx(ep, &param);
  }
}

static void run_lost(void) {
  static const size_t sizes[] = {8, 10000, 1 << 20};
  unsigned char* const data = memory_of(kLong);
  unsigned char* const target = memory_of(kLong);
  for (unsigned what = 0; what < kProtocols * 3 * 2; what++) {
    const unsigned protocol = what / 6, goes = what % 2;
    const size_t bytes = sizes[what / 2 % 3];
    entity_t *const from = make_entity(UCS_THREAD_MODE_SINGLE), *const to = make_entity(UCS_THREAD_MODE_SINGLE);
    entity_t* const good = make_entity(UCS_THREAD_MODE_SINGLE);
    const ucp_ep_h bad_ep = connect_to(from, to, 1), good_ep = connect_to(from, good, 1);
    const ucp_ep_h back = connect_to(to, from, 1);
    opened_t opened = open_memory(to, target, kLong);
    ucp_rkey_h key;
    ucs_status_ptr_t requests[40];
    UCX_OK(ucp_ep_rkey_unpack(bad_ep, opened.packed, &key));
    ENDS_OK(operate(bad_ep, kFlush, data, 0, 0, NULL));
    ENDS_OK(operate(back, kFlush, data, 0, 0, NULL));
    unsigned count = 0;
    for (; count < 20; count++) {
      requests[count] = operate(bad_ep, protocol, data, bytes, opened.at, key);
    }
    if (goes) {
      close_ep(back, UCP_EP_CLOSE_FLAG_FORCE);
    }
    ucp_rkey_buffer_release(opened.packed);
    UCX_OK(ucp_mem_unmap(to->context, opened.memh));
    close_worker(to);
    // Nothing is left that never ends, however it does; the handler hears of it at most once.
    for (; from->errors == 0 && count < 40; count++) {
      requests[count] = operate(bad_ep, protocol, data, bytes, opened.at, key);
      progress();
    }
    UNTIL(from->errors != 0);
    for (unsigned i = 0; i < count; i++) {
      end_of(requests[i]);
    }
    CHECK(from->errors == 1 && from->failed == bad_ep, "protocol %u of %zu bytes: the handler is told %u times",
          protocol, bytes, from->errors);
    ENDS_OK(operate(good_ep, kAm, data, 5000, 0, NULL));
    ENDS_OK(operate(good_ep, kFlush, data, 0, 0, NULL));
    UNTIL(good->ams == 1);
    ucp_rkey_destroy(key);
    close_ep(bad_ep, UCP_EP_CLOSE_FLAG_FORCE);
    UCX_OK(close_ep(good_ep, 0));
    close_worker(from);
    close_worker(good);
    entity_count = 0;
  }
  free(data);
  free(target);
}

// ---- memory ----

static void run_memory(void) {
  enum { kOperations = 200 };
  const ucp_request_param_t param = {.op_attr_mask = 0};
  entity_t *const from = make_entity(UCS_THREAD_MODE_SINGLE), *const to = make_entity(UCS_THREAD_MODE_SINGLE);
  unsigned char* const data = memory_of(kLong);
  unsigned char* const back = memory_of(kLong);
  unsigned char* const target = memory_of(kLong);
  const opened_t opened = open_memory(to, target, kLong);
  const opened_t own = open_memory(from, data, kLong);
  ucp_rkey_h key;
  from->ep = connect_to(from, to, 0);
  UCX_OK(ucp_ep_rkey_unpack(from->ep, opened.packed, &key));
  for (unsigned round = 0; round < 20; round++) {
    const ucp_request_param_t mapped = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH, .memh = own.memh};
    const ucp_request_param_t* const how = round % 2 ? &mapped : &param;
    ucs_status_ptr_t requests[kOperations];
    size_t at = 0;
    pair_fill(data, kLong, round);
    memset(target, 0, kLong);
    for (unsigned i = 0; i < kOperations; i++) {
      const size_t bytes = i + 1 == kOperations ? kLong - at : (i * 7919 + round) % (2 * kLong / kOperations - 64);
      const size_t fits = bytes < kLong - at ? bytes : kLong - at;
      requests[i] = ucp_put_nbx(from->ep, data + at, fits, opened.at + at, key, how);
      CHECK(!UCS_PTR_IS_ERR(requests[i]), "put %u", i);
      at += fits;
    }
    ENDS_OK(ucp_worker_flush_nbx(from->worker, &param));
    CHECK_CONTENT(target, at, round, "puts before a flush of the worker");
    UCX_OK(ucp_worker_fence(from->worker));
    ENDS_OK(ucp_get_nbx(from->ep, back, at, opened.at, key, &param));
    CHECK_CONTENT(back, at, round, "a get behind a fence");
    for (unsigned i = 0; i < kOperations; i++) {
      ENDS_OK(requests[i]);
    }
  }
  ucp_rkey_destroy(key);
  UCX_OK(close_ep(from->ep, 0));
  ucp_rkey_buffer_release(opened.packed);
  ucp_rkey_buffer_release(own.packed);
  UCX_OK(ucp_mem_unmap(to->context, opened.memh));
  UCX_OK(ucp_mem_unmap(from->context, own.memh));
  close_worker(from);
  close_worker(to);
  free(data);
  free(back);
  free(target);
}

// ---- threads ----

enum { kThreads = 4, kMessages = 300 };

typedef struct {
  entity_t *from, *to;
  unsigned number;
} thread_t;

static void* send_and_receive(void* arg) {
  const thread_t* const self = arg;
  const ucp_request_param_t param = {.op_attr_mask = 0};
  unsigned char* const out = memory_of(100000);
  unsigned char* const in = memory_of(100000);
  for (unsigned i = 0; i < kMessages; i++) {
    const size_t bytes = 1 + (i * 7919u + self->number) % (i % 10 == 0 ? 100000 : 3000);
    const uint64_t tag = self->number * 1000 + i;
    pair_fill(out, bytes, tag);
    const ucs_status_ptr_t received = ucp_tag_recv_nbx(self->to->worker, in, bytes, tag, ~0ull, &param);
    const ucs_status_ptr_t sent = ucp_tag_send_nbx(self->from->ep, out, bytes, tag, &param);
    ENDS_OK(received);
    ENDS_OK(sent);
    CHECK_CONTENT(in, bytes, tag, "message %u of thread %u", i, self->number);
  }
  free(out);
  free(in);
  return NULL;
}

static void run_threads(void) {
  entity_t *const from = make_entity(UCS_THREAD_MODE_MULTI), *const to = make_entity(UCS_THREAD_MODE_MULTI);
  pthread_t threads[kThreads];
  thread_t own[kThreads];
  from->ep = connect_to(from, to, 0);
  for (unsigned i = 0; i < kThreads; i++) {
    own[i] = (thread_t){from, to, i};
    CHECK(pthread_create(&threads[i], NULL, send_and_receive, &own[i]) == 0, "no thread");
  }
  for (unsigned i = 0; i < kThreads; i++) {
    pthread_join(threads[i], NULL);
  }
  UCX_OK(close_ep(from->ep, 0));
  close_worker(from);
  close_worker(to);
}

// ---- sockets ----

static void on_client(ucp_conn_request_h request, void* arg) { ((entity_t*)arg)->request = request; }

static void run_sockets(void) {
  entity_t *const server = make_entity(UCS_THREAD_MODE_SINGLE), *const client = make_entity(UCS_THREAD_MODE_SINGLE);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  ucp_listener_params_t listens = {
      .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
      .sockaddr = {(const struct sockaddr*)&address, sizeof address},
      .conn_handler = {.cb = on_client, .arg = server}};
  ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
  ucp_listener_h listener;
  unsigned char* const data = memory_of(kLong);
  unsigned char* const got = memory_of(kLong);
  UCX_OK(ucp_listener_create(server->worker, &listens, &listener));
  UCX_OK(ucp_listener_query(listener, &attr));
  memcpy(&address, &attr.sockaddr, sizeof address);
  for (unsigned round = 0; round < 20; round++) {
    const ucp_request_param_t param = {.op_attr_mask = 0};
    const ucp_ep_params_t connects = {.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                                                    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                    UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                      .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                                      .sockaddr = {(const struct sockaddr*)&address, sizeof address},
                                      .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                      .err_handler = {.cb = on_error, .arg = client}};
    client->errors = server->errors = 0;
    server->request = NULL;
    UCX_OK(ucp_ep_create(client->worker, &connects, &client->ep));
    UNTIL(server->request != NULL || client->errors != 0);
    CHECK(client->errors == 0, "a client hears %s", ucs_status_string(client->error));
    const ucp_ep_params_t accepts = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST |
                                                   UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                                   UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                     .conn_request = server->request,
                                     .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                     .err_handler = {.cb = on_error, .arg = server}};
    UCX_OK(ucp_ep_create(server->worker, &accepts, &server->ep));
    const size_t sizes[] = {8, 5000, 200000, kLong};
    for (unsigned i = 0; i < 4; i++) {
      entity_t *const from = i % 2 ? server : client, *const to = i % 2 ? client : server;
      pair_fill(data, sizes[i], round + i);
      const ucs_status_ptr_t received = ucp_tag_recv_nbx(to->worker, got, sizes[i], i, ~0ull, &param);
      const ucs_status_ptr_t sent = ucp_tag_send_nbx(from->ep, data, sizes[i], i, &param);
      ENDS_OK(received);
      ENDS_OK(sent);
      CHECK_CONTENT(got, sizes[i], round + i, "a message of %zu bytes", sizes[i]);
    }
    // Who closes first is not the same each time; the other side hears of it.
    const unsigned flags = round % 4 < 2 ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    entity_t *const first = round % 2 ? server : client, *const second = round % 2 ? client : server;
    close_ep(first->ep, flags);
    UNTIL(second->errors != 0);
    CHECK(second->errors == 1 && second->failed == second->ep, "the other side is told %u times", second->errors);
    close_ep(second->ep, UCP_EP_CLOSE_FLAG_FORCE);
  }
  ucp_listener_destroy(listener);
  close_worker(client);
  close_worker(server);
  free(data);
  free(got);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } cases[] = {{"types", run_types},   {"cancel", run_cancel},   {"close", run_close},    {"lost", run_lost},
               {"memory", run_memory}, {"threads", run_threads}, {"sockets", run_sockets}};
  const char* const name = argc > 1 ? argv[1] : "types";
  pair_program = "ucp_entities_check";
  signal(SIGALRM, pair_out_of_time);
  alarm(50);
  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (strcmp(cases[i].name, name) == 0) {
      cases[i].run();
      printf("%s: verified on 1\n", pair_program);
      return 0;
    }
  }
  CHECK(0, "there is no case %s", name);
}
