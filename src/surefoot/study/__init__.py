"""Studies: the ask/tell loop on a real plant. Durable, monitored, and open to audit.

``journal`` keeps every step before it counts, ``standing`` is what follows from the journal, ``study`` is what users
call, ``monitor`` watches the plant, ``surefoot.audits`` re-verifies it all independently.
"""
