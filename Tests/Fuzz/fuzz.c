/* What libFuzzer calls; the work is in Tests/FuzzTests/Targets. */
#include <stddef.h>
#include <stdint.h>

void pushrelay_fuzz_begin(void);
void pushrelay_fuzz(const uint8_t *bytes, size_t count);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  pushrelay_fuzz_begin();
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  pushrelay_fuzz(bytes, count);
  return 0;
}
