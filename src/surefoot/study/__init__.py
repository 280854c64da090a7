"""Studies: the ask/tell loop on a real plant. Durable, monitored, and open to audit.

``study`` is what users call, ``protocol`` the same by JSON. ``records`` are what happens, and ``journal`` has each on
disk before it counts. ``standing`` is what follows from them, in a study that runs or is opened again (``opening``,
``snapshots``). ``alarms`` says what answers an alarm, ``declaring`` and ``comparing`` what may be declared anew.
``surefoot.audits`` re-verifies it all independently.
"""
