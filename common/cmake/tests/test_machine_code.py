#!/usr/bin/env python3
"""Tests of machine_code.py: `python3 common/cmake/tests/test_machine_code.py`."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from machine_code import kernels_of, main  # noqa: E402

KERNEL = "_ZN8lesson054gemmILi4EEEvN6ladder10TensorMapsENS1_8TileWalkEi"
VARIANT = "_ZN8lesson056ratios4gemmINS0_5ShapeILi2ELi4EEEN6ladder8BiasThenINS4_4GeluEEEEEvNS4_10TensorMapsENS4_8TileWalkEiT0_"
ONE_WARPGROUP = VARIANT.replace("ShapeILi2E", "ShapeILi1E")
DEALLOCATE = "USETMAXREG.DEALLOC.CTAPOOL 0x28"
ALLOCATE = "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8"
PRODUCT = "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4].tnspB, R24, gsb0"


def function(name, *instructions):
    """What cuobjdump -sass prints of a function: each instruction on a line, and its encoding on two."""
    lines = ["", f"\t\tFunction : {name}", '\t.headerflags\t@"EF_CUDA_SM90 EF_CUDA_ACCELERATORS"']
    for place, instruction in enumerate(instructions):
        lines.append(f"        /*{16 * place:04x}*/                   {instruction} ;    /* 0x00000a00ff017b82 */")
        lines.append("                                                      /* 0x000fe20000000800 */")
    return "\n".join(lines + ["\t\t..........", ""])


def program(*functions, architecture="sm_90a"):
    return f"\nFatbin elf code:\n================\narch = {architecture}\ncode version = [1,8]\n\n\tcode for {architecture}\n" + \
        "".join(functions)


def complaints(*functions, **options):
    return [list(kernel.complaints()) for kernel in kernels_of(program(*functions, **options))]


class MachineCode(unittest.TestCase):
    def test_a_kernel_with_both_moves_and_products_is_as_it_should_be(self):
        (kernel,) = kernels_of(program(function(KERNEL, DEALLOCATE, "@!UP0 " + ALLOCATE, PRODUCT, PRODUCT, "EXIT")))
        self.assertEqual(list(kernel.complaints()), [])
        self.assertEqual(kernel.summary(), "5 instructions, 2 HGMMA, USETMAXREG 40, 232, 0 LDL and STL")

    def test_variants_with_two_compute_warpgroups_are_looked_at(self):
        self.assertEqual(complaints(function(VARIANT, DEALLOCATE, PRODUCT)), [["no USETMAXREG for 232 registers"]])

    def test_moves_may_be_predicated_or_written_in_decimal(self):
        code = ("@P1 USETMAXREG.DEALLOC 40", "USETMAXREG.TRY_ALLOC.CTAPOOL P0, 232", PRODUCT)
        self.assertEqual(complaints(function(KERNEL, *code)), [[]])

    def test_a_move_that_ptxas_ignored_is_named(self):
        self.assertEqual(complaints(function(KERNEL, DEALLOCATE, PRODUCT)), [["no USETMAXREG for 232 registers"]])
        self.assertEqual(complaints(function(KERNEL, PRODUCT)), [["no USETMAXREG for 40 and 232 registers"]])

    def test_a_kernel_without_wgmma_is_named(self):
        code = (DEALLOCATE, ALLOCATE, "HMMA.16816.F32.BF16 R4, R8, R12, R4")
        self.assertEqual(complaints(function(KERNEL, *code)), [["no HGMMA"]])

    def test_spills_are_counted(self):
        code = (DEALLOCATE, ALLOCATE, PRODUCT, "STL [R1+0x8], R4", "@P0 LDL.64 R4, [R1+0x8]", "LDS R3, [R4]")
        self.assertEqual(complaints(function(KERNEL, *code)), [["2 LDL or STL: registers are spilled"]])

    def test_other_kernels_and_other_architectures_are_not_looked_at(self):
        self.assertEqual(complaints(function(ONE_WARPGROUP, PRODUCT), function("apply_epilogue", "EXIT")), [])
        self.assertEqual(complaints(function(KERNEL, "EXIT"), architecture="sm_80"), [])
        code = program(function(KERNEL, "EXIT"), architecture="sm_80") + \
            program(function(KERNEL, DEALLOCATE, ALLOCATE, PRODUCT))
        self.assertEqual([list(kernel.complaints()) for kernel in kernels_of(code)], [[]])

    def test_a_program_without_such_a_kernel_fails(self):
        as_it_should_be = function(KERNEL, DEALLOCATE, ALLOCATE, PRODUCT)
        for sass, code in ((program(as_it_should_be), 0), (program(function(ONE_WARPGROUP, PRODUCT)), 1),
                           (program(as_it_should_be, architecture="sm_80"), 1), ("", 1)):
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
                file = pathlib.Path(folder) / "program.sass"
                file.write_text(sass, encoding="utf-8")
                self.assertEqual(main(["--sass", str(file)]), code)
            self.assertIn("was it renamed" if code else "as it should be", said.getvalue())


if __name__ == "__main__":
    unittest.main()
