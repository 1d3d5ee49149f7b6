// The simulated disk: what a crash leaves, and other faults.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include <coppice/sim/world.hpp>

#include "file_texts.hpp"

namespace {

using namespace coppice;
using namespace coppice::sim;
using namespace coppice::file_texts;
using namespace std::chrono_literals;

constexpr open_options new_file{.write = true, .create = true};

disk& disk_of(node& n) { return n.rt().host().env().disk(); }

std::string names_in(disk& d, const std::string& path) {
  std::string all;
  for (const directory_entry& each : value(d.list(path))) all += each.name + " ";
  return all;
}

/// Everything that a look at the disk gives after `before` and a crash, over many seeds.
std::set<std::string> left_by_crashes(const std::function<void(node&, disk&)>& before,
                                      const std::function<std::string(disk&)>& look) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    world w{seed};
    node& n = w.add_node();
    before(n, disk_of(n));
    n.restart();
    seen.insert(look(disk_of(n)));
  }
  return seen;
}
std::set<std::string> left_by_crashes(const std::function<void(disk&)>& before,
                                      const std::function<std::string(disk&)>& look) {
  return left_by_crashes([&](node&, disk& d) { before(d); }, look);
}

using texts = std::set<std::string>;

/// A file that a crash leaves as it is.
void make_durable(disk& d, const std::string& path, std::string_view text) {
  const auto f = value(d.open(path, new_file));
  check(f->write(0, bytes(text)));
  check(f->sync());
  check(d.sync_directory("/"));
}

// ---- contents of files

TEST(disk_crash, keeps_what_was_synced) {
  const auto left =
      left_by_crashes([](disk& d) { make_durable(d, "/a", "hello"); }, [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(left, texts{"hello"});
}

TEST(disk_crash, leaves_each_sector_of_an_unsynced_write_old_or_new) {
  const std::string old(512, 'o');
  const std::string fresh(512, 'n');
  const auto left = left_by_crashes(
      [&](disk& d) {
        make_durable(d, "/a", old + old + old);
        check(value(d.open("/a", {.write = true}))->write(0, bytes(fresh + fresh + fresh)));
      },
      [&](disk& d) {
        const std::string text = text_at(d, "/a");
        std::string shape;
        for (std::size_t i = 0; i < 3; ++i) {
          const std::string one = text.substr(i * 512, 512);
          shape += one == old ? 'o' : one == fresh ? 'n' : '?';
        }
        return shape + std::to_string(text.size());
      });
  EXPECT_EQ(left, (texts{"ooo1536", "oon1536", "ono1536", "onn1536", "noo1536", "non1536", "nno1536", "nnn1536"}));
}

TEST(disk_crash, leaves_a_sector_as_one_of_the_writes_to_it_made_it) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "....");
        const auto f = value(d.open("/a", {.write = true}));
        check(f->write(0, bytes("1")));
        check(f->write(1, bytes("2")));
        check(f->write(2, bytes("3")));
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(left, (texts{"....", "1...", "12..", "123."})) << "a later write never without an earlier one";
}

TEST(disk_crash, may_leave_zeros_where_a_file_has_grown) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "");
        check(value(d.open("/a", {.append = true}))->append(bytes("ab")));
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(left, (texts{"", std::string(2, '\0'), "ab"}));
}

TEST(disk_crash, undoes_a_cut_or_keeps_it_and_never_brings_back_what_was_cut_off_before_a_sync) {
  const auto cut = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "hello");
        check(value(d.open("/a", {.write = true}))->truncate(2));
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(cut, (texts{"he", "hello"}));

  const auto extended = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "hello");
        const auto f = value(d.open("/a", {.write = true}));
        check(f->truncate(2));
        check(f->sync());
        check(f->truncate(4));
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(extended, (texts{"he", std::string("he\0\0", 4)}));
}

TEST(disk_crash, does_not_bring_back_what_was_cut_off_when_the_file_has_grown_again) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "hello");
        const auto f = value(d.open("/a", {.write = true}));
        check(f->write(0, bytes("J")));
        check(f->truncate(2));
        check(f->truncate(4));
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(left, (texts{"hello", "Jello", "he", "Je", std::string("he\0\0", 4), std::string("Je\0\0", 4)}));
}

// ---- syncs that fail

/// A sync that fails, after which the disk works again.
void fail_to_sync(node& n, file& f) {
  n.disk().quality.sync_errors = 1;
  EXPECT_EQ(f.sync().error().to_string(), "input_output: sync /a: input/output error (simulated)");
  n.disk().quality.sync_errors = 0;
}

