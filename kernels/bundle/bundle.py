#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes bundles: kernel libraries without a C library. docs/bundles.md says more.

    bundle.py triton KERNELS.py BUNDLE.kgb    compiles the Triton kernels of its list BUNDLE
    bundle.py pack MANIFEST.json BUNDLE.kgb   puts a manifest and the cubins beside it into one file

A bundle is needed where kernels are compiled; the machine that measures needs nothing but it.
"""
import argparse
import importlib.util
import json
import os
import re
import struct
import sys

# Triton's names of the gate's dtypes.
TRITON_TYPES = {"fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "fp64": "fp64", "e4m3": "fp8e4nv",
                "e5m2": "fp8e5", "int8": "i8", "int32": "i32", "int64": "i64", "bool": "i1"}
# How those of arguments are passed.
PASSED = {"i1": "i8", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8",
          "u16": "i16", "u32": "i32", "u64": "i64", "fp32": "f32", "fp64": "f64"}
TENSOR = re.compile(r"(in|out)(\d+)")
KEYS = {"kernel", "op", "name", "dtypes", "arguments", "types", "constants", "divisible", "one",
        "when", "grid", "num_warps", "num_stages"}


def pack(manifest, files):
    """The bytes of a bundle: gate/library/machine_code.h."""
    order = dict.fromkeys(launch["code"] for kernel in manifest["kernels"]
                          for launch in kernel["launches"])
    text = json.dumps(manifest, indent=1).encode() + b"\n"
    parts = [files[name] for name in order]
    sizes = [len(part) for part in (*parts, text)]
    return text + b"".join(parts) + struct.pack(f"<{len(sizes)}Q", *sizes) + b"KGPIECE1"


def write(path, manifest, files):
    with open(path, "wb") as file:
        file.write(pack(manifest, files))
    print(f"{path}: {len(manifest['kernels'])} kernels, {os.path.getsize(path)} bytes")


def run_pack(arguments):
    with open(arguments.input, "rb") as file:
        manifest = json.load(file)
    files = {}
    for launch in (launch for kernel in manifest["kernels"] for launch in kernel["launches"]):
        with open(os.path.join(os.path.dirname(arguments.input), launch["code"]), "rb") as file:
            files[launch["code"]] = file.read()
    write(arguments.bundle, manifest, files)


# ---- Triton ----

def type_of(spec, name):
    """Triton's type of an argument: the one that is given, the tensor's, or a 32-bit integer."""
    if name in spec.get("types", {}):
        return spec["types"][name]
    tensor = TENSOR.fullmatch(spec["arguments"][name])
    if not tensor:
        return "i32"
    if len(spec["dtypes"]) > 1:
        raise ValueError(f"'types' must say which pointer {name} is: the dtypes differ")
    return "*" + TRITON_TYPES[spec["dtypes"][0]]


def compile_kernel(spec, capability):
    import triton
    from triton.backends.compiler import GPUTarget
    function = spec["kernel"]
    # Each variant's machine code has a name of its own, by which `gate diff` knows it again.
    function.repr = lambda _: re.sub(r"\W", "_", spec["name"])
    names, constants = function.arg_names, dict(spec.get("constants", {}))
    for key in ("arguments", "types", "constants", "divisible", "one"):
        if unknown := sorted(set(spec.get(key, ())) - set(names)):
            raise ValueError(f"'{key}' has {', '.join(unknown)}, which the kernel does not take")
    missing = [n for n in names if n not in constants and n not in spec["arguments"]]
    if missing:
        raise ValueError(f"neither 'arguments' nor 'constants' have {', '.join(missing)}")
    constants.update({name: 1 for name in spec.get("one", ())})
    types = {n: "constexpr" if n in constants else type_of(spec, n) for n in names}
    divisible = [n for n in names if types[n][0] == "*" or n in spec.get("divisible", ())]
    source = triton.compiler.ASTSource(
        fn=function, signature=types, constexprs={(names.index(n),): v for n, v in
                                                  constants.items()},
        attrs={(names.index(n),): [["tt.divisibility", 16]] for n in divisible})
    options = {key: spec[key] for key in ("num_warps", "num_stages") if key in spec}
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    return compiled, types, divisible


def hidden_arguments(compiled, given, grid):
    """Those behind the kernel's own: scratch memory for all blocks, and for a profiler."""
    ptx = re.search(r"\.entry\s+[\w$]+\s*\((.*?)\)", compiled.asm["ptx"], re.S)
    extra = len(re.findall(r"\.param\b", ptx[1])) - given
    scratch = getattr(compiled.metadata, "global_scratch_size", 0) or 0
    if not 0 <= extra <= 2 or (scratch and not extra):
        raise ValueError(f"this version of Triton adds {extra} arguments, which is not known")
    if getattr(compiled.metadata, "profile_scratch_size", 0):
        raise ValueError("it was compiled with Triton's profiler")
    value = "workspace" if scratch else "0"
    blocks = " * ".join(f"({size})" for size in grid)
    return ([{"type": "pointer", "value": v} for v in (value, "0")[:extra]],
            f"{scratch} * {blocks}" if scratch else "0")


def make_kernel(spec, capability):
    if unknown := set(spec) - KEYS:
        raise ValueError(f"no key is named {', '.join(sorted(unknown))}")
    compiled, types, divisible = compile_kernel(spec, capability)
    about = compiled.metadata
    for key, usual in (("num_ctas", 1), ("launch_cooperative_grid", False), ("launch_pdl", False)):
        if getattr(about, key, usual) not in (usual, None):
            raise ValueError(f"bundles have no {key}")
    arguments, when = [], list(spec.get("when", ()))
    for name, value in spec["arguments"].items():
        if name in spec.get("one", ()):
            when.append(f"({value}) == 1")
        if name in divisible:
            when.append(f"({value}) % 16 == 0")
    for name, kind in types.items():
        if kind != "constexpr":
            arguments.append({"type": "pointer" if kind[0] == "*" else PASSED[kind],
                              "value": spec["arguments"][name]})
    hidden, workspace = hidden_arguments(compiled, len(arguments), spec["grid"])
    code = f"{spec['name']}.cubin"
    return {"op": spec["op"], "name": spec["name"], "dtypes": spec["dtypes"], "when": when,
            "workspace": workspace,
            "launches": [{"code": code, "entry": about.name, "grid": spec["grid"],
                          "block": [str(32 * about.num_warps)], "shared": str(about.shared),
                          "arguments": arguments + hidden}]}, compiled.asm["cubin"]


def run_triton(arguments):
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"  # what is in the cache may have another name
    import triton
    path = arguments.input
    where = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(where)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    where.loader.exec_module(module)
    kernels, files = [], {}
    for spec in module.BUNDLE:
        try:
            kernel, cubin = make_kernel(spec, arguments.capability)
        except (KeyError, ValueError) as error:
            sys.exit(f"bundle.py: {path}: kernel '{spec.get('name')}': {error}")
        kernels.append(kernel)
        files[kernel["launches"][0]["code"]] = cubin
    write(arguments.bundle, {"schema": "gate-bundle/1", "provider": "triton",
                             "version": triton.__version__, "kernels": kernels}, files)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("triton", run_triton), ("pack", run_pack)):
        command = commands.add_parser(name)
        command.add_argument("input")
        command.add_argument("bundle")
        command.set_defaults(run=run)
        if name == "triton":
            command.add_argument("--capability", type=int, default=90,
                                 help="of the GPU: 90 for an H100 or H200 (default)")
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
