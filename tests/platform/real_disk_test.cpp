// What only the disk of this machine can show.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include <coppice/env/disk.hpp>
#include <coppice/env/environment.hpp>

#include "file_texts.hpp"

namespace {

using namespace coppice;
using namespace coppice::file_texts;

TEST(real_disk, a_full_device_gives_no_space_and_tells_how_much_was_written) {
  const auto full = value(real_environment()->disk().open("/dev/full", {.write = true}));
  const auto written = full->write(0, bytes("hello"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().to_string(),
            "no_space: write /dev/full: 0 of 5 bytes written: No space left on device (ENOSPC)");
}

TEST(real_disk, an_error_has_the_words_and_the_name_of_the_system) {
  const auto opened = real_environment()->disk().open("/proc/none", {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().to_string(), "not_found: open /proc/none: No such file or directory (ENOENT)");
}

/// The flags of the descriptor that a call to `open` has used.
TEST(real_disk, files_are_not_inherited_by_other_programs) {
  const int next = ::dup(STDERR_FILENO);  // the lowest free number is the one that `open` takes
  ::close(next);
  const auto file = value(real_environment()->disk().open("/dev/null", {}));
  EXPECT_NE(::fcntl(next, F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
