# SPDX-License-Identifier: Apache-2.0
"""The package that a trial uses: a wheel, which it unpacks, or a folder with the package."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

KERNEL = b"load_integers_kernel"  # of src/drivers/staging/cuda_kernels.cu


class Unusable(Exception):
    """The text names the package, what is wrong with it, and what to try."""


class Package:
    """`folder` is what PYTHONPATH must name to import the package. A wheel is unpacked below `unpacked`."""

    def __init__(self, given: Path, unpacked: Path) -> None:
        if given.is_dir():
            self.folder, self.source = given.absolute(), f"folder {given}"
        elif given.suffix == ".whl" and given.is_file():
            self.folder = unpacked
            self.source = f"{given.name}, SHA-256 {hashlib.sha256(given.read_bytes()).hexdigest()[:12]}"
            self._unpack(given)
        else:
            raise Unusable(f"{given} is no wheel and no folder: name atpnet-*.whl, or build/release/python")
        if not (self.folder / "atp" / "__init__.py").exists():
            raise Unusable(f"{given} has no package atp: name atpnet-*.whl, or build/release/python")
        self._libraries = [path for path in self.folder.glob("atp/lib/**/*.so*") if path.is_file()]

    def _unpack(self, wheel: Path) -> None:
        try:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(self.folder)
        except (OSError, zipfile.BadZipFile) as error:
            raise Unusable(f"{wheel} cannot be unpacked: {error}") from None

    def has_kernels(self) -> bool:
        """True if this package was built with nvcc, so that devices can convert."""
        return any(KERNEL in path.read_bytes() for path in self._libraries)

    def library_for(self, torch_version: str) -> str:
        """File name of the library for this release of torch, or an empty text."""
        release = ".".join(torch_version.split(".")[:2])
        return next((path.name for path in self._libraries if path.name == f"libatp_torch_{release}.so"), "")
