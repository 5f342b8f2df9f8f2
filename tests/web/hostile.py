"""A table in which everything that can be text is hostile."""

import numpy as np
import pandas as pd

SCRIPT = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
FORMULA = '=HYPERLINK("http://evil.example","x")'
MARKS = "\u202e\u2066gnirts\u2069 \x07\x1b[31m ` {{ 7*7 }} ${7*7} %00 ' \" & \u0000"
LABELS = [f"dx {SCRIPT}", f"{FORMULA}", "dx \u202e reversed"]


def hostile_frame(n=90, large=1_000_000):
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "id": [f"{SCRIPT} {FORMULA} {MARKS} {k}" for k in range(n)],
            f"age {SCRIPT}": x.round(3),
            "note": [SCRIPT, FORMULA, MARKS] * (n // 3),
            "large": [SCRIPT + "x" * (large if k < 2 else 10) for k in range(n)],
        }
    )
    for j, name in enumerate(LABELS):
        answers = np.where((x + 0.3 * rng.normal(size=n)) * (1 if j else -1) > 0, 1, 0)
        frame[name] = answers if j < 2 else np.where(answers, SCRIPT, f"no {FORMULA}")
    frame.loc[:3, LABELS[0]] = 1 - frame.loc[:3, LABELS[0]]
    return frame
