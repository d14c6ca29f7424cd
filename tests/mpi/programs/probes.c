// Probe, Iprobe, Mprobe and Improbe, exact and with wildcards, short and long: what they say is what the receive then
// gets, a matched message is nobody else's, and probing for what is not there says so.
#include "check.h"

static const size_t kSizes[] = {0, 1, 1000, 2048, 2049, 70000};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0], kLargest = 70000 };

static unsigned char payload[kLargest];

// All are under way at once: the receiver may match every one of them before it receives the first.
static void send_sizes(int to, int tag) {
  static unsigned char outgoing[sizeof kSizes / sizeof kSizes[0]][kLargest];
  MPI_Request requests[kSizeCount];
  for (int i = 0; i < kSizeCount; i++) {
    check_fill(outgoing[i], kSizes[i], kSizes[i] + (unsigned)tag);
    MPI_Isend(outgoing[i], (int)kSizes[i], MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(kSizeCount, requests, MPI_STATUSES_IGNORE);
}

static void check_payload(size_t bytes, int tag) {
  CHECK_CONTENT(payload, bytes, bytes + (unsigned)tag, "probed message of %zu bytes, tag %d", bytes, tag);
  memset(payload, 0, bytes);
}

static void receive_after_probe(int from, int tag) {
  MPI_Status status;
  for (int i = 0; i < kSizeCount; i++) {
    MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, 1, 10, kSizes[i]);
    MPI_Recv(payload, (int)kSizes[i], MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, 1, 10, kSizes[i]);
    check_payload(kSizes[i], 10);
  }
}

static void receive_after_iprobe(void) {
  MPI_Status status;
  for (int i = 0; i < kSizeCount; i++) {
    int found = 0;
    while (!found) {
      MPI_Iprobe(MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &found, &status);
    }
    CHECK_STATUS(status, 1, 11, kSizes[i]);
    MPI_Recv(payload, kLargest, MPI_BYTE, 1, 11, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, 1, 11, kSizes[i]);
    check_payload(kSizes[i], 11);
  }
}

// All messages are taken off the list first and received last to first.
static void receive_matched_in_reverse(int use_improbe, int tag) {
  MPI_Message messages[kSizeCount];
  MPI_Status status;
  for (int i = 0; i < kSizeCount; i++) {
    int found = !use_improbe;
    if (!use_improbe) {
      MPI_Mprobe(1, tag, MPI_COMM_WORLD, &messages[i], &status);
    }
    while (!found) {
      MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found, &messages[i], &status);
    }
    CHECK_STATUS(status, 1, tag, kSizes[i]);
  }
  for (int i = kSizeCount - 1; i >= 0; i--) {
    if (i % 2 == 0) {
      MPI_Request request;
      MPI_Imrecv(payload, (int)kSizes[i], MPI_BYTE, &messages[i], &request);
      MPI_Wait(&request, &status);
    } else {
      MPI_Mrecv(payload, (int)kSizes[i], MPI_BYTE, &messages[i], &status);
    }
    CHECK_STATUS(status, 1, tag, kSizes[i]);
    check_payload(kSizes[i], tag);
  }
}

static void probe_for_nothing(void) {
  MPI_Message message;
  MPI_Status status;
  int found = 1;
  for (int i = 0; i < 100; i++) {
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, &status);
    CHECK(!found, "Iprobe found a message that nobody sent");
    MPI_Improbe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, &message, &status);
    CHECK(!found, "Improbe found a message that nobody sent");
  }
  MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
  CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv, "probes", 120);
  if (check_size < 2) {
    return check_skip("probing wants two ranks");
  }
  for (int round = 0; round < 20; round++) {
    if (check_rank == 0) {
      probe_for_nothing();
      receive_after_probe(round % 2 == 0 ? 1 : MPI_ANY_SOURCE, round % 4 < 2 ? 10 : MPI_ANY_TAG);
      MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      receive_after_iprobe();
      receive_matched_in_reverse(0, 12);
      receive_matched_in_reverse(1, 13);
    } else if (check_rank == 1) {
      send_sizes(0, 10);
      // A wildcard probe of this round must see tag 10 only.
      MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      send_sizes(0, 11);
      send_sizes(0, 12);
      send_sizes(0, 13);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return check_finish();
}
