// Random messages between all ranks, which draw the same ones: every way to send, every way to receive, and every way
// to wait mixed, plain bytes and types with gaps, on several communicators. Ranks take their messages in orders of
// their own. Usage: random_messages [SEED [ROUNDS [PROBE]]]. PROBE 0: nothing is received behind MPI_Mprobe, because
// mtl/ofi of Open MPI 4.1.4 does that wrongly whatever the provider.
#include "check.h"

enum { kMostMessages = 40, kCommunicators = 3, kGuard = 8, kGap = 0xa5 };

enum SendWay { kSend, kSynchronous, kReady, kStarted, kSendWays };
enum ReceiveWay { kEarly, kLate, kBlocking, kProbed, kMatched, kMatchedLater, kStartedEarly, kSearched, kReceiveWays };

struct Message {
  int source, target, tag, bytes, communicator;
  enum SendWay send_way;
  enum ReceiveWay receive_way;
  int has_gaps;  // Every second byte is not part of it.
  uint64_t key;  // Of its content.
  unsigned char *out, *in;
  MPI_Request sent, received;
};

static MPI_Comm communicators[kCommunicators];
static long seed, round_number;
static int uses_matched;

static uint64_t common, own;  // What all ranks draw alike, and what each draws for itself.
static int draw(int limit) { return (int)(check_mix(common++) % (uint64_t)limit); }
static int draw_own(int limit) { return (int)(check_mix(own++) % (uint64_t)limit); }

static int draw_bytes(void) {
  static const int limits[] = {1, 9, 200, 200, 5000, 5000, 40000, 40000, 200000, 1500000};
  return draw(limits[draw(10)]);
}

static unsigned char content(const struct Message* m, int at) {
  return (unsigned char)((m->key * 2654435761u + (uint64_t)at * 40503u) >> 7);
}

static size_t stride(const struct Message* m) { return m->has_gaps ? 2 : 1; }

