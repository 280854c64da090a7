"""Studies: the ask/tell loop on a real plant. Durable, monitored, and open to audit.

``study`` is what users call, and ``protocol`` the same in JSON. ``records`` describes what is written, and ``journal``
writes it to disk before it counts. ``standing`` is the state that follows, in a running study and in one that is opened
again (``opening``, ``snapshots``). ``alarms`` says what answers an alarm, ``declaring``, ``comparing`` and ``changing``
how a declaration may change. ``surefoot.audits`` re-verifies everything independently.
"""
