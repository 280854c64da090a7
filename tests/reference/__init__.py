"""A slow, plain second opinion on what surefoot computes.

Nothing here imports surefoot. `tables` declares a problem with dicts, `lsvi_new` transcribes the
specification with loops (`paper` holds the paper profile's constants), `generate` draws random valid
problems, `history` plays on them, `selfcheck` says how demanding they are.
"""