TEST(disk_crash, may_lose_data_of_a_failed_sync_although_a_later_sync_succeeds) {
  const auto left = left_by_crashes(
      [](node& n, disk& d) {
        make_durable(d, "/a", "old");
        const auto f = value(d.open("/a", {.write = true}));
        check(f->write(0, bytes("new")));
        fail_to_sync(n, *f);
        check(f->sync());
        EXPECT_EQ(text_of(*f), "new") << "the program still reads it";
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(left, (texts{"old", "new"}));
}

TEST(disk_crash, keeps_data_that_was_written_again_after_a_failed_sync_and_synced) {
  const auto left = left_by_crashes(
      [](node& n, disk& d) {
        make_durable(d, "/a", "old");
        const auto f = value(d.open("/a", {.write = true}));
        check(f->write(0, bytes("new")));
        fail_to_sync(n, *f);
        check(f->write(0, bytes("new")));
        check(f->sync());
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(left, texts{"new"});
}

// ---- names

TEST(disk_crash, may_undo_a_rename_until_the_directory_is_synced) {
  const auto look = [](disk& d) { return names_in(d, "/"); };
  const auto rename = [](disk& d) {
    make_durable(d, "/a", "hello");
    check(d.rename("/a", "/b"));
  };
  EXPECT_EQ(left_by_crashes(rename, look), (texts{"a ", "b "})) << "never both, never none";
  const auto rename_and_sync = [&](disk& d) {
    rename(d);
    check(d.sync_directory("/"));
  };
  EXPECT_EQ(left_by_crashes(rename_and_sync, look), texts{"b "});
}

TEST(disk_crash, may_undo_the_creation_of_a_file_whose_contents_are_synced) {
  const auto left = left_by_crashes(
      [](disk& d) {
        const auto f = value(d.open("/a", new_file));
        check(f->write(0, bytes("hello")));
        check(f->sync());
      },
      [](disk& d) { return names_in(d, "/") + (value(d.list("/")).empty() ? "" : text_at(d, "/a")); });
  EXPECT_EQ(left, (texts{"", "a hello"}));
}

TEST(disk_crash, may_undo_a_removal_and_then_the_file_has_its_contents) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "hello");
        check(d.remove("/a"));
      },
      [](disk& d) { return value(d.list("/")).empty() ? "gone" : text_at(d, "/a"); });
  EXPECT_EQ(left, (texts{"gone", "hello"}));
}

TEST(disk_crash, leaves_the_old_or_the_new_file_after_a_replacement) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "old");
        make_durable(d, "/b", "new");
        check(d.rename("/b", "/a"));
      },
      [](disk& d) { return names_in(d, "/") + text_at(d, "/a"); });
  EXPECT_EQ(left, (texts{"a b old", "a new"}));
}

TEST(disk_crash, may_leave_a_renamed_file_without_its_unsynced_contents) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_durable(d, "/a", "old");
        check(value(d.open("/b", new_file))->write(0, bytes("new")));
        check(d.rename("/b", "/a"));
        check(d.sync_directory("/"));
      },
      [](disk& d) { return text_at(d, "/a"); });
  EXPECT_EQ(left, (texts{"", std::string(3, '\0'), "new"}));
}

TEST(disk_crash, loses_changes_of_one_directory_from_the_last_one_backwards) {
  const auto left = left_by_crashes(
      [](disk& d) {
        for (const char* name : {"/a", "/b", "/c"}) (void)value(d.open(name, new_file));
      },
      [](disk& d) { return names_in(d, "/"); });
  EXPECT_EQ(left, (texts{"", "a ", "a b ", "a b c "}));
}

void make_two_directories(disk& d) {
  check(d.make_directory("/one"));
  check(d.make_directory("/two"));
  check(d.sync_directory("/"));
}

TEST(disk_crash, loses_changes_of_different_directories_independently) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_two_directories(d);
        (void)value(d.open("/one/a", new_file));
        (void)value(d.open("/two/b", new_file));
      },
      [](disk& d) { return names_in(d, "/one") + names_in(d, "/two"); });
  EXPECT_EQ(left, (texts{"", "a ", "b ", "a b "}));
}

TEST(disk_crash, leaves_a_file_that_was_moved_in_one_of_both_directories) {
  const auto move = [](disk& d) {
    make_two_directories(d);
    (void)value(d.open("/one/a", new_file));
    check(d.sync_directory("/one"));
    check(d.rename("/one/a", "/two/a"));
  };
  const auto look = [](disk& d) { return names_in(d, "/one") + "| " + names_in(d, "/two"); };
  EXPECT_EQ(left_by_crashes(move, look), (texts{"a | ", "| a "}));
  const auto move_and_sync = [&](disk& d) {
    move(d);
    check(d.sync_directory("/two"));
  };
  EXPECT_EQ(left_by_crashes(move_and_sync, look), texts{"| a "});
}