static MPI_Datatype type_of(const struct Message* m) {
  MPI_Datatype type;
  MPI_Type_vector(m->bytes, 1, (int)stride(m), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  return type;
}

static void draw_message(struct Message* m, int number, int by_anybody) {
  memset(m, 0, sizeof *m);
  m->source = draw(check_size);
  m->target = draw(check_size);
  m->bytes = draw_bytes();
  m->communicator = draw(kCommunicators);
  m->send_way = (enum SendWay)draw(kSendWays);
  m->receive_way = (enum ReceiveWay)draw(kReceiveWays);
  if (!uses_matched && (m->receive_way == kMatched || m->receive_way == kMatchedLater)) m->receive_way = kProbed;
  m->has_gaps = draw(4) == 0 && m->bytes > 0 && m->bytes < 60000;
  m->tag = by_anybody ? number : draw(3) * 1000 + number;
  m->key = check_mix(common++);
  m->sent = m->received = MPI_REQUEST_NULL;
  // Nobody says when a receive is posted elsewhere.
  if (m->send_way == kReady && (m->source != m->target || m->receive_way != kEarly)) m->send_way = kSend;
  const size_t room = (size_t)m->bytes * stride(m) + kGuard;
  if (m->source == check_rank) {
    m->out = check_allocate(room);
    for (int i = 0; i < m->bytes; i++) m->out[(size_t)i * stride(m)] = content(m, i);
  }
  if (m->target == check_rank) m->in = memset(check_allocate(room), kGap, room);
}

static void check_received(const struct Message* m, const MPI_Status* status) {
  int bytes = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  CHECK(status->MPI_SOURCE == m->source && status->MPI_TAG == m->tag && bytes == m->bytes,
        "seed %ld, round %ld, tag %d: %d bytes of rank %d with tag %d instead of %d of rank %d", seed, round_number,
        m->tag, bytes, status->MPI_SOURCE, status->MPI_TAG, m->bytes, m->source);
  const size_t end = (size_t)m->bytes * stride(m);
  for (size_t at = 0; at < end + kGuard; at++) {
    const int is_part = at < end && at % stride(m) == 0;
    const unsigned char wanted = is_part ? content(m, (int)(at / stride(m))) : kGap;
    CHECK(m->in[at] == wanted, "seed %ld, round %ld, tag %d of %d bytes, way %d: byte %zu is %02x instead of %02x",
          seed, round_number, m->tag, m->bytes, (int)m->receive_way, at, m->in[at], wanted);
  }
}

static void post_early(struct Message* m, int source) {
  const MPI_Comm communicator = communicators[m->communicator];
  MPI_Datatype type = type_of(m);
  if (m->receive_way == kEarly) MPI_Irecv(m->in, 1, type, source, m->tag, communicator, &m->received);
  if (m->receive_way == kStartedEarly) {
    MPI_Recv_init(m->in, 1, type, source, m->tag, communicator, &m->received);
    MPI_Start(&m->received);
  }
  MPI_Type_free(&type);
}

static void start_send(struct Message* m) {
  const MPI_Comm communicator = communicators[m->communicator];
  MPI_Datatype type = type_of(m);
  switch (m->send_way) {
    case kSynchronous: MPI_Issend(m->out, 1, type, m->target, m->tag, communicator, &m->sent); break;
    case kReady: MPI_Irsend(m->out, 1, type, m->target, m->tag, communicator, &m->sent); break;
    case kStarted:
      MPI_Send_init(m->out, 1, type, m->target, m->tag, communicator, &m->sent);
      MPI_Start(&m->sent);
      break;
    default: MPI_Isend(m->out, 1, type, m->target, m->tag, communicator, &m->sent); break;
  }
  MPI_Type_free(&type);
}

static void receive_late(struct Message* m, int source) {
  const MPI_Comm communicator = communicators[m->communicator];
  MPI_Datatype type = type_of(m);
  MPI_Message matched;
  MPI_Status status;
  int is_here = 0, blocks = 1;
  switch (m->receive_way) {
    case kBlocking: break;
    case kProbed: MPI_Probe(source, m->tag, communicator, &status); break;
    case kSearched:
      while (!is_here) MPI_Iprobe(source, m->tag, communicator, &is_here, &status);
      break;
    case kMatched:
    case kMatchedLater:
      MPI_Mprobe(source, m->tag, communicator, &matched, &status);
      if (m->receive_way == kMatched) MPI_Mrecv(m->in, 1, type, &matched, &status);
      if (m->receive_way == kMatchedLater) MPI_Imrecv(m->in, 1, type, &matched, &m->received);
      if (m->receive_way == kMatched) check_received(m, &status);
      blocks = 0;
      break;
    default:
      blocks = 0;
      if (m->receive_way == kLate) MPI_Irecv(m->in, 1, type, source, m->tag, communicator, &m->received);
  }
  if (blocks) {
    MPI_Recv(m->in, 1, type, source, m->tag, communicator, &status);
    check_received(m, &status);
  }
  MPI_Type_free(&type);
}

// Waits for all, in a way that each rank draws.
static void wait_for(struct Message* messages, int count) {
  MPI_Request requests[2 * kMostMessages];
  MPI_Status statuses[2 * kMostMessages];
  int ended[2 * kMostMessages];
  for (int i = 0; i < count; i++) {
    requests[i] = messages[i].received;
    requests[count + i] = messages[i].sent;
  }
  int left = 0;
  for (int i = 0; i < 2 * count; i++) left += requests[i] != MPI_REQUEST_NULL;
  const int way = draw_own(3);
  while (left > 0) {
    int done = 1, is_done = 1;
    if (way == 0) MPI_Waitany(2 * count, requests, &ended[0], &statuses[0]);
    if (way == 1) MPI_Testany(2 * count, requests, &ended[0], &is_done, &statuses[0]);
    if (way == 2) MPI_Waitsome(2 * count, requests, &done, ended, statuses);
    for (int i = 0; is_done && i < done; i++, left--) {
      if (ended[i] < count) check_received(&messages[ended[i]], &statuses[i]);
    }
  }
  for (int i = 0; i < 2 * count; i++) {
    if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);  // Those that could be started again.
  }
}

static void run_round(void) {
  struct Message messages[kMostMessages];
  int order[kMostMessages];
  const int count = 1 + draw(kMostMessages), by_anybody = draw(4) == 0;
  for (int i = 0; i < count; i++) {
    draw_message(&messages[i], i, by_anybody);
    const int other = draw_own(i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  for (int i = 0; i < count; i++) {
    struct Message* const m = &messages[i];
    if (m->target == check_rank) post_early(m, by_anybody ? MPI_ANY_SOURCE : m->source);
  }
  for (int i = 0; i < count; i++) {
    if (messages[i].source == check_rank) start_send(&messages[i]);
  }
  for (int i = 0; i < count; i++) {
    struct Message* const m = &messages[order[i]];
    if (m->target == check_rank) receive_late(m, by_anybody ? MPI_ANY_SOURCE : m->source);
  }
  wait_for(messages, count);
  for (int i = 0; i < count; i++) {
    free(messages[i].out);
    free(messages[i].in);
  }
  if (by_anybody) MPI_Barrier(MPI_COMM_WORLD);  // A message of the next round could have the same tag.
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "random_messages", 240);
  seed = check_argument(argc, argv, 1, 1);
  const long rounds = check_argument(argc, argv, 2, 300);
  uses_matched = check_argument(argc, argv, 3, 1) != 0;
  common = (uint64_t)seed << 32;
  own = ~common - ((uint64_t)check_rank << 32);
  for (int i = 0; i < kCommunicators; i++) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
  for (round_number = 0; round_number < rounds; round_number++) run_round();
  for (int i = 0; i < kCommunicators; i++) MPI_Comm_free(&communicators[i]);
  return check_finish();
}
