// What every disk promises: the same cases on the disk of this machine and on a simulated one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <coppice/env/disk.hpp>
#include <coppice/env/environment.hpp>
#include <coppice/sim/world.hpp>

#include "file_texts.hpp"

namespace {

using namespace coppice;
using namespace coppice::file_texts;

/// A disk with an empty folder on it.
class place {
 public:
  virtual ~place() = default;
  virtual disk& files() = 0;
  [[nodiscard]] virtual std::string folder() const = 0;
};

class on_this_machine final : public place {
 public:
  on_this_machine() {
    folder_ = testing::TempDir() + "coppice-disk-XXXXXX";
    if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
  }
  on_this_machine(const on_this_machine&) = delete;
  on_this_machine& operator=(const on_this_machine&) = delete;
  ~on_this_machine() override { std::filesystem::remove_all(folder_); }
  disk& files() override { return environment_->disk(); }
  [[nodiscard]] std::string folder() const override { return folder_; }

 private:
  std::shared_ptr<environment> environment_ = real_environment();
  std::string folder_;
};

class simulated final : public place {
 public:
  simulated() { check(files().make_directory("/folder")); }
  disk& files() override { return node_.rt().host().env().disk(); }
  [[nodiscard]] std::string folder() const override { return "/folder"; }

 private:
  sim::world world_{1};
  sim::node& node_ = world_.add_node();
};

class disks : public testing::TestWithParam<const char*> {
 protected:
  disks() {
    if (GetParam() == std::string_view{"real"})
      place_ = std::make_unique<on_this_machine>();
    else
      place_ = std::make_unique<simulated>();
  }
  disk& files() { return place_->files(); }
  [[nodiscard]] std::string in_folder(const std::string& name) const { return place_->folder() + "/" + name; }
  [[nodiscard]] std::string folder() const { return place_->folder(); }
  std::unique_ptr<file> open(const std::string& name, open_options how) {
    return value(files().open(in_folder(name), how));
  }
  /// The code of a call that had to fail. Its text must begin with the call and the path.
  template <class T>
  error_code code_of(const result<T>& failed, const std::string& call, const std::string& path) {
    if (failed) throw std::runtime_error{call + " " + path + " has succeeded"};
    EXPECT_TRUE(failed.error().text().starts_with(call + " " + path + ": ")) << failed.error().to_string();
    return failed.error().code();
  }
  void create(const std::string& name, std::string_view text) {
    check(open(name, {.write = true, .create = true})->write(0, bytes(text)));
  }

 private:
  std::unique_ptr<place> place_;
};
INSTANTIATE_TEST_SUITE_P(of, disks, testing::Values("real", "simulated"),
                         [](const auto& which) { return std::string{which.param}; });

constexpr open_options new_file{.write = true, .create = true};
constexpr open_options log_file{.append = true, .create = true};

// ---- reading and writing

TEST_P(disks, a_file_has_what_was_written_at_each_offset) {
  const auto f = open("a", new_file);
  check(f->write(0, bytes("hello world")));
  check(f->write(6, bytes("there")));
  EXPECT_EQ(text_of(*f), "hello there");
  EXPECT_EQ(value(f->size()), 11U);
  EXPECT_EQ(text_at(files(), in_folder("a")), "hello there") << "through another handle";
}

TEST_P(disks, a_read_ends_at_the_end_of_the_file) {
  create("a", "0123456789");
  const auto f = open("a", {});
  std::vector<std::byte> into(8);
  EXPECT_EQ(value(f->read(0, into)), 8U);
  EXPECT_EQ(value(f->read(7, into)), 3U);
  EXPECT_EQ(std::to_integer<char>(into[0]), '7');
  EXPECT_EQ(value(f->read(10, into)), 0U);
  EXPECT_EQ(value(f->read(1000, into)), 0U);
}

TEST_P(disks, a_large_write_is_written_and_read_as_a_whole) {
  std::string large(3'000'001, '?');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i * 7 % 26);
  create("a", large);
  EXPECT_TRUE(text_at(files(), in_folder("a")) == large);
}

TEST_P(disks, a_gap_before_a_write_reads_as_zeros) {
  const auto f = open("a", new_file);
  check(f->write(0, bytes("ab")));
  check(f->write(4, bytes("c")));
  EXPECT_EQ(text_of(*f), std::string("ab\0\0c", 5));
}

TEST_P(disks, appends_go_to_the_end_of_the_file_through_whatever_handle) {
  const auto one = open("log", log_file);
  const auto two = open("log", log_file);
  check(one->append(bytes("1")));
  check(two->append(bytes("2")));
  check(one->append(bytes("3")));
  EXPECT_EQ(text_of(*two), "123");
  check(one->truncate(1));
  check(two->append(bytes("4")));
  EXPECT_EQ(text_of(*one), "14");
}