TEST(disk_crash, does_not_lose_a_file_that_was_moved_into_a_new_directory) {
  const auto move = [](disk& d) {
    make_durable(d, "/a", "hello");
    check(d.make_directory("/d"));
    check(d.rename("/a", "/d/a"));
  };
  const auto look = [](disk& d) {
    const std::string names = names_in(d, "/");
    return names == "d " ? names + names_in(d, "/d") : names;
  };
  EXPECT_EQ(left_by_crashes(move, look), (texts{"a ", "a d ", "d a "}));
  const auto move_and_sync = [&](disk& d) {
    move(d);
    check(d.sync_directory("/d"));
  };
  EXPECT_EQ(left_by_crashes(move_and_sync, look), texts{"d a "});
}

TEST(disk_crash, does_not_lose_a_file_that_was_moved_into_a_new_directory_of_another_directory) {
  const auto move = [](disk& d) {
    make_two_directories(d);
    (void)value(d.open("/one/a", new_file));
    check(d.sync_directory("/one"));
    check(d.make_directory("/two/d"));
    check(d.rename("/one/a", "/two/d/a"));
  };
  const auto look = [](disk& d) {
    const std::string names = names_in(d, "/one") + "| " + names_in(d, "/two");
    return names == "| d " ? names + names_in(d, "/two/d") : names;
  };
  EXPECT_EQ(left_by_crashes(move, look), (texts{"a | ", "a | d ", "| d a "}));
  const auto move_and_sync = [&](disk& d) {
    move(d);
    check(d.sync_directory("/one"));
  };
  EXPECT_EQ(left_by_crashes(move_and_sync, look), texts{"| d a "});
}

TEST(disk_crash, does_not_lose_a_file_that_was_moved_out_of_a_removed_directory) {
  const auto left = left_by_crashes(
      [](disk& d) {
        make_two_directories(d);
        (void)value(d.open("/one/a", new_file));
        check(d.sync_directory("/one"));
        check(d.rename("/one/a", "/two/a"));
        check(d.remove("/one"));
      },
      [](disk& d) {
        const std::string names = names_in(d, "/");
        return names + "| " + (names == "two " ? names_in(d, "/two") : names_in(d, "/one") + names_in(d, "/two"));
      });
  EXPECT_EQ(left, (texts{"one two | a ", "two | a "}));
}

TEST(disk_crash, may_lose_a_new_directory_with_all_that_is_in_it_until_its_parent_is_synced) {
  const auto make = [](disk& d) {
    check(d.make_directory("/d"));
    (void)value(d.open("/d/a", new_file));
    check(d.sync_directory("/d"));
  };
  const auto look = [](disk& d) { return value(d.list("/")).empty() ? "" : "d " + names_in(d, "/d"); };
  EXPECT_EQ(left_by_crashes(make, look), (texts{"", "d a "}));
  const auto make_and_sync = [&](disk& d) {
    make(d);
    check(d.sync_directory("/"));
  };
  EXPECT_EQ(left_by_crashes(make_and_sync, look), texts{"d a "});
}

// ---- handles

TEST(disk_crash, ends_handles_and_locks_of_the_program_before) {
  world w{1};
  node& n = w.add_node();
  auto before = value(disk_of(n).open("/a", new_file));
  check(disk_of(n).sync_directory("/"));
  EXPECT_TRUE(value(before->lock()));
  n.restart();
  EXPECT_EQ(before->write(0, bytes("x")).error().to_string(),
            "input_output: write /a: the machine has lost power (simulated)");
  const auto after = value(disk_of(n).open("/a", {.write = true}));
  EXPECT_TRUE(value(after->lock()));
  before.reset();
  EXPECT_FALSE(value(value(disk_of(n).open("/a", {}))->lock())) << "the old handle must not release the new lock";
  EXPECT_EQ(text_of(*after), "");
}

TEST(simulated_disk, belongs_to_its_node) {
  world w{1};
  node& one = w.add_node();
  node& two = w.add_node();
  make_durable(disk_of(one), "/a", "x");
  EXPECT_EQ(names_in(disk_of(one), "/"), "a ");
  EXPECT_EQ(names_in(disk_of(two), "/"), "");
}

TEST(simulated_disk, may_be_used_after_the_end_of_its_world_and_then_fails) {
  std::unique_ptr<file> left;
  {
    world w{1};
    left = value(disk_of(w.add_node()).open("/a", new_file));
  }
  EXPECT_EQ(left->size().error().code(), disk_errc::input_output);
}

// ---- errors and limits

TEST(simulated_disk, fails_as_often_as_its_quality_says) {
  world w{1};
  node& n = w.add_node();
  const auto f = value(disk_of(n).open("/a", new_file));
  n.disk().quality = {.read_errors = 1, .write_errors = 1};
  std::vector<std::byte> into(1);
  EXPECT_EQ(f->read(0, into).error().code(), disk_errc::input_output);
  EXPECT_EQ(f->write(0, bytes("x")).error().code(), disk_errc::input_output);
  check(f->sync());
  n.disk().quality = {.write_errors = 0.5};
  int failed = 0;
  for (int i = 0; i < 1000; ++i) failed += f->write(0, bytes("x")) ? 0 : 1;
  EXPECT_GT(failed, 400);
  EXPECT_LT(failed, 600);
}

