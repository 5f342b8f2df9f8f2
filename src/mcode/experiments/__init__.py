"""The experiments of the paper, and a protocol without their artefacts beside them."""

from mcode.experiments.run import EXPERIMENTS, run_experiment

__all__ = ["EXPERIMENTS", "run_experiment"]