TEST_P(disks, a_file_is_cut_or_extended_with_zeros) {
  const auto f = open("a", new_file);
  check(f->write(0, bytes("hello")));
  check(f->truncate(2));
  check(f->truncate(4));
  EXPECT_EQ(text_of(*f), std::string("he\0\0", 4));
}

TEST_P(disks, an_empty_write_changes_nothing) {
  const auto f = open("a", new_file);
  check(f->write(100, {}));
  EXPECT_EQ(value(f->size()), 0U);
}

TEST_P(disks, syncs_succeed) {
  const auto f = open("a", new_file);
  check(f->write(0, bytes("hello")));
  check(f->sync());
  check(files().sync_directory(folder()));
  EXPECT_EQ(text_of(*f), "hello");
}

// ---- opening

TEST_P(disks, a_missing_file_is_opened_only_with_create) {
  EXPECT_EQ(code_of(files().open(in_folder("a"), {}), "open", in_folder("a")), disk_errc::not_found);
  EXPECT_EQ(code_of(files().open(in_folder("a"), {.write = true}), "open", in_folder("a")), disk_errc::not_found);
  create("a", "x");
  EXPECT_EQ(text_of(*open("a", new_file)), "x") << "create does not empty a file";
}

TEST_P(disks, exclusive_refuses_a_file_that_is_there) {
  const open_options first{.write = true, .create = true, .exclusive = true};
  EXPECT_TRUE(files().open(in_folder("a"), first));
  EXPECT_EQ(code_of(files().open(in_folder("a"), first), "open", in_folder("a")), disk_errc::exists);
}

TEST_P(disks, options_that_make_no_sense_are_refused) {
  for (const open_options& how : {open_options{.read = false}, open_options{.write = true, .append = true},
                                  open_options{.create = true}, open_options{.write = true, .exclusive = true}})
    EXPECT_EQ(code_of(files().open(in_folder("a"), how), "open", in_folder("a")), disk_errc::invalid);
}

TEST_P(disks, a_handle_refuses_what_it_was_not_opened_for) {
  create("a", "x");
  const std::string path = in_folder("a");
  const auto reader = open("a", {});
  EXPECT_EQ(code_of(reader->write(0, bytes("y")), "write", path), disk_errc::denied);
  EXPECT_EQ(code_of(reader->append(bytes("y")), "append", path), disk_errc::denied);
  EXPECT_EQ(code_of(reader->truncate(0), "truncate", path), disk_errc::denied);
  const auto writer = open("a", {.read = false, .write = true});
  std::vector<std::byte> into(1);
  EXPECT_EQ(code_of(writer->read(0, into), "read", path), disk_errc::denied);
  EXPECT_EQ(code_of(writer->append(bytes("y")), "append", path), disk_errc::denied);
  const auto log = open("a", {.append = true});
  EXPECT_EQ(code_of(log->write(0, bytes("y")), "write", path), disk_errc::denied);
  EXPECT_EQ(text_of(*reader), "x");
}

TEST_P(disks, a_directory_is_not_opened_as_a_file) {
  EXPECT_EQ(code_of(files().open(folder(), {}), "open", folder()), disk_errc::is_a_directory);
  EXPECT_EQ(code_of(files().open(folder(), {.write = true}), "open", folder()), disk_errc::is_a_directory);
  create("a", "x");
  EXPECT_EQ(code_of(files().open(in_folder("a/b"), new_file), "open", in_folder("a/b")), disk_errc::not_a_directory);
  EXPECT_EQ(code_of(files().open(in_folder("none/b"), new_file), "open", in_folder("none/b")), disk_errc::not_found);
}

// ---- locks

TEST_P(disks, one_handle_at_a_time_has_the_lock) {
  auto one = open("a", new_file);
  const auto two = open("a", new_file);
  EXPECT_TRUE(value(one->lock()));
  EXPECT_TRUE(value(one->lock())) << "it has it already";
  EXPECT_FALSE(value(two->lock()));
  EXPECT_TRUE(value(open("b", new_file)->lock())) << "another file";
  one.reset();
  EXPECT_TRUE(value(two->lock()));
}

// ---- names

TEST_P(disks, a_directory_lists_its_entries_by_name) {
  EXPECT_EQ(value(files().list(folder())), std::vector<directory_entry>{});
  create("b", "x");
  create("a", "x");
  check(files().make_directory(in_folder("c")));
  create("c/inner", "x");
  EXPECT_EQ(
      value(files().list(folder())),
      (std::vector<directory_entry>{{"a", entry_kind::file}, {"b", entry_kind::file}, {"c", entry_kind::directory}}));
  EXPECT_EQ(code_of(files().list(in_folder("a")), "list", in_folder("a")), disk_errc::not_a_directory);
  EXPECT_EQ(code_of(files().list(in_folder("none")), "list", in_folder("none")), disk_errc::not_found);
}

