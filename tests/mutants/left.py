# SPDX-License-Identifier: Apache-2.0
"""What broken kernels leave behind: processes, and memory of a GPU."""
import contextlib
import ctypes
import glob


def processes_with(mark):
    """Ids of all processes that have `mark` in their environment."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(path.split("/")[2]))
        except OSError:
            continue
    return found


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                ("used", ctypes.c_ulonglong)]


@contextlib.contextmanager
def memory_of(uuid):
    """A function that says how many bytes of this GPU's memory are used, asked of NVML: from
    outside of every context."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()

    def call(name, *args):
        status = getattr(nvml, name)(*args)
        if status:
            raise OSError(f"{name} returned {status}")

    def used():
        memory = _Memory()
        call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        return memory.used

    call("nvmlInit_v2")
    try:
        call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(device))
        yield used
    finally:
        nvml.nvmlShutdown()
