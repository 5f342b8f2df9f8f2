"""The review page: from suspicion to corrected labels, by one person or a team.

A project is one database: the reference to the source table, the findings, and every verdict ever given. `store` is
SQL, `api` and `pages` are what a browser or a program sees of it. Everything here needs ``pip install 'mcode[web]'``.
"""
