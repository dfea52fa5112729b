// SPDX-License-Identifier: Apache-2.0
// Checks an object for the kernel's virtual machine as the kernel's verifier does: no relocation, no call, and no cycle
// among the instructions. A backward jump is allowed if it closes no cycle, because compilers order blocks freely.
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Instruction {
    std::uint8_t opcode;
    std::uint8_t registers;
    std::int16_t offset;
    std::int32_t immediate;
};
static_assert(sizeof(Instruction) == 8);

constexpr unsigned class_of_opcode = 0x07;
constexpr unsigned class_jump = 0x05;
constexpr unsigned class_jump32 = 0x06;
constexpr unsigned operation_of_opcode = 0xf0;
constexpr unsigned jump_always = 0x00;
constexpr unsigned call = 0x80;
constexpr unsigned leave = 0x90;
constexpr unsigned load_of_two_slots = 0x18;

template <class T>
std::vector<T> table_at(std::span<const char> object, std::size_t offset, std::size_t bytes) {
    if (offset > object.size() || bytes > object.size() - offset)
        throw std::runtime_error("the object file is truncated");
    std::vector<T> table(bytes / sizeof(T));
    std::memcpy(table.data(), object.data() + offset, table.size() * sizeof(T));
    return table;
}

// Every executable section; throws if one of them has relocations.
std::vector<std::vector<Instruction>> programs_of(std::span<const char> object) {
    const auto header = table_at<Elf64_Ehdr>(object, 0, sizeof(Elf64_Ehdr)).at(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_BPF) {
        throw std::runtime_error("the file is not an ELF object for bpf");
    }
    const auto sections = table_at<Elf64_Shdr>(object, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
    std::vector<std::vector<Instruction>> programs;
    for (const Elf64_Shdr& section : sections) {
        const bool relocates = section.sh_type == SHT_REL || section.sh_type == SHT_RELA;
        if (relocates && (sections.at(section.sh_info).sh_flags & SHF_EXECINSTR) != 0) {
            throw std::runtime_error("the program has relocations: it uses symbols outside its section");
        }
        if ((section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_size == 0) continue;
        programs.push_back(table_at<Instruction>(object, section.sh_offset, section.sh_size));
    }
    return programs;
}

// Indices of the instructions that may run after instruction `at`.
std::vector<std::size_t> successors(const std::vector<Instruction>& program, std::size_t at) {
    const Instruction& instruction = program.at(at);
    if (instruction.opcode == load_of_two_slots) return {at + 2};
    const unsigned kind = instruction.opcode & class_of_opcode;
    if (kind != class_jump && kind != class_jump32) return {at + 1};
    const unsigned operation = instruction.opcode & operation_of_opcode;
    if (operation == leave) return {};
    if (operation == call) throw std::runtime_error("the program calls a function");
    const auto target = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at) + 1 + instruction.offset);
    if (operation == jump_always) return {target};
    return {at + 1, target};
}

// Searches depth first, as the verifier does: a jump to an instruction of the current path closes a cycle.
void require_no_cycle(const std::vector<Instruction>& program) {
    enum class Mark : std::uint8_t { unseen, open, closed };
    std::vector<Mark> marks(program.size(), Mark::unseen);
    struct Visit {
        std::size_t at;
        std::vector<std::size_t> next;
    };
    std::vector<Visit> path{{0, successors(program, 0)}};
    marks.at(0) = Mark::open;
    while (!path.empty()) {
        Visit& visit = path.back();
        if (visit.next.empty()) {
            marks.at(visit.at) = Mark::closed;
            path.pop_back();
            continue;
        }
        const std::size_t to = visit.next.back();
        visit.next.pop_back();
        if (marks.at(to) == Mark::open) throw std::runtime_error("instruction " + std::to_string(to) + " is in a loop");
        if (marks.at(to) == Mark::closed) continue;
        marks.at(to) = Mark::open;
        path.push_back({to, successors(program, to)});
    }
}

void check(const char* path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> object{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto programs = programs_of(object);
    if (programs.empty()) throw std::runtime_error("the object has no executable section");
    for (const auto& program : programs) {
        require_no_cycle(program);
        std::printf("%zu instructions, no call, no loop\n", program.size());
    }
}

}  // namespace

int main(int argument_count, char** arguments) {
    if (argument_count != 2) {
        std::fprintf(stderr, "usage: %s OBJECT\n", arguments[0]);
        return 2;
    }
    try {
        check(arguments[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", arguments[1], error.what());
        return 1;
    }
    return 0;
}
