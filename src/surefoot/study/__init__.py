"""Studies: the ask/tell loop on a real plant. Durable, monitored, and open to audit.

``journal`` keeps every step before it counts, ``standing`` is what follows from the journal, ``study`` is what users
call, ``monitor`` watches the plant, ``audit`` looks at it all again with other eyes.
"""