TEST_P(disks, a_rename_replaces_the_file_that_had_the_name) {
  create("new", "new");
  create("old", "old");
  const auto still_open = open("old", {});
  check(files().rename(in_folder("new"), in_folder("old")));
  EXPECT_EQ(text_at(files(), in_folder("old")), "new");
  EXPECT_EQ(value(files().list(folder())), (std::vector<directory_entry>{{"old", entry_kind::file}}));
  EXPECT_EQ(text_of(*still_open), "old") << "an open handle keeps its file";
}

TEST_P(disks, a_rename_moves_files_and_directories_between_directories) {
  check(files().make_directory(in_folder("one")));
  check(files().make_directory(in_folder("two")));
  create("one/a", "x");
  check(files().rename(in_folder("one/a"), in_folder("two/b")));
  check(files().rename(in_folder("two"), in_folder("one/two")));
  EXPECT_EQ(text_at(files(), in_folder("one/two/b")), "x");
  EXPECT_EQ(value(files().list(folder())), (std::vector<directory_entry>{{"one", entry_kind::directory}}));
}

TEST_P(disks, a_rename_that_makes_no_sense_is_refused) {
  create("a", "x");
  check(files().make_directory(in_folder("full")));
  create("full/b", "x");
  check(files().make_directory(in_folder("empty")));
  const auto code = [&](const std::string& from, const std::string& to) {
    return code_of(files().rename(in_folder(from), in_folder(to)), "rename", in_folder(from) + " to " + in_folder(to));
  };
  EXPECT_EQ(code("none", "b"), disk_errc::not_found);
  EXPECT_EQ(code("a", "none/b"), disk_errc::not_found);
  EXPECT_EQ(code("a", "empty"), disk_errc::is_a_directory);
  EXPECT_EQ(code("empty", "a"), disk_errc::not_a_directory);
  EXPECT_EQ(code("empty", "full"), disk_errc::not_empty);
  EXPECT_EQ(code("full", "full/inner"), disk_errc::invalid);
  check(files().rename(in_folder("full"), in_folder("empty")));
  EXPECT_EQ(text_at(files(), in_folder("empty/b")), "x") << "an empty directory is replaced";
  check(files().rename(in_folder("a"), in_folder("a")));
  EXPECT_EQ(text_at(files(), in_folder("a")), "x");
}

TEST_P(disks, files_and_empty_directories_are_removed) {
  create("a", "x");
  check(files().make_directory(in_folder("d")));
  create("d/b", "x");
  const auto still_open = open("a", {});
  EXPECT_EQ(code_of(files().remove(in_folder("d")), "remove", in_folder("d")), disk_errc::not_empty);
  check(files().remove(in_folder("d/b")));
  check(files().remove(in_folder("d")));
  check(files().remove(in_folder("a")));
  EXPECT_EQ(value(files().list(folder())), std::vector<directory_entry>{});
  EXPECT_EQ(text_of(*still_open), "x");
  EXPECT_EQ(code_of(files().remove(in_folder("a")), "remove", in_folder("a")), disk_errc::not_found);
}

TEST_P(disks, a_directory_is_made_once_and_within_one_that_exists) {
  check(files().make_directory(in_folder("d")));
  EXPECT_EQ(code_of(files().make_directory(in_folder("d")), "make directory", in_folder("d")), disk_errc::exists);
  EXPECT_EQ(code_of(files().make_directory(in_folder("x/y")), "make directory", in_folder("x/y")),
            disk_errc::not_found);
}

TEST_P(disks, paths_may_have_dots_and_doubled_slashes) {
  check(files().make_directory(in_folder("d")));
  create("d/../a", "x");
  EXPECT_EQ(text_at(files(), in_folder("./d//../a")), "x");
  EXPECT_EQ(code_of(files().open(in_folder("a/"), {}), "open", in_folder("a/")), disk_errc::not_a_directory);
  EXPECT_EQ(value(files().list(in_folder("d/"))), std::vector<directory_entry>{});
  EXPECT_EQ(code_of(files().open("", {}), "open", ""), disk_errc::not_found);
}

TEST_P(disks, only_directories_that_exist_are_synced) {
  create("a", "x");
  const std::string file = in_folder("a");
  EXPECT_EQ(code_of(files().sync_directory(file), "sync directory", file), disk_errc::not_a_directory);
  const std::string none = in_folder("none");
  EXPECT_EQ(code_of(files().sync_directory(none), "sync directory", none), disk_errc::not_found);
}

TEST_P(disks, the_free_space_of_a_directory_is_known) {
  EXPECT_GT(value(files().free_space(folder())), 0U);
  EXPECT_EQ(code_of(files().free_space(in_folder("none")), "free space of", in_folder("none")), disk_errc::not_found);
}

}  // namespace
