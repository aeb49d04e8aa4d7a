"""The check in front of NVML: the types of NVIDIA's header, and calls that do not fit them."""

from __future__ import annotations

import ctypes
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from tools.devices.nvml_types import declared, made, reached

from lockstep.devices.calls import checked, mismatch
from lockstep.devices.core.nvml_types import TYPES

FABRIC = pynvml.c_nvmlGpuFabricInfoV_t()
DEVICE = pynvml.c_nvmlDevice_t()
COUNT = ctypes.byref(ctypes.c_uint())


def test_each_call_that_devices_makes_is_in_the_table() -> None:
    binding = Path(pynvml.__file__).read_text()
    assert reached(binding, made()) <= TYPES.keys()
    assert len(TYPES) < 100


@pytest.mark.parametrize(
    ("line", "letters"),
    [
        ("nvmlReturn_t DECLDIR nvmlShutdown(void);", ""),
        (
            "nvmlReturn_t DECLDIR nvmlA(nvmlDevice_t device, char *name, unsigned int length);",
            "ppI",
        ),
        ("nvmlReturn_t DECLDIR nvmlA(nvmlDevice_t d, nvmlClock_t type, int many);", "pIi"),
        ("nvmlReturn_t DECLDIR nvmlA(nvmlDevice_t d,\n  unsigned long long types);", "pL"),
        ("nvmlReturn_t DECLDIR nvmlA(nvmlOdd_t *by_address, nvmlOdd_t by_value);", "p?"),
        ("const DECLDIR char* nvmlErrorString(nvmlReturn_t result);", "I"),
    ],
)
def test_the_header_is_read_argument_by_argument(line: str, letters: str) -> None:
    before = (
        "typedef struct nvmlDevice_st* nvmlDevice_t;\n"
        "typedef enum nvmlReturn_enum { OK = 0 } nvmlReturn_t;\n"
        "typedef enum { SM /* , ( */ = 1 } nvmlClock_t;\n"
        "typedef struct { int a; } nvmlOdd_t;\n"
    )
    assert [found for _, found in declared(before + line)] == [letters]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("nvmlDeviceGetGpuFabricInfoV", (DEVICE, ctypes.byref(FABRIC)), ""),
        ("nvmlDeviceGetGpuFabricInfoV", (DEVICE, ctypes.pointer(FABRIC)), ""),
        ("nvmlDeviceGetHandleByUUID", (ctypes.c_char_p(b"GPU-1"), ctypes.byref(DEVICE)), ""),
        ("nvmlDeviceGetName", (DEVICE, ctypes.create_string_buffer(8), ctypes.c_uint(8)), ""),
        ("nvmlDeviceGetNvLinkState", (DEVICE, 3, COUNT), ""),
        ("nvmlDeviceGetFieldValues", (DEVICE, ctypes.c_int32(2), COUNT), ""),
        ("nvmlDeviceRegisterEvents", (DEVICE, ctypes.c_ulonglong(8), DEVICE), ""),
        ("nvmlShutdown", (), ""),
        (
            "nvmlDeviceGetGpuFabricInfoV",
            (DEVICE, FABRIC),
            "argument 2 is a c_nvmlGpuFabricInfo_v2_t, not a pointer",
        ),
        ("nvmlDeviceGetGpuFabricInfoV", (DEVICE,), "it takes 2 arguments, not 1"),
        (
            "nvmlDeviceGetNvLinkState",
            (DEVICE, COUNT, COUNT),
            "argument 2 is a CArgObject, not an unsigned int",
        ),
        ("nvmlDeviceGetUUID", (DEVICE, 7, 8), "argument 2 is a int, not a pointer"),
        (
            "nvmlDeviceRegisterEvents",
            (DEVICE, ctypes.c_uint(8), DEVICE),
            "argument 2 is a c_uint, not an unsigned long long",
        ),
        (
            "nvmlDeviceRegisterEvents",
            (DEVICE, 8, DEVICE),
            "argument 2 is a int, not an unsigned long long",
        ),
        ("nvmlDeviceGetIndex", (1.5, COUNT), "argument 1 is a float, not a pointer"),
        ("nvmlDeviceFly", (), "its types are not in the table of NVML's types"),
    ],
)
def test_arguments_are_compared_with_the_header(
    name: str, arguments: tuple[Any, ...], why: str
) -> None:
    assert mismatch(name, arguments) == why


def test_a_wrong_call_is_refused_named_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reaches: list[str] = []

    def find(name: str) -> Any:
        return lambda *_: reaches.append(name) or 0

    lib = SimpleNamespace(_nvmlGetFunctionPointer=find, NVML_ERROR_INVALID_ARGUMENT=2)
    checked(lib)
    checked(lib)
    call = lib._nvmlGetFunctionPointer("nvmlDeviceGetGpuFabricInfoV")
    with caplog.at_level(logging.ERROR):
        assert [call(DEVICE, FABRIC), call(DEVICE, FABRIC)] == [2, 2]
    assert reaches == []
    (record,) = caplog.records
    assert record.getMessage() == (
        "nvmlDeviceGetGpuFabricInfoV was not called: argument 2 is a c_nvmlGpuFabricInfo_v2_t, "
        "not a pointer. The installed nvidia-ml-py does not fit; run pip install -U nvidia-ml-py."
    )
    assert call(DEVICE, ctypes.byref(FABRIC)) == 0
    assert reaches == ["nvmlDeviceGetGpuFabricInfoV"]
