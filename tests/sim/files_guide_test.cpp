// The code of docs/guide/files-and-lanes.md, which quotes it.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include <coppice/env/disk.hpp>
#include <coppice/env/environment.hpp>
#include <coppice/env/lanes.hpp>
#include <coppice/sim/explore.hpp>

#include "file_texts.hpp"

namespace coppice::guide {

using namespace std::chrono_literals;

/// After a crash at any place, the file has its old or its new contents.
result<void> replace(disk& files, const std::string& folder, const std::string& name, const std::string& text) {
  const std::string fresh = folder + "/" + name + ".new";
  auto opened = files.open(fresh, {.write = true, .create = true});
  if (!opened) return std::unexpected{opened.error()};
  file& f = **opened;
  if (auto cut = f.truncate(0); !cut) return cut;  // a program that crashed may have left it
  if (auto written = f.write(0, std::as_bytes(std::span{text})); !written) return written;
  if (auto synced = f.sync(); !synced) return synced;
  if (auto renamed = files.rename(fresh, folder + "/" + name); !renamed) return renamed;
  return files.sync_directory(folder);
}

/// The right to be the only program that uses a folder; it lasts as long as the handle.
result<std::unique_ptr<file>> claim(disk& files, const std::string& folder) {
  auto opened = files.open(folder + "/lock", {.write = true, .create = true});
  if (!opened) return opened;
  const auto taken = (*opened)->lock();
  if (!taken) return std::unexpected{taken.error()};
  if (!*taken) return fail(errc::capacity, folder + " is in use by another program");
  return opened;
}

struct counts {
  int written = 0;
  int failed = 0;
};

void write_in_a_lane(environment& env, lane& writer, counts* seen) {
  const auto outcome = std::make_shared<result<void>>();
  const bool accepted = writer.submit([&env, outcome] { *outcome = replace(env.disk(), "/", "state", "hello"); },
                                      [outcome, seen] { ++(*outcome ? seen->written : seen->failed); });
  if (!accepted) ++seen->failed;  // the lane is closed
}

void the_state_is_old_or_new(sim::world& w) {
  sim::node& n = w.add_node("store");
  disk* files = &n.rt().env().disk();
  sim::require(replace(*files, "/", "state", "old").has_value(), "nothing fails yet");
  n.disk().crash_at_call(1 + w.chance().below(6));
  (void)replace(*files, "/", "state", "new");
  n.restart();
  files = &n.rt().env().disk();
  const std::string found = file_texts::text_at(*files, "/state");
  sim::require(found == "old" || found == "new", "the state is damaged: " + found);
}

namespace {

TEST(files_guide, the_code_of_the_page_works) {
  counts seen;
  sim::world w{1};
  sim::node& n = w.add_node();
  environment& env = n.rt().env();
  const auto writer = env.lanes().open("writer");
  write_in_a_lane(env, *writer, &seen);
  EXPECT_TRUE(w.run());
  writer->close();
  write_in_a_lane(env, *writer, &seen);
  EXPECT_EQ(seen.written, 1);
  EXPECT_EQ(seen.failed, 1);
  EXPECT_EQ(file_texts::text_at(env.disk(), "/state"), "hello");

  const auto first = claim(env.disk(), "/");
  EXPECT_TRUE(first);
  EXPECT_EQ(claim(env.disk(), "/").error().code(), errc::capacity);
}

TEST(files_guide, the_property_of_the_page_holds) {
  EXPECT_EQ(sim::explore({.name = "state", .seeds = 500}, the_state_is_old_or_new), "");
}

}  // namespace
}  // namespace coppice::guide
