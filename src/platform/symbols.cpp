#include "internal/symbols.hpp"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "internal/file_descriptor.hpp"

namespace coppice {

namespace {

// dladdr() knows only the functions that a program exports, and most bodies of processes are not exported. So the
// symbol tables are read, as debuggers do.

struct symbol {
  std::uintptr_t begin;
  std::uintptr_t size;
  std::string_view mangled;  // in the file, which stays mapped
};

/// A file mapped into memory.
class mapped_file {
 public:
  explicit mapped_file(const char* path) {
    const file_descriptor file{::open(path, O_RDONLY | O_CLOEXEC)};
    struct stat about{};
    if (!file || ::fstat(file.get(), &about) != 0 || about.st_size <= 0) return;
    size_ = static_cast<std::size_t>(about.st_size);
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    data_ = at == MAP_FAILED ? nullptr : static_cast<const char*>(at);
  }
  ~mapped_file() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  /// `count` objects at that offset; null: the file is too short.
  template <class T>
  [[nodiscard]] const T* at(std::uint64_t offset, std::uint64_t count = 1) const noexcept {
    if (data_ == nullptr || offset > size_ || count > (size_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(data_ + offset);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

void add_functions(const mapped_file& file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                   std::vector<symbol>& into) {
  const std::uint64_t count = table.sh_size / sizeof(Elf64_Sym);
  const auto* all = file.at<Elf64_Sym>(table.sh_offset, count);
  const char* text = file.at<char>(names.sh_offset, names.sh_size);
  if (all == nullptr || text == nullptr) return;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Elf64_Sym& s = all[i];
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_size == 0 || s.st_name >= names.sh_size) continue;
    into.push_back({s.st_value, s.st_size, {text + s.st_name, ::strnlen(text + s.st_name, names.sh_size - s.st_name)}});
  }
}

/// The functions of a program or library, by address relative to where it is loaded.
std::vector<symbol> functions_of(const mapped_file& file) {
  std::vector<symbol> all;
  const auto* head = file.at<Elf64_Ehdr>(0);
  if (head == nullptr || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
    return all;
  const auto* sections = file.at<Elf64_Shdr>(head->e_shoff, head->e_shnum);
  if (sections == nullptr) return all;
  for (std::size_t i = 0; i < head->e_shnum; ++i) {
    const Elf64_Shdr& s = sections[i];
    if ((s.sh_type == SHT_SYMTAB || s.sh_type == SHT_DYNSYM) && s.sh_link < head->e_shnum)
      add_functions(file, s, sections[s.sh_link], all);
  }
  std::ranges::sort(all, {}, &symbol::begin);
  return all;
}

struct known_module {
  explicit known_module(const char* path) : file{path}, functions{functions_of(file)} {}
  mapped_file file;
  std::vector<symbol> functions;
};

/// The program or library that has that address.
struct module {
  std::uintptr_t address;
  std::uintptr_t base = 0;
  std::array<char, 4096> path{};  // no string: memory must not be allocated under the lock of the loader
};
int find_module(dl_phdr_info* info, std::size_t, void* into) {
  auto& wanted = *static_cast<module*>(into);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || wanted.address < begin || wanted.address >= begin + part.p_memsz) continue;
    wanted.base = info->dlpi_addr;
    const std::string_view name = info->dlpi_name[0] != '\0' ? info->dlpi_name : "/proc/self/exe";
    name.copy(wanted.path.data(), wanted.path.size() - 1);
    return 1;
  }
  return 0;
}

std::string demangle(std::string_view mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text{
      abi::__cxa_demangle(std::string{mangled}.c_str(), nullptr, nullptr, &status), std::free};
  return std::string{text ? std::string_view{text.get()} : mangled};
}

/// Cuts off the parameters: everything from the first `(` that is not part of a name.
std::string without_parameters(std::string_view name) {
  constexpr std::string_view anonymous = "(anonymous namespace)";
  constexpr std::string_view call_operator = "operator()";
  int depth = 0;  // of < > and { }
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view rest = name.substr(i);
    if (rest.starts_with(call_operator)) {
      i += call_operator.size() - 1;
    } else if (rest.starts_with(anonymous)) {
      i += anonymous.size() - 1;
    } else if (rest.front() == '<' || rest.front() == '{') {
      ++depth;
    } else if (rest.front() == '>' || rest.front() == '}') {
      --depth;
    } else if (rest.front() == '(' && depth == 0) {
      return std::string{name.substr(0, i)};
    }
  }
  return std::string{name.substr(0, name.find(" [clone"))};
}

/// A template's name begins with the type it returns.
std::string without_result(std::string name) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '{' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == '}' || name[i] == ')') --depth;
    if (name[i] == ' ' && depth == 0 && !std::string_view{name}.substr(0, i).ends_with("operator")) begin = i + 1;
  }
  return name.substr(begin);
}

std::string readable(std::string_view mangled) {
  std::string name = without_result(without_parameters(demangle(mangled)));
  for (const std::string_view added : {".actor", ".resume", ".destroy", ".cleanup"})
    if (name.ends_with(added)) name.resize(name.size() - added.size());
  return name;
}

}  // namespace

std::string function_name_at(const void* code) {
  static std::mutex mutex;
  static std::map<std::string, known_module> modules;
  static std::map<const void*, std::string> known;
  if (code == nullptr) return {};
  const std::scoped_lock lock{mutex};
  if (const auto found = known.find(code); found != known.end()) return found->second;
  module of{.address = reinterpret_cast<std::uintptr_t>(code)};  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  std::string name;
  if (::dl_iterate_phdr(&find_module, &of) != 0) {
    const std::vector<symbol>& functions = modules.try_emplace(of.path.data(), of.path.data()).first->second.functions;
    const std::uintptr_t place = of.address - of.base;
    auto behind = std::ranges::upper_bound(functions, place, {}, &symbol::begin);
    if (behind != functions.begin())
      if (const symbol& s = *--behind; place < s.begin + s.size) name = readable(s.mangled);
  }
  return known.emplace(code, std::move(name)).first->second;
}

}  // namespace coppice
