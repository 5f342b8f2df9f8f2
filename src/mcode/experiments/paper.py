"""What Hong & Hauskrecht (2015) print, to compare with: Table 3, the AUC of Experiment 1 over 30 runs."""

from __future__ import annotations

import numpy as np

RUNS = 30
METHODS = ("RD", "LOF", "OCSVM", "MCODE-ComP", "MCODE-RD", "MCODE-Linf", "MCODE-LOF", "MCODE-OCSVM")
DATA_SETS = ("Mediamill", "Bibtex", "Reuters", "Corel5k", "Medical", "Genbase")

AUC = np.array(
    [
        [0.734, 0.820, 0.780, 0.962, 0.931, 0.974, 0.892, 0.921],
        [0.501, 0.807, 0.512, 0.839, 0.977, 0.888, 0.930, 0.762],
        [0.512, 1.000, 0.538, 0.903, 0.978, 0.960, 1.000, 0.823],
        [0.516, 0.947, 0.630, 0.828, 0.525, 0.868, 0.975, 0.795],
        [0.516, 1.000, 0.562, 0.963, 0.633, 0.965, 1.000, 0.936],
        [0.512, 1.000, 0.848, 0.986, 0.975, 0.986, 0.998, 0.987],
    ]
)
SD = np.array(
    [
        [0.187, 0.045, 0.031, 0.019, 0.025, 0.017, 0.040, 0.022],
        [0.049, 0.035, 0.056, 0.032, 0.088, 0.032, 0.025, 0.037],
        [0.051, 0.000, 0.054, 0.022, 0.017, 0.013, 0.000, 0.034],
        [0.059, 0.031, 0.062, 0.029, 0.086, 0.029, 0.018, 0.038],
        [0.051, 0.000, 0.048, 0.013, 0.216, 0.014, 0.000, 0.024],
        [0.054, 0.000, 0.033, 0.020, 0.102, 0.020, 0.006, 0.018],
    ]
)
# The methods in bold of each data set, and of the rank row.
BOLD = {
    "Mediamill": {"MCODE-Linf"},
    "Bibtex": {"MCODE-RD"},
    "Reuters": {"LOF", "MCODE-LOF"},
    "Corel5k": {"MCODE-LOF"},
    "Medical": {"LOF", "MCODE-LOF"},
    "Genbase": {"LOF", "MCODE-LOF"},
}
RANK = np.array([8.00, 2.83, 6.83, 3.92, 4.33, 3.08, 2.17, 4.83])
RANK_SD = np.array([0.00, 2.11, 0.40, 1.02, 2.34, 1.20, 1.17, 1.44])
BOLD_RANK = set(METHODS) - {"RD", "OCSVM"}
