/// @file
/// The addresses of operands: which space an instruction names, and what lies there.
#pragma once
#include <cstddef>
#include <cstdint>

#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {

/// Instruction::space.
enum Space : int { kGeneric, kShared, kGlobal };
/// Takes ".shared", ".global" and so on.
void take_space(Instruction&, Words&);
/// The memory that an argument of this space names. @throws if it is not there
void* find(const Frame&, const Instruction&, int argument, size_t bytes);
/// @throws unless the address is a multiple of the bytes that are accessed together
void check_alignment(const Frame&, const Instruction&, uint64_t address, size_t bytes);
/// `st.async`, of which "async" has been taken.
bool bind_store_async(Instruction&, Words&);

}  // namespace ladder::inline_ptx
