#include "CVersion.h"

static const char commit[] = PUSHRELAY_COMMIT;

char pushrelay_commit(unsigned index) {
  return index < sizeof commit ? commit[index] : 0;
}
