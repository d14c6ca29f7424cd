#include "tofu_side.h"

namespace compare {
namespace {

struct Named {
  int value;
  const char* name;
};
#define NAMED(constant) \
  Named { constant, #constant }

constexpr Named kCodes[] = {
    NAMED(UTOFU_SUCCESS),           NAMED(UTOFU_ERR_NOT_FOUND),      NAMED(UTOFU_ERR_NOT_COMPLETED),
    NAMED(UTOFU_ERR_BUSY),          NAMED(UTOFU_ERR_TCQ_STADD),      NAMED(UTOFU_ERR_TCQ_LENGTH),
    NAMED(UTOFU_ERR_MRQ_PEER),      NAMED(UTOFU_ERR_MRQ_RMT_STADD),  NAMED(UTOFU_ERR_MRQ_RMT_LENGTH),
    NAMED(UTOFU_ERR_INVALID_STADD), NAMED(UTOFU_ERR_MRQ_RMT_MEMORY), NAMED(UTOFU_ERR_INVALID_OP)};

constexpr Named kTypes[] = {NAMED(UTOFU_MRQ_TYPE_LCL_PUT),  NAMED(UTOFU_MRQ_TYPE_RMT_PUT),
                            NAMED(UTOFU_MRQ_TYPE_LCL_GET),  NAMED(UTOFU_MRQ_TYPE_RMT_GET),
                            NAMED(UTOFU_MRQ_TYPE_LCL_ARMW), NAMED(UTOFU_MRQ_TYPE_RMT_ARMW)};

template <std::size_t count>
std::string find(const Named (&table)[count], int value) {
  for (const Named& row : table) {
    if (row.value == value) return row.name;
  }
  return std::to_string(value);
}

}  // namespace

std::string text_of_tofu(int rc) { return find(kCodes, rc); }

std::string text(const Notice& notice) {
  return notice.rc == UTOFU_SUCCESS ? find(kTypes, notice.fields.notice_type) : text_of_tofu(notice.rc);
}

void must_tofu(int rc, const char* call) {
  if (rc != UTOFU_SUCCESS) fail(std::string(call) + ": " + text_of_tofu(rc));
}

TofuSide::TofuSide(Player& self, unsigned long vcq_flags) {
  for (int rank = 0; rank < self.size(); ++rank) {  // In turns, so that rank 0 has CQ 0, and so on.
    if (rank == self.rank()) MUST_TOFU(utofu_create_vcq(0, vcq_flags, &vcq));
    self.meet();
  }
  Place mine{};
  MUST_TOFU(utofu_query_vcq_id(vcq, &mine.vcq_id));
  MUST_TOFU(utofu_reg_mem(vcq, self.memory(self.rank()), kMemoryBytes, 0, &mine.stadd));
  places_ = self.share(mine);
}

TofuSide::~TofuSide() { utofu_free_vcq(vcq); }

int TofuSide::next_tcq() const {
  int rc = UTOFU_ERR_NOT_FOUND;
  void* cbdata = nullptr;
  await([&] { return (rc = utofu_poll_tcq(vcq, 0, &cbdata)) != UTOFU_ERR_NOT_FOUND; }, "a TCQ notice");
  return rc;
}

Notice TofuSide::next_mrq() const {
  Notice notice;
  await([&] { return (notice.rc = utofu_poll_mrq(vcq, 0, &notice.fields)) != UTOFU_ERR_NOT_FOUND; }, "an MRQ notice");
  return notice;
}

std::string TofuSide::told() const {
  std::string all;
  Notice notice;
  while ((notice.rc = utofu_poll_mrq(vcq, 0, &notice.fields)) != UTOFU_ERR_NOT_FOUND) {
    all += (all.empty() ? "" : ", ") + text(notice);
  }
  return all.empty() ? "nothing" : all;
}

}  // namespace compare
