"""Detectors: a space, a score, and a rank."""

from mcode.detector.audit import Audit, audit
from mcode.detector.base import DetectorBase
from mcode.detector.joint import JointDetector
from mcode.detector.mcode import MCODE
from mcode.detector.song import SongCAD

__all__ = ["MCODE", "Audit", "DetectorBase", "JointDetector", "SongCAD", "audit"]
