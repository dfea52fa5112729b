// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/crypto.h"

namespace atp::keys {

// The text of a secret file, which wipes itself.
class SecretText {
  public:
    explicit SecretText(std::size_t most_bytes) { text_.resize(most_bytes); }  // never grows: no copy stays behind
    ~SecretText() { crypto::wipe(text_); }
    SecretText(const SecretText&) = delete;
    SecretText& operator=(const SecretText&) = delete;

    // False: see errno; EFBIG: the file is longer.
    [[nodiscard]] bool read(int file);
    [[nodiscard]] std::string_view text() const { return std::string_view(text_).substr(0, size_); }

  private:
    std::string text_;
    std::size_t size_ = 0;
};

// Of a file that only its owner may read. `noun`: what the file is, and `remedy` what else to do if others may have
// read it, for the error. Failure: denied if others may read the file, malformed if it is none; or the error of a
// system call.
[[nodiscard]] Result<std::unique_ptr<SecretText>> read_secret_file(const std::string& path, std::size_t most_bytes,
                                                                   std::string_view noun, std::string_view remedy);

}  // namespace atp::keys