TEST(simulated_disk, writes_a_part_when_a_write_fails) {
  texts seen;
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    world w{seed};
    node& n = w.add_node();
    const auto f = value(disk_of(n).open("/a", new_file));
    n.disk().quality.write_errors = 1;
    EXPECT_FALSE(f->write(0, bytes("abc")));
    seen.insert(text_of(*f));
  }
  EXPECT_EQ(seen, (texts{"", "a", "ab", "abc"}));
}

TEST(simulated_disk, is_full_when_its_capacity_is_used) {
  texts left;
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    world w{seed};
    node& n = w.add_node();
    n.disk().quality.capacity = 5;
    disk& d = disk_of(n);
    const auto f = value(d.open("/a", {.append = true, .create = true}));
    check(f->append(bytes("abc")));
    EXPECT_EQ(value(d.free_space("/")), 2U);
    const auto full = f->append(bytes("defg"));
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code(), disk_errc::no_space);
    left.insert(text_of(*f));
    EXPECT_EQ(f->truncate(6).error().code(), disk_errc::no_space);
    check(f->truncate(5));
    EXPECT_EQ(value(d.free_space("/")), 0U);
    EXPECT_EQ(value(d.open("/b", new_file))->write(0, bytes("x")).error().code(), disk_errc::no_space);
    check(d.remove("/a"));
    check(value(d.open("/b", new_file))->write(0, bytes("fgh")));
  }
  EXPECT_EQ(left, (texts{"abc", "abcd", "abcde"}));
}

// ---- power failures

TEST(simulated_disk, fails_in_all_calls_from_the_one_at_which_power_is_lost) {
  texts left;
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    world w{seed};
    node& n = w.add_node();
    disk& d = disk_of(n);
    make_durable(d, "/a", "old");
    const auto f = value(d.open("/a", {.write = true}));
    n.disk().crash_at_call(2);
    check(f->write(0, bytes("new")));
    EXPECT_EQ(f->sync().error().to_string(), "input_output: sync /a: the machine has lost power (simulated)");
    EXPECT_FALSE(d.open("/b", new_file));
    EXPECT_TRUE(n.disk().lost_power());
    EXPECT_TRUE(w.run());
    EXPECT_FALSE(n.up());
    n.restart();
    EXPECT_EQ(names_in(disk_of(n), "/"), "a ");
    left.insert(text_at(disk_of(n), "/a"));
  }
  EXPECT_EQ(left, (texts{"old", "new"})) << "the sync may have had its effect";
}

task<> waits_for_blocking_work(self& me, disk* d, std::string* got) {
  const bool written = co_await me.blocking(
      [](disk* on) {
        const auto f = on->open("/a", new_file);
        return f && (*f)->write(0, bytes("hello"));
      },
      d);
  *got = written ? "written" : "failed";
}

TEST(simulated_disk, loses_power_in_blocking_work_whose_result_then_is_not_delivered) {
  std::string got;
  for (const std::uint64_t at : {1U, 2U}) {
    world w{at};
    node& n = w.add_node();
    n.disk().crash_at_call(at);
    n.rt().spawn(waits_for_blocking_work, &disk_of(n), &got);
    EXPECT_TRUE(w.run());
    EXPECT_FALSE(n.up());
    EXPECT_EQ(got, "");
  }
  world w{1};
  node& n = w.add_node();
  n.rt().spawn(waits_for_blocking_work, &disk_of(n), &got);
  EXPECT_TRUE(w.run());
  EXPECT_EQ(got, "written");
}

TEST(simulated_disk, loses_power_at_a_share_of_its_calls) {
  int crashed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    world w{seed};
    node& n = w.add_node();
    n.disk().quality.power_failures = 0.5;
    if (!disk_of(n).list("/")) ++crashed;
  }
  EXPECT_GT(crashed, 60);
  EXPECT_LT(crashed, 140);
}

TEST(simulated_disk, leaves_the_same_trace_for_the_same_seed_and_another_one_for_another_crash) {
  const auto hash = [](std::uint64_t seed) {
    world w{seed};
    node& n = w.add_node();
    for (int i = 0; i < 20; ++i) (void)value(disk_of(n).open("/" + std::to_string(i), new_file));
    n.restart();
    (void)names_in(disk_of(n), "/");
    return w.trace_hash();
  };
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    hashes.insert(hash(seed));
    EXPECT_EQ(hash(seed), hash(seed));
  }
  EXPECT_GT(hashes.size(), 5U);
}

}  // namespace
