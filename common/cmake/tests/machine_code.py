#!/usr/bin/env python3
"""Checks what ptxas made of lesson 05's kernel for sm_90a, in the machine code (SASS) of a program.

    machine_code.py PROGRAM [--cuobjdump PATH]     disassembles the program and checks it
    machine_code.py --sass FILE                    checks what `cuobjdump -sass PROGRAM` printed

Of the kernels with two compute warpgroups, each must hold HGMMA (wgmma) and USETMAXREG (setmaxnreg) for 40 and for 232
registers a thread, and no LDL or STL, which are what spills become. Prints what it saw in each. Exit codes: 0 as it
should be; 1 not, or there is no such kernel; 2 bad input, one line; 77 there is no cuobjdump.
"""
import argparse
import re
import shutil
import subprocess
import sys

# The lesson's own kernel, which has a number of slots, and the variants' with two compute warpgroups.
KERNEL = re.compile(r"lesson05(4gemmILi\d|.*4gemm.*5ShapeILi2E)")
REGISTERS = {40, 232}
SKIPPED = 77

ARCHITECTURE = re.compile(r"^\s*(?:arch\s*=\s*|\.target\s+)(sm_\w+)")
FUNCTION = re.compile(r"^\s*Function\s*:\s*(\S+)")
# "/*0a10*/   @!UP0 USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8 ;   /* 0x... */"
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-fA-F]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);")
NUMBER = re.compile(r"\b(0x[0-9a-fA-F]+|\d+)\b")


class BadInput(Exception):
    """What is wrong, in one line."""


class Kernel:
    """What one function holds of the instructions that matter here."""

    def __init__(self, name):
        self.name, self.instructions, self.products, self.local = name, 0, 0, 0
        self.registers = []  # of each USETMAXREG, in the order of the code

    def add(self, opcode, operands):
        self.instructions += 1
        kind = opcode.split(".")[0]
        self.products += kind == "HGMMA"
        self.local += kind in ("LDL", "STL")
        if kind == "USETMAXREG":
            numbers = NUMBER.findall(operands)
            self.registers.append(int(numbers[-1], 0) if numbers else None)

    def complaints(self):
        missing = REGISTERS - set(self.registers)
        if missing:
            yield f"no USETMAXREG for {' and '.join(map(str, sorted(missing)))} registers"
        if not self.products:
            yield "no HGMMA"
        if self.local:
            yield f"{self.local} LDL or STL: registers are spilled"

    def summary(self):
        moves = ", ".join(map(str, self.registers)) or "none"
        return f"{self.instructions} instructions, {self.products} HGMMA, USETMAXREG {moves}, {self.local} LDL and STL"


def kernels_of(sass):
    """The kernels of interest, in the code for sm_90."""
    kernels, kernel, architecture = [], None, ""
    for line in sass.splitlines():
        if found := ARCHITECTURE.match(line):
            architecture, kernel = found[1], None
        elif found := FUNCTION.match(line):
            kernel = Kernel(found[1]) if architecture.startswith("sm_90") and KERNEL.search(found[1]) else None
            if kernel:
                kernels.append(kernel)
        elif kernel and (found := INSTRUCTION.match(line)):
            kernel.add(found[1], found[2])
    return kernels


def disassemble(program, cuobjdump):
    tool = shutil.which(cuobjdump)
    if not tool:
        return None
    # All architectures of the program; kernels_of() chooses.
    result = subprocess.run([tool, "-sass", program], capture_output=True, text=True, timeout=240, check=False)
    if result.returncode:
        raise BadInput(f"{program}: cuobjdump failed: {result.stderr.strip() or result.stdout.strip()}")
    return result.stdout


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--cuobjdump", default="cuobjdump", metavar="PATH")
    parser.add_argument("--sass", metavar="FILE", help="read the machine code from here")
    arguments = parser.parse_args(words)
    if bool(arguments.program) == bool(arguments.sass):
        parser.error("needs either PROGRAM or --sass FILE")

    if arguments.sass:
        try:
            with open(arguments.sass, encoding="utf-8") as file:
                sass = file.read()
        except OSError as error:
            raise BadInput(f"{arguments.sass}: {error.strerror}") from error
    else:
        sass = disassemble(arguments.program, arguments.cuobjdump)
    if sass is None:
        print(f"skipped: there is no {arguments.cuobjdump}")
        return SKIPPED
    kernels = kernels_of(sass)
    if not kernels:
        print(f"no kernel for sm_90a has a name like {KERNEL.pattern}: was it renamed, or not compiled?")
        return 1
    failed = False
    for kernel in kernels:
        complaints = list(kernel.complaints())
        failed = failed or bool(complaints)
        print(f"{kernel.name}\n  {kernel.summary()}: {'; '.join(complaints) or 'as it should be'}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as error:
        print(f"machine_code.py: error: {error}", file=sys.stderr)
        sys.exit(2)
