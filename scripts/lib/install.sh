# shellcheck shell=bash
# Sourced by the scripts: installs what they need and this machine lacks. Made for Debian 12.

# install_missing <what>...: each is a command, or "gtest" for GoogleTest, "asio" for Asio, "spdlog" for spdlog, "caf"
# for the C++ Actor Framework, "clang-rt" for the sanitizers of clang 19.
install_missing() {
  local what packages=()
  for what in "$@"; do
    case "$what" in
      gtest) [[ -e /usr/include/gtest/gtest.h ]] || packages+=(libgtest-dev) ;;
      asio) [[ -e /usr/include/asio.hpp ]] || packages+=(libasio-dev) ;;
      spdlog) [[ -e /usr/include/spdlog/spdlog.h ]] || packages+=(libspdlog-dev) ;;
      caf) [[ -e /usr/include/caf/all.hpp ]] || packages+=(libcaf-dev) ;;
      clang-rt) compgen -G '/usr/lib/llvm-19/lib/clang/19/lib/linux/*asan*' > /dev/null || packages+=(libclang-rt-19-dev) ;;
      *) command -v "$what" > /dev/null || packages+=("$(package_of "$what")") ;;
    esac
  done
  if ((${#packages[@]} == 0)); then
    return 0
  fi
  if ! command -v apt-get > /dev/null; then
    echo "missing: ${packages[*]} (names of Debian packages); install them and try again" >&2
    return 1
  fi
  local as_root=()
  if [[ "$(id -u)" != 0 ]]; then
    as_root=(sudo)
  fi
  echo "installing ${packages[*]}"
  "${as_root[@]}" apt-get update --quiet=2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --quiet=2 --yes --no-install-recommends "${packages[@]}" > /dev/null
}

# The Debian package of a command. Most packages have the name of the command.
package_of() {
  case "$1" in
    clang++-19) echo clang-19 ;;
    erl | escript) echo erlang-base ;;
    ninja) echo ninja-build ;;
    *) echo "$1" ;;
  esac
}
